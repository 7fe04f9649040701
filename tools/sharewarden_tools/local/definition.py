"""The definition of a state machine in Amazon States Language, read and checked, and its JSONata expressions.

Only what ``statemachines/`` uses is known. Anything else raises DefinitionError when it is read, so
that it is added here on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml
from jsonata import Jsonata
from jsonata.utils import Utils
from sharewarden.domain.stored import SECOND

State = Mapping[str, Any]

ALL, QUERY_ERROR, TIMEOUT = "States.ALL", "States.QueryEvaluationError", "States.Timeout"

_TOP = {"Comment", "QueryLanguage", "StartAt", "States", "TimeoutSeconds"}
_FIELDS = {
    "Pass": {"Assign", "Output", "Next"},
    "Task": {"Resource", "Arguments", "TimeoutSeconds", "Assign", "Output", "Retry", "Catch", "Next"},
    "Choice": {"Choices", "Default"},
    "Wait": {"Seconds", "Assign", "Output", "Next"},
    "Succeed": {"Output"},
    "Fail": {"Error", "Cause"},
}
_RULES = {
    "Choices": {"Condition", "Next"},
    "Catch": {"ErrorEquals", "Assign", "Output", "Next"},
    "Retry": {
        *("ErrorEquals", "IntervalSeconds", "BackoffRate", "MaxDelaySeconds"),
        *("MaxAttempts", "JitterStrategy"),
    },
}


class DefinitionError(ValueError):
    """The definition is wrong, or uses something that is not known here; the message says where and what."""


class StateError(Exception):
    """An error as the definition sees it: its name, and what it says."""

    def __init__(self, error: str, cause: str = "") -> None:
        super().__init__(f"{error}: {cause}")
        self.error, self.cause = error, cause


@dataclass(frozen=True)
class Definition:
    start_at: str
    states: Mapping[str, State]
    timeout_ms: int | None = None

    def transitions(self) -> set[tuple[str, str]]:
        """Every (state, next state) that there is."""
        return {(name, to) for name, state in self.states.items() for to in _targets(state)}


def load_definition(text: str, substitutions: Mapping[str, str] | None = None) -> Definition:
    """Read YAML or JSON, with ``${Name}`` replaced as CloudFormation does. Raises DefinitionError."""
    for name, value in (substitutions or {}).items():
        text = text.replace(f"${{{name}}}", value)
    raw = yaml.safe_load(text)
    _check_fields("the definition", raw, _TOP)
    if raw.get("QueryLanguage") != "JSONata":
        raise DefinitionError("only QueryLanguage: JSONata is known")
    for name, state in raw["States"].items():
        _check_state(name, state)
    _check_targets(raw["StartAt"], raw["States"])
    timeout = raw.get("TimeoutSeconds")
    return Definition(raw["StartAt"], raw["States"], None if timeout is None else timeout * SECOND)


def _check_state(name: str, state: State) -> None:
    kind = state.get("Type")
    if kind not in _FIELDS:
        raise DefinitionError(f"{name}: Type {kind} is not known here")
    _check_fields(name, state, _FIELDS[kind] | {"Type", "Comment"})
    for part, fields in _RULES.items():
        for rule in state.get(part, ()):
            _check_fields(f"{name}.{part}", rule, fields)
            _check_errors(f"{name}.{part}", rule.get("ErrorEquals", ()))
    for text in _texts(state):
        if "${" in text:
            raise DefinitionError(f"{name}: {text} was not substituted")
        if _is_expression(text):
            _compiled(text)


def _check_fields(where: str, found: Mapping[str, Any], fields: set[str]) -> None:
    if unknown := sorted(found.keys() - fields):
        raise DefinitionError(f"{where}: {', '.join(unknown)} is not known here")


def _check_errors(where: str, names: list[str]) -> None:
    """Other reserved names stand for several errors."""
    for name in names:
        if name.startswith("States.") and name not in (ALL, QUERY_ERROR, TIMEOUT):
            raise DefinitionError(f"{where}: {name} is not known here")


def _check_targets(start_at: str, states: Mapping[str, State]) -> None:
    wanted = {start_at, *(to for state in states.values() for to in _targets(state))}
    if wrong := sorted(wanted ^ states.keys()):
        raise DefinitionError(f"{', '.join(wrong)}: a state that is not there, or that nothing leads to")
    for name, state in states.items():
        onward = {"Succeed": "Type", "Fail": "Type", "Choice": "Default"}.get(state["Type"], "Next")
        if onward not in state:
            raise DefinitionError(f"{name}: {onward} is missing")


def _targets(state: State) -> Iterator[str]:
    yield from (state[field] for field in ("Next", "Default") if field in state)
    yield from (rule["Next"] for part in ("Choices", "Catch") for rule in state.get(part, ()))


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, Mapping | list):
        for item in node.values() if isinstance(node, Mapping) else node:
            yield from _texts(item)


# JSONata.


def evaluate(template: Any, variables: Mapping[str, Any]) -> Any:
    """The template with each of its expressions replaced by the result.

    An expression that fails, or whose result is undefined, raises StateError with QUERY_ERROR (Step Functions
    developer guide, "Transforming data with JSONata").
    """
    if isinstance(template, Mapping):
        return {key: evaluate(value, variables) for key, value in template.items()}
    if isinstance(template, list):
        return [evaluate(value, variables) for value in template]
    return _result(template, variables) if _is_expression(template) else template


def _result(expression: str, variables: Mapping[str, Any]) -> Any:
    compiled = _compiled(expression)
    frame = compiled.create_frame()
    for name, value in variables.items():
        frame.bind(name, _with_nulls(value))
    try:
        result = compiled.evaluate(None, frame)
    except Exception as error:
        raise StateError(QUERY_ERROR, f"{expression}: {error}") from error
    if result is None:
        raise StateError(QUERY_ERROR, f"{expression}: the result is undefined")
    return Utils.convert_nulls(result)


def _is_expression(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("{%") and value.endswith("%}")


@cache
def _compiled(expression: str) -> Any:
    try:
        compiled = Jsonata(expression[2:-2])
    except Exception as error:
        raise DefinitionError(f"{expression}: {error}") from error
    compiled.output_convert_nulls = False  # None is an undefined result, and not null
    return compiled


def _with_nulls(value: Any) -> Any:
    """The value as the library takes it: with null as its own constant."""
    if isinstance(value, Mapping):
        return {key: _with_nulls(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_nulls(item) for item in value]
    return Utils.NULL_VALUE if value is None else value
