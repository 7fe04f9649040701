"""The job record: everything known of one job, folded from hints (events) and truth (Describe).

Events come late, doubled, out of order, or never. Folding is a set union ordered by (event time,
status order), so the delivery cannot change the outcome; what two hints leave open is settled by
one Describe (see ``doubtful``).
"""

from typing import ClassVar

from .attempts import Attempt, join
from .base import Frozen
from .observation import (
    DISPATCHED,
    STATUS_ORDER,
    TERMINAL,
    AttemptSeen,
    JobDescription,
    JobObservation,
    Status,
)
from .priority import PriorityLedger
from .stored import KEEP_AFTER_END, Stored

#: The newest entries of a timeline that are kept.
KEPT_TRANSITIONS = 500
SECOND = 1000


class Transition(Frozen):
    """One entry of the timeline. ``at`` has the resolution of EventBridge: a whole second."""

    at: int
    what: str
    status: Status | None = None
    attempt: str | None = None
    reason: str | None = None


class Snapshot(Frozen):
    """What Batch said when it was last asked."""

    read_at: int
    status: Status
    attempt: str | None = None
    dispatched_at: int | None = None


class End(Frozen):
    """How the job ended. ``at`` is when it stopped, or the event's time where Batch gave no stop time."""

    status: Status
    at: int
    reason: str | None = None


