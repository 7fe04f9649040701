"""What a waiting job's SLA is: class, clock, due time, slack, and why it cannot be told."""

from __future__ import annotations

from typing import Any

import pytest
from sharewarden.domain.checkpoints import Save
from sharewarden.domain.observation import AttemptSeen
from sharewarden.domain.policy import Policy
from sharewarden.domain.record import JobRecord
from sharewarden.domain.saves import Saves
from sharewarden.domain.sla import Sla, Untold, late_when_first_seen, sla_of

from tests.simulation.samples import FIRST, SECOND
from tests.simulation.world import NOW

from .test_known import known, read, told

M = 60
POLICY = Policy.model_validate(
    {
        "teams": {"research": {"sla": ["both", "first", "end", "sized"]}, "nlp": {}},
        "sla": {
            "both": {"start_within": "60m", "restart_within": "20m", "finish_by": True},
            "first": {"start_within": "60m"},
            "end": {"finish_by": True},
            "sized": {"start_within": "60m", "finish_by": True, "expected_runtime": "2h"},
        },
    }
)


def tags(sla: str | None, **more: str) -> tuple[tuple[str, str], ...]:
    named = {} if sla is None else {"sla": sla}
    return tuple(
        ({"team": "research"} | named | {name.replace("_", "-"): it for name, it in more.items()}).items()
    )


def waits(*steps: Any, sla: str | None = "both", **more: str) -> JobRecord:
    return known(read(5, tags=tags(sla, **more)), *steps)


def of(record: JobRecord, policy: Policy = POLICY) -> Sla:
    found = sla_of(record, policy)
    assert isinstance(found, Sla), found
    return found


def after(ms: int) -> int:
    """Minutes since ``NOW``."""
    assert (ms - NOW) % 60_000 == 0
    return (ms - NOW) // 60_000


STARTED = (told(10 * M, "SCHEDULED"), told(11 * M, "RUNNING"))
BACK = told(30 * M, "RUNNABLE")
#: An attempt that Batch tells of, and that no event did.
UNSEEN = AttemptSeen(
    training_job=FIRST, started_at=NOW + 9 * M * 1000, stopped_at=NOW + 40 * M * 1000, preempted=True
)
NEVER_RAN = UNSEEN.model_copy(update={"started_at": None})


@pytest.mark.parametrize(
    ("record", "epoch", "since", "due"),
    [
        (waits(), "start", 0, 60),
        (waits(told(50 * M, "RUNNABLE")), "start", 0, 60),
        (waits(*STARTED, BACK), "restart", 30, 50),
        (waits(*STARTED, BACK, told(31 * M, "RUNNABLE")), "restart", 30, 50),
        (waits(*STARTED, BACK, told(40 * M, "RUNNING"), told(70 * M, "RUNNABLE")), "restart", 70, 90),
        # dispatched and taken back before it trained: it still waits for its first start
        (waits(told(10 * M, "SCHEDULED"), BACK), "start", 0, 60),
        (waits(read(50 * M, tags=tags("both"), attempts=(NEVER_RAN,), preempted_count=1)), "start", 0, 60),
        # every event was lost: what Batch says counts
        (waits(read(50 * M, tags=tags("both"), attempts=(UNSEEN,), preempted_count=1)), "restart", 40, 60),
    ],
)
def test_law_11_the_clock_starts_with_the_submission_or_the_requeue(
    record: JobRecord, epoch: str, since: int, due: int
) -> None:
    sla = of(record)
    assert (sla.epoch, after(sla.since), after(sla.due)) == (epoch, since, due)
    assert sla.promise == epoch


LOST = read(50 * M, tags=tags("both"), preempted_count=1)
ONCE_STARTED = read(50 * M, tags=tags("both"), started_at=NOW + 60_000)


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (known(told(5, "RUNNABLE")), "Batch was not asked about its tags yet"),
        (waits(sla="gold"), "the policy has no SLA class gold"),
        (
            known(read(5, tags=(("sla", "both"),))),
            "it belongs to no team that could be granted SLA class both",
        ),
        (waits(team="nlp"), "team nlp is not granted SLA class both"),
        (waits(team="unknown"), "team unknown is not granted SLA class both"),
        (waits(*STARTED), "since when it waits is not known"),
        (waits(LOST), "since when it waits is not known"),
        (waits(ONCE_STARTED), "since when it waits is not known"),
        (waits(*STARTED, BACK, sla="first"), "SLA class first promises it no restart"),
        (waits(sla="end"), "SLA class end promises it no start"),
        (
            waits(sla="end", deadline="2026-09-15T08:00:00Z"),
            "SLA class end promises it no start; deadline: its runtime is not known,"
            " it takes a tag expected-runtime",
        ),
        (
            waits(sla="end", deadline="2026-09-15 08:00", expected_runtime="2h"),
            "SLA class end promises it no start; deadline is not a time with an offset,"
            " such as 2026-10-01T18:00:00+02:00 (RFC 3339)",
        ),
    ],
)
def test_law_02_an_sla_that_cannot_be_told_says_why(record: JobRecord, why: str) -> None:
    assert sla_of(record, POLICY) == Untold(why=why)


@pytest.mark.parametrize("record", [waits(sla=None), known(read(5, tags=()))])
def test_a_job_may_ask_for_none(record: JobRecord) -> None:
    assert sla_of(record, POLICY) is None


