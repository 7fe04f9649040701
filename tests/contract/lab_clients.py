"""boto3 clients as a user makes them, and a small pool to use them on."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from typing import Any

import boto3
from botocore.config import Config
from sharewarden_tools.lab.clock import VirtualClock
from sharewarden_tools.lab.engine import Lab
from sharewarden_tools.lab.options import Options
from sharewarden_tools.lab.wire import Wire, in_process, lab_wire

START = 1_780_000_000_000
UNIT = "ml.g6e.12xlarge"
NO_RETRIES = Config(retries={"total_max_attempts": 1})
ROUND_TIMES = Options(
    runnable_delay_ms=(1_000, 1_000),
    pending_ms=(10_000, 10_000),
    downloading_ms=(10_000, 10_000),
    uploading_ms=(5_000, 5_000),
    submit_rate=None,
)


def client(service: str, *, wire: Wire | None = None, url: str | None = None, **options: Any) -> Any:
    made = boto3.client(
        service,
        region_name="us-east-1",
        endpoint_url=url,
        aws_access_key_id=options.pop("key", "AKIDSOMEONE"),
        aws_secret_access_key="secret",
        config=options.pop("config", NO_RETRIES),
        **options,
    )
    if wire:
        in_process(made, wire)
    return made


def payload(name: str = "train", instances: int = 1, **more: Any) -> str:
    """A CreateTrainingJob request for ``instances`` of UNIT."""
    request = {
        "TrainingJobName": name,
        "RoleArn": "arn:aws:iam::123456789012:role/Training",
        "ResourceConfig": {"InstanceType": UNIT, "InstanceCount": instances, "VolumeSizeInGB": 50},
        "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
        "StoppingCondition": {"MaxRuntimeInSeconds": 86_400},
        **more,
    }
    return json.dumps(request)


def make_queue(batch: Any, capacity: int) -> str:
    """The ARN of a new quota-managed queue over ``capacity`` instances of UNIT."""
    batch.create_service_environment(
        serviceEnvironmentName="pool",
        serviceEnvironmentType="SAGEMAKER_TRAINING",
        capacityLimits=[{"capacityUnit": UNIT, "maxCapacity": capacity}],
    )
    policy = batch.create_scheduling_policy(
        name="policy", quotaSharePolicy={"idleResourceAssignmentStrategy": "FIFO"}
    )
    answer = batch.create_job_queue(
        jobQueueName="queue",
        jobQueueType="SAGEMAKER_TRAINING",
        priority=1,
        state="ENABLED",
        schedulingPolicyArn=policy["arn"],
        serviceEnvironmentOrder=[{"order": 1, "serviceEnvironment": "pool"}],
    )
    return str(answer["jobQueueArn"])


def make_share(batch: Any, queue: str, name: str = "share", own: int = 1, **more: Any) -> str:
    """The ARN of a new share; RESERVE and without in-share preemption unless ``more`` says otherwise."""
    request = {
        "quotaShareName": name,
        "jobQueue": queue,
        "capacityLimits": [{"capacityUnit": UNIT, "maxCapacity": own}],
        "resourceSharingConfiguration": {"strategy": "RESERVE"},
        "preemptionConfiguration": {"inSharePreemption": "DISABLED"},
        **more,
    }
    return str(batch.create_quota_share(**request)["quotaShareArn"])


def submit(batch: Any, queue: str, share: str = "share", **more: Any) -> str:
    """The id of a new job of one instance."""
    request = {
        "jobName": "job",
        "jobQueue": queue,
        "serviceJobType": "SAGEMAKER_TRAINING",
        "serviceRequestPayload": payload(),
        "quotaShareName": share,
        **more,
    }
    return str(batch.submit_service_job(**request)["jobId"])


class Bench:
    """A lab in virtual time behind plain boto3 clients, and the calls that many cases repeat."""

    def __init__(self, capacity: int = 3, **options: Any) -> None:
        self.clock = VirtualClock(START)
        self.lab = Lab(clock=self.clock, seed=1, options=replace(ROUND_TIMES, **options))
        self.events: list[dict[str, Any]] = []
        self.lab.subscribe(self.events.append)
        self.wire = lab_wire(self.lab)
        self.batch = client("batch", wire=self.wire)
        self.sagemaker = client("sagemaker", wire=self.wire)
        self.queue = make_queue(self.batch, capacity)
        self._numbers = count(1)

    def share(
        self,
        name: str = "share",
        own: int = 1,
        strategy: str = "RESERVE",
        *,
        borrow: int | None = None,
        in_share: bool = False,
        **more: Any,
    ) -> str:
        limit = {} if borrow is None else {"borrowLimit": borrow}
        settings = {
            "resourceSharingConfiguration": {"strategy": strategy, **limit},
            "preemptionConfiguration": {"inSharePreemption": "ENABLED" if in_share else "DISABLED"},
            **more,
        }
        return make_share(self.batch, settings.pop("jobQueue", self.queue), name, own, **settings)

    def submit(self, share: str = "share", **more: Any) -> str:
        named = {"jobName": f"job-{next(self._numbers)}", **more}
        return submit(
            self.batch, named.pop("jobQueue", self.queue), named.pop("quotaShareName", share), **named
        )

    def describe(self, job: str) -> dict[str, Any]:
        return dict(self.batch.describe_service_job(jobId=job))

    def status(self, *jobs: str) -> list[str]:
        return [self.describe(job)["status"] for job in jobs]

    def pass_time(self, seconds: float) -> None:
        self.lab.advance_to(self.clock.now() + round(seconds * 1000))

    def until(self, job: str, status: str, within_s: float = 7_200) -> None:
        """Step from due moment to due moment until the job has this status."""
        deadline = self.clock.now() + within_s * 1000
        while self.status(job) != [status]:
            due = self.lab.next_due()
            assert due is not None, f"{job} stays {self.status(job)}"
            assert due <= deadline, f"{job} is still {self.status(job)}"
            self.lab.advance_to(due)

    def training(self, job: str) -> dict[str, Any]:
        """DescribeTrainingJob of the job's latest attempt."""
        arn = self.describe(job)["latestAttempt"]["serviceResourceId"]["value"]
        return dict(self.sagemaker.describe_training_job(TrainingJobName=arn.rsplit("/", 1)[1]))

    def heard(self, detail_type: str, job: str | None = None) -> list[dict[str, Any]]:
        """Details of the events of this kind, about this job if one is given."""
        found = [event for event in self.events if event["detail-type"] == detail_type]
        return [e["detail"] for e in found if job is None or e["resources"][0].endswith(f"/{job}")]
