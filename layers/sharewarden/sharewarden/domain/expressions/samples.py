"""Facts that an expression is tried on at load: everything is known in them, so every part has a value."""

from typing import Any

from sharewarden.domain.rules.facts import (
    Facts,
    JobFacts,
    PartyFacts,
    ShareFacts,
    SlaFacts,
    TeamFacts,
    UnitFacts,
)

from .names import ROOTS, members, named

_NOW = 1_800_000_000_000
_TYPE = "ml.g6e.12xlarge"


def samples(keys: frozenset[str]) -> tuple[dict[str, Any], ...]:
    """Two jobs, one that runs and one that waits; maps have the keys that the expression asks for as well."""
    tags = dict.fromkeys(keys | {"team", "user"}, "1")
    units = dict.fromkeys(keys | {_TYPE}, UnitFacts(limit=4, used=3, borrowed=1, others=6))
    return tuple(named(_facts(number, tags, units), members(ROOTS)) for number in (1, 2))


def _facts(number: int, tags: dict[str, str], units: dict[str, UnitFacts]) -> Facts:
    hours = {"day": 10.0 * number, "week": 40.0, "month": 100.0}
    party = {"running_instances": 4 * number, "running_gpus": 16, "queued_jobs": 3}
    party |= {"running_up_to_job": 2, "queued_up_to_job": 1}
    return Facts(
        now=_NOW,
        job=_job(number, tags),
        share=ShareFacts(name="a", strategy="LEND", borrow_limit=100, min_runtime=600, units=units),
        team=TeamFacts(
            name="a", **party, granted_sla=("gold",), owned_gpu_hours=hours, borrowed_gpu_hours=hours
        ),
        user=PartyFacts(name="u", **party),
        sla=SlaFacts(name="gold", granted=True, start_within=1800, restart_within=1200),
    )


def _job(number: int, tags: dict[str, str]) -> JobFacts:
    texts = dict.fromkeys(
        ("id", "name", "queue", "share", "team", "tag_team", "user", "project", "sla", "lineage", "role"), "a"
    )
    lengths = ("expected_runtime", "waiting", "in_status", "running", "trained", "max_runtime")
    numbers = dict.fromkeys((*lengths, "checkpoint_age", "save_interval"), 600 * number)
    return JobFacts.model_validate(
        texts
        | numbers
        | {"tags": tags, "odd_tags": tags, "status": "RUNNING" if number == 1 else "RUNNABLE"}
        | {"deadline": _NOW + 1, "priority": 100, "base": 50 * number, "drifted": number == 2}
        | {"instance_type": _TYPE, "instances": number, "gpus": 4 * number, "preemptions": number}
        | {"preemption_retries": 3, "checkpoint_uri": "s3://a/b", "blocked": "CAPACITY"}
    )