class JobRecord(Stored):
    """One service job (or opt-in classic job). Identity comes from Describe; events carry no tags."""

    item: ClassVar[str] = "JOB"

    job: str
    arn: str
    name: str
    queue: str
    created_at: int
    classic: bool = False
    share: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    instance_type: str | None = None
    instance_count: int | None = None
    checkpoint_uri: str | None = None
    role: str | None = None
    preemption_retries: int | None = None

    timeline: tuple[Transition, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    preempted_count: int = 0
    gaps: int = 0
    """Preemptions known only by number whose gap is on record already."""
    snapshot: Snapshot | None = None
    priority: PriorityLedger = PriorityLedger()

    end: End | None = None
    end_audited: bool = False
    missing_since: int | None = None
    """When Batch first said that it does not know this job."""
    closed_at: int | None = None
    """When the sweep found nothing left to do: the timeline is on record, the job leaves the open index."""

    @property
    def key(self) -> str:
        return self.job

    @property
    def expires_at(self) -> int | None:
        return None if self.closed_at is None else self.closed_at + KEEP_AFTER_END

    @property
    def open_queue(self) -> str | None:
        return self.queue if self.closed_at is None else None

    def tag(self, name: str) -> str | None:
        """The value of a tag of the job, or None."""
        return dict(self.tags).get(name)


def new_record(seen: JobObservation | JobDescription) -> JobRecord:
    """An empty record for the job in ``seen``. Raises ValueError when it does not name the queue."""
    if seen.queue is None:
        raise ValueError(f"job {seen.job}: its queue is not known")
    return JobRecord(
        job=seen.job,
        arn=seen.arn,
        name=seen.name or seen.job,
        queue=seen.queue,
        created_at=seen.created_at or (seen.at if isinstance(seen, JobObservation) else seen.read_at),
        classic=isinstance(seen, JobObservation) and seen.classic,
        tags=seen.tags,
    )


def fold(record: JobRecord, seen: JobObservation) -> JobRecord:
    """The record with one event added. Adding it again changes nothing."""
    entry = Transition(
        at=seen.at, what=seen.what, status=seen.status, attempt=seen.attempt, reason=seen.reason
    )
    named = (AttemptSeen(training_job=seen.attempt),) if seen.attempt else ()
    return record.model_copy(
        update={
            "timeline": _merge(record.timeline, entry),
            "attempts": join(record.attempts, (*named, *seen.attempts)),
            "preempted_count": max(record.preempted_count, seen.preempted_count or 0),
            "end": record.end or _end_in_event(seen),
        }
    )


def absorb(record: JobRecord, read: JobDescription) -> JobRecord:
    """The record with the answer of a Describe. An answer older than the last one adds only facts."""
    joined: dict[str, object] = {
        "attempts": join(record.attempts, read.attempts),
        "preempted_count": max(record.preempted_count, read.preempted_count),
        "end": record.end or _end_in_description(read),
    }
    if record.snapshot is None or read.read_at >= record.snapshot.read_at:
        joined |= _identity(read) | {"snapshot": _snapshot(read), "missing_since": None}
    return record.model_copy(update=joined)


def status(record: JobRecord) -> Status:
    """The job's state as far as known. A terminal state is final."""
    if record.end is not None:
        return record.end.status
    last = last_step(record)
    read = record.snapshot
    if last is None or last.status is None:
        return read.status if read else "SUBMITTED"
    if read is not None and read.read_at >= last.at + SECOND:
        return read.status
    return last.status


def doubtful(record: JobRecord) -> bool:
    """True when the newest second of the timeline does not climb from what came before it.

    A step back (a requeue, or an event out of order) and two attempts in one second look alike from
    outside: one Describe, read after that second, settles it.
    """
    steps = _steps(record)
    if record.end is not None or not steps:
        return False
    newest = steps[-1].at
    if record.snapshot is not None and record.snapshot.read_at >= newest + SECOND:
        return False
    together = [step for step in steps if step.at == newest]
    if len({step.attempt for step in together if step.attempt}) > 1:
        return True
    before = [step for step in steps if step.at < newest]
    return bool(before) and _rank(before[-1]) >= min(map(_rank, together))


def ended_without_details(record: JobRecord, seen: JobObservation) -> bool:
    """True when an event says the job ended but not when it stopped: Describe knows more."""
    return record.end is None and seen.what == "status" and seen.status in TERMINAL


def settle_end(record: JobRecord) -> JobRecord:
    """The record ended by the best that is known, where Batch gives no stop time (a job that never ran)."""
    if record.end is not None:
        return record
    ends = [
        End(status=step.status, at=step.at, reason=step.reason)
        for step in _steps(record)
        if step.status in TERMINAL
    ]
    read = record.snapshot
    if read is not None and read.status in TERMINAL:
        ends.append(End(status=read.status, at=read.read_at))
    return record.model_copy(update={"end": ends[0]}) if ends else record


def last_step(record: JobRecord) -> Transition | None:
    """The newest state change in the timeline."""
    return next(reversed(_steps(record)), None)


def dispatched_since(record: JobRecord) -> int | None:
    """When the job was last handed to SageMaker, if it holds capacity now; None if it does not."""
    if status(record) not in DISPATCHED:
        return None
    read = record.snapshot
    known = [read.dispatched_at] if read and read.dispatched_at and read.status in DISPATCHED else []
    for step in reversed(_steps(record)):
        if step.status not in DISPATCHED:
            break
        known.append(step.at)
    return min(known) if known else None


def unexplained_preemptions(record: JobRecord) -> int:
    """How many preemptions Batch counts beyond those whose attempt is known."""
    return record.preempted_count - sum(attempt.preempted for attempt in record.attempts)


def _merge(timeline: tuple[Transition, ...], entry: Transition) -> tuple[Transition, ...]:
    if entry in timeline:
        return timeline
    return tuple(sorted((*timeline, entry), key=_timeline_order)[-KEPT_TRANSITIONS:])


def _timeline_order(entry: Transition) -> tuple[int, int, str, str, str]:
    return (entry.at, _rank(entry), entry.what, entry.attempt or "", entry.reason or "")


def _rank(entry: Transition) -> int:
    return -1 if entry.status is None else STATUS_ORDER[entry.status]


def _steps(record: JobRecord) -> list[Transition]:
    return [entry for entry in record.timeline if entry.what == "status" and entry.status]


def _end_in_event(seen: JobObservation) -> End | None:
    if seen.what != "status" or seen.status not in TERMINAL or seen.stopped_at is None:
        return None
    return End(status=seen.status, at=seen.stopped_at, reason=seen.reason)


def _end_in_description(read: JobDescription) -> End | None:
    if read.status not in TERMINAL or read.stopped_at is None:
        return None
    return End(status=read.status, at=read.stopped_at, reason=read.reason)


def _snapshot(read: JobDescription) -> Snapshot:
    return Snapshot(
        read_at=read.read_at, status=read.status, attempt=read.attempt, dispatched_at=read.scheduled_at
    )


def _identity(read: JobDescription) -> dict[str, object]:
    return {
        "arn": read.arn,
        "name": read.name,
        "queue": read.queue,
        "created_at": read.created_at,
        "share": read.share,
        "tags": read.tags,
        "instance_type": read.instance_type,
        "instance_count": read.instance_count,
        "checkpoint_uri": read.checkpoint_uri,
        "role": read.role,
        "preemption_retries": read.preemption_retries,
    }
