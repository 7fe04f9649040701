"""The interpreter of state machines: what it knows of the language, and that it refuses the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sharewarden.domain.stored import HOUR, SECOND
from sharewarden_tools.lab.errors import ApiError
from sharewarden_tools.local.definition import DefinitionError, StateError, evaluate, load_definition
from sharewarden_tools.local.workflows import Execution, Invoke, Machine
from sharewarden_tools.memory import MemoryClock

Json = dict[str, Any]
END: Json = {"Type": "Succeed"}
TASK: Json = {"Type": "Task", "Resource": "f", "Next": "End"}


def machine_text(**changes: Any) -> str:
    """A machine of one task; ``changes`` replace members of the definition."""
    return json.dumps(
        {"QueryLanguage": "JSONata", "StartAt": "Do", "States": {"Do": TASK, "End": END}} | changes
    )


def states(do: Json, **more: Json) -> str:
    return machine_text(States={"Do": do, "End": END, **more})


def echo(_resource: str, given: Any) -> Any:
    return given


def run(text: str, invoke: Invoke = echo, given: Any = None) -> Any:
    """What the last state was given, or the error that it ended with."""
    execution = ended(text, invoke, given)
    return execution.error.error if execution.error else vars(execution)["_input"]


def ended(text: str, invoke: Invoke = echo, given: Any = None) -> Execution:
    clock = MemoryClock(1_000_000)
    machine = Machine(load_definition(text), invoke, clock)
    execution = machine.start("one", json.dumps(given or {}))
    while (due := machine.next_due()) is not None:
        clock.at = max(clock.at, due)
        machine.run_due()
    return execution


# --- what is refused when the definition is read -----------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (machine_text(QueryLanguage="JSONPath"), "only QueryLanguage: JSONata"),
        (machine_text(Version="1.0"), "the definition: Version is not known"),
        (machine_text(StartAt="Other"), "Other: a state that is not there"),
        (states({"Type": "Parallel"}), "Do: Type Parallel is not known"),
        (states({**TASK, "HeartbeatSeconds": 5}), "Do: HeartbeatSeconds is not known"),
        (states({**TASK, "InputPath": "$.x"}), "Do: InputPath is not known"),
        (states({**TASK, "End": True}), "Do: End is not known"),
        (states({"Type": "Task", "Resource": "f"}), "End: a state that is not there, or that nothing"),
        (states({**TASK, "Next": "Ende"}), "End, Ende: a state that is not there"),
        (states(TASK, Lost=END), "Lost: a state that is not there, or that nothing leads to"),
        (states({**TASK, "Retry": [{"ErrorEquals": ["E"], "Sleep": 1}]}), "Do.Retry: Sleep is not known"),
        (
            states({**TASK, "Catch": [{"ErrorEquals": ["States.TaskFailed"], "Next": "End"}]}),
            "Do.Catch: States.TaskFailed is not known",
        ),
        (
            states({"Type": "Choice", "Choices": [{"Variable": "$.x", "Next": "End"}], "Default": "End"}),
            "Do.Choices: Variable is not known",
        ),
        (
            states({"Type": "Choice", "Choices": [{"Condition": "{% true %}", "Next": "End"}]}),
            "Do: Default is missing",
        ),
        (states({"Type": "Wait", "Timestamp": "2026-01-01T00:00:00Z", "Next": "End"}), "Timestamp is not"),
        (states({**TASK, "Arguments": {"a": "{% $states.( %}"}}), r"\$states.\( %}: "),
        (states({**TASK, "Resource": "${Care}"}), "Do: .*Care.* was not substituted"),
    ],
)
def test_what_is_not_known_or_wrong_is_refused(text: str, fault: str) -> None:
    with pytest.raises(DefinitionError, match=fault):
        load_definition(text)


# --- JSONata -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("plain", "plain"),
        (" {% 1 %}", " {% 1 %}"),
        ("{% $n + 1 %}", 3),
        ({"a": ["{% $n %}", {"b": "{% 'x' & $n %}"}], "c": None}, {"a": [2, {"b": "x2"}], "c": None}),
        ("{% $states.input.nothing %}", None),
        ("{% $states.input.nothing = null %}", True),
        ("{% $states.input.list %}", [1, None]),
        ("{% {'a': $states.input.missing} %}", {}),
        ("{% $exists($states.input.missing) %}", False),
    ],
)
def test_expressions(template: Any, expected: Any) -> None:
    scope = {"n": 2, "states": {"input": {"nothing": None, "list": [1, None]}}}
    assert evaluate(template, scope) == expected


@pytest.mark.parametrize("expression", ["$states.input.missing", "$unset", "'a' + 1", "1 / 0"])
def test_an_undefined_result_is_an_error_and_so_is_a_failure(expression: str) -> None:
    with pytest.raises(StateError) as raised:
        evaluate("{% " + expression + " %}", {"states": {"input": {}}})
    assert raised.value.error == "States.QueryEvaluationError"


# --- states ------------------------------------------------------------------------------------------------


def test_assign_and_output_are_evaluated_before_either_takes_effect() -> None:
    text = states(
        {"Type": "Pass", "Assign": {"n": 1}, "Next": "Swap"},
        Swap={"Type": "Pass", "Assign": {"n": 2}, "Output": {"n": "{% $n %}"}, "Next": "End"},
    )
    assert run(text) == {"n": 1}


def test_a_task_without_arguments_is_given_the_input_and_hands_on_its_answer() -> None:
    assert run(states(TASK), lambda resource, given: [resource, given], {"a": 1}) == ["f", {"a": 1}]


def test_a_task_may_answer_nothing() -> None:
    assert run(states(TASK), lambda _resource, _given: None, {"a": 1}) is None


def test_output_sees_input_and_result() -> None:
    text = states({**TASK, "Output": "{% [$states.input.a, $states.result] %}"})
    assert run(text, lambda _resource, _given: 5, {"a": 1}) == [1, 5]


def test_an_answer_that_is_not_json_is_an_error_of_the_task() -> None:
    assert run(states(TASK), lambda _resource, _given: object()) == "TypeError"


def test_a_choice_takes_the_first_condition_that_holds_and_hands_on_its_input() -> None:
    rules = [
        {"Condition": "{% $states.input.n > 5 %}", "Next": "Big"},
        {"Condition": "{% $states.input.n > 2 %}", "Next": "End"},
    ]
    text = states(
        {"Type": "Choice", "Choices": rules, "Default": "Small"},
        Big={"Type": "Fail", "Error": "Big"},
        Small={"Type": "Fail", "Error": "Small"},
    )
    assert [run(text, given={"n": n}) for n in (6, 3, 1)] == ["Big", {"n": 3}, "Small"]


@pytest.mark.parametrize("condition", ["{% 'true' %}", "{% 1 %}", "{% $states.input.missing %}", "true"])
def test_a_condition_that_is_neither_true_nor_false_is_an_error(condition: str) -> None:
    rules = [{"Condition": condition, "Next": "End"}]
    text = states({"Type": "Choice", "Choices": rules, "Default": "End"})
    assert run(text) == "States.QueryEvaluationError"


@pytest.mark.parametrize(
    ("seconds", "waited"), [(0, 0), (90, 90), ("{% $states.input.n %}", 7), (-1, None), ("{% 'x' %}", None)]
)
def test_a_wait_takes_its_time(seconds: Any, waited: int | None) -> None:
    execution = ended(states({"Type": "Wait", "Seconds": seconds, "Next": "End"}), given={"n": 7})
    if waited is None:
        assert execution.error is not None
        assert execution.error.error == "States.QueryEvaluationError"
    else:
        assert (execution.ended_at or 0) - execution.started_at == waited * SECOND


def test_fail_names_its_error() -> None:
    execution = ended(machine_text(States={"Do": {"Type": "Fail", "Error": "E", "Cause": "why"}}))
    assert (execution.status, str(execution.error)) == ("FAILED", "E: why")


# --- errors ------------------------------------------------------------------------------------------------


class Fails:
    """Raises these one after the other, then answers."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.tries = 0

    def __call__(self, _resource: str, _given: Any) -> Any:
        self.tries += 1
        if self.errors:
            raise self.errors.pop(0)
        return "well"


