"""Workflows over AWS Step Functions."""

import json
from typing import TYPE_CHECKING, Literal

from botocore.exceptions import ClientError

from sharewarden.aws.errors import asking, code
from sharewarden.domain.base import last_part

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient


def execution_name(attempt: str, generation: int) -> str:
    """The name of the attempt's training job (63 characters at most) and the generation; 80 are allowed."""
    return f"{last_part(attempt)}-{generation}"


def execution_input(attempt: str, job: str, generation: int) -> str:
    """The same text each time: a running execution with another input is a conflict."""
    return json.dumps({"attempt": attempt, "job": job, "generation": generation})


class StepFunctionsWorkflows:
    """Workflows: the executions of one state machine, by its ARN.

    A name stays taken for 90 days after its execution has ended; one that runs with the same input is
    answered as if it had just been started (Step Functions API reference, StartExecution).
    """

    def __init__(self, client: "SFNClient", machine: str) -> None:
        self._client = client
        self._machine = machine

    def start(self, attempt: str, job: str, generation: int) -> Literal["started", "running", "over"]:
        name = execution_name(attempt, generation)
        with asking("StartExecution"):
            try:
                self._client.start_execution(
                    stateMachineArn=self._machine, name=name, input=execution_input(attempt, job, generation)
                )
            except ClientError as error:
                if code(error) != "ExecutionAlreadyExists":
                    raise
            else:
                return "started"
        return self._state(name)

    def _state(self, name: str) -> Literal["running", "over"]:
        arn = f"{self._machine.replace(':stateMachine:', ':execution:')}:{name}"
        with asking("DescribeExecution"):
            running = self._client.describe_execution(executionArn=arn)["status"] == "RUNNING"
        return "running" if running else "over"
