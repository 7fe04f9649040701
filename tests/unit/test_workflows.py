"""The preemption workflow as it is deployed, run by the local interpreter: all its ways, tries and waits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from sharewarden.domain.stored import DAY, MINUTE, SECOND
from sharewarden_tools.local.definition import Definition, load_definition
from sharewarden_tools.local.workflows import MOST_EVENTS, Execution, Machine, MachineWorkflows
from sharewarden_tools.memory import MemoryClock
from sharewarden_tools.template import TEMPLATE, load_template

TEXT = (TEMPLATE.parent / "statemachines" / "preemption.asl.yaml").read_text()
ATTEMPT = "arn:aws:sagemaker:us-east-1:123456789012:training-job/AWSBatchtrain-1"
JOB = "0a1b2c3d"

Answer = dict[str, Any]
#: The steps before the outcome is looked at.
LOOKING = ["note", "find", "outcome", "pin", "measure", "preemptor"]
#: Steps by their states, and where each leads when it fails for good.
CAUGHT = {
    "Note": "GiveUp",
    "Find": "Outcome",
    "Outcome": "GiveUp",
    "Pin": "Measure",
    "Measure": "Preemptor",
    "Preemptor": "Branch",
    "Resumed": "GiveUp",
    "Resubmit": "GiveUp",
    "Close": "GiveUp",
    "GiveUp": None,
}
STEPS = {state: "give_up" if state == "GiveUp" else state.lower() for state in CAUGHT}
#: An outcome that leads past the step.
OUTCOMES = dict.fromkeys(STEPS, "requeued") | {"Resubmit": "exhausted", "GiveUp": "unknown"}


class Broken(Exception):
    """What a step raises here."""


class Care:
    """The function, scripted: what each step answers, or raises, one after the other; the last one for ever.

    A step without a script is done at once, with that outcome.
    """

    def __init__(self, outcome: str = "requeued", scripts: Mapping[str, list[Any]] | None = None) -> None:
        self.events: list[Answer] = []
        self.times: list[int] = []
        self.clock = MemoryClock(1_789_372_800_000)
        self._outcome = outcome
        self._scripts = {step: list(script) for step, script in (scripts or {}).items()}

    @property
    def called(self) -> list[str]:
        return [event["step"] for event in self.events]

    def times_of(self, step: str) -> list[int]:
        return [at for event, at in zip(self.events, self.times, strict=True) if event["step"] == step]

    def __call__(self, resource: str, event: Answer) -> Answer:
        assert resource == "arn:care"
        self.events.append(event)
        self.times.append(self.clock.now())
        script = self._scripts.get(event["step"], [done(self._outcome)])
        answer = script.pop(0) if len(script) > 1 else script[0]
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)


def done(outcome: str = "") -> Answer:
    return {"done": True, "wait": 0, "outcome": outcome}


def wait(seconds: int) -> Answer:
    return {"done": False, "wait": seconds, "outcome": ""}


@cache
def definition() -> Definition:
    return load_definition(TEXT, {"Care": "arn:care"})


def run(care: Care) -> Execution:
    """One execution to its end."""
    machine = Machine(definition(), care, care.clock)
    MachineWorkflows(machine).start(ATTEMPT, JOB, 1)
    while (due := machine.next_due()) is not None:
        care.clock.at = max(care.clock.at, due)
        machine.run_due()
    (execution,) = machine.executions.values()
    return execution


# --- every way through -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "after", "end"),
    [
        ("requeued", ["resumed", "close"], "Closed"),
        ("exhausted", ["resubmit", "resumed", "close"], "Closed"),
        ("cancelled", ["close"], "Closed"),
        ("ended", ["close"], "Closed"),
        ("unknown", ["give_up"], "GivenUp"),
        ("", ["close"], "Closed"),  # the answer of a case that was closed meanwhile
    ],
)
def test_the_outcome_tells_the_way(outcome: str, after: list[str], end: str) -> None:
    care = Care(outcome)
    execution = run(care)
    assert care.called == LOOKING + after
    assert execution.state == end
    assert execution.status == ("FAILED" if end == "GivenUp" else "SUCCEEDED")


def test_each_step_is_told_which_attempt_and_gets_the_same_input_each_time() -> None:
    care = Care(scripts={"find": [Broken(), wait(5), done()]})
    run(care)
    shared = {"attempt": ATTEMPT, "job": JOB, "generation": 1}
    assert care.events == [{"step": step, **shared} for step in care.called]


@pytest.mark.parametrize("state", STEPS)
def test_a_step_that_fails_for_good_is_passed_over_or_given_up(state: str) -> None:
    care = Care(OUTCOMES[state], {STEPS[state]: [Broken("no")]})
    execution = run(care)
    if CAUGHT[state] is None:
        assert (execution.status, execution.state) == ("FAILED", state)
        assert str(execution.error) == "Broken: no"
        assert care.called.count("give_up") == 171
        return
    assert (state, CAUGHT[state]) in execution.taken
    assert care.called.count(STEPS[state]) == 10
    given_up = CAUGHT[state] == "GiveUp"
    assert care.called[-1] == ("give_up" if given_up else "close")
    assert execution.state == ("GivenUp" if given_up else "Closed")


@pytest.mark.parametrize("state", STEPS)
def test_a_step_that_is_never_done_makes_room_for_the_next_generation(state: str) -> None:
    care, execution = never_done(state)
    assert (execution.status, execution.state) == ("SUCCEEDED", "Renew")
    assert care.called.count(STEPS[state]) == 401


@cache
def never_done(state: str) -> tuple[Care, Execution]:
    care = Care(OUTCOMES[state], {STEPS[state]: [wait(3600)]})
    return care, run(care)


@pytest.mark.parametrize(
    ("asked", "waited"), [(-5, 1), (0, 1), (1, 1), (59, 59), (3600, 3600), (3601, 3600), (10**7, 3600)]
)
@pytest.mark.parametrize("state", STEPS)
def test_a_step_comes_again_after_its_wait_an_hour_at_most(state: str, asked: int, waited: int) -> None:
    care = Care(OUTCOMES[state], {STEPS[state]: [wait(asked), done(OUTCOMES[state])]})
    run(care)
    first, second = care.times_of(STEPS[state])
    assert second - first == waited * SECOND


def test_the_repeats_of_all_steps_are_counted_together() -> None:
    care = Care(scripts={"find": [*[wait(1)] * 399, done()], "pin": [wait(1), wait(1), done()]})
    execution = run(care)
    assert execution.state == "Renew"
    assert care.called.count("pin") == 2


def test_an_answer_that_makes_no_sense_takes_no_branch() -> None:
    execution = run(Care(scripts={"find": [done() | {"done": "perhaps"}]}))
    assert (execution.status, execution.state) == ("FAILED", "FindDone")


def test_an_outcome_that_is_missing_is_an_error_of_its_step() -> None:
    care = Care(scripts={"outcome": [{"done": True, "wait": 0}]})
    assert ("Outcome", "GiveUp") in run(care).taken
    assert care.called.count("outcome") == 10


def executions() -> Iterator[Execution]:
    """Each outcome, and each step that fails, comes again once, or is never done."""
    yield from (run(Care(outcome)) for outcome in ("requeued", "exhausted", "cancelled", "ended", "unknown"))
    for state, step in STEPS.items():
        yield run(Care(OUTCOMES[state], {step: [Broken()]}))
        yield run(Care(OUTCOMES[state], {step: [wait(1), done(OUTCOMES[state])]}))
        yield never_done(state)[1]


def test_every_branch_of_the_definition_is_taken() -> None:
    taken = {step for execution in executions() for step in execution.taken}
    assert taken == definition().transitions()
    ends = {name for name, state in definition().states.items() if state["Type"] in ("Succeed", "Fail")}
    assert set(definition().states) == {state for state, _ in taken} | ends


# --- what the definition says of tries, waits and bounds ---------------------------------------------------


@pytest.mark.parametrize("state", STEPS)
def test_a_failed_step_is_tried_again_for_half_an_hour_give_up_for_a_week(state: str) -> None:
    most, longest = (9, 600) if state != "GiveUp" else (170, 3600)
    care = Care(OUTCOMES[state], {STEPS[state]: [Broken()]})
    run(care)
    times = care.times_of(STEPS[state])
    pauses = [later - earlier for earlier, later in pairwise(times)]
    bounds = [min(5 * 2**number, longest) * SECOND for number in range(most)]
    assert len(pauses) == most
    assert all(pause <= bound for pause, bound in zip(pauses, bounds, strict=True))
    assert any(pause < bound / 2 for pause, bound in zip(pauses, bounds, strict=True)), "no jitter"
    assert sum(bounds) <= (7 * DAY if state == "GiveUp" else 35 * MINUTE)


@pytest.mark.parametrize("state", STEPS)
def test_every_step_has_the_same_rules(state: str) -> None:
    task = definition().states[state]
    tries = {"ErrorEquals": ["States.ALL"], "IntervalSeconds": 5, "BackoffRate": 2, "JitterStrategy": "FULL"}
    bounds = {"MaxDelaySeconds": 600, "MaxAttempts": 9}
    if state == "GiveUp":
        bounds = {"MaxDelaySeconds": 3600, "MaxAttempts": 170}
    caught = CAUGHT[state] and [{"ErrorEquals": ["States.ALL"], "Next": CAUGHT[state]}]
    assert task["Retry"] == [tries | bounds]
    assert task.get("Catch") == caught
    assert task["Next"] == f"{state}Done"
    assert task["TimeoutSeconds"] > care_timeout()


def care_timeout() -> int:
    properties = load_template()["Resources"]["Care"]["Properties"]
    return int(properties["Timeout"])


def test_the_states_are_the_steps_and_nothing_calls_aws_itself() -> None:
    tasks = {name: state for name, state in definition().states.items() if state["Type"] == "Task"}
    assert list(tasks) == list(STEPS)
    assert {state["Resource"] for state in tasks.values()} == {"arn:care"}


@pytest.mark.parametrize("state", ["Resumed"])
def test_the_worst_execution_stays_far_below_the_bound_of_its_history(state: str) -> None:
    """All tries of each of the 401 steps are used, and each wait is the longest."""
    rounds = [*[Broken()] * 9, wait(3600)] * 401
    execution = run(Care(OUTCOMES[state], {STEPS[state]: rounds}))
    assert (execution.status, execution.state) == ("SUCCEEDED", "Renew")
    assert execution.events < MOST_EVENTS * 3 / 4
    timeout = definition().timeout_ms
    assert timeout is not None
    ended_at = execution.ended_at or 0
    assert ended_at - execution.started_at < timeout / 2


def test_a_usual_preemption_takes_as_many_transitions_as_the_documentation_says() -> None:
    """Requeued, the outcome after three looks, the proof after ten."""
    looks = {"outcome": [wait(60)] * 2 + [done("requeued")], "resumed": [wait(600)] * 9 + [done()]}
    transitions = len(run(Care(scripts=looks)).taken) + 1
    document = (TEMPLATE.parent / "docs" / "operations.md").read_text()
    assert f"{transitions} state transitions" in document


# --- executions by their names -----------------------------------------------------------------------------


def test_an_execution_is_there_once() -> None:
    care = Care()
    machine = Machine(definition(), care, care.clock)
    workflows = MachineWorkflows(machine)
    assert workflows.start(ATTEMPT, JOB, 1) == "started"
    assert workflows.start(ATTEMPT, JOB, 1) == "started", "as AWS answers while it runs with this input"
    assert workflows.start(ATTEMPT, "another", 1) == "running"
    assert workflows.start(ATTEMPT, JOB, 2) == "started"
    while machine.run_due():
        pass
    assert workflows.start(ATTEMPT, JOB, 1) == "over"
    assert list(machine.executions) == ["AWSBatchtrain-1-1", "AWSBatchtrain-1-2"]
    assert care.called.count("note") == 2
