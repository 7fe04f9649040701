"""What became of a job after one of its attempts was preempted, or was said to be."""

from __future__ import annotations

from typing import Any

import pytest
from sharewarden.domain.attempts import Attempt
from sharewarden.domain.base import last_part
from sharewarden.domain.checkpoints import Save
from sharewarden.domain.observation import SETTLE, Status
from sharewarden.domain.preemption.before_stop import saved_before_next
from sharewarden.domain.preemption.case import Case
from sharewarden.domain.preemption.outcome import (
    BOUND,
    GRACE,
    LONGEST_PAUSE,
    SHORTEST_PAUSE,
    is_ask_due,
    next_stay,
    outcome_of,
    pause,
)
from sharewarden.domain.record import End, JobRecord, Snapshot, Transition
from sharewarden.domain.stored import DAY, HOUR, MINUTE
from sharewarden.domain.stored import SECOND as S

from tests.simulation.samples import ARN, FIRST, JOB, SECOND
from tests.simulation.world import NOW, QUEUE

BEGAN = NOW + HOUR
STOP = BEGAN + 20 * S
CASE = Case(attempt=FIRST, job=JOB, queue=QUEUE, opened_at=BEGAN)
PREEMPTED = Attempt(training_job=FIRST, started_at=NOW, stopped_at=STOP, preempted=True)
RAN = (Transition(at=NOW, what="status", status="RUNNING", attempt=FIRST),)


def told(at: int, status: Status, attempt: str | None = None, what: str = "status") -> Transition:
    return Transition(at=at, what=what, status=status, attempt=attempt)


def read(at: int, status: Status, attempt: str | None = None, **more: Any) -> Snapshot:
    return Snapshot(read_at=at, status=status, attempt=attempt, **more)


def job(*timeline: Transition, preempted: int = 1, **more: Any) -> JobRecord:
    attempts = (PREEMPTED,) if preempted else ()
    known = {"attempts": attempts, "preempted_count": preempted, "timeline": (*RAN, *timeline)}
    return JobRecord(job=JOB, arn=ARN, name="n", queue=QUEUE, created_at=NOW, **(known | more))


REQUEUE = told(STOP, "RUNNABLE")
LATER = (told(STOP + HOUR, "SCHEDULED", SECOND), told(STOP + HOUR + MINUTE, "RUNNING", SECOND))
FAILED = End(status="FAILED", at=STOP + S, reason="preempted")
READ = read(STOP + MINUTE, "FAILED")


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        # it goes on
        (job(REQUEUE), "requeued"),
        (job(told(STOP, "RUNNABLE", what="preemption-completed")), "requeued"),
        (job(snapshot=read(STOP, "RUNNABLE")), "requeued"),
        (job(*LATER, preemption_retries=0), "requeued"),
        (job(*LATER, end=FAILED, snapshot=READ, preemption_retries=0), "requeued"),
        (job(REQUEUE, preemption_retries=1), "requeued"),
        (job(REQUEUE, preemption_retries=-1), "requeued"),
        # nothing says so yet
        (job(), None),
        (job(told(BEGAN - MINUTE, "RUNNABLE")), None),
        (job(snapshot=read(STOP - S, "RUNNABLE")), None),
        (job(REQUEUE, told(STOP + S, "FAILED")), None),
        (job(REQUEUE, preemption_retries=0), None),
        (job(snapshot=read(STOP + GRACE - 1, "RUNNABLE"), preemption_retries=0), None),
        (job(snapshot=read(STOP + GRACE, "RUNNABLE"), preemption_retries=0), "requeued"),
        # it is over
        (job(end=FAILED, snapshot=READ, preemption_retries=0), "exhausted"),
        (job(end=FAILED, snapshot=READ, preemption_retries=1), "ended"),
        (job(end=FAILED, snapshot=READ, preemption_retries=1, preempted_count=2), "exhausted"),
        (job(end=FAILED, snapshot=READ, preemption_retries=-1), "ended"),
        (job(end=FAILED, snapshot=READ), "ended"),
        (job(end=End(status="SUCCEEDED", at=STOP), snapshot=READ, preemption_retries=0), "ended"),
        (job(end=FAILED, preemption_retries=0), None),
        (job(end=FAILED, snapshot=read(NOW, "RUNNING", FIRST), preemption_retries=0), None),
        (
            job(end=FAILED, snapshot=read(STOP, "FAILED", terminated=True), preemption_retries=0),
            "cancelled",
        ),
        (job(closed_at=STOP), "unknown"),
    ],
)
def test_of_an_attempt_that_batch_calls_preempted(record: JobRecord, expected: str | None) -> None:
    assert outcome_of(record, CASE, STOP + 5 * MINUTE) == expected


@pytest.mark.parametrize(("after", "expected"), [(BOUND - 1, None), (BOUND, "unknown")])
@pytest.mark.parametrize(
    "record",
    [job(), job(preempted=0), job(end=FAILED, preemption_retries=0), job(REQUEUE, preemption_retries=0)],
)
def test_law_02_nobody_tells_so_it_is_unknown(record: JobRecord, after: int, expected: str | None) -> None:
    early = record.end is not None and not record.preempted_count
    assert outcome_of(record, CASE, BEGAN + after) == ("ended" if early else expected)


