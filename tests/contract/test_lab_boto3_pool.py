"""Environments, policies, queues and shares of the lab through an unmodified boto3 client."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.contract.lab_clients import UNIT, Bench

LIMITS = [{"capacityUnit": UNIT, "maxCapacity": 1}]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def refused(call: Any, **params: Any) -> str:
    with pytest.raises(ClientError) as caught:
        call(**params)
    assert caught.value.response["Error"]["Code"] == "ClientException"
    return str(caught.value.response["Error"]["Message"])


def test_a_scheduling_policy_lives_and_dies(bench: Bench) -> None:
    batch = bench.batch
    strategy = {"idleResourceAssignmentStrategy": "FIFO"}
    arn = batch.create_scheduling_policy(name="mine", quotaSharePolicy=strategy, tags={"a": "b"})["arn"]
    assert arn.endswith(":scheduling-policy/mine")
    (policy,) = batch.describe_scheduling_policies(arns=[arn])["schedulingPolicies"]
    assert policy == {"name": "mine", "arn": arn, "quotaSharePolicy": strategy, "tags": {"a": "b"}}
    batch.update_scheduling_policy(arn=arn, quotaSharePolicy=strategy)
    batch.delete_scheduling_policy(arn=arn)
    assert batch.describe_scheduling_policies(arns=[arn])["schedulingPolicies"] == []


def test_a_policy_in_use_cannot_be_deleted(bench: Bench) -> None:
    (queue,) = bench.batch.describe_job_queues(jobQueues=[bench.queue])["jobQueues"]
    refused(bench.batch.delete_scheduling_policy, arn=queue["schedulingPolicyArn"])


def test_a_service_environment_lives_and_dies(bench: Bench) -> None:
    batch = bench.batch
    made = batch.create_service_environment(
        serviceEnvironmentName="mine", serviceEnvironmentType="SAGEMAKER_TRAINING", capacityLimits=LIMITS
    )
    (found,) = batch.describe_service_environments(serviceEnvironments=["mine"])["serviceEnvironments"]
    assert found["serviceEnvironmentArn"] == made["serviceEnvironmentArn"]
    assert (found["state"], found["status"], found["capacityLimits"]) == ("ENABLED", "VALID", LIMITS)
    refused(batch.delete_service_environment, serviceEnvironment="mine")
    more = [{"capacityUnit": UNIT, "maxCapacity": 5}]
    batch.update_service_environment(serviceEnvironment="mine", state="DISABLED", capacityLimits=more)
    (found,) = batch.describe_service_environments(serviceEnvironments=["mine"])["serviceEnvironments"]
    assert (found["state"], found["capacityLimits"]) == ("DISABLED", more)
    batch.delete_service_environment(serviceEnvironment="mine")
    assert batch.describe_service_environments(serviceEnvironments=["mine"])["serviceEnvironments"] == []


def test_a_job_queue_is_described_updated_and_deleted(bench: Bench) -> None:
    batch = bench.batch
    (queue,) = batch.describe_job_queues(jobQueues=["queue"])["jobQueues"]
    assert queue["jobQueueArn"] == bench.queue
    assert (queue["state"], queue["status"], queue["jobQueueType"]) == (
        "ENABLED",
        "VALID",
        "SAGEMAKER_TRAINING",
    )
    assert [entry["order"] for entry in queue["serviceEnvironmentOrder"]] == [1]
    refused(batch.delete_job_queue, jobQueue="queue")
    batch.update_job_queue(jobQueue=bench.queue, state="DISABLED", priority=7)
    (queue,) = batch.describe_job_queues(jobQueues=["queue"])["jobQueues"]
    assert (queue["state"], queue["priority"]) == ("DISABLED", 7)
    batch.delete_job_queue(jobQueue="queue")
    assert batch.describe_job_queues(jobQueues=["queue"])["jobQueues"] == []


@pytest.mark.parametrize(
    ("action", "text"),
    [
        ({"action": "CANCEL"}, "TERMINATE"),
        ({"maxTimeSeconds": 599}, "maxTimeSeconds"),
        ({"maxTimeSeconds": 86_401}, "maxTimeSeconds"),
        ({"reason": "BECAUSE"}, "reason"),
    ],
)
def test_time_limit_actions_are_checked(bench: Bench, action: dict[str, Any], text: str) -> None:
    right = {
        "reason": "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY",
        "state": "RUNNABLE",
        "maxTimeSeconds": 600,
        "action": "TERMINATE",
    }
    bench.batch.update_job_queue(jobQueue="queue", jobStateTimeLimitActions=[right])
    wrong = [{**right, **action}]
    assert text in refused(bench.batch.update_job_queue, jobQueue="queue", jobStateTimeLimitActions=wrong)


def test_a_share_lives_and_dies(bench: Bench) -> None:
    batch = bench.batch
    arn = bench.share("mine", 2, "LEND_AND_BORROW", borrow=100, in_share=True, tags={"team": "nlp"})
    assert arn == f"{bench.queue}/quota-share/mine"
    share = batch.describe_quota_share(quotaShareArn=arn)
    expected = {
        "quotaShareName": "mine",
        "quotaShareArn": arn,
        "jobQueueArn": bench.queue,
        "capacityLimits": [{"capacityUnit": UNIT, "maxCapacity": 2}],
        "resourceSharingConfiguration": {"strategy": "LEND_AND_BORROW", "borrowLimit": 100},
        "preemptionConfiguration": {"inSharePreemption": "ENABLED"},
        "state": "ENABLED",
        "status": "VALID",
        "tags": {"team": "nlp"},
    }
    assert {name: share.get(name) for name in expected} == expected

    batch.update_quota_share(quotaShareArn=arn, resourceSharingConfiguration={"strategy": "RESERVE"})
    share = batch.describe_quota_share(quotaShareArn=arn)
    assert share["resourceSharingConfiguration"]["strategy"] == "RESERVE"
    assert share["capacityLimits"] == expected["capacityLimits"]

    assert "DISABLED" in refused(batch.delete_quota_share, quotaShareArn=arn)
    batch.update_quota_share(quotaShareArn=arn, state="DISABLED")
    batch.delete_quota_share(quotaShareArn=arn)
    assert "mine" in refused(batch.describe_quota_share, quotaShareArn=arn)


def test_borrowing_is_unlimited_unless_said_otherwise(bench: Bench) -> None:
    arn = bench.share("mine", 1, "LEND_AND_BORROW")
    share = bench.batch.describe_quota_share(quotaShareArn=arn)
    assert share["resourceSharingConfiguration"] == {"strategy": "LEND_AND_BORROW", "borrowLimit": -1}


def test_a_disabled_share_takes_no_new_jobs_and_keeps_the_old(bench: Bench) -> None:
    arn = bench.share()
    job = bench.submit()
    bench.batch.update_quota_share(quotaShareArn=arn, state="DISABLED")
    with pytest.raises(ClientError, match="not enabled"):
        bench.submit()
    bench.until(job, "RUNNING")


def test_deleting_a_share_terminates_its_jobs(bench: Bench) -> None:
    arn = bench.share()
    jobs = [bench.submit(), bench.submit()]
    bench.until(jobs[0], "RUNNING")
    bench.batch.update_quota_share(quotaShareArn=arn, state="DISABLED")
    bench.batch.delete_quota_share(quotaShareArn=arn)
    bench.until(jobs[0], "FAILED")
    assert bench.status(*jobs) == ["FAILED", "FAILED"]


@pytest.mark.parametrize("last", ["share", "queue"])
def test_deleting_twice_is_as_good_as_once(bench: Bench, last: str) -> None:
    """While the share's job is still stopping, the same call comes again, or its queue is deleted as well."""
    arn = bench.share()
    job = bench.submit()
    bench.until(job, "RUNNING")
    bench.batch.update_quota_share(quotaShareArn=arn, state="DISABLED")
    bench.batch.delete_quota_share(quotaShareArn=arn)
    assert bench.batch.describe_quota_share(quotaShareArn=arn)["status"] == "DELETING"
    if last == "share":
        bench.batch.delete_quota_share(quotaShareArn=arn)
    else:
        bench.pass_time(2.5)  # so that the queue is the first to notice that no job is left
        bench.batch.update_job_queue(jobQueue="queue", state="DISABLED")
        bench.batch.delete_job_queue(jobQueue="queue")
    bench.pass_time(120)
    assert bench.status(job) == ["FAILED"]
    assert "share" in refused(bench.batch.describe_quota_share, quotaShareArn=arn)