@pytest.mark.parametrize(
    ("given", "due", "promise", "remaining"),
    [
        ({"deadline": "2026-09-14T12:00:00Z", "expected_runtime": "2h"}, 60, "start", 120),
        ({"deadline": "2026-09-14T12:00:00+02:00", "expected_runtime": "90m"}, 30, "finish", 90),
        ({"deadline": "2026-09-14T12:00:00+02:00", "expected_runtime": "3h"}, -60, "finish", 180),
    ],
)
def test_the_earlier_of_start_and_deadline_is_due(
    given: dict[str, str], due: int, promise: str, remaining: int
) -> None:
    sla = of(waits(**given))
    assert (after(sla.due), sla.promise, sla.remaining, sla.ignored) == (due, promise, remaining * 60_000, ())


@pytest.mark.parametrize(
    ("sla", "given", "remaining", "ignored"),
    [
        ("sized", {}, 120, ()),
        ("sized", {"expected_runtime": "30m"}, 30, ()),
        (
            "sized",
            {"expected_runtime": "soon"},
            120,
            ("expected-runtime is not a duration: write for example 90s, 30m, 4h or 1h30m",),
        ),
        ("both", {}, None, ("deadline: its runtime is not known, it takes a tag expected-runtime",)),
        ("first", {"expected_runtime": "1h"}, None, ("deadline: SLA class first promises no finish",)),
        (
            "both",
            {"deadline": "2026-09-14T07:00:00Z", "expected_runtime": "1h"},
            None,
            ("deadline was over when the job was submitted",),
        ),
    ],
)
def test_what_does_not_count_is_said(
    sla: str, given: dict[str, str], remaining: int | None, ignored: tuple[str, ...]
) -> None:
    found = of(waits(sla=sla, **({"deadline": "2026-09-16T08:00:00Z"} | given)))
    assert found.remaining == (None if remaining is None else remaining * 60_000)
    assert (found.deadline is None) == (remaining is None)
    assert found.ignored == ignored
    assert (after(found.due), found.promise) == (60, "start")


def ran(*spans: tuple[str, int, int]) -> tuple[AttemptSeen, ...]:
    return tuple(
        AttemptSeen(
            training_job=job, started_at=NOW + start * 60_000, stopped_at=NOW + stop * 60_000, preempted=True
        )
        for job, start, stop in spans
    )


def saved(at: int, by: str | None = None) -> Saves:
    time = NOW + at * 60_000
    newest = Save(step=1, name="s", saved_at=time, layout="manifest", size=1, files=1, training_job=by)
    return Saves(newest=newest, newest_at=time)


@pytest.mark.parametrize(
    ("spans", "saves", "remaining"),
    [
        ((), Saves(), 120),
        (((FIRST, 10, 30),), Saves(), 120),
        (((FIRST, 10, 30),), saved(25), 105),
        (((FIRST, 10, 30),), saved(25, FIRST.rpartition("/")[2]), 105),
        (((FIRST, 10, 30),), saved(25, "of-another-job"), 120),
        (((FIRST, 10, 30), (SECOND, 40, 60)), saved(45), 95),
        (((FIRST, 10, 30), (SECOND, 40, 60)), saved(25), 105),
        (((FIRST, 10, 300),), saved(290), 0),
    ],
)
def test_what_was_saved_need_not_be_trained_again(
    spans: tuple[tuple[str, int, int], ...], saves: Saves, remaining: int
) -> None:
    given = {"deadline": "2026-09-16T08:00:00Z", "expected_runtime": "2h"}
    attempts = read(400 * M, tags=tags("both", **given), attempts=ran(*spans), preempted_count=len(spans))
    record = known(attempts).model_copy(update={"saves": saves})
    assert of(record).remaining == remaining * 60_000


@pytest.mark.parametrize(
    ("minute", "used", "slack", "late"),
    [(-1, 0, 31, False), (0, 0, 30, False), (15, 50, 15, False), (30, 100, 0, False), (31, 103, -1, True)],
)
def test_time_used_and_slack(minute: int, used: int, slack: int, late: bool) -> None:
    sla = of(waits(sla="sized", deadline="2026-09-14T10:30:00Z"))
    now = NOW + minute * 60_000
    assert (sla.used(now), sla.slack(now), sla.late(now)) == (used, slack * 60_000, late)


def test_without_time_from_the_beginning_no_part_of_it_is_used() -> None:
    sla = of(waits(sla="sized", deadline="2026-09-14T09:00:00Z"))
    assert (sla.limit, sla.used(NOW), sla.slack(NOW), sla.late(NOW)) == (0, None, -60 * 60_000, True)
    assert of(waits()).slack(NOW) is None


def test_tags_go_by_the_names_that_the_policy_gives() -> None:
    names = {"sla": "class", "deadline": "until", "expected_runtime": "lasts"}
    policy = POLICY.model_copy(update={"tags": POLICY.tags.model_copy(update=names)})
    told_tags = (("class", "end"), ("team", "research"), ("until", "2026-09-14T10:00:00Z"), ("lasts", "1h"))
    assert after(of(known(read(5, tags=told_tags)), policy).due) == 60


@pytest.mark.parametrize(
    ("adopted", "steps", "late"),
    [
        (None, (), False),
        (60, (), False),
        (61, (), True),
        (61, (*STARTED, told(70 * M, "RUNNABLE")), False),
    ],
)
def test_law_11_late_when_first_seen(adopted: int | None, steps: Any, late: bool) -> None:
    at = None if adopted is None else NOW + adopted * 60_000
    record = waits(*steps).model_copy(update={"adopted": adopted is not None, "adopted_at": at})
    assert late_when_first_seen(record, of(record)) is late
