"""A state machine of AWS Step Functions in this process, under any clock, by the definition that is deployed.

Whoever holds the clock moves it: ``next_due`` says when something is to be done, ``run_due`` does it. Rules:
Amazon States Language, and Step Functions developer guide, "Handling errors in Step Functions workflows".
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from typing import Any, Literal

from sharewarden.aws.stepfunctions import execution_input, execution_name
from sharewarden.domain.stored import SECOND
from sharewarden.ports import Clock

from sharewarden_tools.lab.errors import ApiError

from .definition import ALL, QUERY_ERROR, TIMEOUT, Definition, State, StateError, evaluate, load_definition
from .wiring import Workflow

#: An execution whose history has so many events fails (Step Functions developer guide, service quotas).
MOST_EVENTS = 25_000
#: In the history: a state is entered and left; a try of a task is scheduled, starts and ends.
EVENTS_PER_STATE, EVENTS_PER_TRY = 2, 3

Invoke = Callable[[str, Any], Any]
"""(resource, arguments) -> the answer. What it raises is an error of its class's name, as in Lambda."""
Status = Literal["RUNNING", "SUCCEEDED", "FAILED", "TIMED_OUT"]


class Execution:
    """One run of a definition. ``taken`` lists each (state, next state), ``events`` counts the history."""

    def __init__(self, definition: Definition, name: str, given: str, invoke: Invoke, clock: Clock) -> None:
        self.name, self.given = name, given
        self.state = definition.start_at
        self.status: Status = "RUNNING"
        self.error: StateError | None = None
        self.taken: list[tuple[str, str]] = []
        self.events = 1
        self.started_at = clock.now()
        self.ended_at: int | None = None
        self._definition, self._invoke, self._clock = definition, invoke, clock
        self._input: Any = json.loads(given)
        self._variables: dict[str, Any] = {}
        self._tries: dict[int, int] = {}
        self._next_at = self.started_at
        self._jitter = random.Random(name)

    def due(self) -> int | None:
        """When to take the next step; None when it has ended."""
        if self.status != "RUNNING":
            return None
        timeout = self._definition.timeout_ms
        return self._next_at if timeout is None else min(self._next_at, self.started_at + timeout)

    def step(self) -> None:
        """Do what is due: one state, or one try of a task."""
        timeout = self._definition.timeout_ms
        if timeout is not None and self._clock.now() >= self.started_at + timeout:
            self._end("TIMED_OUT")
        elif self.events >= MOST_EVENTS:
            self._end("FAILED", StateError("States.Runtime", "the history has too many events"))
        else:
            self._take(self._definition.states[self.state])

    def _take(self, state: State) -> None:
        acts: dict[str, Callable[[State], None]] = {
            "Pass": self._pass,
            "Task": self._task,
            "Choice": self._choice,
            "Wait": self._wait,
            "Succeed": self._succeed,
            "Fail": self._fail,
        }
        try:
            acts[state["Type"]](state)
        except StateError as error:
            self._end("FAILED", error)

    def _pass(self, state: State) -> None:
        self._leave(state, self._input)

    def _task(self, state: State) -> None:
        try:
            result = self._tried(state)
            self._leave(state, result, result=result)
        except StateError as error:
            self._failed(state, error)

    def _tried(self, state: State) -> Any:
        arguments = evaluate(state.get("Arguments", self._input), self._scope())
        began = self._clock.now()
        self.events += EVENTS_PER_TRY
        try:
            answer = json.loads(json.dumps(self._invoke(state["Resource"], arguments)))
        except StateError:
            raise
        except Exception as error:
            raise StateError(type(error).__name__, str(error)) from error
        if self._clock.now() - began > state.get("TimeoutSeconds", 99_999_999) * SECOND:
            raise StateError(TIMEOUT, self.state)
        return answer

    def _failed(self, state: State, error: StateError) -> None:
        """By the first rule of Retry that fits, while it has tries left; else by the first of Catch."""
        retries = enumerate(state.get("Retry", ()))
        number, retry = next(((n, rule) for n, rule in retries if _fits(rule, error)), (-1, None))
        if retry is not None and self._tries.get(number, 0) < retry.get("MaxAttempts", 3):
            self._try_again(number, retry)
            return
        catch = next((rule for rule in state.get("Catch", ()) if _fits(rule, error)), None)
        if catch is None:
            raise error
        output = {"Error": error.error, "Cause": error.cause}
        self._leave(catch, output, errorOutput=output)

    def _try_again(self, number: int, rule: Mapping[str, Any]) -> None:
        tries = self._tries.get(number, 0)
        self._tries[number] = tries + 1
        delay = rule.get("IntervalSeconds", 1) * rule.get("BackoffRate", 2.0) ** tries
        delay = min(delay, rule.get("MaxDelaySeconds", delay))
        if rule.get("JitterStrategy", "NONE") == "FULL":
            delay = self._jitter.uniform(0, delay)
        self._next_at = self._clock.now() + round(delay * SECOND)

    def _choice(self, state: State) -> None:
        for rule in state["Choices"]:
            if _is_true(rule["Condition"], self._scope()):
                self._leave(rule, self._input)
                return
        self._go(state["Default"], self._input)

    def _wait(self, state: State) -> None:
        seconds = evaluate(state["Seconds"], self._scope())
        if not isinstance(seconds, int) or seconds < 0:
            raise StateError(QUERY_ERROR, f"{self.state}: Seconds is {seconds}")
        self._leave(state, self._input)
        self._next_at += seconds * SECOND

    def _succeed(self, state: State) -> None:
        evaluate(state.get("Output"), self._scope())
        self._end("SUCCEEDED")

    def _fail(self, state: State) -> None:
        raise StateError(state.get("Error", ""), state.get("Cause", ""))

    def _leave(self, rule: State, output: Any, **more: Any) -> None:
        """By a state, or a rule of one; Assign and Output are both evaluated before either takes effect."""
        scope = self._scope(**more)
        assigned = evaluate(rule.get("Assign", {}), scope)
        given = evaluate(rule["Output"], scope) if "Output" in rule else output
        self._variables.update(assigned)
        self._go(rule["Next"], given)

    def _go(self, to: str, given: Any) -> None:
        self.taken.append((self.state, to))
        self.events += EVENTS_PER_STATE
        self.state, self._input = to, given
        self._tries.clear()
        self._next_at = self._clock.now()

    def _end(self, status: Status, error: StateError | None = None) -> None:
        self.status, self.error, self.ended_at = status, error, self._clock.now()
        self.events += EVENTS_PER_STATE

    def _scope(self, **more: Any) -> dict[str, Any]:
        return {**self._variables, "states": {"input": self._input, **more}}


