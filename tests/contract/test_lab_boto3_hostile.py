"""Whatever a stranger sends gets a documented answer, never HTTP 500, and leaves a lab that goes on."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore import xform_name
from botocore.exceptions import ClientError
from botocore.model import ListShape, MapShape, OperationModel, Shape, StructureShape
from hypothesis import given, settings
from hypothesis import strategies as st
from sharewarden_tools.lab import sqs
from sharewarden_tools.lab.queues import QueueSystem
from sharewarden_tools.lab.shapes import service_model
from sharewarden_tools.lab.wire import QUERY_CODES, lab_wire

from tests.contract.lab_clients import START, UNIT, Bench, client, payload

STATE = "Batch Service Job State Change"
REFUSED = "Received status from SageMaker: ValidationException: "
NEEDS_INSTANCES = "needs ResourceConfig with InstanceType and InstanceCount"
LIMITS = [{"capacityUnit": UNIT, "maxCapacity": 1}]
ENVIRONMENT_MAX = "MISCONFIGURATION:SERVICE_ENVIRONMENT_MAX_RESOURCE"


def payload_with(**members: Any) -> str:
    return json.dumps(json.loads(payload()) | members)


def resources(**members: Any) -> str:
    config = {"InstanceType": UNIT, "InstanceCount": 1, "VolumeSizeInGB": 50, **members}
    return payload_with(ResourceConfig=config)


@pytest.mark.parametrize(
    ("text", "member"),
    [
        (payload_with(TrainingJobName=7), "TrainingJobName"),
        (payload_with(TrainingJobName="no blanks"), "TrainingJobName"),
        (payload_with(TrainingJobName=None), "TrainingJobName"),
        (payload_with(RoleArn="admin"), "RoleArn"),
        (payload_with(HyperParameters={"epochs": 3}), "HyperParameters"),
        (payload_with(HyperParameters=["epochs"]), "HyperParameters"),
        (payload_with(Environment={"A": {"B": "C"}}), "Environment"),
        (payload_with(StoppingCondition="soon"), "StoppingCondition"),
        (payload_with(StoppingCondition={"MaxRuntimeInSeconds": "60"}), "MaxRuntimeInSeconds"),
        (payload_with(StoppingCondition={"MaxRuntimeInSeconds": 0}), "MaxRuntimeInSeconds"),
        (payload_with(CheckpointConfig={"S3Uri": 5}), "S3Uri"),
        (payload_with(CheckpointConfig={}), "S3Uri"),
        (payload_with(OutputDataConfig=[]), "OutputDataConfig"),
        (payload_with(InputDataConfig={"ChannelName": "train"}), "InputDataConfig"),
        (payload_with(EnableNetworkIsolation="yes"), "EnableNetworkIsolation"),
        (payload_with(AlgorithmSpecification={"TrainingInputMode": "Carrier pigeon"}), "TrainingInputMode"),
        (payload_with(HyperParameters={"deep": json.loads("[" * 400 + "]" * 400)}), "HyperParameters"),
        (resources(VolumeSizeInGB="50"), "VolumeSizeInGB"),
        (resources(VolumeSizeInGB=1e999).replace("Infinity", "1e999"), "VolumeSizeInGB"),
        (resources(InstanceGroups="all"), "InstanceGroups"),
    ],
)
def test_a_payload_that_sagemaker_refuses_fails_after_dispatch(text: str, member: str) -> None:
    bench = Bench(capacity=1)
    bench.share()
    job = bench.submit(serviceRequestPayload=text)
    bench.until(job, "FAILED")
    detail = bench.describe(job)
    assert detail["statusReason"].startswith(REFUSED)
    assert member in detail["statusReason"]
    states = [event["status"] for event in bench.heard(STATE, job)]
    assert states == ["RUNNABLE", "SCHEDULED", "FAILED"]
    following = bench.submit()
    bench.until(following, "RUNNING")  # the instance is free again


@pytest.mark.parametrize(
    ("unit", "reason"), [(UNIT, None), ("ml.imaginary.2xlarge", "InstanceType")], ids=["known", "unknown"]
)
def test_an_instance_type_that_sagemaker_does_not_have_is_refused_by_it(
    unit: str, reason: str | None
) -> None:
    bench = Bench()
    limits = [{"capacityUnit": unit, "maxCapacity": 1}]
    bench.batch.update_service_environment(serviceEnvironment="pool", capacityLimits=limits)
    bench.share(capacityLimits=limits)
    job = bench.submit(serviceRequestPayload=resources(InstanceType=unit))
    bench.pass_time(60)
    assert bench.status(job) == ["FAILED" if reason else "RUNNING"]
    assert (reason or "") in bench.describe(job).get("statusReason", "")


@pytest.mark.parametrize(
    "text",
    [
        payload_with(CheckpointConfig=None, HyperParameters=None, StoppingCondition=None),
        payload_with(NewMember={"of": "a later API"}),
        resources(NewMember=1),
        resources(InstanceGroups=None),
    ],
    ids=["nulls", "unknown member", "unknown member inside", "no groups"],
)
def test_what_sagemaker_reads_past_does_no_harm(text: str) -> None:
    bench = Bench()
    bench.share()
    job = bench.submit(serviceRequestPayload=text)
    bench.until(job, "RUNNING")
    assert bench.describe(job)["serviceRequestPayload"] == text
    assert bench.training(job)["StoppingCondition"] == {"MaxRuntimeInSeconds": 86_400}


@pytest.mark.parametrize(
    "text",
    [
        payload_with(ResourceConfig=[UNIT, 1]),
        payload_with(ResourceConfig=None),
        payload_with(ResourceConfig={"InstanceGroups": []}),
        payload_with(ResourceConfig={"InstanceGroups": [UNIT]}),
        payload_with(ResourceConfig={"InstanceGroups": {"InstanceType": UNIT, "InstanceCount": 1}}),
        *(resources(InstanceCount=count) for count in (-1, 0, "two", "2", 1.5, None, True, [], 10**400)),
        *(resources(InstanceType=unit) for unit in ("", None, 5, [UNIT])),
    ],
)
def test_without_instances_to_count_it_is_refused_at_submission(text: str) -> None:
    """Assumed: Batch cannot charge a share for such a job."""
    bench = Bench()
    bench.share()
    with pytest.raises(ClientError, match=NEEDS_INSTANCES):
        bench.submit(serviceRequestPayload=text)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '"\ud800"', '{"x": NaN}', "[" * 9_000, '{"x":' + "[" * 9_000, "\ud800" * 9_000],
)
def test_what_is_no_json_object_is_refused_at_submission(text: str) -> None:
    bench = Bench()
    bench.share()
    with pytest.raises(ClientError, match="serviceRequestPayload"):
        bench.submit(serviceRequestPayload=text)


@pytest.mark.parametrize("instances", [4, 10**9])
def test_more_instances_than_there_are_block(instances: int) -> None:
    bench = Bench()
    bench.share()
    job = bench.submit(serviceRequestPayload=resources(InstanceCount=instances))
    bench.pass_time(60)
    detail = bench.describe(job)
    assert detail["statusReason"].startswith(ENVIRONMENT_MAX)
    assert detail["capacityUsage"] == [{"capacityUnit": UNIT, "quantity": float(instances)}]


@pytest.mark.parametrize("seconds", ["inf", "nan", "1e999", "soon", ""])
def test_a_runtime_that_is_no_number_fails_the_job(seconds: str) -> None:
    bench = Bench()
    bench.share()
    job = bench.submit(tags={"sharewarden-lab-runtime-seconds": seconds})
    bench.until(job, "FAILED")
    assert bench.describe(job)["statusReason"].startswith(REFUSED)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=8), inside, max_size=3),
    max_leaves=6,
)
MEMBERS = sorted(service_model("sagemaker").shape_for("CreateTrainingJobRequest").members)
CONFIG = st.fixed_dictionaries(
    {"InstanceType": st.just(UNIT) | JSON, "InstanceCount": st.just(1) | JSON},
    optional={"InstanceGroups": JSON},
)


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(MEMBERS), JSON, max_size=3), st.just({}) | CONFIG | JSON)
def test_any_payload_is_refused_waits_or_ends(members: dict[str, Any], config: Any) -> None:
    bench = Bench()
    bench.share()
    stranger = members | ({"ResourceConfig": config} if config else {})
    try:
        job = bench.submit(serviceRequestPayload=payload_with(**stranger))
    except bench.batch.exceptions.ClientException:
        return
    bench.pass_time(100_000)
    detail = bench.describe(job)
    assert detail["status"] in ("SUCCEEDED", "FAILED") or detail["statusReason"].startswith(
        "MISCONFIGURATION:"
    )


# --- every operation, with what its model allows --------------------------------------------------------


class Target:
    """A pool in use and two SQS queues, behind boto3 clients."""

    def __init__(self) -> None:
        self.bench = Bench(capacity=2)
        queues = QueueSystem(self.bench.clock)
        wire = lab_wire(self.bench.lab, queues=sqs.operations(queues))
        self.clients = {name: client(name, wire=wire) for name in ("batch", "sagemaker", "sqs")}
        self.bench.share("s", 1, "LEND_AND_BORROW", in_share=True)
        self.bench.share("t", 1, "LEND")
        leaving = self.bench.share("leaving", 0, "LEND_AND_BORROW")
        self.bench.batch.create_service_environment(
            serviceEnvironmentName="spare", serviceEnvironmentType="SAGEMAKER_TRAINING", capacityLimits=LIMITS
        )
        jobs = [self.bench.submit(name) for name in ("leaving", "s", "s", "s")]
        self.bench.until(jobs[0], "RUNNING")
        self.bench.batch.update_quota_share(quotaShareArn=leaving, state="DISABLED")
        queues.create("q")
        queues.create("q.fifo", {"FifoQueue": "true"})

    def call(self, service: str, operation: str, params: dict[str, Any]) -> None:
        try:
            getattr(self.clients[service], xform_name(operation))(**params)
        except ClientError as error:
            answer = error.response
            assert answer["ResponseMetadata"]["HTTPStatusCode"] == 400, answer
            assert answer["Error"]["Code"] in documented(service, operation), answer


def documented(service: str, operation: str) -> set[str]:
    """Errors of the operation's own model, and those that the services' pages "Common errors" list."""
    own = {shape.name for shape in service_model(service).operation_model(operation).error_shapes}
    common = {"InvalidParameterValue", "MissingParameter", "ValidationException", "ReceiptHandleIsInvalid"}
    return own | {QUERY_CODES.get(name, name) for name in own} | (common if service != "batch" else set())


_POOL = Target()
_JOBS = list(_POOL.bench.lab.state.jobs)
# Values that lead past the first check: names of what the pool of a `Target` holds.
RIGHT: dict[str, list[Any]] = {
    "name": ["new"],
    "jobName": ["new"],
    "jobQueueName": ["new"],
    "serviceEnvironmentName": ["new", "spare"],
    "jobQueue": ["queue", _POOL.bench.queue],
    "jobQueueType": ["SAGEMAKER_TRAINING"],
    "serviceEnvironmentType": ["SAGEMAKER_TRAINING"],
    "serviceJobType": ["SAGEMAKER_TRAINING"],
    "serviceEnvironment": ["pool", "spare"],
    "serviceEnvironmentOrder": [[{"order": 1, "serviceEnvironment": "spare"}]],
    "quotaSharePolicy": [{"idleResourceAssignmentStrategy": "FIFO"}],
    "quotaShareName": ["s", "t", "new"],
    "quotaShareArn": list(_POOL.bench.lab.state.shares),
    "jobId": _JOBS,
    "jobs": [_JOBS],
    "arn": list(_POOL.bench.lab.state.policies),
    "schedulingPolicyArn": list(_POOL.bench.lab.state.policies),
    "resourceArn": [_POOL.bench.queue, *_POOL.bench.lab.state.shares],
    "serviceRequestPayload": [payload(), payload(instances=2)],
    "priority": [1],
    "schedulingPriority": [0, 5, 9_999],
    "capacityUnit": [UNIT],
    "capacityLimits": [[{"capacityUnit": UNIT, "maxCapacity": n}] for n in (0, 1, 2)],
    "strategy": ["RESERVE", "LEND", "LEND_AND_BORROW"],
    "resourceSharingConfiguration": [
        {"strategy": "LEND"},
        {"strategy": "LEND_AND_BORROW", "borrowLimit": 100},
    ],
    "inSharePreemption": ["ENABLED", "DISABLED"],
    "state": ["ENABLED", "DISABLED"],
    "TrainingJobName": list(_POOL.bench.lab.state.trainings),
    "QueueName": ["q", "q.fifo", "new"],
    "QueueUrl": ["http://sqs.lab/123456789012/q", "http://sqs.lab/123456789012/q.fifo"],
    "ReceiptHandle": ["x/1", "x"],
    "DataType": ["String", "Number", "Binary"],
}
NUMBERS = {"integer": st.sampled_from([-1, 0, 1, 5, 100, 2**31 - 1, 2**31, 2**63]) | st.integers()}
PLAIN: dict[str, st.SearchStrategy[Any]] = {
    **NUMBERS,
    "long": NUMBERS["integer"],
    "double": st.floats(allow_nan=False, allow_infinity=False),
    "float": st.floats(allow_nan=False, allow_infinity=False),
    "boolean": st.booleans(),
    "timestamp": st.sampled_from([0, START // 1000, 2**33]),
    "blob": st.binary(max_size=8),
    "string": st.text(min_size=1, max_size=12)
    | st.sampled_from(["9" * 5_000, "x" * 300, "AA==", "ümlaut/..", "%00"]),
}


def values(shape: Shape, name: str = "") -> st.SearchStrategy[Any]:
    """What botocore lets through for the shape, at times what the pool knows under this name."""
    right = (st.sampled_from(RIGHT[name]) for _ in range(12 if name in RIGHT else 0))
    return st.one_of(*right, _any_of(shape))


def _any_of(shape: Shape) -> st.SearchStrategy[Any]:
    least = int(shape.metadata.get("min", 0))
    if isinstance(shape, StructureShape):
        members = {name: values(member, name) for name, member in shape.members.items()}
        must = {name: members.pop(name) for name in {*shape.required_members, *RIGHT} & members.keys()}
        return st.one_of(st.fixed_dictionaries(must), *(_and(must, members, name) for name in members))
    if isinstance(shape, ListShape):
        return st.lists(values(shape.member), min_size=least, max_size=least + 2)
    if isinstance(shape, MapShape):
        return st.dictionaries(values(shape.key), values(shape.value), min_size=least, max_size=least + 2)
    if "enum" in shape.metadata:
        return st.sampled_from(shape.metadata["enum"]) | PLAIN["string"]
    plain = PLAIN[shape.type_name]
    return (
        plain.filter(lambda value: (len(value) if isinstance(value, str) else value) >= least)
        if least
        else plain
    )


def _and(
    must: dict[str, st.SearchStrategy[Any]], members: dict[str, st.SearchStrategy[Any]], name: str
) -> st.SearchStrategy[Any]:
    """One optional member at a time: of many hostile ones the first would hide the others."""
    return st.fixed_dictionaries(must | {name: members[name]})


def _params(operation: OperationModel) -> st.SearchStrategy[dict[str, Any]]:
    return _any_of(operation.input_shape) if operation.input_shape else st.just({})


SERVED = {**_POOL.bench.lab.operations, "sqs": sqs.operations(QueueSystem(_POOL.bench.clock))}
CALLS = st.one_of(
    st.tuples(st.just(service), st.just(name), _params(service_model(service).operation_model(name)))
    for service, operations in SERVED.items()
    for name in operations
)


@settings(max_examples=40)
@given(st.lists(st.tuples(CALLS, st.sampled_from([0, 0, 1, 30])), min_size=8, max_size=20))
def test_any_calls_get_documented_answers_and_leave_a_lab_that_goes_on(
    calls: list[tuple[tuple[str, str, dict[str, Any]], int]],
) -> None:
    target = Target()
    for (service, operation, params), seconds in calls:
        target.call(service, operation, params)
        target.bench.pass_time(seconds)
    target.bench.pass_time(20_000)
    for job in target.bench.lab.state.jobs:
        target.bench.describe(job)