def retry(*names: str, **more: Any) -> Json:
    return {"ErrorEquals": list(names), **more}


@pytest.mark.parametrize(
    ("rules", "errors", "waited"),
    [
        ([retry("ValueError")], [ValueError()] * 3, 1 + 2 + 4),
        ([retry("States.ALL", IntervalSeconds=5, BackoffRate=1)], [ValueError(), KeyError()], 10),
        ([retry("States.ALL", IntervalSeconds=5, MaxDelaySeconds=7)], [ValueError()] * 3, 5 + 7 + 7),
        ([retry("KeyError", "ValueError", MaxAttempts=1)], [ValueError()], 1),
        ([retry("KeyError"), retry("States.ALL", IntervalSeconds=9)], [ValueError(), KeyError()], 10),
        ([retry("Lambda.TooManyRequestsException")], [StateError("Lambda.TooManyRequestsException")], 1),
    ],
)
def test_an_error_is_tried_again_by_the_first_rule_that_fits(
    rules: list[Json], errors: list[Exception], waited: int
) -> None:
    invoke = Fails(*errors)
    execution = ended(states({**TASK, "Retry": rules}), invoke)
    assert (execution.status, invoke.tries) == ("SUCCEEDED", len(errors) + 1)
    assert (execution.ended_at or 0) - execution.started_at == waited * SECOND