class Machine:
    """The executions of one definition by their names."""

    def __init__(self, definition: Definition, invoke: Invoke, clock: Clock) -> None:
        self.executions: dict[str, Execution] = {}
        self._running: list[Execution] = []
        self._definition, self._invoke, self._clock = definition, invoke, clock

    def start(self, name: str, given: str) -> Execution:
        """Start one with that input, JSON text; one that runs with the same input is answered again.

        Raises ApiError: ExecutionAlreadyExists (Step Functions API reference, StartExecution).
        """
        known = self.executions.get(name)
        if known is None:
            known = Execution(self._definition, name, given, self._invoke, self._clock)
            self.executions[name] = known
            self._running.append(known)
        elif known.status != "RUNNING" or known.given != given:
            raise ApiError("ExecutionAlreadyExists", f"Execution Already Exists: '{name}'")
        return known

    def next_due(self) -> int | None:
        """When something is to be done next; None when every execution has ended."""
        return min((due for _, due in self._open()), default=None)

    def run_due(self) -> bool:
        """Take one step of each execution that has one due now; False when none had."""
        now = self._clock.now()
        ready = [one for one, due in self._open() if due <= now]
        for one in ready:
            one.step()
        self._running = [one for one in self._running if one.due() is not None]
        return bool(ready)

    def _open(self) -> list[tuple[Execution, int]]:
        """A list, since an execution that runs may lead to another one's start."""
        return [(one, due) for one in list(self._running) if (due := one.due()) is not None]


class MachineWorkflows:
    """The port Workflows over a machine in this process."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def start(self, attempt: str, job: str, generation: int) -> Literal["started", "running", "over"]:
        name = execution_name(attempt, generation)
        try:
            self._machine.start(name, execution_input(attempt, job, generation))
        except ApiError:
            return "running" if self._machine.executions[name].status == "RUNNING" else "over"
        return "started"


def machine_of(workflow: Workflow, invoke: Invoke, clock: Clock) -> Machine:
    """A machine of the template. Raises DefinitionError."""
    text = workflow.definition.read_text(encoding="utf-8")
    return Machine(load_definition(text, workflow.substitutions), invoke, clock)


def _fits(rule: Mapping[str, Any], error: StateError) -> bool:
    return ALL in rule["ErrorEquals"] or error.error in rule["ErrorEquals"]


def _is_true(condition: str, scope: Mapping[str, Any]) -> bool:
    value = evaluate(condition, scope)
    if not isinstance(value, bool):
        raise StateError(QUERY_ERROR, f"{condition}: {value!r} is neither true nor false")
    return value
