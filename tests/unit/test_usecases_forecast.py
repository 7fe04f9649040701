"""The forecast of a queue: who is in it, which step is asked about, and what is left open."""

from __future__ import annotations

from typing import Any

import pytest
from sharewarden.domain.observation import JobDescription
from sharewarden.domain.policy import Policy
from sharewarden.domain.record import JobRecord
from sharewarden.domain.stored import MINUTE
from sharewarden.usecases.forecast import Forecast, QueueForecast, forecast

from tests.simulation.world import NOW, QUEUE, World, world

from .test_usecases_helping import SHARE, UNIT, WAITS, described, record_of

POLICY = Policy.model_validate(
    {
        "queues": {
            "ml-train-qm": {
                "bands": {"automatic": {"lowest": 0, "highest": 400}},
                "shares": {"vision": {"team": "t", "min_runtime": "10m"}, "nlp": {"team": "t"}},
            }
        },
        "teams": {"t": {"sla": ["gold", "calm", "plain", "nightly"]}},
        "sla": {
            "gold": {
                "start_within": "80m",
                "ladder": [
                    {"at": "50%", "boost": 100},
                    {"at": "90%", "boost": 399},
                    {"at": "100%", "notify": "team"},
                ],
            },
            "calm": {"start_within": "1d", "ladder": [{"at": "10%", "notify": "team"}]},
            "plain": {"start_within": "90m"},
            "nightly": {"finish_by": True},
        },
    }
)
RUNS = described(job="holder", arn=f"{described().arn[:-36]}holder", name="holder", priority=50)


def waits(job: str = "mine", sla: str | None = "gold", **members: Any) -> JobDescription:
    """A job of one instance that has waited for an hour."""
    arn = f"{described().arn[:-36]}{job}"
    tags = () if sla is None else (("sla", sla),)
    told = {"job": job, "arn": arn, "name": job, "tags": tags, "instance_count": 1, "read_at": NOW}
    return WAITS.model_copy(update=told | members)


def place(*jobs: JobDescription, records: dict[str, JobRecord] | None = None) -> World:
    """A pool of four instances in which ``holder`` uses both of its share; each job has its record."""
    made = world(policy=POLICY)
    known = {job.job: record_of(job) for job in (RUNS, *jobs)} | (records or {})
    for job in (RUNS, *jobs):
        made.batch.tell(job)
    nlp = SHARE.model_copy(update={"name": "nlp", "arn": f"{QUEUE}/quota-share/nlp"})
    made.batch.quota_shares[QUEUE] = [SHARE.model_copy(update={"enabled": True, "strategy": "RESERVE"}), nlp]
    made.batch.environments[QUEUE] = {UNIT: 4}
    made.ledger.commit(known.values(), [], NOW)
    return made


def shown(*jobs: JobDescription, at: int = 0, **more: Any) -> QueueForecast:
    made = place(*jobs, **more)
    made.clock.advance(at * MINUTE)
    return forecast(made.runtime, QUEUE)


def only(found: QueueForecast) -> Forecast:
    (job,) = found.jobs
    return job


@pytest.mark.parametrize(
    ("minute", "due", "coming", "asked", "priority"),
    [
        (-21, [], 1, 1, 105),
        (-20, [1], 2, 2, 400),
        (0, [1], 2, 2, 400),
        (12, [1, 2], 3, 2, 400),
        (20, [1, 2, 3], None, 2, 400),
    ],
)
def test_the_step_to_ask_about_is_the_next_one_with_a_boost_or_the_last_due_one(
    minute: int, due: list[int], coming: int | None, asked: int, priority: int
) -> None:
    job = only(shown(waits(), at=minute))
    assert [step.number for step in job.due] == due
    assert (job.next.number if job.next else None, job.asked) == (coming, asked)
    assert job.help is not None
    assert (job.help.priority, job.help.asked) == (5, priority), "boosts stay inside the automatic band"


def test_it_says_whether_the_step_helps_and_who_may_lose_what() -> None:
    job = only(shown(waits()))
    assert (job.waited, job.used, job.late, job.slack, job.escalated) == (60 * MINUTE, 75, False, None, True)
    assert job.help is not None
    assert (job.help.kind, job.help.reason, job.help.needs) == ("yes-now", "push-out", 51)
    assert [(victim.name, victim.loses, victim.sla) for victim in job.help.victims] == [
        ("holder", 20 * MINUTE, "silver")
    ]


def test_without_a_boost_on_the_ladder_nothing_is_asked() -> None:
    found = shown(waits("a", "calm"), waits("b", "plain"))
    assert [(job.name, job.help, job.asked) for job in found.jobs] == [("b", None, None), ("a", None, None)]
    assert [job.next.number if job.next else None for job in found.jobs] == [None, 1]


def test_law_02_without_a_base_no_priority_is_asked_about() -> None:
    job = only(shown(waits(priority=None)))
    assert (job.asked, job.help) == (2, None)


def test_the_most_urgent_comes_first() -> None:
    older, same = waits("z", created_at=NOW - 61 * MINUTE), waits("a")
    assert [job.name for job in shown(waits("m", "plain"), same, older).jobs] == ["z", "a", "m"]


def test_law_11_a_job_that_was_late_when_first_seen_is_listed_and_not_escalated() -> None:
    late = waits(created_at=NOW - 90 * MINUTE)
    adopted = record_of(late, adopted=True, adopted_at=NOW - MINUTE)
    job = only(shown(late, records={"mine": adopted}))
    assert (job.late, job.escalated, job.due, job.next, job.help) == (True, False, (), None, None)
    timely = record_of(late, adopted=True, adopted_at=NOW - 60 * MINUTE)
    job = only(shown(late, records={"mine": timely}))
    assert (job.late, job.escalated, len(job.due)) == (True, True, 3)


def test_law_02_what_cannot_be_told_is_listed_and_no_sla_is_counted() -> None:
    made = place(waits("a", "bronze"), waits("b", None), waits("c", None))
    made.batch.tell(waits("unknown"))
    found = forecast(made.runtime, QUEUE)
    assert (found.jobs, found.without_sla) == ((), 2)
    assert sorted((one.name, one.share, one.why) for one in found.untold) == [
        ("a", "vision", "the policy has no SLA class bronze"),
        ("unknown", "vision", "Sharewarden has no record of it yet"),
    ]


def test_a_share_can_be_picked_and_what_was_not_read_is_said() -> None:
    made = place(waits("a", share="nlp"), waits("b"), waits("c", None, share="nlp"))
    made.batch.tell(waits("elsewhere", queue="another"))
    made.ledger.commit([record_of(waits("elsewhere"))], [], NOW)
    found = forecast(made.runtime, QUEUE, "nlp")
    assert ([job.name for job in found.jobs], found.without_sla) == (["a"], 1)
    assert found.shares == ("vision", "nlp")
    assert found.gaps == ("elsewhere changed its state while the jobs were listed",)
    assert (found.policy, found.at, found.queue) == (POLICY.hash, NOW, QUEUE)
