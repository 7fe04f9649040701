"""The lab as a workload needs it: one queue, its quota shares, and how a job is submitted."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from sharewarden_tools.lab import Lab, Options, VirtualClock
from sharewarden_tools.lab.world import Json

from .numbers import numbers
from .workload import Job, Share, Sla, Workload

#: Monday, 2026-09-14, 00:00 UTC: when a workload starts.
START = 1_789_344_000_000
#: One GPU each, so that GPUs can be counted as instances.
UNIT = "ml.p5.4xlarge"
QUEUE = "replay"
LONGEST_TRAINING_S = 28 * 86_400  # the most that MaxRuntimeInSeconds may be (API_StoppingCondition)


def lab_options(heuristic: str) -> Options:
    """The lab as it is for a replay; a start takes what ``week.yaml`` says."""
    restart = numbers().restart
    return Options(
        heuristic=heuristic,
        submit_rate=None,
        cloudtrail=False,
        pending_ms=restart.pending,
        downloading_ms=restart.downloading,
    )


def make_lab(workload: Workload, options: Options, seed: int) -> Lab:
    """A lab at the workload's start, with its pool and no job."""
    lab = Lab(clock=VirtualClock(START), options=options, seed=seed)
    _make_queue(lab, workload.gpus)
    for share in workload.shares:
        lab.operations["batch"]["CreateQuotaShare"](_share(share))
    return lab


def submit(lab: Lab, job: Job) -> str:
    """The id that Batch gave the job."""
    return str(lab.operations["batch"]["SubmitServiceJob"](_request(job))["jobId"])


def _make_queue(lab: Lab, gpus: int) -> None:
    batch = lab.operations["batch"]
    fifo = {"idleResourceAssignmentStrategy": "FIFO"}
    policy = batch["CreateSchedulingPolicy"]({"name": QUEUE, "quotaSharePolicy": fifo})["arn"]
    batch["CreateServiceEnvironment"](
        {
            "serviceEnvironmentName": QUEUE,
            "serviceEnvironmentType": "SAGEMAKER_TRAINING",
            "capacityLimits": [{"maxCapacity": gpus, "capacityUnit": UNIT}],
        }
    )
    batch["CreateJobQueue"](
        {
            "jobQueueName": QUEUE,
            "jobQueueType": "SAGEMAKER_TRAINING",
            "priority": 1,
            "schedulingPolicyArn": policy,
            "serviceEnvironmentOrder": [{"order": 1, "serviceEnvironment": QUEUE}],
        }
    )


def _share(share: Share) -> Json:
    return {
        "quotaShareName": share.name,
        "jobQueue": QUEUE,
        "capacityLimits": [{"maxCapacity": share.gpus, "capacityUnit": UNIT}],
        "resourceSharingConfiguration": {"strategy": "LEND_AND_BORROW"},
        "preemptionConfiguration": {"inSharePreemption": "ENABLED" if share.in_share else "DISABLED"},
    }


def _request(job: Job) -> Json:
    return {
        "jobName": job.name,
        "jobQueue": QUEUE,
        "serviceJobType": "SAGEMAKER_TRAINING",
        "quotaShareName": job.share,
        "schedulingPriority": job.priority,
        "serviceRequestPayload": json.dumps(_payload(job)),
        "tags": {"team": job.share, "user": job.user, **(_promised(job.sla) if job.sla else {})},
    }


def _payload(job: Job) -> Json:
    """CreateTrainingJob, with what the lab's training jobs are told to do."""
    folder = {"CheckpointConfig": {"S3Uri": f"s3://checkpoints/{job.name}/"}} if job.save_every else {}
    return {
        "TrainingJobName": job.name,
        "RoleArn": "arn:aws:iam::123456789012:role/Training",
        "OutputDataConfig": {"S3OutputPath": "s3://models/"},
        "ResourceConfig": {"InstanceType": UNIT, "InstanceCount": job.gpus, "VolumeSizeInGB": 100},
        "StoppingCondition": {"MaxRuntimeInSeconds": LONGEST_TRAINING_S},
        "HyperParameters": {f"sharewarden-lab-{name}": value for name, value in _course(job).items()},
        **folder,
    }


def _course(job: Job) -> dict[str, str]:
    durations = {
        "runtime-seconds": job.trains,
        "checkpoint-seconds": job.save_every,
        "load-seconds": job.load,
        "stop-save-seconds": job.stop_save,
    }
    outcome = "succeed" if job.fails_after is None else "fail"
    return {"outcome": outcome, **{k: f"{v / 1000:g}" for k, v in durations.items() if v is not None}}


def _promised(sla: Sla) -> dict[str, str]:
    """The tags that a policy reads by default."""
    tags = {"sla": sla.name}
    if sla.finish_by is not None:
        tags["deadline"] = f"{datetime.fromtimestamp((START + sla.finish_by) / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"
    if sla.expected_runtime is not None:
        tags["expected-runtime"] = f"{sla.expected_runtime // 60_000}m"
    return tags