@pytest.mark.parametrize(
    ("rules", "errors"),
    [
        ([retry("ValueError")], [ValueError()] * 4),
        ([retry("ValueError", MaxAttempts=0)], [ValueError()]),
        ([retry("KeyError")], [ValueError()]),
        ([retry("ValueError", MaxAttempts=1), retry("States.ALL")], [ValueError()] * 2),
        ([], [ValueError()]),
    ],
)
def test_an_error_without_tries_left_ends_the_execution(rules: list[Json], errors: list[Exception]) -> None:
    invoke = Fails(*errors)
    execution = ended(states({**TASK, "Retry": rules}), invoke)
    assert (execution.status, execution.error and execution.error.error) == ("FAILED", "ValueError")
    assert invoke.tries == len(errors)


def test_full_jitter_shortens_the_pause_the_same_way_each_time() -> None:
    rules = [retry("States.ALL", IntervalSeconds=3600, JitterStrategy="FULL")]
    pauses = set()
    for _ in range(2):
        execution = ended(states({**TASK, "Retry": rules}), Fails(ValueError()))
        pauses.add((execution.ended_at or 0) - execution.started_at)
    (pause,) = pauses
    assert 0 < pause < HOUR


def test_an_error_is_caught_by_the_first_rule_that_fits() -> None:
    catch = [
        {"ErrorEquals": ["KeyError"], "Next": "Other"},
        {"ErrorEquals": ["States.ALL"], "Next": "End", "Assign": {"seen": True}},
    ]
    text = states({**TASK, "Catch": catch}, Other={"Type": "Fail", "Error": "Other"})
    assert run(text, Fails(ValueError("why"))) == {"Error": "ValueError", "Cause": "why"}
    assert run(text, Fails(KeyError())) == "Other"


@pytest.mark.parametrize("field", ["Arguments", "Output", "Assign"])
def test_an_undefined_field_of_a_task_can_be_caught(field: str) -> None:
    catch = [{"ErrorEquals": ["States.QueryEvaluationError"], "Next": "End", "Output": "caught"}]
    text = states({**TASK, field: {"a": "{% $states.input.missing %}"}, "Catch": catch})
    assert run(text) == "caught"


def test_a_task_that_takes_longer_than_its_time_has_timed_out() -> None:
    clock = MemoryClock(0)

    def slow(_resource: str, _given: Any) -> None:
        clock.advance(11 * SECOND)

    machine = Machine(load_definition(states({**TASK, "TimeoutSeconds": 10})), slow, clock)
    execution = machine.start("one", "{}")
    machine.run_due()
    assert execution.error is not None
    assert execution.error.error == "States.Timeout"


def test_an_execution_that_takes_longer_than_its_time_has_timed_out() -> None:
    waits = {"Do": {"Type": "Wait", "Seconds": 100, "Next": "End"}, "End": END}
    execution = ended(machine_text(TimeoutSeconds=60, States=waits))
    assert execution.status == "TIMED_OUT"
    assert execution.ended_at == execution.started_at + 60 * SECOND


def test_an_execution_ends_when_its_history_is_full() -> None:
    loop = {"Do": {"Type": "Pass", "Next": "Ask"}, "End": END}
    loop["Ask"] = {
        "Type": "Choice",
        "Choices": [{"Condition": "{% false %}", "Next": "End"}],
        "Default": "Do",
    }
    execution = ended(machine_text(States=loop))
    assert (execution.status, execution.error and execution.error.error) == ("FAILED", "States.Runtime")
    assert 25_000 <= execution.events < 25_010


# --- names -------------------------------------------------------------------------------------------------


def test_a_name_stands_for_one_execution() -> None:
    clock = MemoryClock(0)
    machine = Machine(load_definition(states(TASK)), echo, clock)
    first = machine.start("one", "{}")
    assert machine.start("one", "{}") is first
    with pytest.raises(ApiError, match="ExecutionAlreadyExists"):
        machine.start("one", '{"a": 1}')
    while machine.run_due():
        pass
    with pytest.raises(ApiError, match="ExecutionAlreadyExists"):
        machine.start("one", "{}")
    assert machine.next_due() is None


def test_an_execution_may_start_another_one() -> None:
    clock = MemoryClock(0)
    started: list[Execution] = []

    def invoke(_resource: str, given: Any) -> Any:
        if given == {}:
            started.append(machine.start("two", '{"second": true}'))
        return given

    machine = Machine(load_definition(states(TASK)), invoke, clock)
    machine.start("one", "{}")
    while machine.run_due():
        pass
    assert [one.status for one in machine.executions.values()] == ["SUCCEEDED", "SUCCEEDED"]
