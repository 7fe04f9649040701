"""Folding hints and truth into one record, in any order."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sharewarden.domain.attempts import KEPT_ATTEMPTS, join
from sharewarden.domain.facts import timeline_fact
from sharewarden.domain.gaps import unexplained_preemptions
from sharewarden.domain.observation import AttemptSeen, JobDescription, JobObservation, Status
from sharewarden.domain.policy import Policy
from sharewarden.domain.record import (
    KEPT_TRANSITIONS,
    End,
    JobRecord,
    absorb,
    dispatched_since,
    doubtful,
    ended_without_details,
    fold,
    new_record,
    settle_end,
    settle_end_forgotten,
    settle_end_read,
    status,
)

S = 1000
NEW = JobRecord(job="j", arn="a/j", name="n", queue="q", created_at=0)


def told(at: int, state: Status, attempt: str | None = None, **more: object) -> JobObservation:
    seen = JobObservation(job="j", arn="a/j", at=at * S, what="status", status=state, attempt=attempt)
    return seen.model_copy(update=more)


def read(at: int, state: Status, **more: object) -> JobDescription:
    answer = JobDescription(
        job="j", arn="a/j", read_at=at * S, name="n", queue="q", status=state, created_at=0
    )
    return answer.model_copy(update=more)


def known(*seen: JobObservation | JobDescription) -> JobRecord:
    record = NEW
    for one in seen:
        record = fold(record, one) if isinstance(one, JobObservation) else absorb(record, one)
    return record


# Attempts.

attempts_seen = st.builds(
    AttemptSeen,
    training_job=st.sampled_from(["t1", "t2", "t3"]),
    started_at=st.none() | st.integers(1, 4),
    stopped_at=st.none() | st.integers(5, 8),
    reason=st.none() | st.sampled_from(["a", "b"]),
    preempted=st.booleans(),
)


@given(st.lists(attempts_seen, max_size=8), st.randoms(use_true_random=False))
def test_law_01_attempts_join_in_any_order_any_number_of_times(seen: list[AttemptSeen], luck) -> None:  # type: ignore[no-untyped-def]
    mixed = seen + [one for one in seen if luck.random() < 0.5]
    luck.shuffle(mixed)
    assert join((), seen) == join((), mixed)
    cut = luck.randint(0, len(seen))
    assert join(join((), seen[:cut]), seen[cut:]) == join((), seen)


def test_the_reason_of_a_preemption_wins_over_sagemakers_words() -> None:
    plain = AttemptSeen(training_job="t", reason="Received status from SageMaker: Stopped")
    preempted = AttemptSeen(training_job="t", reason="Cross-share", preempted=True)
    for order in permutations((plain, preempted)):
        (attempt,) = join((), order)
        assert (attempt.preemption_reason, attempt.preempted) == ("Cross-share", True)


def test_forgotten_attempts_make_no_false_gap() -> None:
    many = tuple(AttemptSeen(training_job=f"t{n:04}", stopped_at=n, preempted=True) for n in range(1, 251))
    record = absorb(NEW, read(9, "RUNNING", attempts=many, preempted_count=250))
    assert len(record.attempts) == KEPT_ATTEMPTS
    assert unexplained_preemptions(record) == 0


def test_the_attempt_that_has_not_started_is_never_forgotten() -> None:
    many = tuple(AttemptSeen(training_job=f"t{n:04}", stopped_at=n, preempted=True) for n in range(1, 251))
    record = absorb(NEW, read(9, "SCHEDULED", attempts=many, attempt="t0000"))
    assert len(record.attempts) == KEPT_ATTEMPTS
    assert record.attempts[-1].training_job == "t0000"


def test_law_01_a_count_that_makes_no_sense_makes_no_endless_gaps() -> None:
    assert unexplained_preemptions(known(told(1, "RUNNABLE", preempted_count=2**31 - 1))) == KEPT_ATTEMPTS


# The timeline and what it says.


def test_the_same_event_twice_changes_nothing() -> None:
    once = known(told(1, "RUNNABLE"))
    assert fold(once, told(1, "RUNNABLE")) == once


def test_news_open_a_closed_record_and_repetitions_do_not() -> None:
    closed = known(told(1, "RUNNABLE")).model_copy(update={"closed_at": 5})
    assert fold(closed, told(1, "RUNNABLE")).closed_at == 5
    assert fold(closed, told(2, "SCHEDULED")).closed_at is None


def test_a_timeline_keeps_its_newest_entries_in_any_order() -> None:
    events = [told(at, "RUNNABLE") for at in range(KEPT_TRANSITIONS + 20)]
    assert known(*events).timeline == known(*reversed(events)).timeline
    assert known(*events).timeline[0].at == 20 * S


def test_a_long_life_with_long_reasons_fits_into_an_item() -> None:
    """An item of DynamoDB ends at 400 KB: a record that outgrew it could never be written again."""
    arn = "arn:aws:sagemaker:us-east-1:123456789012:training-job/AWSBatch" + "x" * 51
    record = NEW
    for at in range(KEPT_TRANSITIONS + 50):
        row = AttemptSeen(training_job=f"{arn}{at:04}", started_at=at, stopped_at=at, reason="r" * 1024)
        rows = (row, row.model_copy(update={"preempted": True}))
        record = fold(record, told(at, "RUNNABLE", f"{arn}{at:04}", reason="r" * 1024, attempts=rows))
    ended = record.model_copy(update={"end": End(status="FAILED", at=1, reason="r" * 1024)})
    assert len(ended.model_dump_json()) < 350_000
    assert len(timeline_fact(ended, Policy()).model_dump_json()) < 350_000


STATUS_CASES: dict[str, tuple[list[JobObservation | JobDescription], Status]] = {
    "nothing known": ([], "SUBMITTED"),
    "an event": ([told(1, "RUNNABLE")], "RUNNABLE"),
    "the later event": ([told(1, "RUNNABLE"), told(2, "SCHEDULED")], "SCHEDULED"),
    "the higher state of one second": ([told(1, "SCHEDULED"), told(1, "RUNNABLE")], "SCHEDULED"),
    "read after the event": ([told(1, "RUNNING"), read(3, "RUNNABLE")], "RUNNABLE"),
    "read before the event": ([told(5, "RUNNING"), read(3, "RUNNABLE")], "RUNNING"),
    "read in the event's second": ([told(3, "RUNNING"), read(3, "RUNNABLE")], "RUNNING"),
    "only read": ([read(3, "STARTING")], "STARTING"),
    "ended, then a late event": (
        [told(9, "FAILED", stopped_at=8, reason="r"), told(3, "RUNNING"), told(10, "RUNNING")],
        "FAILED",
    ),
    "read as ended, without a stop time": ([read(3, "FAILED"), told(3, "RUNNING")], "FAILED"),
    "an older answer": ([read(5, "RUNNING"), read(3, "RUNNABLE")], "RUNNING"),
}


@pytest.mark.parametrize("case", STATUS_CASES)
def test_status(case: str) -> None:
    seen, expected = STATUS_CASES[case]
    assert {status(known(*order)) for order in permutations(seen)} == {expected}


DOUBT_CASES: dict[str, tuple[list[JobObservation | JobDescription], bool]] = {
    "climbing": ([told(1, "RUNNABLE"), told(2, "SCHEDULED"), told(3, "RUNNING")], False),
    "a requeue": ([told(2, "RUNNING"), told(3, "RUNNABLE")], True),
    "a requeue, read later": ([told(2, "RUNNING"), told(3, "RUNNABLE"), read(4, "RUNNABLE")], False),
    "a requeue, read in its second": ([told(2, "RUNNING"), told(3, "RUNNABLE"), read(3, "RUNNABLE")], True),
    "the requeue was lost": ([told(2, "RUNNING", "t1"), told(9, "SCHEDULED", "t2")], True),
    "the same state again": ([told(2, "RUNNING"), told(9, "RUNNING")], True),
    "two attempts in one second": ([told(2, "SCHEDULED", "t1"), told(2, "RUNNING", "t2")], True),
    "one attempt climbs in one second": ([told(2, "SCHEDULED", "t1"), told(2, "RUNNING", "t1")], False),
    "ended": (
        [told(2, "RUNNING"), told(3, "FAILED", stopped_at=3 * S, reason="r"), told(4, "RUNNABLE")],
        False,
    ),
    "nothing known": ([], False),
}


@pytest.mark.parametrize("case", DOUBT_CASES)
def test_doubtful(case: str) -> None:
    seen, expected = DOUBT_CASES[case]
    assert {doubtful(known(*order)) for order in permutations(seen)} == {expected}


DISPATCH_CASES: dict[str, tuple[list[JobObservation | JobDescription], int | None]] = {
    "waiting": ([told(1, "RUNNABLE")], None),
    "by events": ([told(1, "RUNNABLE"), told(5, "SCHEDULED"), told(9, "RUNNING")], 5 * S),
    "exactly, by Describe": ([told(5, "SCHEDULED"), read(9, "RUNNING", scheduled_at=5432)], 5432),
    "the first event was lost": (
        [told(1, "RUNNABLE"), told(9, "RUNNING"), read(10, "RUNNING", scheduled_at=5432)],
        5432,
    ),
    "the requeue was lost": ([told(5, "SCHEDULED"), told(9, "RUNNING"), told(20, "SCHEDULED")], 20 * S),
    "the answer is of an older attempt": (
        [read(9, "RUNNING", scheduled_at=5432), told(15, "RUNNABLE"), told(20, "SCHEDULED")],
        20 * S,
    ),
    "all events of the attempt were lost": (
        [told(5, "SCHEDULED"), told(15, "RUNNABLE"), read(30, "RUNNING", scheduled_at=25_000)],
        25_000,
    ),
    "read in the second of the event: it may hold capacity": (
        [told(5, "RUNNABLE"), read(5, "SCHEDULED", scheduled_at=5_700)],
        5_700,
    ),
    "ended": ([told(5, "RUNNING"), told(9, "FAILED", stopped_at=9 * S, reason="r")], None),
}


@pytest.mark.parametrize("case", DISPATCH_CASES)
def test_dispatched_since(case: str) -> None:
    seen, expected = DISPATCH_CASES[case]
    assert {dispatched_since(known(*order)) for order in permutations(seen)} == {expected}


# The end.

BARE = told(9, "FAILED")
FULL = told(9, "FAILED", stopped_at=8765, reason="r")
TRUTH = read(10, "FAILED", stopped_at=8765, reason="r")


@pytest.mark.parametrize("seen", [(FULL,), (TRUTH,), (BARE, TRUTH), (told(9, "FAILED", reason="r"), TRUTH)])
def test_law_01_the_end_is_the_same_from_event_and_describe(
    seen: tuple[JobObservation | JobDescription, ...],
) -> None:
    for order in permutations(seen):
        assert settle_end(known(*order)).end == End(status="FAILED", at=8765, reason="r")


def test_a_terminal_state_is_final() -> None:
    ended = known(FULL)
    assert fold(ended, told(20, "SUCCEEDED", stopped_at=19, reason="late")).end == ended.end
    assert absorb(ended, read(20, "SUCCEEDED", stopped_at=19, reason="late")).end == ended.end


def test_an_end_without_details_asks_batch_first() -> None:
    assert ended_without_details(known(BARE), BARE)
    assert ended_without_details(known(told(9, "FAILED", stopped_at=1)), told(9, "FAILED", stopped_at=1))
    assert not ended_without_details(known(FULL), FULL)
    assert not ended_without_details(known(BARE), told(9, "RUNNING"))


def test_an_end_that_batch_cannot_detail_is_the_events() -> None:
    record = known(BARE, read(10, "FAILED", reason="by hand"))
    assert settle_end(record).end == End(status="FAILED", at=9 * S, reason="by hand")


@pytest.mark.parametrize("read_at", [8, 9, 10, 99])
def test_law_02_an_event_alone_ends_no_job_that_batch_shows_as_active(read_at: int) -> None:
    record = known(BARE, read(read_at, "RUNNING"))
    assert settle_end(record).end is None
    assert status(known(BARE, read(10, "RUNNING"))) == "RUNNING"


def test_a_classic_job_ends_by_its_event_alone() -> None:
    record = fold(NEW.model_copy(update={"classic": True}), BARE)
    assert settle_end(record).end == End(status="FAILED", at=9 * S)


GONE = known(BARE).model_copy(update={"missing_since": 50 * S})
OVER = {
    "a hint": settle_end_forgotten(GONE).model_copy(update={"end_audited": True}),
    "a hint, closed": settle_end_forgotten(GONE).model_copy(update={"closed_at": 70 * S}),
    "vanished": GONE.model_copy(update={"closed_at": 70 * S}),
}


@pytest.mark.parametrize("case", OVER)
def test_law_10_a_job_taken_for_over_goes_on_when_batch_shows_it(case: str) -> None:
    record = absorb(OVER[case], read(80, "RUNNING"))
    assert (record.end, record.end_audited, record.closed_at, record.reopened) == (None, False, None, 1)
    assert status(record) == "RUNNING"
    assert record.open_queue == "q"
    assert absorb(record, read(81, "RUNNING")).reopened == 1


@pytest.mark.parametrize(
    ("record", "seen"),
    [
        (OVER["a hint"], read(49, "RUNNING")),  # asked before Batch said it knows no such job
        (OVER["a hint"], read(80, "FAILED")),
        (known(FULL), read(80, "RUNNING")),  # Batch told when and why: Describe lags
        (known(TRUTH), read(80, "RUNNING")),
    ],
)
def test_an_end_that_nothing_contradicts_stands(record: JobRecord, seen: JobDescription) -> None:
    after = absorb(record, seen)
    assert (after.end, after.reopened) == (record.end, 0)


def test_an_end_that_was_only_read_waits_for_its_event() -> None:
    record = known(read(10, "FAILED", reason="r"), read(20, "FAILED", reason="r"))
    assert settle_end(record).end is None
    assert settle_end_read(record, 10 * S + 99, 100).end is None
    assert settle_end_read(record, 10 * S + 100, 100).end == End(status="FAILED", at=10 * S, reason="r")


def test_a_job_that_batch_cannot_describe_takes_its_identity_from_any_event() -> None:
    named = told(5, "SCHEDULED", name="pretrain", created_at=1234, queue="q", tags=(("team", "nlp"),))
    bare = told(3, "RUNNABLE", queue="q")
    records = [fold(new_record(first), second) for first, second in permutations((named, bare))]
    records = [fold(record, one) for record, one in zip(records, (named, bare), strict=True)]
    assert {(r.name, r.created_at, r.tags) for r in records} == {("pretrain", 1234, (("team", "nlp"),))}


def test_a_record_needs_a_queue() -> None:
    with pytest.raises(ValueError, match="queue is not known"):
        new_record(told(1, "RUNNABLE"))


def test_an_answer_dated_by_a_clock_a_day_ahead_keeps_no_other_out() -> None:
    assert status(known(read(86_400, "RUNNING"), read(100, "RUNNABLE"))) == "RUNNABLE"
    assert status(known(read(101, "RUNNING"), read(100, "RUNNABLE"))) == "RUNNING"
