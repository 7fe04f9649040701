"""Jobs and training jobs in the shapes that answers and events carry."""

from __future__ import annotations

from .model import Job, TrainingJob
from .world import Json

# Request members that DescribeTrainingJob gives back (API_DescribeTrainingJob).
ECHOED = (
    "HyperParameters",
    "AlgorithmSpecification",
    "RoleArn",
    "InputDataConfig",
    "OutputDataConfig",
    "ResourceConfig",
    "VpcConfig",
    "StoppingCondition",
    "EnableNetworkIsolation",
    "EnableInterContainerTrafficEncryption",
    "EnableManagedSpotTraining",
    "CheckpointConfig",
    "DebugHookConfig",
    "ExperimentConfig",
    "TensorBoardOutputConfig",
    "ProfilerConfig",
    "Environment",
    "RetryStrategy",
)
# Members of the event that the user guide's sample, older than quota management, does not show.
OPTIONAL = frozenset(
    {
        "quotaShareName",
        "schedulingPriority",
        "retryStrategy",
        "preemptionConfiguration",
        "preemptionSummary",
        "scheduledAt",
        "isTerminated",
    }
)
_NOT_IN_EVENTS = frozenset({"tags", "serviceRequestPayload", "capacityUsage"})
_NOT_WHILE_QUEUED = frozenset({"latestAttempt", "scheduledAt", "startedAt"})


def present(members: Json) -> Json:
    """Without the members that have no value; the wire leaves those out."""
    return {name: value for name, value in members.items() if value is not None}


def resource_id(training: TrainingJob) -> Json:
    return {"name": "TrainingJobArn", "value": training.arn}


def capacity_usage(job: Job) -> list[Json]:
    return [{"capacityUnit": unit, "quantity": float(n)} for unit, n in job.demand]


def preemption_summary(job: Job) -> Json | None:
    if not job.preempted_count:
        return None
    return {"preemptedAttemptCount": job.preempted_count, "recentPreemptedAttempts": list(job.preempted)}


def latest_attempt(job: Job) -> Json | None:
    return {"serviceResourceId": resource_id(job.training)} if job.training else None


def job_detail(job: Job) -> Json:
    """DescribeServiceJobResponse."""
    return present(
        {
            "attempts": list(job.attempts),
            "capacityUsage": capacity_usage(job),
            "createdAt": job.created_at,
            "isTerminated": job.is_terminated,
            "jobArn": job.arn,
            "jobId": job.id,
            "jobName": job.name,
            "jobQueue": job.queue_arn,
            "latestAttempt": latest_attempt(job),
            "retryStrategy": job.retry,
            "scheduledAt": job.scheduled_at,
            "schedulingPriority": job.slot.priority,
            "serviceRequestPayload": job.payload_text,
            "serviceJobType": "SAGEMAKER_TRAINING",
            "quotaShareName": job.share,
            "preemptionConfiguration": job.preemption,
            "preemptionSummary": preemption_summary(job),
            "startedAt": job.started_at,
            "status": job.status,
            "statusReason": job.status_reason,
            "stoppedAt": job.stopped_at,
            "tags": dict(job.tags),
            "timeoutConfig": job.timeout,
        }
    )


def job_summary(job: Job) -> Json:
    """ServiceJobSummary: without priority, tags and preemption summary."""
    return present(
        {
            "latestAttempt": latest_attempt(job),
            "capacityUsage": capacity_usage(job),
            "createdAt": job.created_at,
            "jobArn": job.arn,
            "jobId": job.id,
            "jobName": job.name,
            "scheduledAt": job.scheduled_at,
            "serviceJobType": "SAGEMAKER_TRAINING",
            "quotaShareName": job.share,
            "status": job.status,
            "statusReason": job.status_reason,
            "startedAt": job.started_at,
            "stoppedAt": job.stopped_at,
            "isTerminated": True if job.is_terminated else None,
        }
    )


def job_event(job: Job, *, optional_members: bool) -> Json:
    """Detail of a state change (service-job-events.html): like Describe, never with tags or payload."""
    hidden = _NOT_IN_EVENTS if optional_members else _NOT_IN_EVENTS | OPTIONAL
    if job.status in ("SUBMITTED", "RUNNABLE"):
        hidden = hidden | _NOT_WHILE_QUEUED
    detail = {name: value for name, value in job_detail(job).items() if name not in hidden}
    if not job.is_terminated:
        detail.pop("isTerminated", None)
    return detail


def training_times(training: TrainingJob) -> dict[str, int | None]:
    return {
        "CreationTime": training.created_at,
        "TrainingStartTime": training.started_at,
        "TrainingEndTime": training.ended_at,
        "LastModifiedTime": training.modified_at,
    }


def training_detail(training: TrainingJob) -> Json:
    """DescribeTrainingJobResponse; times in seconds, as JSON 1.1 carries them."""
    output = training.payload.get("OutputDataConfig", {}).get("S3OutputPath", "").rstrip("/")
    times = {name: ms / 1000 for name, ms in training_times(training).items() if ms is not None}
    return present(
        {
            "TrainingJobName": training.name,
            "TrainingJobArn": training.arn,
            "ModelArtifacts": {"S3ModelArtifacts": f"{output}/{training.name}/output/model.tar.gz"},
            "TrainingJobStatus": training.status,
            "SecondaryStatus": training.secondary,
            "FailureReason": training.failure,
            **{name: training.payload.get(name) for name in ECHOED},
            **times,
            "SecondaryStatusTransitions": [_in_seconds(entry) for entry in training.transitions],
        }
    )


def training_summary(training: TrainingJob) -> Json:
    """TrainingJobSummary."""
    times = {name: ms / 1000 for name, ms in training_times(training).items() if ms is not None}
    times.pop("TrainingStartTime", None)
    return {
        "TrainingJobName": training.name,
        "TrainingJobArn": training.arn,
        **times,
        "TrainingJobStatus": training.status,
        "SecondaryStatus": training.secondary,
    }


def training_event(training: TrainingJob, *, times_as_strings: bool) -> Json:
    """Detail of SageMaker Training Job State Change (automating-sagemaker-with-eventbridge.html)."""
    times = training_times(training)
    shown = {n: str(ms) if times_as_strings and ms is not None else ms for n, ms in times.items()}
    payload = {name: training.payload[name] for name in ECHOED if name in training.payload}
    return {
        "TrainingJobName": training.name,
        "TrainingJobArn": training.arn,
        "TrainingJobStatus": training.status,
        "SecondaryStatus": training.secondary,
        **payload,
        **shown,
        "SecondaryStatusTransitions": [dict(entry) for entry in training.transitions],
        "Tags": dict(training.tags),
        "FailureReason": training.failure,
    }


def _in_seconds(entry: Json) -> Json:
    return {name: value / 1000 if name.endswith("Time") else value for name, value in entry.items()}
