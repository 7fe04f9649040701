"""The template's pieces on one machine: real handlers, virtual time, and every fault that events may meet."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import count
from typing import Any

import boto3
import pytest
from sharewarden.domain.audit import AuditRecord
from sharewarden.domain.record import JobRecord, status
from sharewarden.domain.stored import HOUR, MINUTE
from sharewarden.ports import Runtime
from sharewarden.usecases.bump import BumpRequest, bump
from sharewarden_tools.lab import VirtualClock
from sharewarden_tools.lab.delivery import NO_FAULTS, EventFaults
from sharewarden_tools.local.functions import Handler
from sharewarden_tools.local.stack import LocalStack, Setup, local_stack, queue_arn
from sharewarden_tools.policy.file import load_policy
from sharewarden_tools.stories.three_team import QUEUE, SHARES, START, create_pool, submit

ARN = queue_arn(QUEUE)
LISTENED_TO = MINUTE
"""Until the calls that made the pool have been told of."""


def stack_with_pool(seed: int = 3) -> AbstractContextManager[LocalStack]:
    return local_stack(VirtualClock(START), Setup(seed=seed, policy=load_policy()))


@pytest.fixture
def stack() -> Iterator[LocalStack]:
    with stack_with_pool() as running:
        create_pool(running)
        running.run_until(START + LISTENED_TO)
        yield running


def record_of(stack: LocalStack, job: str) -> JobRecord:
    record = stack.runtime.ledger.load(JobRecord, job)
    assert record is not None
    return record


def kinds(stack: LocalStack, job: str) -> list[str]:
    return [fact.kind for fact in stack.runtime.audit.by_job(job, 0)]


# --- the same story under faults (law 10) ----------------------------------------------------------------


def tell(stack: LocalStack, disturb: Callable[[LocalStack], None] = lambda stack: None) -> dict[str, str]:
    """A borrowing, a taking back, a bump and its end; faults stop 40 minutes before. Job ids by name."""
    create_pool(stack)
    stack.run_until(START + LISTENED_TO)
    disturb(stack)
    jobs = {name: submit(stack, name, HOUR) for name in ("background-1", "background-2", "urgent-1")}
    stack.run_until(START + 12 * MINUTE)
    jobs["medium-1"] = submit(stack, "medium-1", 10 * MINUTE)
    stack.run_until(START + 18 * MINUTE)
    request = BumpRequest(
        id="bump-1", job=jobs["background-2"], actor="ana", reason="deadline", to=850, lasts=25 * MINUTE
    )
    bump(stack.runtime, request)
    stack.run_until(START + 2 * HOUR)
    stack.delivery.faults = NO_FAULTS
    stack.run_until(START + 2 * HOUR + 40 * MINUTE)
    return jobs


def told(stack: LocalStack) -> set[tuple[object, ...]]:
    """The audit, but for what delivery may change: when it was written, how much of a timeline was heard."""
    return {row for share in SHARES for row in map(_row, trail(stack, share.name))}


def trail(stack: LocalStack, share: str) -> list[AuditRecord]:
    return list(stack.runtime.audit.by_share(ARN, share, START - HOUR, stack.now()))


def _row(fact: AuditRecord) -> tuple[object, ...]:
    figures: Mapping[str, Any] = {} if fact.kind == "job-timeline" else fact.figures
    reason = "" if fact.kind in {"job-timeline", "preemptor"} else fact.reason
    if fact.kind in CARE:
        figures = {name: value for name, value in figures.items() if name in SURE}
    told = json.dumps(figures, sort_keys=True)
    return (fact.key, fact.kind, fact.at, fact.actor, fact.before, fact.after, reason, fact.team, told)


#: How long an attempt held capacity, who may have taken it, how long the pause was: that is told by
#: the steps of jobs that were heard in time. What it lost, and that it went on, is read from what it saved.
CARE = frozenset({"preemption-measure", "preemptor", "resume"})
SURE = frozenset(
    {"attempt", "basis", "lost_seconds", "save", "step", "kind", "proof", "resumed_from", "next_attempt"}
)


@pytest.fixture(scope="module")
def undisturbed() -> set[tuple[object, ...]]:
    with stack_with_pool() as stack:
        jobs = tell(stack)
        assert kinds(stack, jobs["background-2"]).count("preemption") == 1
        return told(stack)


def with_faults(faults: EventFaults) -> Callable[[LocalStack], None]:
    def disturb(stack: LocalStack) -> None:
        stack.delivery.faults = faults

    return disturb


class Died(BaseException):
    """The function's process ended here: nothing after it runs, not even its own error handling."""