OTHER = Attempt(training_job=SECOND, stopped_at=STOP, preempted=True)
WENT_ON = read(BEGAN + HOUR, "RUNNING", FIRST)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (job(told(BEGAN - MINUTE, "RUNNING", SECOND), preempted=0), "mistaken"),
        (job(preempted=0, attempts=(OTHER,)), "mistaken"),
        (job(preempted=0, attempts=(OTHER.model_copy(update={"stopped_at": BEGAN + HOUR}),)), None),
        (job(preempted=0, attempts=(OTHER.model_copy(update={"preempted": False}),)), None),
        (job(preempted=0, snapshot=WENT_ON), "mistaken"),
        (job(preempted=0, snapshot=read(BEGAN + HOUR - 1, "RUNNING", FIRST)), None),
        (job(preempted=0, snapshot=read(BEGAN + HOUR, "RUNNING", SECOND)), None),
        (job(preempted=0, end=FAILED, attempts=(OTHER,)), "mistaken"),
        (job(preempted=0, end=FAILED), "ended"),
        (job(preempted=0, end=FAILED, snapshot=read(STOP, "FAILED", terminated=True)), "cancelled"),
    ],
)
def test_of_an_attempt_that_nobody_calls_preempted(record: JobRecord, expected: str | None) -> None:
    assert outcome_of(record, CASE, BEGAN + 2 * HOUR) == expected
    early = outcome_of(record, CASE, BEGAN + SETTLE - 1)
    assert early in (None, "mistaken")
    assert early is None or record.snapshot == WENT_ON


def test_batch_is_asked_when_it_should_have_told_and_at_once_why_a_job_ended() -> None:
    assert not is_ask_due(job(), CASE, BEGAN + GRACE - 1)
    assert is_ask_due(job(), CASE, BEGAN + GRACE)
    asked = job(snapshot=read(BEGAN + DAY // 2, "RUNNING", FIRST))
    assert not is_ask_due(asked, CASE, BEGAN + DAY // 2 + LONGEST_PAUSE - 1)
    assert is_ask_due(asked, CASE, BEGAN + DAY // 2 + LONGEST_PAUSE)
    assert is_ask_due(job(end=FAILED, snapshot=read(NOW, "RUNNING")), CASE, BEGAN + 1)
    assert not is_ask_due(job(end=FAILED, snapshot=READ), CASE, BEGAN + DAY)


@pytest.mark.parametrize(
    ("after", "expected"),
    [(0, SHORTEST_PAUSE), (4 * MINUTE, MINUTE), (DAY, LONGEST_PAUSE), (-HOUR, SHORTEST_PAUSE)],
)
def test_the_longer_nothing_is_told_the_longer_the_pause(after: int, expected: int) -> None:
    assert pause(CASE, BEGAN + after) == expected


@pytest.mark.parametrize(
    ("timeline", "attempt"),
    [
        (LATER, SECOND),
        (LATER[:1], None),
        ((REQUEUE,), None),
        ((told(BEGAN - MINUTE, "RUNNING", SECOND),), None),
    ],
)
def test_the_next_attempt_is_the_first_later_one_that_ran(
    timeline: tuple[Transition, ...], attempt: str | None
) -> None:
    stay = next_stay(job(*timeline), FIRST)
    assert (stay and stay.attempt) == attempt


def outage() -> JobRecord:
    """Batch names ten preempted attempts at once, and no event told of any."""
    attempts = tuple(
        Attempt(
            training_job=f"{FIRST}-{n}",
            started_at=NOW + n * HOUR,
            stopped_at=NOW + n * HOUR + 30 * MINUTE,
            preempted=True,
        )
        for n in range(10)
    )
    end = End(status="FAILED", at=NOW + 10 * HOUR, reason="preempted")
    update = {"attempts": attempts, "end": end, "timeline": (), "snapshot": read(NOW + 11 * HOUR, "FAILED")}
    return job(preemption_retries=9, preempted_count=10, **update)


@pytest.mark.parametrize("n", range(10))
def test_of_ten_attempts_that_batch_names_at_once_only_the_last_is_exhausted(n: int) -> None:
    attempt = f"{FIRST}-{n}"
    case = Case(attempt=attempt, job=JOB, queue=QUEUE, opened_at=NOW + n * HOUR + 30 * MINUTE)
    assert outcome_of(outage(), case, NOW + 12 * HOUR) == ("exhausted" if n == 9 else "requeued")
    stay = next_stay(outage(), attempt)
    assert (stay.attempt if stay else None) == (None if n == 9 else f"{FIRST}-{n + 1}")


def test_what_a_later_attempt_of_them_saved_is_not_the_firsts() -> None:
    counts = saved_before_next(outage(), f"{FIRST}-0")
    save = Save(name="s", step=9, saved_at=NOW + 9 * HOUR, size=1, files=1, layout="manifest")
    named = save.model_copy(update={"training_job": last_part(f"{FIRST}-9")})
    early = save.model_copy(update={"saved_at": NOW + 10 * MINUTE})
    assert [counts(save), counts(named), counts(early)] == [False, False, True]
