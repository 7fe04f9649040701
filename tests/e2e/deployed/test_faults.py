"""What goes wrong between AWS and the deployed functions: nothing is lost, and every dead letter says why."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from itertools import chain, repeat
from time import sleep

import pytest
from sharewarden.bootstrap import CONFIG
from sharewarden.domain.record import status
from sharewarden.usecases.bump import BumpRequest, UnbumpRequest, bump, unbump
from sharewarden_tools.emulator.deployed import Deployed
from sharewarden_tools.lab.delivery import EventFaults
from sharewarden_tools.lab.wire import Fault
from sharewarden_tools.local.stack import QUEUE, queue_arn

from tests.e2e.deployed.kit import SECOND, Pool, until

HOUR = 3600 * SECOND
#: So often does the SDK in the functions try one call.
TRIES = CONFIG.retries["total_max_attempts"]
Outcome = Callable[[], Fault | None]


@pytest.mark.parametrize(
    "faults",
    [EventFaults(double=1.0), EventFaults(reorder=1.0, reorder_ms=1500)],
    ids=["doubled", "reordered"],
)
def test_events_that_come_twice_or_late_leave_one_record(pool: Pool, faults: EventFaults) -> None:
    pool.stack.delivery.faults = faults
    pool.submit("background-1", 1 * SECOND)
    pool.wait_for("SUCCEEDED", "background-1")
    pool.wait_for_facts("background-1", "job-ended")
    until(lambda: pool.stack.delivery.next_due() is None)
    until(lambda: _waiting(pool) == 0)
    assert len(pool.facts("background-1", "job-ended")) == 1
    record = pool.record("background-1")
    assert record is not None
    assert [seen.status for seen in record.timeline if seen.status] == _documented_order()


def _documented_order() -> list[str]:
    return ["RUNNABLE", "SCHEDULED", "STARTING", "RUNNING", "SUCCEEDED"]


def _waiting(pool: Pool) -> int:
    """Messages in the events' queue, in flight or not."""
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    found = pool.stack.client("sqs").get_queue_attributes(
        QueueUrl=pool.stack.outputs["EventsQueueUrl"], AttributeNames=names
    )
    return sum(int(found["Attributes"][name]) for name in names)


def test_a_sweep_learns_what_no_event_told(pool: Pool) -> None:
    pool.submit("background-1", 1 * SECOND)
    until(lambda: pool.record("background-1"))
    pool.stack.delivery.faults = EventFaults(lose=1.0)
    pool.wait_for("SUCCEEDED", "background-1")
    until(lambda: pool.stack.delivery.next_due() is None)
    until(lambda: _waiting(pool) == 0)
    assert not pool.ended("background-1")
    assert pool.sweep()["behind"] == 1
    record = pool.record("background-1")
    assert record is not None
    assert (status(record), record.share) == ("SUCCEEDED", "background")
    assert pool.sweep()["behind"] == 0


def test_a_poisoned_event_lies_in_the_dead_letters_with_its_reason(pool: Pool) -> None:
    pool.stack.client("events").put_events(
        Entries=[
            {
                "Source": "aws.batch",
                "DetailType": "Batch Service Job State Change",
                "Time": datetime.now(UTC),
                "Detail": f'{{"jobQueue": "{queue_arn(QUEUE)}", "status": "RUNNING"}}',
            }
        ]
    )
    letters = until(pool.dead_letters)
    attributes = {name: held["StringValue"] for name, held in letters[0]["MessageAttributes"].items()}
    assert attributes["origin"] == "events"
    assert attributes["reason"].startswith("Poison: not an event: detail.jobArn")
    assert queue_arn(QUEUE) in letters[0]["Body"]


# --- at the edge of Batch ----------------------------------------------------------------------------------


def throttled() -> Fault:
    return Fault.THROTTLE


def broken() -> Fault:
    return Fault.FAIL


def answer_lost() -> Fault:
    return Fault.LOST


def timed_out() -> Fault:
    """The answer comes later than the functions wait for one."""
    sleep(CONFIG.read_timeout + 1)
    return Fault.LOST