class MortalLedger:
    """A ledger whose process dies at every seventh commit, before and after it by turns.

    A sweep makes about four: oftener, and none would ever come to its end.
    """

    def __init__(self, ledger: Any, calls: Iterator[int]) -> None:
        self._ledger = ledger
        self._calls = calls

    def commit(self, *args: Any) -> None:
        call = next(self._calls)
        if call % 15 == 3:
            raise Died
        self._ledger.commit(*args)
        if call % 15 == 10:
            raise Died

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)


def dying(handler: Handler, calls: Iterator[int]) -> Handler:
    def invoked(event: Mapping[str, Any], context: Any, runtime: Runtime) -> Mapping[str, Any]:
        mortal: Any = MortalLedger(runtime.ledger, calls)
        try:
            return handler(event, context, replace(runtime, ledger=mortal))
        except Died:
            raise RuntimeError("the process died") from None

    return invoked


def with_crashes(stack: LocalStack) -> None:
    calls = count()
    for name, handler in stack.handlers.items():
        stack.handlers[name] = dying(handler, calls)


FAULTS = {
    "doubled": EventFaults(double=1.0),
    "reordered": EventFaults(reorder=0.7, reorder_ms=30_000),
    "late and doubled": EventFaults(double=0.5, delay=0.5, delay_ms=8 * MINUTE),
    "all lost": EventFaults(lose=1.0),
    "everything": EventFaults(lose=0.3, double=0.5, reorder=0.5, delay=0.3),
}


def settled(stack: LocalStack, jobs: Mapping[str, str]) -> bool:
    """Each record says what Batch says, no wish is open, and nothing was given up."""
    batch = stack.client("batch", "admin")
    records = [record_of(stack, job) for job in jobs.values()]
    states = [batch.describe_service_job(jobId=job)["status"] for job in jobs.values()]
    return (
        list(map(status, records)) == states
        and not any(record.priority.wish for record in records)
        and not stack.buried()
    )


@pytest.mark.parametrize("faults", FAULTS.values(), ids=FAULTS)
def test_disturbed_events_change_neither_records_nor_audit(
    faults: EventFaults, undisturbed: set[tuple[object, ...]]
) -> None:
    with stack_with_pool() as stack:
        jobs = tell(stack, with_faults(faults))
        assert _untimed(told(stack), FOUND) == _untimed(undisturbed, FOUND)
        assert settled(stack, jobs)


def test_functions_that_die_half_way_change_neither_records_nor_audit(
    undisturbed: set[tuple[object, ...]],
) -> None:
    """But for when we acted: what a sweep that died left undone, the next one does."""
    with stack_with_pool() as stack:
        jobs = tell(stack, with_crashes)
        assert _untimed(told(stack), FOUND | OURS) == _untimed(undisturbed, FOUND | OURS)
        assert "the process died" in stack.parts.log.getvalue()  # type: ignore[attr-defined]
        assert settled(stack, jobs)


#: What happens when it is decided, and that is when somebody looks.
FOUND = frozenset({"finding", "finding-cleared", "checkpoint-unprotected"})
OURS = frozenset({"boost-ended", "priority-changed"})


def _untimed(rows: set[tuple[object, ...]], kinds: frozenset[str]) -> set[tuple[object, ...]]:
    return {(key, kind, None if kind in kinds else at, *rest) for key, kind, at, *rest in rows}


# --- queues and functions --------------------------------------------------------------------------------


def test_what_cannot_be_read_is_buried_with_the_reason_and_blocks_nothing(stack: LocalStack) -> None:
    events = stack.parts.server.queues.queue("EventsQueue")
    events.send('{"source": "aws.batch"}')
    job = submit(stack, "urgent-1", MINUTE)
    stack.run_until(stack.now() + HOUR)
    (buried,) = stack.buried()
    assert buried.body == '{"source": "aws.batch"}'
    assert "missing" in buried.attributes["reason"]["StringValue"]
    assert status(record_of(stack, job)) == "SUCCEEDED"


def test_a_batch_that_failed_comes_again_after_the_visibility_time_out(stack: LocalStack) -> None:
    handler, times = stack.handlers["React"], []

    def fails_once(event: Mapping[str, Any], context: Any, runtime: Runtime) -> Mapping[str, Any]:
        times.append(stack.now())
        if len(times) == 1:
            raise RuntimeError("out of memory")
        return handler(event, context, runtime)

    stack.handlers["React"] = fails_once
    stack.parts.server.queues.queue("EventsQueue").send(json.dumps({"source": "x"}))
    stack.run_until(stack.now() + 10 * MINUTE)
    assert [at - times[0] for at in times] == [0, 270_000]
    assert "out of memory" in stack.parts.log.getvalue()  # type: ignore[attr-defined]


