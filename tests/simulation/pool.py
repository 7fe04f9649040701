"""The lab behind the Batch port, and busy hours in it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from sharewarden.aws import batch as answers
from sharewarden.domain.base import last_part
from sharewarden.domain.observation import JobDescription, Status
from sharewarden.ports import Page, Shares, Unavailable
from sharewarden_tools.lab import Lab, Options, VirtualClock
from sharewarden_tools.lab.errors import ApiError
from sharewarden_tools.memory import MemoryClock

from tests.simulation.world import NOW, QUEUE, Json, World, world

UNIT = "ml.g5.xlarge"
DOCUMENTED = Options()


class LabClock(MemoryClock):
    """The lab's clock, for everybody."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    def now(self) -> int:
        return self._lab.now()

    def advance(self, ms: int) -> None:
        self._lab.advance_to(self._lab.now() + ms)


class LabBatch:
    """Batch as the lab plays it, read by the parsers that read AWS.

    ``priorities`` and ``terminations`` are what took effect.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._call = lab.operations["batch"]
        self.priorities: list[tuple[str, int]] = []
        self.terminations: list[tuple[str, str]] = []

    def describe(self, job: str) -> JobDescription | None:
        try:
            answer = self._call["DescribeServiceJob"]({"jobId": job})
        except ApiError:
            return None
        return answers._description(answer, self._lab.now())

    def jobs(self, queue: str, status: Status, token: str | None) -> Page:
        paging = {"nextToken": token} if token else {}
        answer = self._call["ListServiceJobs"](
            {"jobQueue": queue, "jobStatus": status, "maxResults": 100} | paging
        )
        return Page(
            jobs=tuple(map(answers._summary, answer["jobSummaryList"])), next_token=answer.get("nextToken")
        )

    def shares(self, queue: str) -> Shares:
        rows = self._call["ListQuotaShares"]({"jobQueue": queue})["quotaShares"]
        return Shares(shares=tuple(map(answers._share, rows)))

    def environment(self, queue: str) -> dict[str, int] | None:
        (row,) = self._call["DescribeJobQueues"]({"jobQueues": [queue]})["jobQueues"]
        names = [order["serviceEnvironment"] for order in row["serviceEnvironmentOrder"]]
        (found,) = self._call["DescribeServiceEnvironments"]({"serviceEnvironments": names})[
            "serviceEnvironments"
        ]
        return {limit["capacityUnit"]: limit["maxCapacity"] for limit in found["capacityLimits"]}

    def set_priority(self, job: str, priority: int) -> None:
        try:
            self._call["UpdateServiceJob"]({"jobId": job, "schedulingPriority": priority})
        except ApiError as error:
            raise Unavailable(str(error)) from error
        self.priorities.append((last_part(job), priority))

    def terminate(self, job: str, reason: str) -> None:
        try:
            self._call["TerminateServiceJob"]({"jobId": job, "reason": reason})
        except ApiError as error:
            raise Unavailable(str(error)) from error
        self.terminations.append((last_part(job), reason))


@dataclass
class Pool:
    """A lab with one queue of three shares, and every event it sent with the time of sending."""

    seed: int
    options: Options = DOCUMENTED
    lab: Lab = field(init=False)
    clock: VirtualClock = field(init=False)
    events: list[tuple[int, Json]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clock = VirtualClock(NOW)
        self.lab = Lab(clock=self.clock, seed=self.seed, options=replace(self.options, submit_rate=None))
        self.lab.subscribe(lambda event: self.events.append((self.lab.now(), event)))
        for queue in ("ml-train-qm", "other"):
            self._make_queue(queue)

    def _make_queue(self, queue: str) -> None:
        call = self.lab.operations["batch"]
        policy = call["CreateSchedulingPolicy"](
            {"name": f"{queue}-policy", "quotaSharePolicy": {"idleResourceAssignmentStrategy": "FIFO"}}
        )
        call["CreateServiceEnvironment"](
            {
                "serviceEnvironmentName": f"{queue}-env",
                "serviceEnvironmentType": "SAGEMAKER_TRAINING",
                "capacityLimits": [{"maxCapacity": 3, "capacityUnit": UNIT}],
            }
        )
        call["CreateJobQueue"](
            {
                "jobQueueName": queue,
                "jobQueueType": "SAGEMAKER_TRAINING",
                "priority": 1,
                "schedulingPolicyArn": policy["arn"],
                "serviceEnvironmentOrder": [{"order": 1, "serviceEnvironment": f"{queue}-env"}],
            }
        )
        for name, strategy, in_share in (
            ("background", "LEND_AND_BORROW", "ENABLED"),
            ("medium", "LEND_AND_BORROW", "DISABLED"),
            ("urgent", "RESERVE", "DISABLED"),
        ):
            call["CreateQuotaShare"](
                {
                    "quotaShareName": name,
                    "jobQueue": queue,
                    "capacityLimits": [{"maxCapacity": 1, "capacityUnit": UNIT}],
                    "resourceSharingConfiguration": {"strategy": strategy},
                    "preemptionConfiguration": {"inSharePreemption": in_share},
                }
            )

    def submit(
        self, name: str, share: str, *, queue: str = "ml-train-qm", seconds: int = 900, **more: Any
    ) -> str:
        """The id of a new job that trains so long."""
        payload = {
            "TrainingJobName": name,
            "RoleArn": "arn:aws:iam::123456789012:role/T",
            "OutputDataConfig": {"S3OutputPath": "s3://example-out/x"},
            "ResourceConfig": {"InstanceType": UNIT, "InstanceCount": 1},
            "CheckpointConfig": {"S3Uri": f"s3://example-checkpoints/{name}"},
            "HyperParameters": {"sharewarden-lab-runtime-seconds": str(seconds)},
        }
        request = {
            "jobName": name,
            "jobQueue": queue,
            "quotaShareName": share,
            "serviceJobType": "SAGEMAKER_TRAINING",
            "schedulingPriority": 100,
            "serviceRequestPayload": json.dumps(payload),
        }
        return str(self.lab.operations["batch"]["SubmitServiceJob"](request | more)["jobId"])

    def world(self) -> World:
        """A world that looks at this pool, with the lab's clock."""
        return world(batch=LabBatch(self.lab), clock=LabClock(self.lab), queue=QUEUE)


