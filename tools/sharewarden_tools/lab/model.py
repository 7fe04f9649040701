"""The resources of one account and Region in the lab. Configuration members keep their wire shape."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Literal

from .book import UNLIMITED, Demand, PoolJob, ShareRules
from .clock import Timer
from .pool import Pool
from .world import Json

STATUSES = ("SUBMITTED", "PENDING", "RUNNABLE", "SCHEDULED", "STARTING", "RUNNING", "SUCCEEDED", "FAILED")
DISPATCHED = frozenset({"SCHEDULED", "STARTING", "RUNNING"})
TERMINAL = frozenset({"SUCCEEDED", "FAILED"})
Tags = dict[str, str]


@dataclass(eq=False, slots=True)
class SchedulingPolicy:
    name: str
    arn: str
    quota_share_policy: Json
    tags: Tags


@dataclass(eq=False, slots=True)
class ServiceEnvironment:
    name: str
    arn: str
    type: str
    state: str
    capacity_limits: list[Json]
    tags: Tags


@dataclass(eq=False, slots=True)
class QuotaShare:
    name: str
    arn: str
    queue_arn: str
    capacity_limits: list[Json]
    sharing: Json
    preemption: Json
    state: str
    tags: Tags
    status: str = "VALID"

    def rules(self) -> ShareRules:
        return ShareRules(
            own=limits_by_unit(self.capacity_limits),
            strategy=self.sharing["strategy"],
            borrow_limit=self.sharing.get("borrowLimit", UNLIMITED),
            in_share=self.preemption["inSharePreemption"] == "ENABLED",
        )


@dataclass(frozen=True, slots=True)
class Course:
    """What a training job is going to do; durations in milliseconds of training."""

    runtime_ms: int
    max_runtime_ms: int
    fails: bool
    checkpoints: str | None  # folder, None for a job that saves nothing
    save_every_ms: int
    look_every_ms: int | None  # for save requests, as the training helper does; None for a job without it
    load_ms: int  # before training goes on from a checkpoint
    stop_save_ms: int | None  # a save on SIGTERM; None for a job that does not hear it


@dataclass(eq=False, slots=True)
class TrainingJob:
    """One SageMaker training job. Times are epoch milliseconds; progress is training time that counts."""

    name: str
    arn: str
    owner: str  # the service job's id
    payload: Json
    tags: Tags
    course: Course
    serial: int
    created_at: int
    modified_at: int
    status: str = "InProgress"
    secondary: str = "Pending"
    started_at: int | None = None
    ended_at: int | None = None
    failure: str | None = None
    transitions: list[Json] = field(default_factory=list)
    timer: Timer | None = None
    progress_ms: int = 0  # reached when `progress_at` was noted
    progress_at: int = 0  # ahead of now while a checkpoint is loaded
    saved_ms: int = 0  # progress in the newest checkpoint
    resumed_from: int | None = None  # step of the checkpoint that it began with
    saved_at: int | None = None
    looks_at: int = 0  # for a save request, the next time
    answered: str | None = None  # id of the newest request

    @property
    def ended(self) -> bool:
        return self.status in ("Completed", "Failed", "Stopped")


@dataclass(frozen=True, slots=True)
class Stop:
    """Why Batch stops an attempt; it decides what becomes of the job."""

    cause: Literal["preempted", "terminated", "timeout"]
    reason: str
    sends_events: bool = True


@dataclass(eq=False, slots=True)
class Job:
    """One service job. `slot` is what the scheduler sees of it and holds its priority."""

    id: str
    arn: str
    name: str
    queue_arn: str
    payload: Json
    payload_text: str
    slot: PoolJob
    created_at: int
    serial: int
    tags: Tags
    retry: Json | None = None
    preemption: Json | None = None
    timeout: Json | None = None
    status: str = "SUBMITTED"
    status_reason: str | None = None
    scheduled_at: int | None = None
    started_at: int | None = None
    stopped_at: int | None = None
    is_terminated: bool = False
    training: TrainingJob | None = None
    attempts: list[Json] = field(default_factory=list)
    preempted: list[Json] = field(default_factory=list)
    preempted_count: int = 0
    tries: int = 1  # times in RUNNABLE that count against retryStrategy.attempts
    stop: Stop | None = None
    blocked: str | None = None
    blocked_ms: int = 0  # time in SCHEDULED lost to capacity failures
    short_of_capacity: TrainingJob | None = None
    runnable_at: int = 0
    limit_timer: Timer | None = None
    attempt_timer: Timer | None = None

    @property
    def share(self) -> str:
        return self.slot.share

    @property
    def demand(self) -> Demand:
        return self.slot.demand


@dataclass(eq=False, slots=True)
class JobQueue:
    name: str
    arn: str
    state: str
    priority: int
    policy_arn: str
    environments: list[Json]
    limit_actions: list[Json]
    tags: Tags
    pool: Pool
    status: str = "VALID"
    shares: dict[str, QuotaShare] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)  # oldest first
    by_status: dict[str, dict[str, Job]] = field(default_factory=lambda: {status: {} for status in STATUSES})
    blocked: dict[str, Job] = field(default_factory=dict)
    last_pass: int | None = None
    pass_timer: Timer | None = None
    snapshot: tuple[int, Json] | None = None

    def move(self, job: Job, status: str) -> None:
        self.by_status[job.status].pop(job.id, None)
        job.status = status
        self.by_status[status][job.id] = job

    def open_jobs(self, share: str | None = None) -> list[Job]:
        """Jobs that have not ended, oldest first."""
        alive = (jobs.values() for status, jobs in self.by_status.items() if status not in TERMINAL)
        mine = (job for job in chain.from_iterable(alive) if share in (None, job.share))
        return sorted(mine, key=lambda job: job.serial)


@dataclass(frozen=True, slots=True)
class Preemption:
    """What Batch keeps to itself: why it stopped an attempt, and for whom. For tests of what is inferred."""

    at: int
    job: str
    attempt: str | None
    kind: Literal["cross-share", "in-share", "limit"]
    demander: str | None


@dataclass(slots=True)
class State:
    """Everything that the lab knows, by ARN; jobs by id."""

    policies: dict[str, SchedulingPolicy] = field(default_factory=dict)
    environments: dict[str, ServiceEnvironment] = field(default_factory=dict)
    queues: dict[str, JobQueue] = field(default_factory=dict)
    shares: dict[str, QuotaShare] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    trainings: dict[str, TrainingJob] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)
    preemptions: list[Preemption] = field(default_factory=list)
    orders: Iterator[int] = field(default_factory=lambda: count(1))

    def job(self, id_or_arn: str) -> Job | None:
        return self.jobs.get(id_or_arn.rsplit("/", 1)[-1])


def limits_by_unit(limits: Iterable[Json]) -> dict[str, int]:
    return {limit["capacityUnit"]: limit["maxCapacity"] for limit in limits}