def test_a_step_that_failed_is_taken_again_by_its_workflow(stack: LocalStack) -> None:
    care, left = stack.handlers["Care"], [RuntimeError("no memory"), RuntimeError("no time")]

    def fails_twice(event: Mapping[str, Any], context: Any, runtime: Runtime) -> Mapping[str, Any]:
        if left:
            raise left.pop()
        return care(event, context, runtime)

    stack.handlers["Care"] = fails_twice
    submit(stack, "background-1", HOUR)
    victim = submit(stack, "background-2", HOUR)
    stack.run_until(START + 15 * MINUTE)
    submit(stack, "medium-1", 10 * MINUTE)
    stack.run_until(START + 3 * HOUR)
    ((execution,),) = (machine.executions.values() for machine in stack.machines.values())
    assert (execution.status, left) == ("SUCCEEDED", [])
    known = stack.client("stepfunctions", "ana")
    arn = f"{next(iter(stack.machines)).replace(':stateMachine:', ':execution:')}:{execution.name}"
    assert known.describe_execution(executionArn=arn)["status"] == "SUCCEEDED"
    assert kinds(stack, victim).count("preemption-measure") == 1


def test_an_event_that_no_rule_matches_reaches_no_function(stack: LocalStack) -> None:
    bodies: list[str] = []
    handler = stack.handlers["React"]

    def listening(event: Mapping[str, Any], context: Any, runtime: Runtime) -> Mapping[str, Any]:
        bodies.extend(record["body"] for record in event["Records"])
        return handler(event, context, runtime)

    stack.handlers["React"] = listening
    submit(stack, "urgent-1", MINUTE)
    stack.run_until(stack.now() + MINUTE)
    assert bodies
    assert not any("SubmitServiceJob" in body for body in bodies)


def test_the_sweep_comes_as_often_as_the_template_says(stack: LocalStack) -> None:
    times: list[int] = []

    def noted(event: Mapping[str, Any], context: Any, runtime: Runtime) -> Mapping[str, Any]:
        times.append(stack.now() - START)
        return {}

    stack.handlers["Sweep"] = noted
    stack.run_until(START + 16 * MINUTE)
    assert times == [5 * MINUTE, 10 * MINUTE, 15 * MINUTE]


def test_our_own_change_is_no_drift_and_somebody_elses_is(stack: LocalStack) -> None:
    job = submit(stack, "urgent-1", 2 * HOUR)
    stack.run_until(stack.now() + MINUTE)
    bump(stack.runtime, BumpRequest(id="b", job=job, actor="cho", reason="soon", to=800, lasts=HOUR))
    stack.run_until(stack.now() + 10 * MINUTE)
    assert kinds(stack, job) == ["bump", "priority-changed"]
    stack.client("batch", "eve").update_service_job(jobId=job, schedulingPriority=5)
    stack.run_until(stack.now() + 20 * MINUTE)
    facts = {fact.kind: fact for fact in stack.runtime.audit.by_job(job, 0)}
    assert facts["attribution"].actor == "arn:aws:iam::123456789012:user/eve"
    assert (facts["drift"].before, facts["drift"].after) == ("800", "5")
    assert facts["boost-ended"].reason.startswith("superseded")


# --- the process around it -------------------------------------------------------------------------------


def test_the_stack_leaves_the_process_as_it_found_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "production")
    before, session = dict(os.environ), boto3.DEFAULT_SESSION
    with stack_with_pool() as stack:
        create_pool(stack)
        submit(stack, "urgent-1", MINUTE)
        stack.run_until(START + 20 * MINUTE)
        assert dict(os.environ) == before
    assert (dict(os.environ), boto3.DEFAULT_SESSION) == (before, session)
    assert capsys.readouterr() == ("", "")


def test_two_stacks_after_another_share_nothing() -> None:
    for _ in range(2):
        with stack_with_pool() as stack:
            create_pool(stack)
            job = submit(stack, "urgent-1", MINUTE)
            assert stack.runtime.ledger.load(JobRecord, job) is None
            stack.run_until(START + MINUTE)
            assert record_of(stack, job).name == "urgent-1"
