"""What AWS told us, reduced to small frozen values.

``events/`` makes them out of EventBridge events, ``aws/batch.py`` out of API answers. Everything
that AWS does not promise is optional here: None means "not told", never "no".
"""

from typing import Literal

from .base import Frozen
from .stored import MINUTE

#: No function lives so long (template: 240 s at most), so nobody holds an answer longer than this.
OLDEST_ANSWER = 5 * MINUTE
#: Events later than this are no longer waited for: what they did not bring is a gap.
SETTLE = 10 * MINUTE

Status = Literal[
    "SUBMITTED", "PENDING", "RUNNABLE", "SCHEDULED", "STARTING", "RUNNING", "SUCCEEDED", "FAILED"
]

#: Order of a job's states within one attempt (Batch user guide, service-job-status).
STATUS_ORDER: dict[Status, int] = {
    "SUBMITTED": 0,
    "PENDING": 1,
    "RUNNABLE": 2,
    "SCHEDULED": 3,
    "STARTING": 4,
    "RUNNING": 5,
    "SUCCEEDED": 6,
    "FAILED": 7,
}
TERMINAL: frozenset[Status] = frozenset({"SUCCEEDED", "FAILED"})
#: States in which a job holds capacity and can be preempted (Batch user guide, preemption).
DISPATCHED: frozenset[Status] = frozenset({"SCHEDULED", "STARTING", "RUNNING"})


def is_old_news(read_at: int, known_at: int) -> bool:
    """True when something newer than an answer of ``read_at`` is known already, as of ``known_at``.

    Clocks differ: knowledge from further ahead than ``OLDEST_ANSWER`` was dated by one that was wrong, and
    must not keep the truth out until that time comes.
    """
    return 0 < known_at - read_at < OLDEST_ANSWER


class AttemptSeen(Frozen):
    """One training job of a service job, as ``attempts`` or ``recentPreemptedAttempts`` list it."""

    training_job: str
    """ARN of the training job: the key of the attempt."""
    started_at: int | None = None
    stopped_at: int | None = None
    reason: str | None = None
    preempted: bool = False


class JobObservation(Frozen):
    """An event about one job. ``at`` is the event's own time, in whole seconds as AWS writes it."""

    job: str
    arn: str
    at: int
    what: Literal["status", "preemption-started", "preemption-completed", "queue-blocked"]
    classic: bool = False
    """True for a container job of a classic queue: its event says all there is to know."""
    name: str | None = None
    queue: str | None = None
    """ARN of the job queue; preemption events do not carry it."""
    status: Status | None = None
    reason: str | None = None
    created_at: int | None = None
    stopped_at: int | None = None
    attempt: str | None = None
    """ARN of the latest attempt's training job."""
    attempts: tuple[AttemptSeen, ...] = ()
    preempted_count: int | None = None
    tags: tuple[tuple[str, str], ...] = ()


class TrainingObservation(Frozen):
    """A SageMaker event about one training job; it does not say which Batch job it belongs to."""

    training_job: str
    at: int
    status: str
    secondary_status: str | None = None
    failure_reason: str | None = None
    instance_type: str | None = None
    instance_count: int | None = None
    started_at: int | None = None
    stopped_at: int | None = None


class ApiCallObservation(Frozen):
    """A write call to Batch that CloudTrail saw: it attributes, it never decides."""

    event_id: str
    at: int
    operation: str
    principal: str
    """ARN of the caller, as CloudTrail's userIdentity gives it."""
    subjects: tuple[str, ...] = ()
    """Job ids or ARNs, or the quota-share ARN; the ARN of the answer where there is one."""
    priority: int | None = None
    request: str = "{}"
    """The request parameters as canonical JSON."""


class Unrecognised(Frozen):
    """An event of a type that this version does not know."""

    source: str
    detail_type: str
    at: int


Observation = JobObservation | TrainingObservation | ApiCallObservation | Unrecognised


class JobDescription(Frozen):
    """What DescribeServiceJob said at ``read_at``: the truth that settles doubts."""

    job: str
    arn: str
    read_at: int
    name: str
    queue: str
    status: Status
    created_at: int
    reason: str | None = None
    terminated: bool = False
    """Somebody's request to terminate it was accepted."""
    share: str | None = None
    priority: int | None = None
    scheduled_at: int | None = None
    started_at: int | None = None
    stopped_at: int | None = None
    attempt: str | None = None
    attempts: tuple[AttemptSeen, ...] = ()
    preempted_count: int = 0
    preemption_retries: int | None = None
    """None: Batch requeues without end."""
    tags: tuple[tuple[str, str], ...] = ()
    instance_type: str | None = None
    instance_count: int | None = None
    checkpoint_uri: str | None = None
    role: str | None = None
    max_runtime: int | None = None
    """Of an attempt, in milliseconds: the shorter one of what Batch and SageMaker were asked to allow."""


class JobSummary(Frozen):
    """One row of ListServiceJobs: it has no priority, no tags and no preemption summary."""

    job: str
    arn: str
    name: str
    status: Status
    created_at: int
    share: str | None = None
    attempt: str | None = None


class ShareDescription(Frozen):
    """One row of ListQuotaShares. ``limits`` maps a capacity unit (an instance type) to maxCapacity."""

    arn: str
    name: str
    queue: str
    limits: tuple[tuple[str, int], ...]
    strategy: Literal["RESERVE", "LEND", "LEND_AND_BORROW"]
    borrow_limit: int | None = None
    """Percent of the own maxCapacity per unit; -1: no limit; None: cannot borrow."""
    in_share_preemption: bool = False
    enabled: bool = True
