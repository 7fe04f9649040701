"""Each sample event and what it tells. The samples' shapes are AWS's where marked so, else the best guess."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sharewarden.domain.observation import (
    ApiCallObservation,
    AttemptSeen,
    JobObservation,
    Observation,
    TrainingObservation,
    Unrecognised,
)
from sharewarden.events import BadEvent, observe

SAMPLES = Path(__file__).parents[2] / "events"

JOB = "53f51099-d4c3-5e90-ac11-be55089a1763"
ARN = f"arn:aws:batch:us-east-1:123456789012:service-job/{JOB}"
QUEUE = "arn:aws:batch:us-east-1:123456789012:job-queue/ml-train-qm"
SHARE = f"{QUEUE}/quota-share/team-vision"
CLASSIC_JOB = "a47b3f08-7f67-500c-bbbc-fab1bc5958ef"
TRAINING = "arn:aws:sagemaker:us-east-1:123456789012:training-job/AWSBatchvision-pretrain-r7"
FIRST = f"{TRAINING}2100cd028de63e5c38cbd24c5f2f9adc"
SECOND = f"{TRAINING}45f1f7aa6d1669f9f46cdd020e90ec5e"
ROLES = "arn:aws:sts::123456789012:assumed-role"

RECLAIMED = "Cross-share preemption triggered to reclaim borrowed capacity"
CRASHED = "Received status from SageMaker: AlgorithmError: ExecuteUserScriptError: ExitCode 1"
COMPLETED = "Received status from SageMaker: Training job completed"
OVER_BUDGET = "over-budget: terminated by team guardrail"
MISCONFIGURED = (
    "MISCONFIGURATION:QUOTA_MANAGEMENT_LIMIT_EXCEEDED - Job requirements exceed quota share capacity"
)

PREEMPTED = AttemptSeen(
    training_job=FIRST, started_at=1789373300000, stopped_at=1789381918000, reason=RECLAIMED, preempted=True
)


def load(name: str) -> dict[str, Any]:
    return dict(json.loads((SAMPLES / f"{name}.json").read_text(encoding="utf-8")))


def status(at: int, status: str, **more: Any) -> JobObservation:
    common = {
        "job": JOB,
        "arn": ARN,
        "name": "vision-pretrain-r7",
        "queue": QUEUE,
        "created_at": 1789372800000,
    }
    return JobObservation(**common, at=at, what="status", status=status, **more)


def blocked(reason: str) -> JobObservation:
    return status(1789373440000, "RUNNABLE", reason=reason).model_copy(update={"what": "queue-blocked"})


def preemption(at: int, what: str, status: str, **more: Any) -> JobObservation:
    return JobObservation(job=JOB, arn=ARN, at=at, what=f"preemption-{what}", status=status, **more)


def classic(at: int, what: str, **more: Any) -> JobObservation:
    return JobObservation(
        job=CLASSIC_JOB,
        arn=f"arn:aws:batch:us-east-1:123456789012:job/{CLASSIC_JOB}",
        at=at,
        what=what,
        classic=True,
        name="etl-nightly",
        queue="arn:aws:batch:us-east-1:123456789012:job-queue/etl-spot",
        status="RUNNABLE",
        created_at=1789372800000,
        **more,
    )


def training(at: int, status: str, secondary: str, **more: Any) -> TrainingObservation:
    told = {"training_job": FIRST, "instance_type": "ml.g6e.12xlarge", "instance_count": 2} | more
    return TrainingObservation(**told, at=at, status=status, secondary_status=secondary)


@dataclass(frozen=True)
class Sample:
    """``shape`` says how far AWS documents the file: wholly, in part, or not at all."""

    shape: str
    tells: Observation


TABLE = {
    "batch_service_job_state_change__runnable": Sample("partly", status(1789372804000, "RUNNABLE")),
    "batch_service_job_state_change__scheduled": Sample(
        "partly", status(1789372831000, "SCHEDULED", attempt=FIRST)
    ),
    "batch_service_job_state_change__starting": Sample(
        "partly", status(1789373060000, "STARTING", attempt=FIRST)
    ),
    "batch_service_job_state_change__running": Sample(
        "partly", status(1789373302000, "RUNNING", attempt=FIRST)
    ),
    "batch_service_job_state_change__runnable_after_preemption": Sample(
        "unconfirmed",
        status(1789381921000, "RUNNABLE", reason=RECLAIMED, attempts=(PREEMPTED,), preempted_count=1),
    ),
    "batch_service_job_state_change__succeeded": Sample(
        "partly",
        status(
            1789421703000,
            "SUCCEEDED",
            reason=COMPLETED,
            stopped_at=1789421700000,
            attempt=SECOND,
            attempts=(
                AttemptSeen(
                    training_job=SECOND,
                    started_at=1789385500000,
                    stopped_at=1789421700000,
                    reason=COMPLETED,
                ),
                PREEMPTED,
            ),
            preempted_count=1,
        ),
    ),
    "batch_service_job_state_change__failed": Sample(
        "partly",
        status(
            1789385805000,
            "FAILED",
            reason=CRASHED,
            stopped_at=1789385800000,
            attempt=SECOND,
            attempts=(
                AttemptSeen(
                    training_job=SECOND, started_at=1789385500000, stopped_at=1789385800000, reason=CRASHED
                ),
            ),
        ),
    ),
    "batch_service_job_state_change__failed_terminated": Sample(
        "unconfirmed",
        status(
            1789379805000,
            "FAILED",
            reason=OVER_BUDGET,
            stopped_at=1789379800000,
            attempt=FIRST,
            attempts=(
                AttemptSeen(
                    training_job=FIRST,
                    started_at=1789373300000,
                    stopped_at=1789379800000,
                    reason=OVER_BUDGET,
                ),
            ),
        ),
    ),
    "batch_service_job_preemption_started__cross_share": Sample(
        "confirmed",
        preemption(1789381900000, "started", "RUNNING", reason=f"PREEMPTION_IN_PROGRESS: {RECLAIMED}"),
    ),
    "batch_service_job_preemption_started__in_share": Sample(
        "unconfirmed",
        preemption(
            1789392900000,
            "started",
            "STARTING",
            reason="PREEMPTION_IN_PROGRESS: In-share preemption triggered by a higher priority job",
        ),
    ),
    "batch_service_job_preemption_completed__runnable": Sample(
        "confirmed",
        preemption(1789381921000, "completed", "RUNNABLE", attempts=(PREEMPTED,), preempted_count=1),
    ),
    "batch_service_job_preemption_completed__failed": Sample(
        "unconfirmed",
        preemption(1789381921000, "completed", "FAILED", attempts=(PREEMPTED,), preempted_count=1),
    ),
    "batch_service_job_queue_blocked__capacity": Sample(
        "confirmed",
        blocked("CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY - Unable to provision requested compute resources"),
    ),
    "batch_service_job_queue_blocked__service_environment_max": Sample(
        "confirmed",
        blocked(
            "MISCONFIGURATION:SERVICE_ENVIRONMENT_MAX_RESOURCE - Service environment(s) associated with"
            " the job queue cannot meet the capacity requirement of the job."
        ),
    ),
    "batch_service_job_queue_blocked__quota_limit": Sample("confirmed", blocked(f"{MISCONFIGURED} limits.")),
    "batch_service_job_queue_blocked__quota_and_borrow_limit": Sample(
        "confirmed", blocked(f"{MISCONFIGURED} limits and borrow limits.")
    ),
    "batch_job_state_change__classic": Sample("confirmed", classic(1789372805000, "status")),
    "batch_job_state_change__classic_host_reclaimed": Sample(
        "partly",
        classic(
            1789375272000,
            "status",
            reason="Host EC2 (instance i-0123456789abcdef0) terminated.",
            attempts=(
                AttemptSeen(
                    training_job=(
                        "arn:aws:ecs:us-east-1:123456789012:task/"
                        "etl-spot_Batch_1f0b/3f9c1b7e5d2a4c6f8e0b1d3a5c7e9f01"
                    ),
                    started_at=1789373100000,
                    stopped_at=1789375268000,
                    reason="Host EC2 (instance i-0123456789abcdef0) terminated.",
                    preempted=True,
                ),
            ),
        ),
    ),
    "batch_job_queue_blocked__classic": Sample(
        "partly",
        classic(
            1789373500000,
            "queue-blocked",
            reason="CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY - Service cannot fulfill the capacity requested"
            " for instance types [g5.xlarge]",
        ),
    ),
    "sagemaker_training_job_state_change__inprogress_pending": Sample(
        "partly", training(1789372831000, "InProgress", "Pending")
    ),
    "sagemaker_training_job_state_change__inprogress_training": Sample(
        "partly", training(1789373300000, "InProgress", "Training", started_at=1789373300000)
    ),
    "sagemaker_training_job_state_change__stopping": Sample(
        "partly", training(1789381901000, "Stopping", "Stopping", started_at=1789373300000)
    ),
    "sagemaker_training_job_state_change__stopped": Sample(
        "partly",
        training(1789381918000, "Stopped", "Stopped", started_at=1789373300000, stopped_at=1789381910000),
    ),
    "sagemaker_training_job_state_change__failed": Sample(
        "partly",
        training(
            1789385800000,
            "Failed",
            "Failed",
            training_job=SECOND,
            failure_reason="AlgorithmError: ExecuteUserScriptError:\nExitCode 1",
            started_at=1789385500000,
            stopped_at=1789385795000,
        ),
    ),
    "sagemaker_training_job_state_change__failed_capacity": Sample(
        "partly",
        training(
            1789376500000,
            "Failed",
            "Failed",
            failure_reason="CapacityError: Unable to provision requested ML compute capacity."
            " Please retry using a different ML instance type.",
        ),
    ),
    "cloudtrail_batch_update_service_job": Sample(
        "partly",
        ApiCallObservation(
            event_id="d81c041c-c1d8-52b5-8c14-6bc339bf5f59",
            at=1789387800000,
            operation="UpdateServiceJob",
            principal=f"{ROLES}/PriorityBumpFunctionRole/ctl",
            subjects=(ARN,),
            priority=800,
            request=f'{{"jobId":"{JOB}","schedulingPriority":800}}',
        ),
    ),
    "cloudtrail_batch_update_quota_share": Sample(
        "partly",
        ApiCallObservation(
            event_id="89854d6a-9033-5c86-a71a-c361684a7fbe",
            at=1789388800000,
            operation="UpdateQuotaShare",
            principal=f"{ROLES}/PlatformAdmin/ctl",
            subjects=(SHARE,),
            request='{"capacityLimits":[{"capacityUnit":"ml.g6e.12xlarge","maxCapacity":2}],'
            f'"quotaShareArn":"{SHARE}",'
            '"resourceSharingConfiguration":{"borrowLimit":100,"strategy":"LEND_AND_BORROW"}}',
        ),
    ),
    "cloudtrail_batch_terminate_service_job": Sample(
        "partly",
        ApiCallObservation(
            event_id="af768f32-43b0-53fb-b3c9-b9436d1d95a2",
            at=1789379800000,
            operation="TerminateServiceJob",
            principal=f"{ROLES}/PriorityBumpFunctionRole/ctl",
            subjects=(JOB,),
            request=f'{{"jobId":"{JOB}","reason":"{OVER_BUDGET}"}}',
        ),
    ),
    "cloudtrail_batch_submit_service_job": Sample(
        "unconfirmed",
        ApiCallObservation(
            event_id="4eba0704-3429-539b-aada-d9ee19007df2",
            at=1789372800000,
            operation="SubmitServiceJob",
            principal=f"{ROLES}/TeamVisionSubmit/ctl",
            subjects=(ARN,),
            priority=200,
            request='{"jobQueue":"ml-train-qm","quotaShareName":"team-vision","schedulingPriority":200}',
        ),
    ),
    "batch_service_job_state_change__other_queue": Sample(
        "partly",
        status(1789373302000, "RUNNING", attempt=FIRST).model_copy(
            update={
                "job": "7c1f6c11-5a55-5f0b-9f5e-3f5c5f1f7a10",
                "arn": ARN.replace(JOB, "7c1f6c11-5a55-5f0b-9f5e-3f5c5f1f7a10"),
                "name": "other-team-run",
                "queue": "arn:aws:batch:us-east-1:123456789012:job-queue/another-pool",
            }
        ),
    ),
    "sagemaker_training_job_state_change__started_by_hand": Sample(
        "partly",
        training(1789373300000, "InProgress", "Training", started_at=1789373300000).model_copy(
            update={
                "training_job": TRAINING.replace("AWSBatchvision-pretrain-r7", "AWS-notebook-experiment-12")
            }
        ),
    ),
    "batch_unrecognised": Sample(
        "unconfirmed",
        Unrecognised(
            source="aws.batch", detail_type="Batch Service Job Hibernation Started", at=1789378800000
        ),
    ),
}


def test_every_sample_has_its_row() -> None:
    assert {path.stem for path in SAMPLES.glob("*.json")} == set(TABLE)


@pytest.mark.parametrize("name", TABLE, ids=lambda name: f"{name}-{TABLE[name].shape}")
def test_sample(name: str) -> None:
    assert observe(load(name)) == TABLE[name].tells


# ---- keys -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "member"),
    [
        ("batch_service_job_state_change__running", "jobArn"),
        ("batch_service_job_preemption_started__cross_share", "preemptedJobArn"),
        ("batch_job_queue_blocked__classic", "jobArn"),
        ("sagemaker_training_job_state_change__stopped", "TrainingJobArn"),
    ],
)
def test_the_arn_comes_from_the_detail_else_from_the_resources(name: str, member: str) -> None:
    event = load(name)
    arn = event["detail"].pop(member)
    assert observe(event) == TABLE[name].tells
    for none in ([], None, [None]):
        with pytest.raises(BadEvent, match=rf"^detail\.{member}: missing, and resources\[0\] too$"):
            observe(event | {"resources": none})
    event["detail"][member] = arn
    assert (
        observe(event | {"resources": ["arn:aws:batch:us-east-1:123456789012:job/other"]})
        == TABLE[name].tells
    )


def test_the_job_id_is_never_the_key() -> None:
    event = load("batch_service_job_state_change__running")
    event["detail"]["jobId"] = "another-id"
    assert observe(event) == TABLE["batch_service_job_state_change__running"].tells


# ---- states -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", ["batch_service_job_state_change__running", "batch_job_state_change__classic"]
)
def test_a_state_that_aws_added_is_unrecognised(kind: str) -> None:
    event = load(kind)
    event["detail"]["status"] = "PAUSED"
    assert observe(event) == Unrecognised(
        source="aws.batch",
        detail_type=f"{event['detail-type']}: status PAUSED",
        at=TABLE[kind].tells.at,
    )


@pytest.mark.parametrize(
    "kind", ["batch_service_job_preemption_completed__runnable", "batch_service_job_queue_blocked__capacity"]
)
def test_a_state_that_aws_added_does_not_hide_what_else_an_event_tells(kind: str) -> None:
    event = load(kind)
    event["detail"]["status"] = "PAUSED"
    assert observe(event) == TABLE[kind].tells.model_copy(update={"status": None})


def test_a_batch_state_in_lower_case_is_known() -> None:
    event = load("batch_service_job_state_change__running")
    event["detail"]["status"] = "running"
    assert observe(event) == TABLE["batch_service_job_state_change__running"].tells


@pytest.mark.parametrize("state", ["RUNNABLE", "RUNNING"])
def test_only_the_end_of_a_job_has_a_stop_time(state: str) -> None:
    event = load("batch_service_job_state_change__failed")
    event["detail"]["status"] = state
    seen = observe(event)
    assert isinstance(seen, JobObservation)
    assert seen.stopped_at is None


@pytest.mark.parametrize(
    ("told", "read"),
    [
        ("Completed", "Completed"),
        ("COMPLETED", "Completed"),
        ("inprogress", "InProgress"),
        ("IN_PROGRESS", "InProgress"),
        ("MAX_RUNTIME_EXCEEDED", "MaxRuntimeExceeded"),
        ("Hibernating", "Hibernating"),
    ],
)
def test_training_states_get_their_documented_spelling(told: str, read: str) -> None:
    event = load("sagemaker_training_job_state_change__stopped")
    event["detail"] |= {"TrainingJobStatus": told, "SecondaryStatus": told}
    seen = observe(event)
    assert isinstance(seen, TrainingObservation)
    assert (seen.status, seen.secondary_status) == (read, read)


# ---- times ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "read"),
    [
        (1583831889050, 1583831889050),
        ("1583831889050", 1583831889050),
        (1583831889050.0, 1583831889050),
        (None, None),
    ],
)
def test_training_times_are_numbers_or_numeric_text_or_null(told: object, read: int | None) -> None:
    event = load("sagemaker_training_job_state_change__stopped")
    event["detail"] |= {"TrainingStartTime": told, "TrainingEndTime": told}
    seen = observe(event)
    assert isinstance(seen, TrainingObservation)
    assert (seen.started_at, seen.stopped_at) == (read, read)


@pytest.mark.parametrize("told", [1789372800, True, "soon", "", 1e300, [], -1])
def test_what_is_no_time_in_milliseconds_counts_as_not_told(
    told: object, caplog: pytest.LogCaptureFixture
) -> None:
    event = load("batch_service_job_state_change__running")
    resource = {"name": "TrainingJobArn", "value": TRAINING}
    row = {"serviceResourceId": resource, "startedAt": told, "stoppedAt": told}
    event["detail"] |= {"createdAt": told, "attempts": [row]}
    seen = observe(event)
    assert isinstance(seen, JobObservation)
    assert seen.status == "RUNNING"
    assert (seen.created_at, seen.attempts[0].started_at, seen.attempts[0].stopped_at) == (None, None, None)
    assert len(caplog.messages) == 3
    assert caplog.messages[0].startswith("created_at: ")


@pytest.mark.parametrize("told", [-1, 2**31, "many", []])
def test_what_is_no_count_counts_as_not_told(told: object) -> None:
    event = load("batch_service_job_state_change__running")
    event["detail"]["preemptionSummary"] = {"preemptedAttemptCount": told}
    seen = observe(event)
    assert isinstance(seen, JobObservation)
    assert seen.preempted_count is None


@pytest.mark.parametrize(
    ("told", "read"),
    [
        ("2026-09-14T10:32:01Z", 1789381921000),
        ("2026-09-14T10:32:01.250Z", 1789381921250),
        ("2026-09-14T12:32:01+02:00", 1789381921000),
    ],
)
def test_envelope_time(told: str, read: int) -> None:
    event = load("batch_service_job_state_change__running") | {"time": told}
    assert observe(event) == TABLE["batch_service_job_state_change__running"].tells.model_copy(
        update={"at": read}
    )


# ---- members ----------------------------------------------------------------------------------------


def test_only_rows_that_name_a_training_job_are_attempts() -> None:
    event = load("batch_service_job_preemption_completed__runnable")
    rows = event["detail"]["preemptionSummary"]["recentPreemptedAttempts"]
    named = rows[0]["serviceResourceId"]
    rows += [
        None,
        {},
        {"serviceResourceId": None},
        {"serviceResourceId": {"name": "TrainingJobArn"}},
        {"serviceResourceId": {"value": named["value"]}},
        {"serviceResourceId": {"name": "ClusterArn", "value": named["value"]}},
    ]
    assert observe(event) == TABLE["batch_service_job_preemption_completed__runnable"].tells


def test_classic_tags_without_the_jobs_own_arn() -> None:
    event = load("batch_job_state_change__classic")
    event["detail"]["tags"] |= {"team": "data", "note": "", "empty": None, "a": "1"}
    assert observe(event) == classic(
        1789372805000, "status", tags=(("a", "1"), ("note", ""), ("team", "data"))
    )


@pytest.mark.parametrize(
    "row",
    [
        {"container": {"exitCode": 1}, "startedAt": 1789372801000},
        {"container": {"taskArn": "arn:aws:ecs:t"}, "statusReason": "Essential container in task exited"},
        {"container": {"exitCode": 1}, "statusReason": "Host EC2 (instance i-0) terminated."},
        {"container": None, "statusReason": "Host EC2 (instance i-0) terminated."},
        {"container": {"taskArn": "arn:aws:ecs:t"}, "statusReason": None},
        None,
    ],
)
def test_of_classic_attempts_only_one_whose_host_was_reclaimed_is_told(row: object) -> None:
    event = load("batch_job_state_change__classic")
    event["detail"]["attempts"] = [row]
    assert observe(event) == TABLE["batch_job_state_change__classic"].tells


# ---- unknown and broken -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "detail_type"),
    [
        ("aws.batch", "Batch Service Job Hibernated"),
        ("aws.ec2", "Batch Service Job State Change"),
        ("aws.sagemaker", "SageMaker Endpoint State Change"),
        ("aws.sagemaker", "AWS API Call via CloudTrail"),
    ],
)
def test_an_unknown_type_of_event_is_unrecognised(source: str, detail_type: str) -> None:
    event = {
        "source": source,
        "detail-type": detail_type,
        "time": "2026-09-14T10:32:01Z",
        "detail": {"any": []},
    }
    assert observe(event) == Unrecognised(source=source, detail_type=detail_type, at=1789381921000)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"detail-type": ...}, "detail-type: missing"),
        ({"detail-type": 5}, "detail-type: a number should be a valid string"),
        ({"detail-type": ""}, "detail-type: a text should have at least 1 character"),
        ({"detail-type": "x" * 257}, "detail-type: a text should have at most 256 characters"),
        ({"source": None}, "source: null should be a valid string"),
        ({"account": 123456789012}, "account: a number should be a valid string"),
        ({"resources": "arn"}, "resources: a text should be a valid list"),
        ({"resources": [5]}, "resources[0]: a number should be a valid string"),
        ({"time": ...}, "time: missing"),
        ({"time": 1789381921}, "time: a number is not a time in ISO 8601"),
        ({"time": "yesterday\n"}, "time: a text is not a time in ISO 8601"),
        ({"time": "2026-09-14T10:32:01"}, "time: a text has no time zone"),
        (
            {"time": "1900-01-01T00:00:00Z"},
            "time: a text should be greater than or equal to 0",
        ),
        ({"detail": ...}, "detail: missing"),
        ({"detail": "{}"}, "detail: a text is not an object"),
        ({"detail": {}}, "detail.status: missing"),
        ({"detail": {"status": ["RUNNING"]}}, "detail.status: a list should be a valid string"),
        (
            {"detail": {"status": "RUNNING", "jobArn": {}}},
            "detail.jobArn: an object should be a valid string",
        ),
        (
            {"detail": {"status": "RUNNING", "jobArn": f"{QUEUE}/{'x' * 100}"}},
            "detail.jobArn: a text is not the ARN of a job",
        ),
        (
            {"detail": {"status": "RUNNING"}, "resources": ["training-job/x"]},
            "resources[0]: a text is not the ARN of a job",
        ),
        (
            {"detail": {"status": "RUNNING", "attempts": [{}, {"serviceResourceId": []}]}},
            "detail.attempts[1].serviceResourceId: a list is not an object",
        ),
        (
            {"detail": {"status": "RUNNING", "latestAttempt": 7}},
            "detail.latestAttempt: a number is not an object",
        ),
    ],
)
def test_one_line_says_what_is_wrong_and_where(change: dict[str, Any], line: str) -> None:
    event = load("batch_service_job_state_change__running") | change
    with pytest.raises(BadEvent) as caught:
        observe({key: value for key, value in event.items() if value is not ...})
    assert str(caught.value) == line
    assert line == f"{caught.value.path}: {caught.value.reason}"


@pytest.mark.parametrize("event", [[], "text", 5, None, True])
def test_what_is_no_object_is_no_event(event: Any) -> None:
    with pytest.raises(BadEvent, match=r"^event: .* is not an object$"):
        observe(event)
