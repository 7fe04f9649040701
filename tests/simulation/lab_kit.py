"""A lab with one queue and round times, and short ways to ask it through boto3, without a socket."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from itertools import count
from typing import Any

import pytest
from botocore import xform_name
from botocore.exceptions import ClientError
from sharewarden_tools.lab import Lab, Options, VirtualClock
from sharewarden_tools.lab.wire import Wire

from tests.contract.lab_clients import client

Json = dict[str, Any]
UNIT = "ml.g6e.12xlarge"
OTHER = "ml.p5.48xlarge"
START = 1_789_372_800_000
QUEUE = "ml-train-qm"
ROUND_TIMES = Options(
    scheduler_period_ms=0,
    runnable_delay_ms=(1_000, 1_000),
    pending_ms=(10_000, 10_000),
    downloading_ms=(10_000, 10_000),
    runtime_ms=(600_000, 600_000),
    uploading_ms=(5_000, 5_000),
    submit_rate=None,
)
UNTIL_RUNNING = 21  # seconds from submission to RUNNING in an idle pool


def share(
    name: str,
    own: int = 1,
    strategy: str = "LEND_AND_BORROW",
    *,
    borrow: int | None = None,
    in_share: bool = False,
    unit: str = UNIT,
) -> Json:
    """Parameters of CreateQuotaShare."""
    limit = {} if borrow is None else {"borrowLimit": borrow}
    return {
        "quotaShareName": name,
        "jobQueue": QUEUE,
        "capacityLimits": [{"maxCapacity": own, "capacityUnit": unit}],
        "resourceSharingConfiguration": {"strategy": strategy, **limit},
        "preemptionConfiguration": {"inSharePreemption": "ENABLED" if in_share else "DISABLED"},
    }


def payload(name: str = "train", *, instances: int = 1, unit: str = UNIT, **hyperparameters: object) -> Json:
    """A CreateTrainingJob request; `runtime_seconds=60` and the like set the lab's own hyperparameters."""
    settings = {f"sharewarden-lab-{key.replace('_', '-')}": str(v) for key, v in hyperparameters.items()}
    return {
        "TrainingJobName": name,
        "RoleArn": "arn:aws:iam::123456789012:role/TeamVisionTraining",
        "OutputDataConfig": {"S3OutputPath": "s3://out/models/"},
        "ResourceConfig": {"InstanceType": unit, "InstanceCount": instances, "VolumeSizeInGB": 50},
        "HyperParameters": settings,
    }


class Kit:
    def __init__(self, *shares: Json, environment: int = 10, seed: int = 0, **options: object) -> None:
        self.clock = VirtualClock(START)
        self.lab = Lab(clock=self.clock, options=replace(ROUND_TIMES, **options), seed=seed)  # type: ignore[arg-type]
        self.events: list[Json] = []
        self.lab.subscribe(self.events.append)
        self._wire = Wire(self.lab.operations)
        self._batch = client("batch", wire=self._wire)
        self._tokens = count(1)
        self.make_pool(environment)
        for params in shares:
            self.batch("CreateQuotaShare", **params)

    def make_pool(self, environment: int) -> None:
        fifo = {"idleResourceAssignmentStrategy": "FIFO"}
        policy = self.batch("CreateSchedulingPolicy", name="quota", quotaSharePolicy=fifo)["arn"]
        limits = [{"maxCapacity": environment, "capacityUnit": unit} for unit in (UNIT, OTHER)]
        self.batch(
            "CreateServiceEnvironment",
            serviceEnvironmentName="env",
            serviceEnvironmentType="SAGEMAKER_TRAINING",
            capacityLimits=limits,
        )
        self.batch(
            "CreateJobQueue",
            jobQueueName=QUEUE,
            jobQueueType="SAGEMAKER_TRAINING",
            priority=1,
            schedulingPolicyArn=policy,
            serviceEnvironmentOrder=[{"order": 1, "serviceEnvironment": "env"}],
        )

    @cached_property
    def _sagemaker(self) -> Any:
        """Made when asked for: boto3 takes a while over SageMaker's large model."""
        return client("sagemaker", wire=self._wire)

    def batch(self, operation: str, **params: object) -> Json:
        return _call(self._batch, operation, params)

    def sagemaker(self, operation: str, **params: object) -> Json:
        return _call(self._sagemaker, operation, params)

    def refused(self, operation: str, **params: object) -> str:
        """The text of the ClientException that the call must give."""
        with pytest.raises(ClientError) as error:
            self.batch(operation, **params)
        answer = error.value.response
        assert (answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]) == (
            "ClientException",
            400,
        )
        return str(answer["Error"]["Message"])

    def submit(self, share_name: str, priority: int = 0, request: Json | None = None, **params: Any) -> str:
        """SubmitServiceJob; returns the job's id."""
        body = request if request is not None else payload()
        defaults = {
            "jobName": "train",
            "jobQueue": QUEUE,
            "serviceJobType": "SAGEMAKER_TRAINING",
            "quotaShareName": share_name,
            "schedulingPriority": priority,
            "serviceRequestPayload": json.dumps(body),
            "clientToken": f"token-{next(self._tokens)}",  # boto3's own would differ from run to run
        }
        return str(self.batch("SubmitServiceJob", **{**defaults, **params})["jobId"])

    def running(self, share_name: str, priority: int = 0, request: Json | None = None, **params: Any) -> str:
        """A job that is submitted and then given time to start in an idle pool."""
        job = self.submit(share_name, priority, request, **params)
        self.pass_time(UNTIL_RUNNING)
        assert self.status(job) == "RUNNING"
        return job

    def update_share(self, name: str, **members: object) -> None:
        self.batch("UpdateQuotaShare", quotaShareArn=self.share_arn(name), **members)

    def limit(self, name: str, own: int) -> None:
        self.update_share(name, capacityLimits=[{"maxCapacity": own, "capacityUnit": UNIT}])

    def share_arn(self, name: str) -> str:
        return f"arn:aws:batch:us-east-1:123456789012:job-queue/{QUEUE}/quota-share/{name}"

    def pass_time(self, seconds: float) -> None:
        self.lab.advance_to(self.lab.now() + round(1000 * seconds))

    def finish(self) -> None:
        self.lab.run_until_idle(self.lab.now() + 10**10)

    def describe(self, job: str) -> Json:
        return self.batch("DescribeServiceJob", jobId=job)

    def status(self, job: str) -> str:
        return str(self.describe(job)["status"])

    def statuses(self, jobs: Iterable[str]) -> list[str]:
        return [self.status(job) for job in jobs]

    def training(self, job: str) -> Json:
        return self.sagemaker("DescribeTrainingJob", TrainingJobName=self.training_name(job))

    def training_name(self, job: str) -> str:
        return str(self.describe(job)["latestAttempt"]["serviceResourceId"]["value"].rsplit("/", 1)[-1])

    def sent(self, detail_type: str, job: str | None = None) -> list[Json]:
        """Details of the events of a type, of one service job if named."""
        found = [event for event in self.events if event["detail-type"] == detail_type]
        return [e["detail"] for e in found if job is None or e["resources"][0].endswith(f"/{job}")]

    def story(self, job: str) -> list[str]:
        """The states that the job's events told, in order."""
        return [detail["status"] for detail in self.sent("Batch Service Job State Change", job)]


def _call(service: Any, operation: str, params: Json) -> Json:
    answer = getattr(service, xform_name(operation))(**params)
    return {name: value for name, value in answer.items() if name != "ResponseMetadata"}
