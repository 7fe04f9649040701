"""Workflows over Step Functions: against the local machine by way of boto3, and against answers of AWS."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.stub import Stubber
from sharewarden.aws.stepfunctions import StepFunctionsWorkflows, execution_name
from sharewarden.ports import Unavailable
from sharewarden_tools.lab import states
from sharewarden_tools.lab.wire import Fault, Wire
from sharewarden_tools.local.definition import load_definition
from sharewarden_tools.local.workflows import Machine
from sharewarden_tools.memory import MemoryClock

from tests.contract.lab_clients import client

MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:Preemption-a1B2"
EXECUTIONS = "arn:aws:states:us-east-1:123456789012:execution:Preemption-a1B2"
ATTEMPT = "arn:aws:sagemaker:us-east-1:123456789012:training-job/AWSBatchtrain-1"
WAITS = """
QueryLanguage: JSONata
StartAt: Wait
States:
  Wait: { Type: Wait, Seconds: 60, Next: End }
  End: { Type: Succeed }
"""


@pytest.fixture
def clock() -> MemoryClock:
    return MemoryClock(1_780_000_000_000)


@pytest.fixture
def machine(clock: MemoryClock) -> Machine:
    return Machine(load_definition(WAITS), lambda _resource, given: given, clock)


@pytest.fixture
def wire(machine: Machine) -> Wire:
    return Wire({"stepfunctions": states.operations({MACHINE: machine})})


@pytest.fixture
def workflows(wire: Wire) -> StepFunctionsWorkflows:
    return StepFunctionsWorkflows(client("stepfunctions", wire=wire), MACHINE)


def test_an_execution_is_named_after_attempt_and_generation(
    workflows: StepFunctionsWorkflows, machine: Machine
) -> None:
    assert workflows.start(ATTEMPT, "0a1b", 1) == "started"
    assert workflows.start(ATTEMPT, "0a1b", 2) == "started"
    given = {name: json.loads(one.given) for name, one in machine.executions.items()}
    assert given == {
        "AWSBatchtrain-1-1": {"attempt": ATTEMPT, "job": "0a1b", "generation": 1},
        "AWSBatchtrain-1-2": {"attempt": ATTEMPT, "job": "0a1b", "generation": 2},
    }


def test_what_runs_is_not_started_again_and_what_ran_is_over(
    workflows: StepFunctionsWorkflows, machine: Machine, clock: MemoryClock
) -> None:
    workflows.start(ATTEMPT, "0a1b", 1)
    assert workflows.start(ATTEMPT, "0a1b", 1) == "started"
    assert workflows.start(ATTEMPT, "other", 1) == "running"
    clock.advance(60_000)
    machine.run_due()
    clock.advance(60_000)
    machine.run_due()
    assert workflows.start(ATTEMPT, "0a1b", 1) == "over"
    assert len(machine.executions) == 1


@pytest.mark.parametrize("fault", [Fault.THROTTLE, Fault.FAIL])
@pytest.mark.parametrize("operation", ["StartExecution", "DescribeExecution"])
def test_a_service_that_does_not_answer_is_unavailable(
    workflows: StepFunctionsWorkflows, wire: Wire, operation: str, fault: Fault
) -> None:
    workflows.start(ATTEMPT, "0a1b", 1)
    wire.faults = lambda _service, called: fault if called == operation else None
    with pytest.raises(Unavailable, match=operation):
        workflows.start(ATTEMPT, "other", 1)


def test_a_machine_that_is_gone_is_unavailable(wire: Wire) -> None:
    lost = StepFunctionsWorkflows(client("stepfunctions", wire=wire), f"{MACHINE}-old")
    with pytest.raises(Unavailable, match="StateMachineDoesNotExist"):
        lost.start(ATTEMPT, "0a1b", 1)


def test_an_execution_that_is_not_there_is_an_error_of_its_own(wire: Wire) -> None:
    made = client("stepfunctions", wire=wire)
    with pytest.raises(made.exceptions.ExecutionDoesNotExist):
        made.describe_execution(executionArn=f"{EXECUTIONS}:nothing")


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("RUNNING", "running"),
        ("SUCCEEDED", "over"),
        ("FAILED", "over"),
        ("TIMED_OUT", "over"),
        ("ABORTED", "over"),
        ("PENDING_REDRIVE", "over"),
    ],
)
def test_every_state_of_an_execution(stub: Stubber, status: str, expected: str) -> None:
    name = execution_name(ATTEMPT, 3)
    stub.add_client_error("start_execution", "ExecutionAlreadyExists", http_status_code=400)
    described = {
        "executionArn": f"{EXECUTIONS}:{name}",
        "stateMachineArn": MACHINE,
        "status": status,
        "startDate": 0,
    }
    stub.add_response("describe_execution", described, {"executionArn": f"{EXECUTIONS}:{name}"})
    assert StepFunctionsWorkflows(stub.client, MACHINE).start(ATTEMPT, "0a1b", 3) == expected
    stub.assert_no_pending_responses()


@pytest.fixture
def stub() -> Iterator[Any]:
    made = client("stepfunctions")
    with Stubber(made) as stubber:
        yield stubber


def test_a_name_fits_into_what_aws_allows() -> None:
    """Names of training jobs have 63 characters at most, those of executions 80."""
    longest = f"arn:aws:sagemaker:us-east-1:123456789012:training-job/{'x' * 63}"
    assert len(execution_name(longest, 10**9)) <= 80
