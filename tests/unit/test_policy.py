"""What nobody has allowed is not done."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from sharewarden.domain.audit import subject_key
from sharewarden.domain.expressions import expression
from sharewarden.domain.policy import Band, Policy, QueuePolicy, SharePolicy
from sharewarden.domain.rules.base import MOST_ENTRIES
from sharewarden.domain.stored import MINUTE

QUEUE = "arn:aws:batch:us-east-1:123456789012:job-queue/ml"


def test_the_defaults_are_safe() -> None:
    rules = Policy().queue(QUEUE)
    assert (rules.mode, rules.bumps) == ("shadow", "shadow")
    assert rules.bands.automatic.highest < rules.bands.human.lowest
    assert Policy().share(QUEUE, None) == SharePolicy()
    assert Policy().share(QUEUE, "any").min_runtime == 10 * MINUTE


def test_queues_are_named_and_found_by_arn() -> None:
    policy = Policy(queues={"ml": QueuePolicy(bumps="enforce", shares={"s": SharePolicy(team="t")})})
    assert policy.queue(QUEUE).bumps == "enforce"
    assert policy.share(QUEUE, "s").team == "t"
    assert policy.queue(f"{QUEUE}-other").bumps == "shadow"


def test_the_hash_names_the_content() -> None:
    assert Policy().hash == Policy().hash != Policy(paused=True).hash


def test_durations_may_be_written_as_people_do() -> None:
    assert Policy(hold="1h30m").hold == 90 * MINUTE  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [
        {"queue": {}},
        {"blast_radius": {"acts": 0}},
        {"hold": "soon"},
        {"hold": -1},
        {"drift_settle": 0},
        {"wish_life": 0},
        {"wish_life": "9m"},
        {"queues": {"ml": {"shares": {"s": {"min_runtime": -5}}}}},
        {"queues": {"ml": {"mode": "yes"}}},
        {"queues": {"": {}}},
        {"teams": {"t" * 257: {}}},
        {"sla": {"a\u202eb": {}}},
        {"queues": {"ml": {"shares": {"a\nb": {}}}}},
        {"queues": {"ml": {"shares": {"s": {"team": "x "}}}}},
        {"guardrails": [{"rule": "no-team", "name": "a\nb"}]},
        {"guardrails": [{"rule": "no-team", "name": "n" * 101}]},
        {"guardrails": [{"rule": "no-team", "shares": [""]}]},
        {"guardrails": [{"rule": "required-tags", "tags": ["x"] * 101}]},
        {"guardrails": [{"name": "a", "when": "true", "text": "t" * 1001}]},
        {"guardrails": [{"rule": "no-team", "name": str(number)} for number in range(1001)]},
        {"queues": {"ml": {"bands": {"human": {"lowest": 900, "highest": 800}}}}},
        {"queues": {"ml": {"bands": {"human": {"lowest": 0, "highest": 10_000}}}}},
    ],
)
def test_mistakes_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Policy.model_validate(wrong)


def test_the_longest_names_and_lists_are_taken() -> None:
    name = "\U0001f600" * 256
    entries = [{"rule": "no-team", "name": "n" * 97 + f"{number:03}"} for number in range(1000)]
    given = {"teams": {name: {}}, "queues": {name: {"shares": {name: {"team": name}}}}, "guardrails": entries}
    found = Policy.model_validate(given)
    assert len(found.guardrails) == MOST_ENTRIES
    key = subject_key("finding", name, found.guardrails[0].label, found.guardrails[0].fingerprint, "2026-W48")
    assert len(f"NOTICE#{key}".encode()) < 2048  # what DynamoDB takes as a partition key


def test_the_expressions_of_two_policies_are_kept() -> None:
    assert expression.cache_parameters()["maxsize"] == 2 * MOST_ENTRIES


ENTRY = {"rule": "max-instances-per-job", "limit": 4}


@pytest.mark.parametrize(
    ("rules", "entry", "stops", "acting"),
    [
        ({}, {}, "shadow", False),
        ({}, {"action": "terminate"}, "shadow", False),
        ({}, {"action": "terminate", "mode": "enforce"}, None, True),
        ({}, {"action": "lower-priority", "mode": "enforce", "queues": ["ml"]}, None, True),
        ({}, {"action": "terminate", "mode": "enforce", "queues": ["other"]}, "shadow", False),
        ({"mode": "enforce"}, {"action": "notify"}, None, False),
        ({"mode": "enforce"}, {"action": "terminate"}, None, True),
        ({"mode": "enforce"}, {"action": "terminate", "mode": "shadow"}, None, False),
        ({"bumps": "enforce"}, {"action": "terminate"}, None, False),
    ],
)
def test_what_may_be_done_to_the_jobs_of_a_queue(
    rules: dict[str, object], entry: dict[str, object], stops: str | None, acting: bool
) -> None:
    policy = Policy.model_validate({"queues": {"ml": rules}, "guardrails": [ENTRY | entry]})
    assert policy.stops(QUEUE) == stops
    assert policy.acting(QUEUE) == (("max-instances-per-job",) if acting else ())
    assert policy.model_copy(update={"paused": True}).stops(QUEUE) == "paused"


def test_a_band_of_one_value_is_a_band() -> None:
    assert Band(lowest=5, highest=5).highest == 5