def telling(seed: int, *, jobs: int = 30, options: Options = DOCUMENTED) -> Iterator[tuple[Pool, int]]:
    """A few busy hours: borrowing, both sorts of preemption, retries, failures, terminations, other queues.

    Yields the pool and when something is done to it next: bring the lab there, then go on.
    """
    rng = random.Random(seed)
    pool = Pool(seed, options)
    at = NOW
    for step in _steps(pool, rng, jobs):
        at += rng.randint(1_000, 400_000)
        yield pool, at
        pool.lab.advance_to(at)
        step()


def story(seed: int, *, jobs: int = 30, options: Options = DOCUMENTED) -> Pool:
    """That story, told to its end."""
    pool = None
    for pool, _ in telling(seed, jobs=jobs, options=options):  # noqa: B007 (the last one is kept)
        pass
    assert pool is not None
    pool.lab.run_until_idle(pool.lab.now() + 100 * 3_600_000)
    return pool


def _steps(pool: Pool, rng: random.Random, jobs: int) -> Iterator[Callable[[], object]]:
    ids: list[str] = []
    call = pool.lab.operations["batch"]
    for number in range(jobs):
        yield lambda number=number: ids.append(_submit(pool, rng, number))
        if rng.random() < 0.3:
            job = rng.choice(ids)
            yield lambda job=job: _quietly(
                call["UpdateServiceJob"], {"jobId": job, "schedulingPriority": rng.randint(0, 999)}
            )
        if rng.random() < 0.15:
            job = rng.choice(ids)
            yield lambda job=job: _quietly(call["TerminateServiceJob"], {"jobId": job, "reason": "by hand"})
        if rng.random() < 0.1:
            yield lambda: pool.lab.fail_for_capacity(rng.randint(1, 2))


def _submit(pool: Pool, rng: random.Random, number: int) -> str:
    more: Json = {"schedulingPriority": rng.randint(0, 500), "tags": {"team": "nlp", "lineage": f"l{number}"}}
    if rng.random() < 0.3:
        more["preemptionConfiguration"] = {"preemptionRetriesBeforeTermination": rng.randint(0, 1)}
    if rng.random() < 0.3:
        more["retryStrategy"] = {"attempts": 3}
        more["timeoutConfig"] = {"attemptDurationSeconds": 600}
    return pool.submit(
        f"job-{number}",
        rng.choice(("background", "background", "medium", "urgent")),
        queue="other" if rng.random() < 0.1 else "ml-train-qm",
        seconds=rng.choice((60, 900, 1800)),
        **more,
    )


def _quietly(call: Callable[[Json], Json], request: Json) -> None:
    try:
        call(request)
    except ApiError:
        return