def test_shares_are_listed_and_paged(bench: Bench) -> None:
    for number in range(5):
        bench.share(f"s{number}", own=0)
    pages = bench.batch.get_paginator("list_quota_shares").paginate(
        jobQueue="queue", PaginationConfig={"PageSize": 2}
    )
    listed = [[share["quotaShareName"] for share in page["quotaShares"]] for page in pages]
    assert [len(page) for page in listed] == [2, 2, 1]
    assert sorted(name for page in listed for name in page) == [f"s{number}" for number in range(5)]


def test_twenty_shares_a_queue(bench: Bench) -> None:
    for number in range(20):
        bench.share(f"s{number}", own=0)
    with pytest.raises(ClientError, match="20"):
        bench.share("one-too-many", own=0)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"name": "a b"}, "quotaShareName"),
        ({"name": "x" * 129}, "quotaShareName"),
        ({"borrow": 100, "strategy": "LEND"}, "borrowLimit"),
        ({"borrow": -2, "strategy": "LEND_AND_BORROW"}, "borrowLimit"),
        ({"own": -1}, "maxCapacity"),
        (
            {"capacityLimits": [{"capacityUnit": f"ml.p4d.{n}xlarge", "maxCapacity": 1} for n in range(6)]},
            "5",
        ),
        ({"strategy": "SHARE"}, "strategy"),
        ({"jobQueue": "nowhere"}, "nowhere"),
    ],
)
def test_a_wrong_share_is_refused(bench: Bench, wrong: dict[str, Any], text: str) -> None:
    with pytest.raises(ClientError, match=text) as caught:
        bench.share(**wrong)
    assert caught.value.response["Error"]["Code"] == "ClientException"


def test_a_name_is_used_once(bench: Bench) -> None:
    bench.share("mine")
    with pytest.raises(ClientError, match="exists"):
        bench.share("mine")


def test_tags_of_every_resource_are_kept(bench: Bench) -> None:
    (queue,) = bench.batch.describe_job_queues()["jobQueues"]
    (environment,) = bench.batch.describe_service_environments()["serviceEnvironments"]
    arns = [
        bench.share(),
        bench.queue,
        queue["schedulingPolicyArn"],
        environment["serviceEnvironmentArn"],
    ]
    for arn in arns:
        bench.batch.tag_resource(resourceArn=arn, tags={"a": "1", "b": "2"})
        bench.batch.untag_resource(resourceArn=arn, tagKeys=["a"])
        assert bench.batch.list_tags_for_resource(resourceArn=arn)["tags"] == {"b": "2"}
