"""The scheduler and the life of a job, seen through unmodified boto3 clients and the documented events."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.lab_clients import START, UNIT, Bench, payload

STATE = "Batch Service Job State Change"
STARTED = "Batch Service Job Preemption Started"
COMPLETED = "Batch Service Job Preemption Completed"
BLOCKED = "Batch Service Job Queue Blocked"
CROSS_SHARE = "Cross-share preemption triggered to reclaim borrowed capacity"


def lent(bench: Bench, **borrower: Any) -> tuple[str, str]:
    """Two jobs of ``borrower`` run, the second on the instance that ``lender`` does not use."""
    bench.share("borrower", 1, "LEND_AND_BORROW", **borrower)
    bench.share("lender", 1, "LEND")
    first, second = bench.submit("borrower"), bench.submit("borrower")
    bench.until(second, "RUNNING")
    return first, second


def test_a_job_goes_through_the_documented_states_and_times() -> None:
    bench = Bench()
    bench.share()
    job = bench.submit(serviceRequestPayload=payload(Environment={"SHAREWARDEN_LAB_RUNTIME_SECONDS": "60"}))
    bench.until(job, "SUCCEEDED")
    detail = bench.describe(job)
    states = [event["status"] for event in bench.heard(STATE, job)]
    assert states == ["RUNNABLE", "SCHEDULED", "STARTING", "RUNNING", "SUCCEEDED"]
    assert START <= detail["createdAt"] < detail["scheduledAt"] < detail["startedAt"] < detail["stoppedAt"]
    assert detail["statusReason"] == "Received status from SageMaker: Training job completed"
    assert [set(attempt) for attempt in detail["attempts"]] == [
        {"serviceResourceId", "startedAt", "stoppedAt", "statusReason"}
    ]


def test_events_of_jobs_never_carry_tags_or_payload_and_none_is_made_for_the_submission() -> None:
    bench = Bench()
    bench.share()
    job = bench.submit(tags={"team": "nlp"})
    assert bench.heard(STATE) == []
    bench.until(job, "RUNNING")
    for detail in bench.heard(STATE, job):
        assert not {"tags", "serviceRequestPayload"} & detail.keys()


def test_a_reserved_share_keeps_idle_capacity() -> None:
    bench = Bench()
    bench.share("reserve", 1, "RESERVE")
    bench.share("borrower", 1, "LEND_AND_BORROW")
    first, second = bench.submit("borrower"), bench.submit("borrower")
    bench.until(first, "RUNNING")
    assert bench.status(second) == ["RUNNABLE"]


def test_a_lender_lends_and_does_not_borrow() -> None:
    bench = Bench()
    bench.share("lender", 1, "LEND")
    bench.share("other", 1, "LEND")
    first, second = bench.submit("lender"), bench.submit("lender")
    bench.until(first, "RUNNING")
    assert bench.status(second) == ["RUNNABLE"]


@pytest.mark.parametrize(("percent", "running"), [(0, 1), (100, 2), (200, 3), (None, 4), (-1, 4)])
def test_the_borrow_limit_is_percent_of_own_capacity(percent: int | None, running: int) -> None:
    bench = Bench(capacity=4)
    bench.share("borrower", 1, "LEND_AND_BORROW", borrow=percent)
    bench.share("lender", 3, "LEND")
    jobs = [bench.submit("borrower") for _ in range(5)]
    bench.pass_time(120)
    assert bench.status(*jobs) == ["RUNNING"] * running + ["RUNNABLE"] * (5 - running)


def test_idle_capacity_goes_to_borrowers_first_in_first_out() -> None:
    bench = Bench()
    bench.share("early", 1, "LEND_AND_BORROW")
    bench.share("late", 1, "LEND_AND_BORROW")
    bench.share("lender", 1, "LEND")
    owners = [bench.submit("early"), bench.submit("late")]
    bench.until(owners[1], "RUNNING")
    bench.batch.update_service_job(jobId=bench.submit("early"), schedulingPriority=0)
    bench.pass_time(0.1)
    second = bench.submit("late", schedulingPriority=9999)
    bench.pass_time(120)
    assert bench.status(second) == ["RUNNABLE"]


def test_lent_capacity_comes_back_by_cross_share_preemption() -> None:
    bench = Bench(capacity=2)
    _, borrowed = lent(bench)
    owner = bench.submit("lender")
    bench.until(owner, "RUNNING")
    assert bench.status(borrowed) == ["RUNNABLE"]

    (started,) = bench.heard(STARTED)
    assert started == {
        "statusReason": f"PREEMPTION_IN_PROGRESS: {CROSS_SHARE}",
        "preemptedJobArn": bench.describe(borrowed)["jobArn"],
        "status": "RUNNING",
    }
    (completed,) = bench.heard(COMPLETED)
    assert completed.keys() == {"preemptedJobArn", "preemptionSummary", "status"}
    (attempt,) = completed["preemptionSummary"]["recentPreemptedAttempts"]
    assert attempt["statusReason"] == CROSS_SHARE
    assert bench.describe(borrowed)["preemptionSummary"] == completed["preemptionSummary"]


def test_a_victim_is_requeued_and_its_next_attempt_is_a_new_training_job() -> None:
    bench = Bench(capacity=2)
    _, borrowed = lent(bench)
    first = bench.training(borrowed)
    owner = bench.submit("lender")
    bench.until(owner, "RUNNING")
    bench.batch.terminate_service_job(jobId=owner, reason="make room")
    bench.until(borrowed, "RUNNING")
    second = bench.training(borrowed)
    assert second["TrainingJobName"] != first["TrainingJobName"]
    assert second["TrainingJobName"].startswith("AWSBatchtrain")
    again = bench.sagemaker.describe_training_job(TrainingJobName=first["TrainingJobName"])
    assert (again["TrainingJobStatus"], again["SecondaryStatus"]) == ("Stopped", "Stopped")


@pytest.mark.parametrize("in_share", [True, False])
def test_in_share_preemption_only_where_it_is_on(in_share: bool) -> None:
    bench = Bench(capacity=1)
    bench.share(own=1, in_share=in_share)
    low = bench.submit(schedulingPriority=1)
    bench.until(low, "RUNNING")
    high = bench.submit(schedulingPriority=2)
    bench.pass_time(120)
    expected = ["RUNNABLE", "RUNNING"] if in_share else ["RUNNING", "RUNNABLE"]
    assert bench.status(low, high) == expected


def test_equal_priority_preempts_nobody() -> None:
    bench = Bench(capacity=1)
    bench.share(own=1, in_share=True)
    first = bench.submit(schedulingPriority=1)
    bench.until(first, "RUNNING")
    bench.submit(schedulingPriority=1)
    bench.pass_time(600)
    assert bench.status(first) == ["RUNNING"]


def test_raising_a_waiting_job_can_trigger_in_share_preemption() -> None:
    bench = Bench(capacity=1)
    bench.share(own=1, in_share=True)
    first = bench.submit(schedulingPriority=5)
    bench.until(first, "RUNNING")
    second = bench.submit(schedulingPriority=1)
    bench.pass_time(60)
    assert bench.status(second) == ["RUNNABLE"]
    bench.batch.update_service_job(jobId=second, schedulingPriority=6)
    bench.until(second, "RUNNING")
    assert bench.status(first) == ["RUNNABLE"]


def test_a_higher_priority_takes_nothing_from_another_share() -> None:
    bench = Bench(capacity=2)
    bench.share("reserve", 1, "RESERVE")
    bench.share("other", 1, "LEND_AND_BORROW", in_share=True)
    protected = bench.submit("reserve", schedulingPriority=0)
    mine = bench.submit("other", schedulingPriority=9999)
    bench.until(mine, "RUNNING")
    bench.submit("other", schedulingPriority=9999)
    bench.pass_time(600)
    assert bench.status(protected) == ["RUNNING"]
    assert not bench.heard(STARTED)


def test_lowering_a_limit_preempts_even_in_a_reserved_share() -> None:
    bench = Bench(capacity=2)
    arn = bench.share(own=2)
    jobs = [bench.submit(), bench.submit()]
    bench.until(jobs[1], "RUNNING")
    bench.batch.update_quota_share(
        quotaShareArn=arn, capacityLimits=[{"capacityUnit": UNIT, "maxCapacity": 1}]
    )
    bench.pass_time(120)
    assert sorted(bench.status(*jobs)) == ["RUNNABLE", "RUNNING"]


@pytest.mark.parametrize(("allowed", "status"), [(0, "FAILED"), (1, "RUNNABLE"), (None, "RUNNABLE")])
def test_preemption_retries_bound_the_requeueing(allowed: int | None, status: str) -> None:
    bench = Bench(capacity=1)
    bench.share(own=1, in_share=True)
    limit = {} if allowed is None else {"preemptionRetriesBeforeTermination": allowed}
    more = {"preemptionConfiguration": limit} if limit else {}
    low = bench.submit(schedulingPriority=1, **more)
    bench.until(low, "RUNNING")
    high = bench.submit(schedulingPriority=2)
    bench.until(high, "RUNNING")
    assert bench.status(low) == [status]
    assert bench.describe(low)["preemptionSummary"]["preemptedAttemptCount"] == 1


def test_capacity_failures_are_retried_without_using_attempts() -> None:
    bench = Bench(capacity=1)
    bench.share(own=1)
    bench.lab.fail_for_capacity(3)
    job = bench.submit(retryStrategy={"attempts": 1})
    bench.until(job, "RUNNING")
    reasons = [detail["statusReason"] for detail in bench.heard(BLOCKED, job)]
    assert len(reasons) == 3
    assert all(reason.startswith("CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY") for reason in reasons)


def test_only_the_newest_training_job_without_capacity_is_kept() -> None:
    bench = Bench(capacity=1)
    bench.share(own=1)
    bench.lab.fail_for_capacity(3)
    bench.until(bench.submit(), "RUNNING")
    failed = bench.sagemaker.list_training_jobs(StatusEquals="Failed")["TrainingJobSummaries"]
    assert len(failed) == 1
    detail = bench.sagemaker.describe_training_job(TrainingJobName=failed[0]["TrainingJobName"])
    assert detail["FailureReason"].startswith("CapacityError")


def limit(bench: Bench, reason: str) -> None:
    action = {"reason": reason, "state": "RUNNABLE", "maxTimeSeconds": 600, "action": "TERMINATE"}
    bench.batch.update_job_queue(jobQueue=bench.queue, jobStateTimeLimitActions=[action])


def test_a_time_limit_action_ends_a_job_that_never_fits() -> None:
    reason = "MISCONFIGURATION:QUOTA_MANAGEMENT_LIMIT_EXCEEDED"
    bench = Bench(capacity=4)
    limit(bench, reason)
    bench.share(own=1)
    job = bench.submit(serviceRequestPayload=payload(instances=2))
    bench.pass_time(590)
    assert bench.status(job) == ["RUNNABLE"]
    bench.until(job, "FAILED", within_s=30)
    expected = f"Terminated by JobStateTimeLimit action due to reason: {reason}"
    assert bench.describe(job)["statusReason"] == expected


def test_time_lost_to_capacity_failures_adds_up_to_the_limit() -> None:
    bench = Bench(capacity=1, pending_ms=(250_000, 250_000))
    limit(bench, "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY")
    bench.share(own=1)
    bench.lab.fail_for_capacity(9)
    job = bench.submit()
    bench.until(job, "FAILED")
    assert len(bench.heard(BLOCKED, job)) == 2  # the third failure passes 600 s
    assert "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY" in bench.describe(job)["statusReason"]


def test_a_requeued_job_resumes_from_its_newest_complete_checkpoint() -> None:
    bench = Bench(capacity=1)
    bench.share(own=1, in_share=True)
    environment = {"SHAREWARDEN_LAB_RUNTIME_SECONDS": "1000", "SHAREWARDEN_LAB_CHECKPOINT_SECONDS": "300"}
    config = {"S3Uri": "s3://bucket/ckpt"}
    text = payload(Environment=environment, CheckpointConfig=config)
    low = bench.submit(schedulingPriority=1, serviceRequestPayload=text)
    bench.until(low, "RUNNING")
    bench.pass_time(700)
    manifests = [name for name in bench.lab.objects.list("s3://bucket/ckpt/") if "_SAVED" in name]
    assert len(manifests) == 2
    short = payload(Environment={"SHAREWARDEN_LAB_RUNTIME_SECONDS": "60"})
    bench.until(bench.submit(schedulingPriority=2, serviceRequestPayload=short), "SUCCEEDED")
    bench.until(low, "RUNNING")
    started = bench.describe(low)["startedAt"]
    bench.until(low, "SUCCEEDED")
    trained = bench.describe(low)["stoppedAt"] - started - 5_000  # less the upload
    assert trained == 400_000  # 1000 s less the 600 s of the second checkpoint


def test_the_runtime_limit_of_the_payload_stops_a_training_job() -> None:
    bench = Bench(capacity=1)
    bench.share(own=1)
    text = payload(StoppingCondition={"MaxRuntimeInSeconds": 120})
    job = bench.submit(serviceRequestPayload=text)
    bench.until(job, "FAILED", within_s=600)
    assert bench.training(job)["SecondaryStatus"] == "MaxRuntimeExceeded"


@pytest.mark.parametrize("heuristic", ["documented", "random", "adversarial"])
def test_a_reserved_share_without_in_share_preemption_is_never_touched(heuristic: str) -> None:
    bench = Bench(capacity=3, heuristic=heuristic)
    bench.share("urgent", 1, "RESERVE")
    bench.share("medium", 1, "LEND_AND_BORROW")
    bench.share("background", 1, "LEND_AND_BORROW", in_share=True)
    urgent = bench.submit("urgent", schedulingPriority=0)
    background = [bench.submit("background", schedulingPriority=1) for _ in range(3)]
    bench.pass_time(120)
    bench.submit("medium", schedulingPriority=9_999)
    bench.pass_time(120)
    bench.submit("background", schedulingPriority=9_999)
    bench.pass_time(120)
    arns = {detail["preemptedJobArn"] for detail in bench.heard(STARTED)}
    assert len(bench.heard(STARTED)) == 2
    assert arns <= {bench.describe(job)["jobArn"] for job in background}
    assert bench.status(urgent) == ["RUNNING"]


@pytest.mark.parametrize(("attempts", "tries"), [(1, 1), (3, 3)])
def test_attempts_count_the_times_in_runnable(attempts: int, tries: int) -> None:
    bench = Bench(capacity=1)
    bench.share(own=1)
    failing = {"SHAREWARDEN_LAB_OUTCOME": "fail", "SHAREWARDEN_LAB_RUNTIME_SECONDS": "10"}
    job = bench.submit(
        serviceRequestPayload=payload(Environment=failing), retryStrategy={"attempts": attempts}
    )
    bench.until(job, "FAILED")
    assert len(bench.describe(job)["attempts"]) == tries
    assert "AlgorithmError" in bench.describe(job)["statusReason"]


@pytest.mark.parametrize(("action", "tries"), [("RETRY", 2), ("EXIT", 1)])
def test_exit_rules_match_the_reason(action: str, tries: int) -> None:
    bench = Bench(capacity=1)
    bench.share(own=1)
    failing = {"SHAREWARDEN_LAB_OUTCOME": "fail", "SHAREWARDEN_LAB_RUNTIME_SECONDS": "10"}
    rule = {"action": action, "onStatusReason": "Received status from SageMaker: AlgorithmError*"}
    job = bench.submit(
        serviceRequestPayload=payload(Environment=failing),
        retryStrategy={"attempts": 2, "evaluateOnExit": [rule]},
    )
    bench.until(job, "FAILED")
    assert len(bench.describe(job)["attempts"]) == tries


def test_the_timeout_counts_per_attempt() -> None:
    bench = Bench(capacity=1)
    bench.share(own=1)
    job = bench.submit(timeoutConfig={"attemptDurationSeconds": 60})
    bench.until(job, "FAILED", within_s=300)
    detail = bench.describe(job)
    assert 60_000 <= detail["stoppedAt"] - detail["startedAt"] < 120_000


def test_a_payload_is_not_checked_before_dispatch() -> None:
    bench = Bench(capacity=1)
    bench.share(own=1)
    text = payload().replace("OutputDataConfig", "Output")
    job = bench.submit(serviceRequestPayload=text)
    bench.until(job, "FAILED")
    assert bench.describe(job)["statusReason"].startswith(
        "Received status from SageMaker: ValidationException"
    )


@pytest.mark.parametrize(
    ("strategy", "borrow", "lendable", "instances", "text"),
    [
        ("RESERVE", None, 1, 2, "Job requirements exceed quota share capacity limits."),
        (
            "LEND_AND_BORROW",
            100,
            3,
            3,
            "Job requirements exceed quota share capacity limits and borrow limits.",
        ),
        (
            "LEND_AND_BORROW",
            None,
            1,
            3,
            "Job requires borrowing that exceeds all configured borrowable capacity.",
        ),
        ("RESERVE", None, 1, 9, "cannot meet the capacity requirement of the job."),
    ],
)
def test_a_job_that_never_fits_blocks_with_the_documented_reason(
    strategy: str, borrow: int | None, lendable: int, instances: int, text: str
) -> None:
    bench = Bench(capacity=4)
    bench.share("share", 1, strategy, borrow=borrow)
    bench.share("lender", lendable, "LEND")
    job = bench.submit(serviceRequestPayload=payload(instances=instances))
    bench.pass_time(60)
    detail = bench.describe(job)
    assert detail["status"] == "RUNNABLE"
    assert detail["statusReason"].startswith("MISCONFIGURATION:")
    assert detail["statusReason"].endswith(text)
    (event,) = bench.heard(BLOCKED, job)
    assert event["statusReason"] == detail["statusReason"]


def test_nothing_changed_means_nothing_preempted() -> None:
    bench = Bench(capacity=2)
    lent(bench, in_share=True)
    for _ in range(3):
        bench.submit("borrower")
    before = len(bench.heard(STATE))
    bench.pass_time(600)
    bench.pass_time(600)
    assert not bench.heard(STARTED)
    assert [detail["status"] for detail in bench.heard(STATE)[before:]] == ["RUNNABLE"] * 3


def test_a_write_call_appears_in_cloudtrail_with_its_caller() -> None:
    bench = Bench()
    bench.share()
    job = bench.submit()
    bench.batch.update_service_job(jobId=job, schedulingPriority=7)
    bench.pass_time(60)
    calls = bench.heard("AWS API Call via CloudTrail")
    (update,) = [call for call in calls if call["eventName"] == "UpdateServiceJob"]
    assert update["requestParameters"] == {"jobId": job, "schedulingPriority": 7}
    assert update["eventSource"] == "batch.amazonaws.com"
    assert update["userIdentity"]["arn"] == "arn:aws:iam::123456789012:user/AKIDSOMEONE"
