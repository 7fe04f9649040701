"""Who may be pushed out of a share by in-share preemption, and in which order they are told."""

from __future__ import annotations

import pytest
from sharewarden.domain.observation import JobDescription, ShareDescription
from sharewarden.domain.priority import PriorityLedger
from sharewarden.domain.record import JobRecord, absorb, new_record
from sharewarden.domain.victims import likely_victims

from tests.simulation.samples import described, share
from tests.simulation.world import MINUTE, NOW


def recorded(read: JobDescription) -> JobRecord:
    record = absorb(new_record(read), read)
    ledger = PriorityLedger(base=read.priority, confirmed=read.priority)
    return record.model_copy(update={"priority": ledger})


def holds(job: str, priority: int | None = 100, minutes: int = 10, **update: object) -> JobRecord:
    """A job that has run for so many minutes, on one instance."""
    known = {"job": job, "arn": job, "status": "RUNNING", "priority": priority, "instance_count": 1}
    dispatched = {"scheduled_at": NOW - minutes * MINUTE, "created_at": NOW - 60 * MINUTE, "read_at": NOW}
    return recorded(described(**known | dispatched | update))


RAISED = recorded(described(instance_count=1))
FULL = share(2).model_copy(update={"in_share_preemption": True})


def told(*others: JobRecord, value: int = 300, beside: ShareDescription = FULL) -> list[str]:
    return [one.job for one in likely_victims(RAISED, value, others, beside)]


@pytest.mark.parametrize(
    ("other", "victims"),
    [
        (holds("a"), ["a"]),
        (holds("a", status="SCHEDULED"), ["a"]),
        (holds("a", status="STARTING"), ["a"]),
        (holds("a", status="RUNNABLE"), []),
        (holds("a", status="SUCCEEDED", stopped_at=NOW), []),
        (holds("a", priority=299), ["a"]),
        (holds("a", priority=300), []),
        (holds("a", priority=None), []),
        (holds("a", share="urgent"), []),
        (holds("a", instance_type="ml.p5.48xlarge"), []),
    ],
)
def test_who_can_be_pushed_out(other: JobRecord, victims: list[str]) -> None:
    assert told(other, holds("above", priority=900, instance_count=2)) == victims


def test_nobody_where_in_share_preemption_is_off() -> None:
    assert told(holds("a"), holds("b"), beside=share(2)) == []


@pytest.mark.parametrize(
    ("limit", "wanted", "victims"),
    [(3, 1, []), (2, 1, ["a", "b"]), (3, 2, ["a", "b"]), (3, None, ["a", "b"])],
)
def test_nobody_where_the_share_has_room(limit: int, wanted: int | None, victims: list[str]) -> None:
    raised = RAISED.model_copy(update={"instance_count": wanted})
    beside = FULL.model_copy(update={"limits": (("ml.g5.xlarge", limit),)})
    found = likely_victims(raised, 300, [holds("a", minutes=10), holds("b", minutes=20)], beside)
    assert [one.job for one in found] == victims


def test_a_share_without_a_limit_for_the_type_has_no_room_that_is_known() -> None:
    assert told(holds("a"), beside=FULL.model_copy(update={"limits": ()})) == ["a"]


def test_what_is_borrowed_goes_first_then_lower_priority_then_the_shorter_run() -> None:
    """Two instances are the share's own: those of the jobs that were dispatched first."""
    borrows_two = holds("borrows-two", priority=250, minutes=2, instance_count=2)
    borrows_one = holds("borrows-one", priority=10, minutes=3)
    lower = holds("lower", priority=50, minutes=30)
    higher = holds("higher", priority=60, minutes=20)
    assert told(lower, borrows_one, higher, borrows_two) == ["borrows-two", "borrows-one", "lower", "higher"]
    assert told(holds("long", minutes=30), holds("short", minutes=20)) == ["short", "long"]


def test_a_job_may_be_borrowed_in_part() -> None:
    part = holds("part", minutes=20, instance_count=2)
    assert told(holds("own", priority=1, minutes=30), part) == ["part", "own"]
