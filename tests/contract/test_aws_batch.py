"""Batch over boto3 against answers and refusals of the documented form."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import (
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    ReadTimeoutError,
)
from botocore.stub import Stubber
from sharewarden.aws.batch import AwsBatch
from sharewarden.domain.observation import AttemptSeen, JobDescription, JobSummary, ShareDescription
from sharewarden.ports import Denied, Unavailable
from sharewarden_tools.memory import MemoryClock

DATA = Path(__file__).parents[1] / "data" / "api"
EXAMPLES = Path(__file__).parents[2] / "examples"
NOW = 1_789_381_950_000
QUEUE = "arn:aws:batch:us-east-1:123456789012:job-queue/ml-train-qm"
JOB = "53f51099-d4c3-5e90-ac11-be55089a1763"
JOB_ARN = f"arn:aws:batch:us-east-1:123456789012:service-job/{JOB}"
TRAINING_JOB = (
    "arn:aws:sagemaker:us-east-1:123456789012:training-job/"
    "AWSBatchvision-pretrain-r72100cd028de63e5c38cbd24c5f2f9adc"
)


def sample(name: str, folder: Path = DATA, **members: Any) -> dict[str, Any]:
    """An answer of AWS with some members changed; None leaves one out, as the wire does."""
    answer = json.loads((folder / f"{name}.json").read_text()) | members
    return {key: value for key, value in answer.items() if value is not None}


def described(**members: Any) -> dict[str, Any]:
    # botocore calls startedAt required, so a stub must have one
    return sample("describe_service_job", EXAMPLES, **{"startedAt": 0} | members)


@pytest.fixture
def client() -> Any:
    return boto3.client("batch", config=Config(retries={"total_max_attempts": 1}))


@pytest.fixture
def stub(client: Any) -> Iterator[Stubber]:
    with Stubber(client) as stub:
        yield stub
        stub.assert_no_pending_responses()


@pytest.fixture
def batch(client: Any) -> AwsBatch:
    return AwsBatch(client, MemoryClock(NOW))


def describe(stub: Stubber, batch: AwsBatch, **members: Any) -> JobDescription:
    stub.add_response("describe_service_job", described(**members), {"jobId": JOB_ARN})
    description = batch.describe(JOB_ARN)
    assert description is not None
    return description


def test_a_job_as_batch_describes_it(stub: Stubber, batch: AwsBatch) -> None:
    assert describe(stub, batch, startedAt=1789373300000) == JobDescription(
        job=JOB,
        arn=JOB_ARN,
        read_at=NOW,
        name="vision-pretrain-r7",
        queue=QUEUE,
        status="RUNNABLE",
        created_at=1789372800000,
        share="team-vision",
        priority=200,
        scheduled_at=1789372830000,
        started_at=1789373300000,
        attempts=(
            AttemptSeen(
                training_job=TRAINING_JOB,
                started_at=1789373300000,
                stopped_at=1789381918000,
                reason="Cross-share preemption triggered to reclaim borrowed capacity",
                preempted=True,
            ),
        ),
        preempted_count=1,
        preemption_retries=3,
        tags=(("deadline", "2026-09-15T18:00:00Z"), ("sla", "gold"), ("team", "vision")),
        instance_type="ml.g6e.12xlarge",
        instance_count=2,
        checkpoint_uri="s3://team-vision-ckpt/vision-pretrain-r7/",
        role="arn:aws:iam::123456789012:role/TeamVisionTraining",
        max_runtime=86_400_000,
    )


@pytest.mark.parametrize(
    ("batch_limit", "payload", "expected"),
    [
        ({"attemptDurationSeconds": 60}, {"StoppingCondition": {"MaxRuntimeInSeconds": 90}}, 60_000),
        ({"attemptDurationSeconds": 120}, {"StoppingCondition": {"MaxRuntimeInSeconds": 90}}, 90_000),
        (None, {"StoppingCondition": {"MaxRuntimeInSeconds": 90}}, 90_000),
        ({"attemptDurationSeconds": 60}, {}, 60_000),
        ({}, {"StoppingCondition": {"MaxRuntimeInSeconds": "90"}}, None),
        (None, {"StoppingCondition": []}, None),
    ],
)
def test_an_attempt_ends_by_the_shorter_limit(
    stub: Stubber, batch: AwsBatch, batch_limit: object, payload: object, expected: int | None
) -> None:
    members = {"timeoutConfig": batch_limit, "serviceRequestPayload": json.dumps(payload)}
    assert describe(stub, batch, **members).max_runtime == expected


ATTEMPT = {"serviceResourceId": {"name": "TrainingJobArn", "value": TRAINING_JOB}}
OPTIONAL = (
    "attempts",
    "capacityUsage",
    "preemptionConfiguration",
    "preemptionSummary",
    "quotaShareName",
    "retryStrategy",
    "scheduledAt",
    "schedulingPriority",
    "serviceRequestPayload",
    "tags",
    "timeoutConfig",
)


def test_a_job_of_which_batch_tells_the_least(stub: Stubber, batch: AwsBatch) -> None:
    assert describe(stub, batch, **dict.fromkeys(OPTIONAL)) == JobDescription(
        job=JOB,
        arn=JOB_ARN,
        read_at=NOW,
        name="vision-pretrain-r7",
        queue=QUEUE,
        status="RUNNABLE",
        created_at=1789372800000,
    )


def test_ended_attempts_come_before_preempted_ones(stub: Stubber, batch: AwsBatch) -> None:
    attempts = [ATTEMPT | {"startedAt": 5, "stoppedAt": 6, "statusReason": "r"}, {"startedAt": 7}]
    seen = describe(stub, batch, attempts=attempts, latestAttempt=ATTEMPT)
    assert seen.attempts[0] == AttemptSeen(training_job=TRAINING_JOB, started_at=5, stopped_at=6, reason="r")
    assert [attempt.preempted for attempt in seen.attempts] == [False, True]
    assert seen.attempt == TRAINING_JOB


@pytest.mark.parametrize(
    ("retries", "expected"), [({}, None), ({"preemptionRetriesBeforeTermination": 0}, 0)]
)
def test_no_retries_after_preemption_differs_from_no_limit(
    stub: Stubber, batch: AwsBatch, retries: dict[str, int], expected: int | None
) -> None:
    assert describe(stub, batch, preemptionConfiguration=retries).preemption_retries == expected


def group(kind: object, count: object) -> dict[str, object]:
    return {"InstanceType": kind, "InstanceCount": count, "InstanceGroupName": "g"}


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ("", (None, None)),
        ("{", (None, None)),
        ("[1]", (None, None)),
        ('{"ResourceConfig": 5}', (None, None)),
        ({"ResourceConfig": group("ml.g5.xlarge", 3)}, ("ml.g5.xlarge", 3)),
        ({"ResourceConfig": group("ml.g5.xlarge", None)}, ("ml.g5.xlarge", None)),
        ({"ResourceConfig": group("ml.g5.xlarge", True)}, ("ml.g5.xlarge", None)),
        ({"ResourceConfig": group(7, "2")}, (None, None)),
        ({"ResourceConfig": {"InstanceGroups": [group("a", 1), group("a", 2)]}}, ("a", 3)),
        ({"ResourceConfig": {"InstanceGroups": [group("a", 1), group("a", None)]}}, ("a", None)),
        ({"ResourceConfig": {"InstanceGroups": [group("a", 1), group("b", 2)]}}, (None, None)),
        ({"ResourceConfig": {"InstanceGroups": []} | group("a", 1)}, ("a", 1)),
        ({"ResourceConfig": {"InstanceGroups": "many"}}, (None, None)),
        ({"ResourceConfig": {"InstanceGroups": ["many"]}}, (None, None)),
    ],
)
def test_instances_that_the_payload_asks_for(
    stub: Stubber, batch: AwsBatch, payload: object, expected: tuple[str | None, int | None]
) -> None:
    text = payload if isinstance(payload, str) else json.dumps(payload)
    seen = describe(stub, batch, serviceRequestPayload=text)
    assert (seen.instance_type, seen.instance_count) == expected


@pytest.mark.parametrize("config", [None, "s3://x", {}, {"S3Uri": ""}, {"S3Uri": 5}])
def test_a_payload_without_a_checkpoint_place(stub: Stubber, batch: AwsBatch, config: object) -> None:
    payload = json.dumps({"CheckpointConfig": config, "RoleArn": ["x"]})
    seen = describe(stub, batch, serviceRequestPayload=payload)
    assert (seen.checkpoint_uri, seen.role) == (None, None)


@pytest.mark.parametrize(
    "words",
    [
        f"Service job {JOB} not found",
        "Job could not be found.",
        "ServiceJob does not exist",
        "The job doesn't exist in this account",
        "NO SUCH JOB",
        "Cannot find job with id x",
        "Couldn't find the job",
        "Unknown service job",
        "No service job was found with that id",
    ],
)
def test_a_job_that_batch_says_it_does_not_know(stub: Stubber, batch: AwsBatch, words: str) -> None:
    stub.add_client_error("describe_service_job", "ClientException", words, 400)
    assert batch.describe(JOB_ARN) is None


@pytest.mark.parametrize(
    ("code", "words", "status"),
    [
        ("ClientException", "Invalid job id", 400),
        ("ClientException", "Error executing request", 400),
        ("ClientException", "", 400),
        ("ServerException", "the job was not found, internally", 500),
        ("ResourceNotFoundException", "Job not found", 404),
        ("UnknownOperationException", "not found", 404),
        ("TooManyRequestsException", "Too Many Requests", 429),
        ("ThrottlingException", "Rate exceeded", 400),
        ("AccessDeniedException", "User is not authorized; role not found", 403),
        ("ExpiredTokenException", "The security token included in the request is expired", 403),
        ("429", "", 429),
    ],
)
def test_a_refusal_says_nothing_about_the_job(
    stub: Stubber, batch: AwsBatch, code: str, words: str, status: int
) -> None:
    stub.add_client_error("describe_service_job", code, words, status)
    with pytest.raises(Unavailable, match=f"^DescribeServiceJob: {code}: {words}$"):
        batch.describe(JOB_ARN)


@pytest.mark.parametrize(
    "failure",
    [
        EndpointConnectionError(endpoint_url="u"),
        ConnectTimeoutError(endpoint_url="u"),
        ReadTimeoutError(endpoint_url="u"),
        NoCredentialsError(),
    ],
    ids=lambda failure: type(failure).__name__,
)
def test_a_lost_connection_says_nothing_about_the_job(
    client: Any, batch: AwsBatch, failure: Exception
) -> None:
    def fail(**_: Any) -> None:
        raise failure

    client.meta.events.register("before-send.batch", fail)
    with pytest.raises(Unavailable, match=f"^DescribeServiceJob: {type(failure).__name__}: "):
        batch.describe(JOB_ARN)


@pytest.mark.parametrize("members", [{"jobArn": None}, {"createdAt": None}, {"status": "PAUSED"}])
def test_an_answer_without_the_essentials_is_no_answer(
    stub: Stubber, batch: AwsBatch, members: dict[str, Any]
) -> None:
    stub.add_response("describe_service_job", described(**members))
    with pytest.raises(Unavailable, match="DescribeServiceJob: the answer makes no sense"):
        batch.describe(JOB_ARN)


def test_a_malformed_request_is_a_bug_not_an_outage(batch: AwsBatch) -> None:
    with pytest.raises(ParamValidationError):
        batch.set_priority(JOB_ARN, "high")  # type: ignore[arg-type]


def test_a_page_of_jobs(stub: Stubber, batch: AwsBatch) -> None:
    asked = {"jobQueue": QUEUE, "jobStatus": "RUNNABLE", "maxResults": 100}
    rows = sample("api_list_service_jobs__runnable_in_share")
    stub.add_response("list_service_jobs", rows | {"nextToken": "t"}, asked)
    stub.add_response("list_service_jobs", rows, asked | {"nextToken": "t"})
    first = batch.jobs(QUEUE, "RUNNABLE", None)
    last = batch.jobs(QUEUE, "RUNNABLE", first.next_token)
    assert (
        first.jobs
        == last.jobs
        == (
            JobSummary(
                job=JOB,
                arn=JOB_ARN,
                name="vision-pretrain-r7",
                status="RUNNABLE",
                created_at=1789372800000,
                share="team-vision",
                attempt=TRAINING_JOB,
            ),
        )
    )
    assert (first.next_token, last.next_token) == ("t", None)


def listed_share(**members: Any) -> dict[str, Any]:
    share = sample("api_describe_quota_share", **members)
    del share["tags"]
    return share


VISION = ShareDescription(
    arn=f"{QUEUE}/quota-share/team-vision",
    name="team-vision",
    queue=QUEUE,
    limits=(("ml.g6e.12xlarge", 4),),
    strategy="LEND_AND_BORROW",
    borrow_limit=100,
    in_share_preemption=True,
)


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({}, {}),
        ({"resourceSharingConfiguration": {"strategy": "LEND_AND_BORROW"}}, {"borrow_limit": -1}),
        (
            {"resourceSharingConfiguration": {"strategy": "LEND", "borrowLimit": -1}},
            {"strategy": "LEND", "borrow_limit": None},
        ),
        ({"state": "DISABLED"}, {"enabled": False}),
        ({"preemptionConfiguration": None}, {"in_share_preemption": False}),
        ({"preemptionConfiguration": {"inSharePreemption": "DISABLED"}}, {"in_share_preemption": False}),
        (
            {
                "capacityLimits": [
                    {"maxCapacity": 1, "capacityUnit": "b"},
                    {"maxCapacity": 2, "capacityUnit": "a"},
                ]
            },
            {"limits": (("a", 2), ("b", 1))},
        ),
    ],
)
def test_a_quota_share(
    stub: Stubber, batch: AwsBatch, members: dict[str, Any], expected: dict[str, Any]
) -> None:
    stub.add_response("list_quota_shares", {"quotaShares": [listed_share(**members)]}, {"jobQueue": QUEUE})
    assert batch.shares(QUEUE).shares == (VISION.model_copy(update=expected),)


def test_all_pages_of_quota_shares(stub: Stubber, batch: AwsBatch) -> None:
    one, other = listed_share(), listed_share(quotaShareName="other")
    stub.add_response("list_quota_shares", {"quotaShares": [one], "nextToken": "t"}, {"jobQueue": QUEUE})
    stub.add_response("list_quota_shares", {"quotaShares": [other]}, {"jobQueue": QUEUE, "nextToken": "t"})
    assert [share.name for share in batch.shares(QUEUE).shares] == ["team-vision", "other"]


def test_a_priority_is_set_to_an_absolute_value(stub: Stubber, batch: AwsBatch) -> None:
    stub.add_response(
        "update_service_job", {"jobId": JOB, "jobArn": JOB_ARN}, {"jobId": JOB_ARN, "schedulingPriority": 0}
    )
    batch.set_priority(JOB_ARN, 0)


def test_a_job_is_terminated_with_a_reason(stub: Stubber, batch: AwsBatch) -> None:
    stub.add_response("terminate_service_job", {}, {"jobId": JOB_ARN, "reason": "asks for too much"})
    batch.terminate(JOB_ARN, "asks for too much")


@pytest.mark.parametrize(("told", "expected"), [(True, True), (False, False), (None, False)])
def test_whether_a_job_is_being_terminated(
    stub: Stubber, batch: AwsBatch, told: bool | None, expected: bool
) -> None:
    answer = sample("describe_service_job", EXAMPLES, isTerminated=told)
    stub.add_response("describe_service_job", answer, {"jobId": JOB_ARN})
    found = batch.describe(JOB_ARN)
    assert found is not None
    assert found.terminated is expected


@pytest.mark.parametrize(
    ("method", "call"),
    [
        ("list_service_jobs", lambda batch: batch.jobs(QUEUE, "RUNNING", None)),
        ("list_quota_shares", lambda batch: batch.shares(QUEUE)),
    ],
)
def test_every_call_names_what_was_refused(
    client: Any, stub: Stubber, batch: AwsBatch, method: str, call: Any
) -> None:
    stub.add_client_error(method, "ClientException", "Job not found", 400)
    operation = client.meta.method_to_api_mapping[method]
    with pytest.raises(Unavailable, match=f"^{operation}: ClientException: Job not found$"):
        call(batch)


@pytest.mark.parametrize(
    ("operation", "act"),
    [
        ("update_service_job", lambda batch: batch.set_priority(JOB_ARN, 5)),
        ("terminate_service_job", lambda batch: batch.terminate(JOB_ARN, "r")),
    ],
)
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("AccessDeniedException", Denied),
        ("ClientException", Denied),
        ("ValidationException", Denied),
        ("TooManyRequestsException", Unavailable),
        ("ExpiredTokenException", Unavailable),
        ("ServerException", Unavailable),
    ],
)
def test_a_refusal_is_told_from_a_bad_moment(
    stub: Stubber,
    batch: AwsBatch,
    code: str,
    expected: type[Exception],
    operation: str,
    act: Any,
) -> None:
    stub.add_client_error(operation, code, "no", 400)
    with pytest.raises(expected, match=f"^[UT][a-z]+ServiceJob: {code}: no$"):
        act(batch)
