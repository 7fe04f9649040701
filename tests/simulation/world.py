"""The real use cases over the ports in memory and the lab: what the law tests have in common."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sharewarden.aws import batch as answers
from sharewarden.domain.audit import AuditRecord
from sharewarden.domain.base import last_part
from sharewarden.domain.observation import JobDescription, ShareDescription, Status
from sharewarden.domain.policy import Policy, QueuePolicy, SharePolicy
from sharewarden.domain.record import JobRecord
from sharewarden.domain.share import ShareRecord
from sharewarden.domain.stored import MINUTE, Stored
from sharewarden.domain.sweeping import SETTLE
from sharewarden.domain.training import TrainingRecord
from sharewarden.intake import take_in
from sharewarden.ports import Page, Runtime, Unavailable
from sharewarden.usecases.apply import apply
from sharewarden.usecases.sweep import Limits, Report, sweep
from sharewarden_tools.lab import Lab, Options, VirtualClock
from sharewarden_tools.lab.errors import ApiError
from sharewarden_tools.memory import (
    MemoryBatch,
    MemoryClock,
    MemoryDeadLetters,
    MemoryLedger,
    MemoryPolicies,
    MemoryWishQueue,
    Message,
)

NOW = 1_789_372_800_000
QUEUE = "arn:aws:batch:us-east-1:123456789012:job-queue/ml-train-qm"
UNIT = "ml.g5.xlarge"
ENFORCE = Policy(
    queues={
        "ml-train-qm": QueuePolicy(
            mode="enforce", bumps="enforce", shares={"background": SharePolicy(team="research")}
        )
    }
)

Json = dict[str, Any]
DOCUMENTED = Options()


def seeds(few: int) -> Iterable[int]:
    """So many seeds, or SHAREWARDEN_SEEDS; SHAREWARDEN_SEED picks out one that failed."""
    if (one := os.environ.get("SHAREWARDEN_SEED")) is not None:
        return (int(one),)
    return range(int(os.environ.get("SHAREWARDEN_SEEDS", few)))


def reproduce(test: str, seed: int) -> str:
    """The line that runs one failing seed again."""
    return f"reproduce: SHAREWARDEN_SEED={seed} pytest tests/simulation -k {test}"


class TickingClock(MemoryClock):
    """Every look at it takes a millisecond, so that nothing happens twice at one time."""

    def now(self) -> int:
        self.at += 1
        return self.at


@dataclass
class World:
    """A runtime whose parts lie open."""

    clock: MemoryClock
    batch: Any
    ledger: MemoryLedger
    wishes: MemoryWishQueue
    policies: MemoryPolicies
    runtime: Runtime
    pending: list[Message] = field(default_factory=list)

    def take(self, *events: Json) -> None:
        """Events in, as EventBridge would hand them over."""
        for event in events:
            take_in(self.runtime, json.dumps(event))

    def apply_all(self) -> list[str]:
        """Every wish message that waits, each tried once."""
        return [_tried(self.runtime, message.job, message.version) for message in self.wishes.drain()]

    def apply_until_done(self) -> None:
        """As Lambda does: a message is gone once it was handled, and comes again after six minutes if not."""
        self.pending += self.wishes.drain()
        while self.pending:
            try:
                apply(self.runtime, *self.pending[0])
            except Unavailable:
                self.clock.advance(6 * MINUTE)
                continue
            self.pending.pop(0)
            self.pending += self.wishes.drain()

    def sweep(self, holder: str = "sweep") -> Report:
        return sweep(self.runtime, holder, Limits())

    def settle(self, rounds: int = 2) -> None:
        """The faults have stopped: so many sweeps, each followed by ``apply``, past ``SETTLE``."""
        for _ in range(rounds):
            self.clock.advance(SETTLE + MINUTE)
            self.sweep(f"settle-{self.clock.now()}")
            self.apply_all()

    def record(self, job: str) -> JobRecord:
        record = self.ledger.load(JobRecord, last_part(job))
        assert record is not None, f"no record of {job}"
        return record


def _tried(runtime: Runtime, job: str, version: int) -> str:
    try:
        return apply(runtime, job, version)
    except Unavailable:
        return "unavailable"


def world(
    *,
    batch: Any = None,
    clock: MemoryClock | None = None,
    policy: Policy = ENFORCE,
    queue: str = QUEUE,
    classic: frozenset[str] = frozenset(),
) -> World:
    """A world of one queue; ``batch`` defaults to one that says what it was told."""
    clock = clock or MemoryClock(NOW)
    ledger, wishes, policies = MemoryLedger(), MemoryWishQueue(clock), MemoryPolicies(policy)
    batch = batch or MemoryBatch(clock)
    runtime = Runtime(
        batch=batch,
        ledger=ledger,
        audit=ledger,
        wishes=wishes,
        dead_letters=MemoryDeadLetters(),
        policies=policies,
        clock=clock,
        queues=frozenset({queue}),
        classic_queues=classic,
        own_role="sharewarden-apply",
    )
    return World(clock, batch, ledger, wishes, policies, runtime)


# What is compared.

#: When something was read or written says nothing about what happened.
READ_TIMES: dict[str, Any] = {
    "version": True,
    "snapshot": {"read_at"},
    "priority": {"as_of"},
    "closed_at": True,
    "missing_since": True,
}


def records(ledger: MemoryLedger) -> dict[str, Json]:
    """All that is remembered of jobs and training jobs, without the times of reading."""
    return {
        f"{item.item} {item.key}": item.model_dump(
            exclude=READ_TIMES if isinstance(item, JobRecord) else {"version"}
        )
        for item in ledger.items.values()
        if isinstance(item, JobRecord | TrainingRecord)
    }


def audit(ledger: MemoryLedger) -> dict[str, Json]:
    """The audit set, without the time of writing.

    An unknown type of event is on record once: with the time of whichever came first.
    """
    return {
        key: fact.model_dump(exclude={"recorded_at"} | ({"at"} if fact.kind == "unrecognised" else set()))
        for key, fact in ledger.facts.items()
    }


def difference(one: dict[str, Json], other: dict[str, Json]) -> str:
    """What tells two such sets apart, for people; empty when nothing does."""
    lines = [f"only once: {key}" for key in sorted(one.keys() ^ other.keys())]
    for key in sorted(one.keys() & other.keys()):
        lines += [
            f"{key}: {name}: {one[key][name]!r} / {other[key][name]!r}"
            for name in one[key]
            if one[key][name] != other[key][name]
        ]
    return "\n".join(lines)


# The lab behind the Batch port.


class LabClock(MemoryClock):
    """The lab's clock, for everybody."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    def now(self) -> int:
        return self._lab.now()

    def advance(self, ms: int) -> None:
        self._lab.advance_to(self._lab.now() + ms)


class LabBatch:
    """Batch as the lab plays it, read by the parsers that read AWS. ``priorities``: what took effect."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._call = lab.operations["batch"]
        self.priorities: list[tuple[str, int]] = []

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

    def shares(self, queue: str) -> Sequence[ShareDescription]:
        return tuple(map(answers._share, self._call["ListQuotaShares"]({"jobQueue": queue})["quotaShares"]))

    def set_priority(self, job: str, priority: int) -> None:
        try:
            self._call["UpdateServiceJob"]({"jobId": job, "schedulingPriority": priority})
        except ApiError as error:
            raise Unavailable(str(error)) from error
        self.priorities.append((last_part(job), priority))


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


def stored(ledger: MemoryLedger, kind: type[Stored]) -> list[Stored]:
    return [item for item in ledger.items.values() if isinstance(item, kind)]


def shares(ledger: MemoryLedger) -> dict[str, ShareRecord]:
    return {item.key: item for item in ledger.items.values() if isinstance(item, ShareRecord)}


def facts_of(ledger: MemoryLedger, kind: str) -> list[AuditRecord]:
    return [fact for fact in ledger.facts.values() if fact.kind == kind]
