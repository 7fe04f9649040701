"""Sweeps bring back the workflows of cases of which nothing is heard."""

from __future__ import annotations

import pytest
from sharewarden.domain.preemption.case import LATE, Case
from sharewarden.domain.stored import MINUTE
from sharewarden.ports import Unavailable
from sharewarden.usecases.care.start import MOST_STARTED, start, start_lost
from sharewarden_tools.memory import MemoryWorkflows, Started

from tests.simulation.faults import When, lose, once, watched
from tests.simulation.samples import FIRST, JOB
from tests.simulation.world import NOW, QUEUE, World, world

CASE = Case(attempt=FIRST, job=JOB, queue=QUEUE, opened_at=NOW)


def place(*cases: Case) -> World:
    made = world()
    for case in cases:
        made.ledger.commit([case], [], NOW)
    return made


def flows(made: World) -> MemoryWorkflows:
    workflows = made.runtime.workflows
    assert isinstance(workflows, MemoryWorkflows)
    return workflows


def known(made: World) -> Case:
    case = made.ledger.load(Case, FIRST)
    assert case is not None
    return case


def test_what_was_never_started_is_started_and_what_runs_is_left_alone() -> None:
    made = place(CASE)
    assert [start_lost(made.runtime, QUEUE, NOW) for _ in range(3)] == [1, 0, 0]
    assert flows(made).started == [Started(FIRST, JOB, 1)]
    assert known(made).generation == 1


def test_law_10_an_execution_that_ended_is_followed_by_the_next_generation_after_its_time() -> None:
    made = place(CASE)
    start_lost(made.runtime, QUEUE, NOW)
    flows(made).over |= set(flows(made).started)
    assert start_lost(made.runtime, QUEUE, NOW) == 1
    assert flows(made).started[1:] == [Started(FIRST, JOB, 2)]
    flows(made).over |= set(flows(made).started)
    assert start_lost(made.runtime, QUEUE, NOW + 2 * LATE - 1) == 0
    assert start_lost(made.runtime, QUEUE, NOW + 2 * LATE) == 1
    assert known(made).generation == 3


@pytest.mark.parametrize("closed_at", [NOW, None])
def test_only_open_cases_of_the_queue_whose_step_is_overdue(closed_at: int | None) -> None:
    heard = NOW if closed_at is None else 0
    made = place(CASE.model_copy(update={"closed_at": closed_at, "heard_at": heard}))
    assert start_lost(made.runtime, QUEUE, NOW + MINUTE) == 0
    assert start_lost(made.runtime, f"{QUEUE}-2", NOW + LATE) == 0


def test_those_lost_for_longest_come_first_and_not_all_at_once() -> None:
    cases = [
        CASE.model_copy(update={"attempt": f"{n:03d}", "next_at": NOW - n}) for n in range(MOST_STARTED + 5)
    ]
    made = place(*cases)
    assert start_lost(made.runtime, QUEUE, NOW + LATE) == MOST_STARTED
    left = {case.attempt for case in cases} - {one.attempt for one in flows(made).started}
    assert left == {"000", "001", "002", "003", "004"}


def test_a_start_that_fails_is_left_to_the_sweep_and_there_it_is_told() -> None:
    made = place(CASE)
    flows(made).down = "throttled"
    start(made.runtime, [CASE])
    with pytest.raises(Unavailable):
        start_lost(made.runtime, QUEUE, NOW)
    flows(made).down = None
    assert start_lost(made.runtime, QUEUE, NOW) == 1


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", range(1, 5))
def test_law_10_a_lost_answer_at_any_call_costs_no_generation_that_runs(number: int, when: When) -> None:
    made = place(CASE)
    flows(made).started.append(Started(FIRST, JOB, 1))
    flows(made).over |= set(flows(made).started)
    runtime, calls = watched(made.runtime, once(number, when, lose))
    with pytest.raises(Unavailable):
        start_lost(runtime, QUEUE, NOW)
    assert len(calls.names) == number
    for sweep in range(1, 4):
        start_lost(made.runtime, QUEUE, NOW + sweep * 10 * LATE)
    assert len(set(flows(made).started)) == len(flows(made).started) == 2
    assert flows(made).started[-1].generation == known(made).generation == 2


def test_a_step_taken_meanwhile_keeps_its_case() -> None:
    made = place(CASE)
    flows(made).started.append(Started(FIRST, JOB, 1))
    flows(made).over |= set(flows(made).started)

    def takes() -> None:
        made.ledger.commit([known(made).model_copy(update={"heard_at": NOW})], [], NOW)

    runtime, calls = watched(made.runtime, once(3, "before", takes))
    assert start_lost(runtime, QUEUE, NOW) == 0
    assert (calls.names, known(made).generation) == (["open_items", "start", "commit"], 1)


def test_the_sweep_does_it_and_says_so() -> None:
    made = place(CASE)
    assert (made.sweep().cases, made.sweep("again").cases) == (1, 0)
