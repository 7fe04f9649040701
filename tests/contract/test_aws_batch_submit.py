"""SubmitServiceJob and what it needs, over boto3: against answers of the documented form, and the lab."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.stub import Stubber
from sharewarden.aws.batch import SUBMIT_EVERY, AwsBatch
from sharewarden.domain.resubmission import Submission
from sharewarden.ports import Denied, Unavailable
from sharewarden_tools.memory import MemoryClock

from tests.contract.lab_clients import START, Bench, payload

NOW = 1_789_381_950_000
QUEUE = "arn:aws:batch:us-east-1:123456789012:job-queue/ml-train-qm"
ARN = "arn:aws:batch:us-east-1:123456789012:service-job/job-1"
PAYLOAD = '{"RoleArn":  "r", "HyperParameters": {"x": "\\u00e9"}}\n'
DESCRIBED: dict[str, Any] = {
    "jobArn": ARN,
    "jobId": "job-1",
    "jobName": "train",
    "jobQueue": QUEUE,
    "serviceJobType": "SAGEMAKER_TRAINING",
    "serviceRequestPayload": PAYLOAD,
    "startedAt": 0,
    "status": "FAILED",
}
REST: dict[str, Any] = {
    "quotaShareName": "vision",
    "schedulingPriority": 0,
    "retryStrategy": {"attempts": 2, "evaluateOnExit": [{"action": "RETRY", "onStatusReason": "a*"}]},
    "timeoutConfig": {"attemptDurationSeconds": 90},
    "preemptionConfiguration": {"preemptionRetriesBeforeTermination": 0},
    "tags": {"team": "vision"},
}
REQUEST = {
    "jobName": "train",
    "jobQueue": QUEUE,
    "serviceJobType": "SAGEMAKER_TRAINING",
    "serviceRequestPayload": PAYLOAD,
    "clientToken": "token",
}
MADE = {"jobArn": ARN, "jobId": "job-1", "jobName": "train"}


@pytest.fixture
def api() -> Any:
    return boto3.client("batch", config=Config(retries={"total_max_attempts": 1}))


@pytest.fixture
def stub(api: Any) -> Iterator[Stubber]:
    with Stubber(api) as stub:
        yield stub
        stub.assert_no_pending_responses()


@pytest.fixture
def batch(api: Any) -> AwsBatch:
    return AwsBatch(api, MemoryClock(NOW))


@pytest.mark.parametrize("rest", [REST, {}])
def test_what_is_described_is_what_is_submitted(stub: Stubber, batch: AwsBatch, rest: dict[str, Any]) -> None:
    stub.add_response("describe_service_job", DESCRIBED | rest, {"jobId": ARN})
    submission = batch.submission(ARN)
    assert submission is not None
    stub.add_response("submit_service_job", MADE, REQUEST | {"tags": {}} | rest)
    assert batch.submit(submission, "token") == ARN


def test_a_job_that_batch_has_forgotten_has_no_submission(stub: Stubber, batch: AwsBatch) -> None:
    stub.add_client_error("describe_service_job", "ClientException", "Job job-1 does not exist.")
    assert batch.submission(ARN) is None


@pytest.mark.parametrize(
    ("code", "raises"),
    [
        ("ClientException", Denied),
        ("AccessDeniedException", Denied),
        ("TooManyRequestsException", Unavailable),
        ("ServerException", Unavailable),
    ],
)
def test_a_submission_that_fails(stub: Stubber, batch: AwsBatch, code: str, raises: type[Exception]) -> None:
    stub.add_client_error("submit_service_job", code, "no")
    with pytest.raises(raises, match=f"SubmitServiceJob: {code}: no"):
        batch.submit(Submission(name="n", queue=QUEUE, kind="SAGEMAKER_TRAINING", payload="{}"), "token")


@pytest.mark.parametrize("code", ["ClientException", "ValidationException", "ServerException"])
@pytest.mark.parametrize("quote", ["{secret}", "{{TOKEN={secret}, X=1}}", "{payload}", "{escaped}"])
def test_what_aws_quotes_of_the_payload_is_in_no_text(
    stub: Stubber, batch: AwsBatch, quote: str, code: str
) -> None:
    secret = 'hf_"s3cr3t/é'
    text = json.dumps(
        {
            "RoleArn": "arn:aws:iam::1:role/r",
            "Environment": {"TOKEN": secret},
            "A": [{"B": ["--key", secret]}],
        }
    )
    quoted = quote.format(secret=secret, payload=text, escaped=json.dumps(secret))
    told = f"Value '{quoted}' at 'environment' of a job with arn:aws:iam::1:role/r is not valid"
    stub.add_client_error("submit_service_job", code, told)
    with pytest.raises((Denied, Unavailable)) as error:
        batch.submit(Submission(name="n", queue=QUEUE, kind="SAGEMAKER_TRAINING", payload=text), "token")
    shown = "".join(traceback.format_exception(error.value))
    assert "s3cr3t" not in shown
    assert f"SubmitServiceJob: {code}: Value '" in str(error.value)
    assert "arn:aws:iam::1:role/r is not valid" in str(error.value)


def row(name: str, **members: Any) -> dict[str, Any]:
    base = {"jobArn": f"arn:x/{name}", "jobId": name, "jobName": name, "createdAt": NOW, "status": "FAILED"}
    return base | {"serviceJobType": "SAGEMAKER_TRAINING"} | members


def test_jobs_of_a_name_come_from_all_pages_and_in_its_very_letters(stub: Stubber, batch: AwsBatch) -> None:
    asked = {"jobQueue": QUEUE, "filters": [{"name": "JOB_NAME", "values": ["train"]}]}
    first = {"jobSummaryList": [row("Train"), row("train")], "nextToken": "t"}
    stub.add_response("list_service_jobs", first, asked)
    stub.add_response(
        "list_service_jobs",
        {"jobSummaryList": [row("train", jobArn="arn:x/2", status="RUNNING")]},
        asked | {"nextToken": "t"},
    )
    assert [job.arn for job in batch.named(QUEUE, "train")] == ["arn:x/train", "arn:x/2"]


def test_a_row_that_cannot_be_read_may_be_the_one(stub: Stubber, batch: AwsBatch) -> None:
    stub.add_response("list_service_jobs", {"jobSummaryList": [row("train", status="RESTING")]})
    with pytest.raises(Unavailable, match="makes no sense"):
        batch.named(QUEUE, "train")


def test_submissions_are_paced(stub: Stubber, api: Any) -> None:
    clock = MemoryClock(NOW)
    pauses: list[float] = []
    batch = AwsBatch(api, clock, pauses.append)
    submission = Submission(name="n", queue=QUEUE, kind="SAGEMAKER_TRAINING", payload="{}")
    for later in (0, 0, 200, SUBMIT_EVERY, -3 * SUBMIT_EVERY):
        clock.advance(later)
        stub.add_response("submit_service_job", MADE)
        batch.submit(submission, "token")
    assert pauses == [0.5, 0.3]


# --- the lab -----------------------------------------------------------------------------------------------


def test_in_the_lab_a_job_is_submitted_again_found_in_any_state_and_never_twice() -> None:
    bench = Bench(capacity=2)
    bench.share(own=2)
    text = payload() + " "
    old = bench.submit(
        jobName="Train",
        schedulingPriority=7,
        serviceRequestPayload=text,
        preemptionConfiguration={"preemptionRetriesBeforeTermination": 0},
        retryStrategy={"attempts": 2},
        timeoutConfig={"attemptDurationSeconds": 600},
        tags={"team": "vision"},
    )
    batch = AwsBatch(bench.batch, MemoryClock(START))
    submission = batch.submission(old)
    assert submission is not None
    made = batch.submit(submission.model_copy(update={"name": "Train-r1"}), "token")
    again = batch.submission(made)
    assert again == submission.model_copy(update={"name": "Train-r1"})
    assert again.payload == text
    assert json.loads(again.payload)["TrainingJobName"] == "train"
    with pytest.raises(Denied, match="clientToken"):
        batch.submit(submission, "token")
    bench.batch.terminate_service_job(jobId=made, reason="r")
    bench.pass_time(60)
    assert [(job.arn, job.status) for job in batch.named(bench.queue, "Train-r1")] == [(made, "FAILED")]
    assert batch.named(bench.queue, "train-r1") == batch.named(bench.queue, "Train-r") == ()