def crashed(stack: Deployed, function: str, then: Fault) -> Outcome:
    """The function's process dies while it calls: before the act, or when it was done."""

    def crash() -> Fault:
        for process in stack.aws.workers(function):
            os.kill(process, signal.SIGKILL)
        return then

    return crash


def first(operation: str, outcomes: Iterable[Outcome]) -> Callable[[str, str], Fault | None]:
    """The first calls of this operation end so, one after the other; all others are well."""
    left = chain(outcomes, repeat(lambda: None))
    return lambda _service, called: next(left)() if called == operation else None


def test_an_act_that_met_a_fault_is_done_once_and_told_once(pool: Pool) -> None:
    """A value that may still arrive is waited for two minutes, so the five faults are met side by side."""
    stack = pool.stack
    faults: dict[str, list[Outcome]] = {
        "throttled": [throttled] * TRIES,
        "answer-lost": [answer_lost] * TRIES,
        "timed-out": [timed_out] * 2,
        "crashed-before": [crashed(stack, "Apply", Fault.FAIL)],
        "crashed-after": [crashed(stack, "Apply", Fault.LOST)],
    }
    pool.submit("urgent-0", HOUR)
    pool.wait_for("RUNNING", "urgent-0")
    names = {case: f"urgent-{case}" for case in faults}
    for case, name in names.items():
        pool.submit(name, HOUR)
        until(lambda name=name: pool.record(name))
        _bump_into(pool, name, faults[case])
    until(lambda: {pool.priority(name) for name in names.values()}, lambda seen: seen == {850}, seconds=240)
    for name in names.values():
        changes = pool.wait_for_facts(name, "priority-changed")
        assert [(fact.before, fact.after) for fact in changes] == [("100", "850")]
        assert pool.facts(name, "drift", "wish-dropped") == []
    assert pool.sweep()["oldest_wish_ms"] == 0


def _bump_into(pool: Pool, name: str, faults: list[Outcome]) -> None:
    """Raise the job's priority; back when the faults have been met."""
    met = list[Outcome]()

    def meeting(outcome: Outcome) -> Outcome:
        def meet() -> Fault | None:
            met.append(outcome)
            return outcome()

        return meet

    pool.stack.server.wire.faults = first("UpdateServiceJob", map(meeting, faults))
    request = BumpRequest(id=name, job=pool.jobs[name], actor="ana", reason="deadline", to=850, lasts=HOUR)
    bump(pool.runtime, request)
    until(lambda: len(met) == len(faults))


def test_a_bump_that_is_taken_back_leaves_the_base(pool: Pool) -> None:
    """Of a job that waits: the bump of one that just started would be held."""
    for name in ("urgent-1", "urgent-2"):
        pool.submit(name, HOUR)
        pool.wait_for("RUNNING", "urgent-1")
    until(lambda: pool.record("urgent-2"))
    asked = {"job": pool.jobs["urgent-2"], "actor": "ana", "reason": "deadline"}
    bump(pool.runtime, BumpRequest(id="up", to=850, lasts=HOUR, **asked))
    until(lambda: pool.priority("urgent-2"), lambda seen: seen == 850)
    unbump(pool.runtime, UnbumpRequest(id="down", **asked))
    until(lambda: pool.priority("urgent-2"), lambda seen: seen == 100)
    changes = pool.wait_for_facts("urgent-2", "priority-changed", count=2)
    assert [(fact.before, fact.after) for fact in changes] == [("100", "850"), ("850", "100")]


@pytest.mark.parametrize("case", ["throttled", "crashed"])
def test_an_observation_that_met_a_fault_is_made_in_the_end(pool: Pool, case: str) -> None:
    fault = throttled if case == "throttled" else crashed(pool.stack, "React", Fault.FAIL)
    pool.stack.server.wire.faults = first("DescribeServiceJob", [fault] * 5)
    pool.submit("background-1", 1 * SECOND)
    pool.wait_for_facts("background-1", "job-ended")
    record = pool.record("background-1")
    assert record is not None
    assert (record.share, status(record)) == ("background", "SUCCEEDED")
