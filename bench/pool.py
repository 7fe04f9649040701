"""A pool in the lab, its jobs, and their events as a function gets them."""

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from sharewarden_tools.lab.clock import VirtualClock
from sharewarden_tools.lab.engine import Lab
from sharewarden_tools.lab.options import Options

from . import QUEUE

START = 1_789_372_800_000
UNIT = "ml.g6e.12xlarge"
OTHER_QUEUE = "arn:aws:batch:us-east-1:123456789012:job-queue/other"
LATER_MS = 30 * 60_000
OPTIONS = Options(submit_rate=None, cloudtrail=False)
PAYLOAD = {
    "TrainingJobName": "train",
    "RoleArn": "arn:aws:iam::123456789012:role/Training",
    "ResourceConfig": {"InstanceType": UNIT, "InstanceCount": 1, "VolumeSizeInGB": 50},
    "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
    "StoppingCondition": {"MaxRuntimeInSeconds": 86_400},
}


class Pool:
    """Queues over one environment, with shares that lend and borrow; time is virtual.

    In a ``lab`` that is there already, which then has a clock of its own, or in a new one.
    """

    def __init__(self, shares: int, instances_a_share: int = 1, lab: Lab | None = None) -> None:
        self.clock = VirtualClock(START)
        self.lab = lab or Lab(clock=self.clock, seed=1, options=OPTIONS)
        self._batch = self.lab.operations["batch"]
        self._shares = shares
        self._submitted = 0
        for queue in (QUEUE, OTHER_QUEUE):
            self._queue(queue, shares * instances_a_share)
            for number in range(shares):
                self._share(queue, f"share-{number}", instances_a_share)

    def submit(self, share: int, *, queue: str = QUEUE, priority: int = 0, **more: Any) -> str:
        """The ARN of a new job of one instance that trains for an hour; ``more`` of the request."""
        self._submitted += 1
        answer = self._batch["SubmitServiceJob"](
            {
                "jobName": f"job-{self._submitted}",
                "jobQueue": queue,
                "serviceJobType": "SAGEMAKER_TRAINING",
                "serviceRequestPayload": json.dumps(PAYLOAD),
                "quotaShareName": f"share-{share}",
                "schedulingPriority": priority,
                "tags": {"team": f"team-{share}"},
            }
            | more
        )
        return str(answer["jobArn"])

    def play(self, jobs: int) -> None:
        """Half of the jobs at once, the others in half an hour with higher priorities; all to their end."""
        for number in range(jobs):
            if number == jobs // 2:
                self.lab.advance_to(START + LATER_MS)
            self.submit(number % self._shares, priority=0 if number < jobs // 2 else 1 + number % 5)
        for _ in self.steps():
            pass

    def steps(self) -> Iterator[int]:
        """Go from one due moment to the next until nothing is left to do."""
        while (due := self.lab.next_due()) is not None:
            self.lab.advance_to(due)
            yield due

    def _queue(self, queue: str, instances: int) -> None:
        name = queue.rsplit("/", 1)[1]
        self._batch["CreateServiceEnvironment"](
            {
                "serviceEnvironmentName": name,
                "serviceEnvironmentType": "SAGEMAKER_TRAINING",
                "capacityLimits": [{"capacityUnit": UNIT, "maxCapacity": instances}],
            }
        )
        policy = self._batch["CreateSchedulingPolicy"](
            {"name": name, "quotaSharePolicy": {"idleResourceAssignmentStrategy": "FIFO"}}
        )
        self._batch["CreateJobQueue"](
            {
                "jobQueueName": name,
                "jobQueueType": "SAGEMAKER_TRAINING",
                "priority": 1,
                "state": "ENABLED",
                "schedulingPolicyArn": policy["arn"],
                "serviceEnvironmentOrder": [{"order": 1, "serviceEnvironment": name}],
            }
        )

    def _share(self, queue: str, name: str, instances: int) -> None:
        self._batch["CreateQuotaShare"](
            {
                "quotaShareName": name,
                "jobQueue": queue,
                "capacityLimits": [{"capacityUnit": UNIT, "maxCapacity": instances}],
                "resourceSharingConfiguration": {"strategy": "LEND_AND_BORROW", "borrowLimit": -1},
                "preemptionConfiguration": {"inSharePreemption": "ENABLED"},
            }
        )


#: What the handlers use of Lambda's context: time enough.
CONTEXT = SimpleNamespace(get_remaining_time_in_millis=lambda: 45_000)


def message(event: dict[str, Any]) -> dict[str, Any]:
    """An EventBridge event as SQS hands it to a function, as far as the function reads it."""
    return {
        "messageId": event["id"],
        "body": json.dumps(event),
        "attributes": {"ApproximateReceiveCount": "1"},
        "eventSource": "aws:sqs",
    }
