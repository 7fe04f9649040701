"""What the lab sends, against the sample events, member by member."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from sharewarden_tools.lab.views import OPTIONAL

from tests.simulation.lab_kit import START, Kit, payload, share

SAMPLES = Path(__file__).parents[2] / "events"
CHANGE = "Batch Service Job State Change"
SAGEMAKER = "SageMaker Training Job State Change"
BLOCKED = "Batch Service Job Queue Blocked"
STARTED, COMPLETED = "Batch Service Job Preemption Started", "Batch Service Job Preemption Completed"
# What the samples carry because their job asks for it, or because a real account adds it.
FULL = {
    "retryStrategy": {"attempts": 3},
    "preemptionConfiguration": {"preemptionRetriesBeforeTermination": 3},
    "timeoutConfig": {"attemptDurationSeconds": 86_400},
}


def sample(name: str) -> dict[str, Any]:
    return dict(json.loads((SAMPLES / f"{name}.json").read_text()))


def requeued(**options: Any) -> tuple[Kit, str]:
    """A job with every member that was preempted within its share, and ran again to the end."""
    kit = Kit(share("s", in_share=True), environment=1, **options)
    job = kit.running("s", request=payload(runtime_seconds=100), **FULL)
    kit.submit("s", 9, payload(runtime_seconds=50))
    kit.finish()
    return kit, job


@pytest.mark.parametrize(
    ("name", "status", "which"),
    [
        ("runnable", "RUNNABLE", 0),
        ("scheduled", "SCHEDULED", 0),
        ("starting", "STARTING", 0),
        ("running", "RUNNING", 0),
        ("runnable_after_preemption", "RUNNABLE", 1),
        ("succeeded", "SUCCEEDED", 0),
    ],
)
def test_state_changes_have_the_members_of_the_samples(name: str, status: str, which: int) -> None:
    kit, job = requeued()
    detail = [d for d in kit.sent(CHANGE, job) if d["status"] == status][which]
    assert set(detail) == set(sample(f"batch_service_job_state_change__{name}")["detail"])


def test_without_optional_members_only_those_of_the_user_guide_are_left() -> None:
    kit, job = requeued(optional_members=False)
    members = {name for detail in kit.sent(CHANGE, job) for name in detail}
    assert members.isdisjoint(OPTIONAL | {"tags", "serviceRequestPayload"})
    assert {"jobArn", "jobId", "jobName", "jobQueue", "status", "attempts", "createdAt"} < members


def test_the_envelope() -> None:
    kit, job = requeued()
    event = next(e for e in kit.events if e["detail-type"] == CHANGE)
    assert set(event) == set(sample("batch_service_job_state_change__runnable"))
    assert (event["source"], event["account"], event["region"]) == ("aws.batch", "123456789012", "us-east-1")
    assert event["resources"] == [f"arn:aws:batch:us-east-1:123456789012:service-job/{job}"]
    assert event["time"] == "2026-09-14T08:00:01Z"
    ids = [e["id"] for e in kit.events]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", value) for value in ids)


def test_the_submission_makes_no_event() -> None:
    kit = Kit(share("s"), cloudtrail=False)
    kit.submit("s")
    assert kit.events == []


def test_preemption_events_carry_nothing_more_than_the_samples() -> None:
    kit, job = requeued()
    started, completed = kit.sent(STARTED, job), kit.sent(COMPLETED, job)
    assert len(started) == len(completed) == 1
    assert set(started[0]) == set(sample("batch_service_job_preemption_started__cross_share")["detail"])
    wanted = sample("batch_service_job_preemption_completed__runnable")["detail"]
    assert set(completed[0]) == set(wanted)
    attempt = completed[0]["preemptionSummary"]["recentPreemptedAttempts"][0]
    assert set(attempt) == set(wanted["preemptionSummary"]["recentPreemptedAttempts"][0])
    assert not attempt["statusReason"].startswith("PREEMPTION_IN_PROGRESS")


def test_a_preemption_takes_about_twenty_seconds() -> None:
    kit, job = requeued()
    times = {e["detail-type"]: e["time"] for e in kit.events if e["detail-type"] in (STARTED, COMPLETED)}
    assert (times[STARTED], times[COMPLETED]) == ("2026-09-14T08:00:22Z", "2026-09-14T08:00:42Z")
    stopped = kit.describe(job)["preemptionSummary"]["recentPreemptedAttempts"][0]["stoppedAt"]
    assert stopped == START + 39_000


@pytest.mark.parametrize("option", ["in_share_sends_events", "limit_sends_events"])
@pytest.mark.parametrize("sends", [True, False])
def test_which_preemptions_send_events(option: str, *, sends: bool) -> None:
    kit = Kit(share("s", in_share=True, strategy="RESERVE"), environment=1, **{option: sends})
    job = kit.running("s")
    if option == "limit_sends_events":
        kit.limit("s", 0)
    else:
        kit.submit("s", 9)
    kit.pass_time(30)
    assert kit.describe(job)["preemptionSummary"]["preemptedAttemptCount"] == 1
    assert [len(kit.sent(kind, job)) for kind in (STARTED, COMPLETED)] == [int(sends)] * 2


def test_queue_blocked_names_the_job_and_is_sent_once() -> None:
    kit = Kit(share("s", strategy="RESERVE"), environment=4)
    job = kit.submit("s", request=payload(instances=2), **FULL)
    for _ in range(5):
        kit.submit("s")
        kit.pass_time(60)
    (detail,) = kit.sent(BLOCKED, job)
    wanted = sample("batch_service_job_queue_blocked__quota_limit")["detail"]
    assert set(detail) - OPTIONAL == set(wanted)
    assert detail["statusReason"] == wanted["statusReason"]
    assert kit.describe(job)["statusReason"] == wanted["statusReason"]


def test_a_job_is_unblocked_by_a_higher_limit() -> None:
    kit = Kit(share("s", strategy="RESERVE"), environment=4)
    job = kit.submit("s", request=payload(instances=2))
    kit.pass_time(10)
    kit.limit("s", 2)
    kit.pass_time(30)
    assert (kit.status(job), "statusReason" in kit.describe(job)) == ("RUNNING", False)


def test_a_capacity_failure_blocks_with_its_own_reason() -> None:
    kit = Kit(share("s"), environment=1)
    kit.lab.fail_for_capacity()
    job = kit.submit("s")
    kit.finish()
    (detail,) = kit.sent(BLOCKED, job)
    assert (
        detail["statusReason"]
        == sample("batch_service_job_queue_blocked__capacity")["detail"]["statusReason"]
    )
    assert kit.status(job) == "SUCCEEDED"


@pytest.mark.parametrize(
    ("secondary", "status"),
    [
        ("Pending", "InProgress"),
        ("Downloading", "InProgress"),
        ("Training", "InProgress"),
        ("Uploading", "InProgress"),
        ("Stopping", "Stopping"),
        ("Stopped", "Stopped"),
        ("Completed", "Completed"),
    ],
)
def test_training_events(secondary: str, status: str) -> None:
    kit, _ = requeued()
    detail = next(d for d in kit.sent(SAGEMAKER) if d["SecondaryStatus"] == secondary)
    assert detail["TrainingJobStatus"] == status
    must = {"TrainingJobName", "TrainingJobArn", "Tags", "CreationTime", "LastModifiedTime", "RoleArn"}
    assert must < set(detail)
    assert set(detail) <= set(sample("sagemaker_training_job_state_change__inprogress_pending")["detail"])


@pytest.mark.parametrize(("as_strings", "kind"), [(True, str), (False, int)])
def test_times_of_training_events(as_strings: bool, kind: type) -> None:
    kit, _ = requeued(sagemaker_times_as_strings=as_strings)
    detail = kit.sent(SAGEMAKER)[0]
    assert isinstance(detail["CreationTime"], kind)
    assert detail["TrainingEndTime"] is None


def test_write_calls_appear_in_cloudtrail() -> None:
    kit = Kit(share("s"), cloudtrail_delay_ms=4_000)
    with kit.lab.acting_as("arn:aws:sts::123456789012:assumed-role/PlatformAdmin/ctl"):
        kit.limit("s", 2)
    kit.pass_time(5)
    event = next(e for e in kit.events if e["detail"].get("eventName") == "UpdateQuotaShare")
    wanted = sample("cloudtrail_batch_update_quota_share")
    assert set(event["detail"]) == set(wanted["detail"])
    assert (event["resources"], event["time"], event["detail"]["eventTime"]) == (
        [],
        "2026-09-14T08:00:04Z",
        "2026-09-14T08:00:00Z",
    )
    identity = event["detail"]["userIdentity"]
    assert identity["sessionContext"]["sessionIssuer"]["userName"] == "PlatformAdmin"


@pytest.mark.parametrize(
    ("principal", "kind", "arn"),
    [
        ("arn:aws:iam::123456789012:user/ops/alice", "IAMUser", "arn:aws:iam::123456789012:user/ops/alice"),
        ("AKIDSOMEONE", "IAMUser", "arn:aws:iam::123456789012:user/AKIDSOMEONE"),
        ("arn:aws:sts::1:assumed-role/R/s", "AssumedRole", "arn:aws:sts::1:assumed-role/R/s"),
    ],
)
def test_who_called(principal: str, kind: str, arn: str) -> None:
    kit = Kit(share("s"), principal=principal)
    kit.pass_time(5)
    identity = kit.sent("AWS API Call via CloudTrail")[0]["userIdentity"]
    assert (identity["type"], identity["arn"]) == (kind, arn)


def test_cloudtrail_shows_refused_writes_but_no_payload_and_no_reads() -> None:
    kit = Kit(share("s"))
    kit.submit("s")
    kit.refused("UpdateServiceJob", jobId="none", schedulingPriority=1)
    kit.batch("ListServiceJobs", jobQueue="ml-train-qm")
    kit.pass_time(5)
    calls = {d["eventName"]: d for d in kit.sent("AWS API Call via CloudTrail")}
    assert "serviceRequestPayload" not in calls["SubmitServiceJob"]["requestParameters"]
    assert calls["UpdateServiceJob"]["errorCode"] == "ClientException"
    assert "ListServiceJobs" not in calls
