"""The wire protocol of AWS Step Functions (JSON 1.0), as far as whoever starts executions needs it.

What an execution does is not the lab's. Shapes and errors: Step Functions API reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from .errors import ApiError

Params = dict[str, Any]


class Execution(Protocol):
    """``given`` is the input as JSON text; times are epoch ms."""

    name: str
    given: str
    status: Any
    started_at: int
    ended_at: int | None


class Machine(Protocol):
    executions: dict[str, Any]

    def start(self, name: str, given: str) -> Execution:
        """Raises ApiError: ExecutionAlreadyExists."""
        ...


def operations(machines: Mapping[str, Machine]) -> dict[str, Callable[[Params], Params]]:
    """What the wire serves under ``stepfunctions``; ``machines`` by ARN."""

    def start(params: Params) -> Params:
        machine = machines.get(params["stateMachineArn"])
        if machine is None:
            raise ApiError("StateMachineDoesNotExist", f"no such machine: {params['stateMachineArn']}")
        execution = machine.start(params["name"], params["input"])
        return {
            "executionArn": _arn(params["stateMachineArn"], execution.name),
            "startDate": execution.started_at / 1000,
        }

    def describe(params: Params) -> Params:
        for arn, machine in machines.items():
            for execution in machine.executions.values():
                if _arn(arn, execution.name) == params["executionArn"]:
                    return _described(arn, execution)
        raise ApiError("ExecutionDoesNotExist", f"no such execution: {params['executionArn']}")

    return {"StartExecution": start, "DescribeExecution": describe}


def _arn(machine: str, execution: str) -> str:
    return f"{machine.replace(':stateMachine:', ':execution:')}:{execution}"


def _described(machine: str, execution: Execution) -> Params:
    ended = {} if execution.ended_at is None else {"stopDate": execution.ended_at / 1000}
    return {
        "executionArn": _arn(machine, execution.name),
        "stateMachineArn": machine,
        "name": execution.name,
        "status": execution.status,
        "startDate": execution.started_at / 1000,
        "input": execution.given,
        **ended,
    }
