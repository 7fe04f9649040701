"""When a case is opened, for which attempt, and when nobody takes care of it any longer."""

from __future__ import annotations

from typing import Any

import pytest
from sharewarden.domain.attempts import Attempt
from sharewarden.domain.observation import Status
from sharewarden.domain.preemption.case import (
    LATE,
    LONGEST_LATE,
    Case,
    attempt_at,
    due_cases,
    lost_since,
    renewed,
    with_cases,
)
from sharewarden.domain.record import JobRecord, Snapshot, Transition
from sharewarden.domain.stored import HOUR, MINUTE

from tests.simulation.samples import ARN, FIRST, JOB, SECOND
from tests.simulation.world import NOW, QUEUE

BEGAN = NOW + HOUR


def told(at: int, status: Status | None, attempt: str | None = None, what: Any = "status") -> Transition:
    return Transition(at=at, what=what, status=status, attempt=attempt)


def job(*timeline: Transition, **more: Any) -> JobRecord:
    return JobRecord(job=JOB, arn=ARN, name="n", queue=QUEUE, created_at=NOW, timeline=timeline, **more)


RAN = told(NOW, "RUNNING", FIRST)
STARTED = told(BEGAN, "RUNNING", what="preemption-started")
STOPPED = Attempt(training_job=FIRST, stopped_at=BEGAN + MINUTE, preempted=True)
MISTAKEN = STOPPED.model_copy(update={"mistaken": True})


@pytest.mark.parametrize(
    ("record", "opened"),
    [
        (job(RAN, STARTED), [(FIRST, BEGAN)]),
        (job(RAN, STARTED, STARTED.model_copy(update={"at": BEGAN + MINUTE})), [(FIRST, BEGAN + MINUTE)]),
        (job(RAN, STARTED, attempts=(STOPPED,)), [(FIRST, BEGAN)]),
        (job(attempts=(STOPPED,)), [(FIRST, BEGAN + MINUTE)]),
        (job(STARTED), []),
        (job(RAN), []),
        (job(RAN, attempts=(STOPPED.model_copy(update={"preempted": False}),)), []),
        (job(RAN, attempts=(STOPPED.model_copy(update={"stopped_at": None}),)), []),
        (job(RAN, STARTED, attempts=(STOPPED.model_copy(update={"cased": True}),)), []),
        (job(RAN, STARTED, attempts=(STOPPED.model_copy(update={"audited": True}),)), []),
        (job(RAN, STARTED, attempts=(STOPPED,), classic=True), []),
        # after a mistake
        (job(RAN, STARTED, attempts=(Attempt(training_job=FIRST, mistaken=True),)), []),
        (job(RAN, STARTED, attempts=(MISTAKEN,)), [(FIRST, BEGAN + MINUTE)]),
        (job(RAN, STARTED, attempts=(MISTAKEN.model_copy(update={"cased": True}),)), []),
    ],
)
def test_an_attempt_has_one_case(record: JobRecord, opened: list[tuple[str, int]]) -> None:
    known = record.attempts or tuple(Attempt(training_job=name) for name, _ in opened)
    cases = due_cases(record.model_copy(update={"attempts": known}))
    assert [(case.attempt, case.opened_at) for case in cases] == opened
    after = with_cases(record.model_copy(update={"attempts": known}), cases)
    assert due_cases(after) == ()


def read(status: Status, attempt: str | None, dispatched_at: int | None) -> Snapshot:
    return Snapshot(read_at=BEGAN + MINUTE, status=status, attempt=attempt, dispatched_at=dispatched_at)


@pytest.mark.parametrize(
    ("record", "attempt"),
    [
        (job(RAN), FIRST),
        (job(RAN, told(BEGAN, "SCHEDULED", SECOND)), SECOND),
        (job(RAN, told(BEGAN + 1000, "SCHEDULED", SECOND)), FIRST),
        (job(RAN, attempts=(STOPPED.model_copy(update={"stopped_at": BEGAN - 1000}),)), None),
        (job(RAN, attempts=(STOPPED.model_copy(update={"stopped_at": BEGAN - 999}),)), FIRST),
        (job(snapshot=read("RUNNING", FIRST, NOW)), FIRST),
        (job(RAN, snapshot=read("STARTING", SECOND, BEGAN)), SECOND),
        (job(RAN, snapshot=read("STARTING", SECOND, BEGAN + 1)), FIRST),
        (job(RAN, snapshot=read("STARTING", SECOND, None)), FIRST),
        (job(RAN, snapshot=read("RUNNABLE", SECOND, NOW)), FIRST),
        (job(RAN, snapshot=read("RUNNING", None, NOW)), FIRST),
        (job(), None),
    ],
)
def test_which_attempt_held_capacity_at_a_time(record: JobRecord, attempt: str | None) -> None:
    assert attempt_at(record, BEGAN) == attempt


CASE = Case(attempt=FIRST, job=JOB, queue=QUEUE, opened_at=NOW)


@pytest.mark.parametrize(
    ("changes", "after", "lost"),
    [
        ({}, 0, 0),
        ({"heard_at": NOW, "next_at": NOW + HOUR}, HOUR + LATE - 1, None),
        ({"heard_at": NOW, "next_at": NOW + HOUR}, HOUR + LATE, NOW + HOUR),
        ({"heard_at": NOW, "next_at": NOW}, LATE, NOW),
        ({"next_at": NOW, "generation": 2}, 2 * LATE - 1, None),
        ({"next_at": NOW, "generation": 2}, 2 * LATE, NOW),
        ({"next_at": NOW, "generation": 99}, LONGEST_LATE, NOW),
        ({"next_at": NOW + 2 * HOUR}, 0, None),
        ({"next_at": NOW + 3 * HOUR}, 0, NOW + 3 * HOUR),
        ({"closed_at": NOW}, HOUR, None),
    ],
)
def test_since_when_nobody_takes_care(changes: dict[str, int], after: int, lost: int | None) -> None:
    assert lost_since(CASE.model_copy(update=changes), NOW + after) == lost


def test_a_renewed_case_has_its_time_again() -> None:
    again = renewed(CASE, NOW)
    assert (again.generation, lost_since(again, NOW + LATE)) == (2, None)
