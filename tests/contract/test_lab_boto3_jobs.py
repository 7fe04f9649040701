"""The job operations of the lab through an unmodified boto3 client: results, paging, limits, errors."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.contract.lab_clients import START, UNIT, Bench, payload


@pytest.fixture
def bench() -> Bench:
    made = Bench(capacity=2)
    made.share(own=2)
    return made


def refused(call: Any, **params: Any) -> str:
    """The text of the ClientException that the call gives."""
    with pytest.raises(ClientError) as caught:
        call(**params)
    assert caught.value.response["Error"]["Code"] == "ClientException"
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
    return str(caught.value.response["Error"]["Message"])


def names(answer: dict[str, Any]) -> list[str]:
    return [summary["jobName"] for summary in answer["jobSummaryList"]]


def test_a_submitted_job_can_be_described_at_once(bench: Bench) -> None:
    text = payload(CheckpointConfig={"S3Uri": "s3://bucket/ckpt"})
    job = bench.submit(
        jobName="vision",
        schedulingPriority=5,
        serviceRequestPayload=text,
        retryStrategy={"attempts": 2},
        preemptionConfiguration={"preemptionRetriesBeforeTermination": 3},
        timeoutConfig={"attemptDurationSeconds": 600},
        tags={"team": "nlp"},
    )
    detail = bench.describe(job)
    expected = {
        "jobId": job,
        "jobName": "vision",
        "jobQueue": bench.queue,
        "quotaShareName": "share",
        "schedulingPriority": 5,
        "serviceRequestPayload": text,
        "serviceJobType": "SAGEMAKER_TRAINING",
        "status": "SUBMITTED",
        "createdAt": START,
        "capacityUsage": [{"capacityUnit": UNIT, "quantity": 1.0}],
        "retryStrategy": {"attempts": 2},
        "preemptionConfiguration": {"preemptionRetriesBeforeTermination": 3},
        "timeoutConfig": {"attemptDurationSeconds": 600},
        "tags": {"team": "nlp"},
    }
    assert {name: detail.get(name) for name in expected} == expected
    assert detail["jobArn"].endswith(f":service-job/{job}")
    assert "startedAt" not in detail


def test_an_arn_works_as_a_job_id(bench: Bench) -> None:
    job = bench.submit()
    arn = bench.describe(job)["jobArn"]
    assert bench.describe(arn)["jobId"] == job
    assert bench.batch.update_service_job(jobId=arn, schedulingPriority=1)["jobId"] == job


def test_submits_over_five_a_second_are_throttled() -> None:
    bench = Bench(submit_rate=5)
    bench.share()
    for _ in range(5):
        bench.submit()
    with pytest.raises(ClientError) as caught:
        bench.submit()
    assert caught.value.response["Error"]["Code"] == "TooManyRequestsException"
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 429
    bench.pass_time(1)
    bench.submit()


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"jobName": "a b"}, "jobName"),
        ({"jobName": "x" * 129}, "jobName"),
        ({"schedulingPriority": -1}, "schedulingPriority"),
        ({"schedulingPriority": 10_000}, "schedulingPriority"),
        ({"retryStrategy": {"attempts": 0}}, "attempts"),
        ({"retryStrategy": {"attempts": 11}}, "attempts"),
        ({"retryStrategy": {"attempts": 2, "evaluateOnExit": [{"action": "EXIT"}] * 6}}, "evaluateOnExit"),
        ({"serviceRequestPayload": payload(Environment={"x": "y" * 10_240})}, "serviceRequestPayload"),
        ({"serviceRequestPayload": "{"}, "serviceRequestPayload"),
        ({"jobQueue": "nowhere"}, "nowhere"),
        ({"quotaShareName": "nowhere"}, "nowhere"),
        ({"tags": {f"k{number}": "v" for number in range(51)}}, "tags"),
    ],
)
def test_a_wrong_submission_is_refused(bench: Bench, wrong: dict[str, Any], text: str) -> None:
    with pytest.raises(ClientError, match=text) as caught:
        bench.submit(**wrong)
    assert caught.value.response["Error"]["Code"] == "ClientException"


def test_a_quota_queue_needs_a_share(bench: Bench) -> None:
    request = {
        "jobName": "j",
        "jobQueue": bench.queue,
        "serviceJobType": "SAGEMAKER_TRAINING",
        "serviceRequestPayload": payload(),
    }
    assert "quotaShareName" in refused(bench.batch.submit_service_job, **request)


def test_a_repeated_client_token_is_rejected(bench: Bench) -> None:
    bench.submit(clientToken="once")
    with pytest.raises(ClientError):
        bench.submit(clientToken="once")
    bench.submit(clientToken="another")


def test_the_priority_can_be_updated_and_nothing_else_is_told(bench: Bench) -> None:
    job = bench.submit(schedulingPriority=1)
    answer = bench.batch.update_service_job(jobId=job, schedulingPriority=9_999)
    assert answer.keys() - {"ResponseMetadata"} == {"jobArn", "jobName", "jobId"}
    assert bench.describe(job)["schedulingPriority"] == 9_999


@pytest.mark.parametrize("priority", [-1, 10_000])
def test_a_priority_outside_0_to_9999_is_refused(bench: Bench, priority: int) -> None:
    job = bench.submit(schedulingPriority=1)
    assert "schedulingPriority" in refused(
        bench.batch.update_service_job, jobId=job, schedulingPriority=priority
    )
    assert bench.describe(job)["schedulingPriority"] == 1


def test_an_unknown_job_is_a_client_exception(bench: Bench) -> None:
    assert "nope" in refused(bench.batch.describe_service_job, jobId="nope")
    assert "nope" in refused(bench.batch.update_service_job, jobId="nope", schedulingPriority=1)


def test_terminating_a_waiting_job_fails_it_at_once(bench: Bench) -> None:
    job = bench.submit()
    bench.batch.terminate_service_job(jobId=job, reason="not needed")
    detail = bench.describe(job)
    assert (detail["status"], detail["statusReason"], detail["isTerminated"]) == (
        "FAILED",
        "not needed",
        True,
    )


def test_terminating_a_running_job_stops_its_training_job_first(bench: Bench) -> None:
    job = bench.submit()
    bench.until(job, "RUNNING")
    bench.batch.terminate_service_job(jobId=job, reason="over budget")
    assert (bench.status(job), bench.describe(job)["isTerminated"]) == (["RUNNING"], True)
    assert bench.training(job)["TrainingJobStatus"] == "Stopping"
    bench.until(job, "FAILED")
    assert bench.describe(job)["statusReason"] == "over budget"
    assert bench.training(job)["TrainingJobStatus"] == "Stopped"


def test_bulk_termination_takes_unknown_jobs_as_done(bench: Bench) -> None:
    jobs = [bench.submit(), bench.submit()]
    answer = bench.batch.terminate_service_jobs(jobs=[*jobs, "unknown"], reason="clean up")
    assert sorted(answer["successful"]) == sorted([*jobs, "unknown"])
    assert answer["errors"] == []
    assert bench.status(*jobs) == ["FAILED", "FAILED"]


def test_bulk_termination_takes_fifty_jobs(bench: Bench) -> None:
    bench.batch.terminate_service_jobs(jobs=[f"j{number}" for number in range(50)], reason="r")
    many = [f"j{number}" for number in range(51)]
    assert "50" in refused(bench.batch.terminate_service_jobs, jobs=many, reason="r")


def test_listing_without_a_status_gives_running_jobs_only(bench: Bench) -> None:
    first, second, third = bench.submit(), bench.submit(), bench.submit()
    bench.until(second, "RUNNING")
    listed = bench.batch.list_service_jobs(jobQueue=bench.queue)["jobSummaryList"]
    assert [summary["jobId"] for summary in listed] == [second, first]
    waiting = bench.batch.list_service_jobs(jobQueue=bench.queue, jobStatus="RUNNABLE")["jobSummaryList"]
    assert [summary["jobId"] for summary in waiting] == [third]


def test_a_summary_lacks_priority_tags_and_preemptions(bench: Bench) -> None:
    bench.submit(schedulingPriority=3, tags={"team": "nlp"})
    (summary,) = bench.batch.list_service_jobs(jobQueue=bench.queue, jobStatus="SUBMITTED")["jobSummaryList"]
    assert not {"schedulingPriority", "tags", "preemptionSummary", "isTerminated"} & summary.keys()
    assert (summary["quotaShareName"], summary["status"]) == ("share", "SUBMITTED")


def filtered(bench: Bench, name: str, value: str, **more: Any) -> list[str]:
    filters = [{"name": name, "values": [value]}]
    return names(bench.batch.list_service_jobs(jobQueue=bench.queue, filters=filters, **more))


def test_names_are_filtered_without_case_and_with_a_trailing_star(bench: Bench) -> None:
    for name in ("Vision-1", "vision-2", "nlp"):
        bench.submit(jobName=name)
    assert filtered(bench, "JOB_NAME", "VISION-1") == ["Vision-1"]
    assert filtered(bench, "JOB_NAME", "vision*") == ["vision-2", "Vision-1"]
    assert filtered(bench, "JOB_NAME", "vision") == []


def test_a_name_filter_ignores_the_status(bench: Bench) -> None:
    bench.submit(jobName="a")
    assert filtered(bench, "JOB_NAME", "a", jobStatus="RUNNING") == ["a"]


def test_times_of_creation_are_filtered_in_milliseconds(bench: Bench) -> None:
    bench.submit(jobName="early")
    bench.pass_time(10)
    bench.submit(jobName="late")
    moment = str(START + 5_000)
    assert filtered(bench, "BEFORE_CREATED_AT", moment) == ["early"]
    assert filtered(bench, "AFTER_CREATED_AT", moment) == ["late"]


def test_a_share_filter_combines_with_the_status(bench: Bench) -> None:
    bench.share("other", own=0)
    bench.submit("share", jobName="a")
    bench.submit("other", jobName="b")
    bench.pass_time(2)
    bench.submit("other", jobName="c")
    assert filtered(bench, "QUOTA_SHARE_NAME", "other", jobStatus="RUNNABLE") == ["b"]
    assert filtered(bench, "QUOTA_SHARE_NAME", "other", jobStatus="SUBMITTED") == ["c"]


def test_one_filter_a_call(bench: Bench) -> None:
    two = [{"name": "JOB_NAME", "values": ["a"]}, {"name": "QUOTA_SHARE_NAME", "values": ["share"]}]
    assert "filter" in refused(bench.batch.list_service_jobs, jobQueue=bench.queue, filters=two)


def test_lists_are_paged_newest_first(bench: Bench) -> None:
    for number in range(7):
        bench.submit(jobName=f"j{number}")
    pages = bench.batch.get_paginator("list_service_jobs").paginate(
        jobQueue=bench.queue, jobStatus="SUBMITTED", PaginationConfig={"PageSize": 3}
    )
    listed = [names(page) for page in pages]
    assert listed == [["j6", "j5", "j4"], ["j3", "j2", "j1"], ["j0"]]


@pytest.mark.parametrize("size", [0, 101])
def test_pages_hold_1_to_100(bench: Bench, size: int) -> None:
    assert "maxResults" in refused(bench.batch.list_service_jobs, jobQueue=bench.queue, maxResults=size)


def test_a_made_up_token_is_refused(bench: Bench) -> None:
    assert "nextToken" in refused(bench.batch.list_service_jobs, jobQueue=bench.queue, nextToken="made-up")


def test_the_snapshot_tells_fronts_and_use(bench: Bench) -> None:
    bench.share("empty", own=0)
    running = bench.submit(serviceRequestPayload=payload(instances=2))
    bench.until(running, "RUNNING")
    low, high = bench.submit(schedulingPriority=1), bench.submit(schedulingPriority=2)
    bench.pass_time(5)
    snapshot = bench.batch.get_job_queue_snapshot(jobQueue=bench.queue)
    arns = [bench.describe(job)["jobArn"] for job in (high, low)]
    assert [job["jobArn"] for job in snapshot["frontOfQueue"]["jobs"]] == arns
    fronts = snapshot["frontOfQuotaShares"]["quotaShares"]
    assert [job["jobArn"] for job in fronts["share"]] == arns[:1]
    usage = [{"capacityUnit": UNIT, "quantity": 2.0}]
    utilization = snapshot["queueUtilization"]
    assert utilization["totalCapacityUsage"] == usage
    top = utilization["quotaShareUtilization"]["topCapacityUtilization"]
    assert {"quotaShareName": "share", "capacityUsage": usage} in top
    for part in ("frontOfQueue", "frontOfQuotaShares", "queueUtilization"):
        assert snapshot[part]["lastUpdatedAt"] <= bench.clock.now()


def test_tags_of_a_job_are_listed_added_and_removed(bench: Bench) -> None:
    arn = bench.describe(bench.submit(tags={"team": "nlp", "user": "u"}))["jobArn"]
    bench.batch.tag_resource(resourceArn=arn, tags={"sla": "gold", "team": "vision"})
    bench.batch.untag_resource(resourceArn=arn, tagKeys=["user"])
    assert bench.batch.list_tags_for_resource(resourceArn=arn)["tags"] == {"team": "vision", "sla": "gold"}
    assert bench.describe(arn)["tags"] == {"team": "vision", "sla": "gold"}


def test_tags_of_nothing_are_refused(bench: Bench) -> None:
    arn = "arn:aws:batch:us-east-1:123456789012:service-job/nope"
    assert "nope" in refused(bench.batch.list_tags_for_resource, resourceArn=arn)


# --- SageMaker ---


def test_a_training_job_is_described_with_its_request_and_times(bench: Bench) -> None:
    config = {"S3Uri": "s3://bucket/ckpt", "LocalPath": "/opt/ml/checkpoints"}
    job = bench.submit(serviceRequestPayload=payload(CheckpointConfig=config))
    bench.until(job, "RUNNING")
    training = bench.training(job)
    assert training["TrainingJobName"].startswith("AWSBatchtrain")
    assert (training["TrainingJobStatus"], training["SecondaryStatus"]) == ("InProgress", "Training")
    assert training["CheckpointConfig"] == config
    assert training["ResourceConfig"]["InstanceType"] == UNIT
    assert training["TrainingStartTime"].timestamp() * 1000 == bench.describe(job)["startedAt"]
    assert [entry["Status"] for entry in training["SecondaryStatusTransitions"]] == [
        "Pending",
        "Downloading",
        "Training",
    ]


@pytest.mark.parametrize("member", ["StoppingCondition", "AlgorithmSpecification"])
def test_a_training_job_can_be_described_whatever_its_request_leaves_out(bench: Bench, member: str) -> None:
    request = json.loads(payload())
    request.pop(member, None)
    job = bench.submit(serviceRequestPayload=json.dumps(request))
    bench.until(job, "RUNNING")
    assert bench.training(job)["StoppingCondition"]["MaxRuntimeInSeconds"] == 86_400


def test_a_training_job_stopped_from_outside_fails_the_job(bench: Bench) -> None:
    job = bench.submit()
    bench.until(job, "RUNNING")
    name = bench.training(job)["TrainingJobName"]
    bench.sagemaker.stop_training_job(TrainingJobName=name)
    assert bench.training(job)["TrainingJobStatus"] == "Stopping"
    bench.until(job, "FAILED")
    with pytest.raises(ClientError) as caught:
        bench.sagemaker.stop_training_job(TrainingJobName=name)
    assert caught.value.response["Error"]["Code"] == "ValidationException"


def test_an_unknown_training_job_is_an_error(bench: Bench) -> None:
    with pytest.raises(ClientError, match="not found"):
        bench.sagemaker.describe_training_job(TrainingJobName="nope")


def test_training_jobs_are_listed_filtered_and_paged(bench: Bench) -> None:
    for number in range(2):
        job = bench.submit(serviceRequestPayload=payload(f"t{number}"))
        bench.until(job, "RUNNING")
    listed = bench.sagemaker.list_training_jobs()["TrainingJobSummaries"]
    assert [summary["TrainingJobName"][8:10] for summary in listed] == ["t1", "t0"]
    matching = bench.sagemaker.list_training_jobs(NameContains="t0", StatusEquals="InProgress")
    assert len(matching["TrainingJobSummaries"]) == 1
    assert bench.sagemaker.list_training_jobs(StatusEquals="Stopped")["TrainingJobSummaries"] == []
    pages = list(
        bench.sagemaker.get_paginator("list_training_jobs").paginate(PaginationConfig={"PageSize": 1})
    )
    assert [len(page["TrainingJobSummaries"]) for page in pages] == [1, 1]


def test_a_payload_without_instances_uses_no_known_capacity(bench: Bench) -> None:
    request = json.loads(payload())
    del request["ResourceConfig"]
    assert "ResourceConfig" in refused(
        bench.batch.submit_service_job,
        jobName="j",
        jobQueue=bench.queue,
        serviceJobType="SAGEMAKER_TRAINING",
        quotaShareName="share",
        serviceRequestPayload=json.dumps(request),
    )
