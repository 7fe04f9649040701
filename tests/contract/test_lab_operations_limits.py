"""Documented limits and refusals, operation by operation."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.simulation.lab_kit import QUEUE, UNIT, Kit, payload, share

TOO_LONG = "x" * 129
LIMIT = {"maxCapacity": 1, "capacityUnit": UNIT}
SIX = [{"maxCapacity": 1, "capacityUnit": f"ml.g{n}.xlarge"} for n in range(6)]


@pytest.fixture
def kit() -> Kit:
    return Kit(share("s"), environment=5)


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"jobName": ""}, "jobName"),
        ({"jobName": TOO_LONG}, "jobName"),
        ({"jobName": "a b"}, "jobName"),
        ({"jobQueue": "other"}, "other"),
        ({"quotaShareName": "other"}, "other"),
        ({"serviceJobType": "ECS"}, "serviceJobType"),
        ({"schedulingPriority": -1}, "schedulingPriority"),
        ({"schedulingPriority": 10_000}, "schedulingPriority"),
        ({"serviceRequestPayload": "{"}, "JSON"),
        ({"serviceRequestPayload": "[]"}, "JSON object"),
        ({"serviceRequestPayload": "{}"}, "ResourceConfig"),
        ({"serviceRequestPayload": json.dumps({**payload(), "x": "y" * 10_240})}, "10240"),
        ({"retryStrategy": {"attempts": 11}}, "attempts"),
        ({"retryStrategy": {"attempts": 1, "evaluateOnExit": [{"action": "EXIT"}] * 6}}, "evaluateOnExit"),
        ({"retryStrategy": {"attempts": 1, "evaluateOnExit": [{"action": "STOP"}]}}, "action"),
        ({"preemptionConfiguration": {"preemptionRetriesBeforeTermination": -1}}, "preemptionRetries"),
        ({"timeoutConfig": {"attemptDurationSeconds": 59}}, "attemptDurationSeconds"),
        ({"tags": {str(n): "" for n in range(51)}}, "tags"),
        ({"clientToken": "t" * 65}, "clientToken"),
    ],
)
def test_submissions_refused(kit: Kit, params: dict[str, Any], text: str) -> None:
    body = {
        "jobName": "train",
        "jobQueue": QUEUE,
        "serviceJobType": "SAGEMAKER_TRAINING",
        "quotaShareName": "s",
        "serviceRequestPayload": json.dumps(payload()),
        **params,
    }
    assert text in kit.refused("SubmitServiceJob", **body)
    assert kit.batch("ListServiceJobs", jobQueue=QUEUE, jobStatus="SUBMITTED")["jobSummaryList"] == []


def test_a_payload_of_ten_kib_is_taken(kit: Kit) -> None:
    body = json.dumps({**payload(), "x": ""})
    room = 10 * 1024 - len(body)
    kit.submit("s", serviceRequestPayload=json.dumps({**payload(), "x": "y" * room}))


def test_a_refused_submission_does_not_use_up_its_token(kit: Kit) -> None:
    with pytest.raises(ClientError, match="other"):
        kit.submit("s", jobQueue="other", clientToken="t")
    kit.submit("s", clientToken="t")
    with pytest.raises(ClientError, match="clientToken"):
        kit.submit("s", clientToken="t")


def test_five_submissions_in_any_second() -> None:
    kit = Kit(share("s"), submit_rate=5)
    for _ in range(5):
        kit.submit("s")
        kit.pass_time(0.1)
    with pytest.raises(ClientError, match="TooManyRequestsException"):
        kit.submit("s")
    kit.pass_time(0.5)
    kit.submit("s")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"quotaShareName": TOO_LONG}, "quotaShareName"),
        ({"jobQueue": "other"}, "other"),
        ({"capacityLimits": []}, "capacityLimits"),
        ({"capacityLimits": SIX}, "5"),
        ({"capacityLimits": [LIMIT, LIMIT]}, "once"),
        ({"capacityLimits": [{"maxCapacity": -1, "capacityUnit": UNIT}]}, "maxCapacity"),
        ({"capacityLimits": [{"maxCapacity": 1, "capacityUnit": "NUM_INSTANCES"}]}, "instance type"),
        ({"resourceSharingConfiguration": {"strategy": "GIVE"}}, "strategy"),
        ({"resourceSharingConfiguration": {"strategy": "LEND", "borrowLimit": 10}}, "borrowLimit"),
        ({"resourceSharingConfiguration": {"strategy": "LEND_AND_BORROW", "borrowLimit": -2}}, "borrowLimit"),
        ({"preemptionConfiguration": {"inSharePreemption": "ON"}}, "inSharePreemption"),
        ({"state": "ON"}, "state"),
    ],
)
def test_shares_refused(kit: Kit, change: dict[str, Any], text: str) -> None:
    assert text in kit.refused("CreateQuotaShare", **{**share("new"), **change})
    assert len(kit.batch("ListQuotaShares", jobQueue=QUEUE)["quotaShares"]) == 1


def test_a_refused_update_changes_nothing(kit: Kit) -> None:
    before = kit.batch("DescribeQuotaShare", quotaShareArn=kit.share_arn("s"))
    kit.refused(
        "UpdateQuotaShare",
        quotaShareArn=kit.share_arn("s"),
        capacityLimits=[LIMIT],
        preemptionConfiguration={"inSharePreemption": "ENABLED"},
        state="ON",
    )
    assert kit.batch("DescribeQuotaShare", quotaShareArn=kit.share_arn("s")) == before


@pytest.mark.parametrize(("replaces", "units"), [(True, ["ml.g5.xlarge"]), (False, [UNIT, "ml.g5.xlarge"])])
def test_a_partial_list_of_limits(replaces: bool, units: list[str]) -> None:
    kit = Kit(share("s"), limits_replace=replaces)
    kit.update_share("s", capacityLimits=[{"maxCapacity": 2, "capacityUnit": "ml.g5.xlarge"}])
    found = kit.batch("DescribeQuotaShare", quotaShareArn=kit.share_arn("s"))["capacityLimits"]
    assert [limit["capacityUnit"] for limit in found] == units


def test_a_share_must_be_disabled_before_it_is_deleted(kit: Kit) -> None:
    job = kit.running("s")
    assert "DISABLED" in kit.refused("DeleteQuotaShare", quotaShareArn=kit.share_arn("s"))
    kit.update_share("s", state="DISABLED")
    kit.batch("DeleteQuotaShare", quotaShareArn=kit.share_arn("s"))
    assert kit.batch("DescribeQuotaShare", quotaShareArn=kit.share_arn("s"))["status"] == "DELETING"
    kit.finish()
    assert kit.status(job) == "FAILED"
    kit.refused("DescribeQuotaShare", quotaShareArn=kit.share_arn("s"))


def test_a_queue_must_be_disabled_before_it_is_deleted_and_ends_its_jobs(kit: Kit) -> None:
    jobs = [kit.running("s"), kit.submit("s")]
    assert "DISABLED" in kit.refused("DeleteJobQueue", jobQueue=QUEUE)
    kit.batch("UpdateJobQueue", jobQueue=QUEUE, state="DISABLED")
    kit.batch("DeleteJobQueue", jobQueue=QUEUE)
    kit.finish()
    assert kit.statuses(jobs) == ["FAILED", "FAILED"]
    assert kit.batch("DescribeJobQueues")["jobQueues"] == []
    assert kit.lab.next_due() is None


@pytest.mark.parametrize(
    ("operation", "params", "text"),
    [
        ("CreateServiceEnvironment", {"capacityLimits": SIX}, "5"),
        ("CreateServiceEnvironment", {"serviceEnvironmentName": "env"}, "exists"),
        ("CreateServiceEnvironment", {"serviceEnvironmentType": "EC2"}, "serviceEnvironmentType"),
        ("DeleteServiceEnvironment", {"serviceEnvironment": "env"}, "DISABLED"),
        ("DeleteServiceEnvironment", {"serviceEnvironment": "none"}, "none"),
        ("CreateSchedulingPolicy", {"name": "quota"}, "exists"),
        ("CreateSchedulingPolicy", {"quotaSharePolicy": {"idleResourceAssignmentStrategy": "LIFO"}}, "FIFO"),
        ("UpdateServiceJob", {"jobId": "none", "schedulingPriority": 1}, "none"),
        ("TerminateServiceJob", {"jobId": "none", "reason": "r"}, "none"),
        ("TerminateServiceJobs", {"jobs": ["x"] * 51, "reason": "r"}, "50"),
        ("ListServiceJobs", {"jobQueue": QUEUE, "maxResults": 101}, "maxResults"),
        ("ListServiceJobs", {"jobQueue": QUEUE, "jobStatus": "DONE"}, "jobStatus"),
        ("ListServiceJobs", {"jobQueue": QUEUE, "filters": [{"name": "COLOUR", "values": ["r"]}]}, "filter"),
        ("GetJobQueueSnapshot", {"jobQueue": "other"}, "other"),
        ("TagResource", {"resourceArn": "arn:none", "tags": {"a": "b"}}, "arn:none"),
    ],
)
def test_other_requests_refused(kit: Kit, operation: str, params: dict[str, Any], text: str) -> None:
    defaults = {
        "CreateServiceEnvironment": {
            "serviceEnvironmentName": "new",
            "serviceEnvironmentType": "SAGEMAKER_TRAINING",
            "capacityLimits": [LIMIT],
        },
        "CreateSchedulingPolicy": {
            "name": "new",
            "quotaSharePolicy": {"idleResourceAssignmentStrategy": "FIFO"},
        },
    }
    assert text in kit.refused(operation, **{**defaults.get(operation, {}), **params})


def test_pages_stay_right_while_jobs_come(kit: Kit) -> None:
    for n in range(5):
        kit.submit("s", jobName=f"j{n}")
    listing = {"jobQueue": QUEUE, "jobStatus": "SUBMITTED", "maxResults": 2}
    first = kit.batch("ListServiceJobs", **listing)
    kit.submit("s", jobName="late")
    second = kit.batch("ListServiceJobs", **listing, nextToken=first["nextToken"])
    third = kit.batch("ListServiceJobs", **listing, nextToken=second["nextToken"])
    names = [job["jobName"] for page in (first, second, third) for job in page["jobSummaryList"]]
    assert names == ["j4", "j3", "j2", "j1", "j0"]
    assert "nextToken" not in third
