"""The job record: everything known of one job, folded from hints (events) and truth (Describe).

Events come late, doubled, out of order, or never. Folding is a set union ordered by (event time,
status order), so the delivery cannot change the outcome; what two hints leave open is settled by
one Describe (see ``doubtful``).
"""

from typing import ClassVar

from .attempts import Attempt, join
from .base import LONG_REASON, Frozen, shortened
from .marks import Mark, without_acts
from .observation import (
    DISPATCHED,
    STATUS_ORDER,
    TERMINAL,
    AttemptSeen,
    JobDescription,
    JobObservation,
    Status,
    is_old_news,
)
from .priority import PriorityLedger
from .resubmission import Resubmission
from .saves import Saves
from .stored import SECOND, Closing
from .termination import Terminations

#: The newest entries of a timeline that are kept.
KEPT_TRANSITIONS = 500
#: What a record takes over from Describe as it is.
_DESCRIBED = (
    *("arn", "name", "queue", "created_at", "share", "tags", "instance_type", "instance_count"),
    *("checkpoint_uri", "role", "preemption_retries", "max_runtime"),
)


class Transition(Frozen):
    """One entry of the timeline. ``at`` has the resolution of EventBridge: a whole second."""

    at: int
    what: str
    status: Status | None = None
    attempt: str | None = None
    reason: str | None = None
    stopped_at: int | None = None


class Snapshot(Frozen):
    """What Batch said when it was last asked."""

    read_at: int
    status: Status
    reason: str | None = None
    attempt: str | None = None
    dispatched_at: int | None = None
    started_at: int | None = None
    """Of the job; that it is the running attempt's is not documented."""
    terminated: bool = False
    """Somebody's request to terminate it was accepted."""


class End(Frozen):
    """How the job ended. ``at`` is when it stopped, or the event's time where Batch gave no stop time."""

    status: Status
    at: int
    reason: str | None = None
    hinted: bool = False
    """Only an event without details said so, of a job that Batch did not know: its word would count more."""


class JobRecord(Closing):
    """One service job, or opt-in classic job.

    Identity comes from Describe: the events of service jobs carry no tags.
    """

    item: ClassVar[str] = "JOB"

    job: str
    arn: str
    name: str
    created_at: int
    classic: bool = False
    share: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    instance_type: str | None = None
    instance_count: int | None = None
    checkpoint_uri: str | None = None
    role: str | None = None
    preemption_retries: int | None = None
    max_runtime: int | None = None
    """Of an attempt, in milliseconds."""

    timeline: tuple[Transition, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    preempted_count: int = 0
    preemptions_told: int = 0
    """Preemptions whose attempt was known, and that are on record: as such, or as one without a stop time."""
    gaps: int = 0
    """Preemptions known only by number whose gap is on record already."""
    snapshot: Snapshot | None = None
    priority: PriorityLedger = PriorityLedger()
    terminations: Terminations = ()
    resubmission: Resubmission | None = None
    drifted: bool = False
    """Somebody else than the submitter and Sharewarden set the base."""
    marks: tuple[Mark, ...] = ()
    saves: Saves = Saves()

    end: End | None = None
    end_audited: bool = False
    woken_at: int = 0
    """When a sweep last asked ``apply`` to look at the open wish."""
    adopted: bool = False
    """It was there before Sharewarden looked: guardrails tell of it and do nothing to it (law 11)."""
    adopted_at: int | None = None
    """When it was found to be there."""
    reopened: int = 0
    """How often Batch showed the job as active after it was taken for ended or gone."""
    missing_since: int | None = None
    """When Batch first said that it does not know this job."""
    booked_days: tuple[int, ...] = ()
    """The UTC days, from the epoch, whose ``UsageDay`` holds instance time of this job."""

    @property
    def key(self) -> str:
        return self.job

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
    """The record with one event added. Adding it again changes nothing; news open a closed record again."""
    entry = Transition(
        at=seen.at,
        what=seen.what,
        status=seen.status,
        attempt=seen.attempt,
        reason=shortened(seen.reason),
        stopped_at=seen.stopped_at,
    )
    folded = record.model_copy(
        update={
            **_told_identity(record, seen),
            "timeline": _merge(record.timeline, entry),
            "attempts": join(record.attempts, (*_named(seen), *seen.attempts)),
            "preempted_count": max(record.preempted_count, seen.preempted_count or 0, _preempted_in(seen)),
            "end": record.end or _end_in_event(seen),
        }
    )
    return record if folded == record else folded.model_copy(update={"closed_at": None})


def absorb(record: JobRecord, read: JobDescription) -> JobRecord:
    """The record with the answer of a Describe. An answer older than the last one adds only facts.

    A terminal answer is final: it stays the snapshot, with the time at which it was first read. A job that
    was only taken for ended or gone goes on when Batch shows it as active.
    """
    if _was_taken_for_over(record) and _shows_active(record, read):
        record = _reopened(record, read.read_at)
    joined: dict[str, object] = {
        "attempts": join(record.attempts, (*_named(read), *read.attempts)),
        "preempted_count": max(record.preempted_count, read.preempted_count, _preempted_in(read)),
        "end": record.end or _end_in_description(read),
        "missing_since": None,
    }
    last = record.snapshot
    if last is None or (last.status not in TERMINAL and not is_old_news(read.read_at, last.read_at)):
        joined |= _identity(read) | {"snapshot": _snapshot(read)}
    return record.model_copy(update=joined)


def status(record: JobRecord) -> Status:
    """The job's state as far as known. A terminal state is final."""
    if record.end is not None:
        return record.end.status
    last = last_step(record)
    read = record.snapshot
    if last is None or last.status is None:
        return read.status if read else "SUBMITTED"
    if read is not None and (read.status in TERMINAL or read.read_at >= last.at + SECOND):
        return read.status
    return last.status


def doubtful(record: JobRecord) -> bool:
    """True when the newest second of the timeline does not climb from what came before it.

    A step back (a requeue, or an event out of order) and two attempts in one second look alike from
    outside: one Describe, read after that second, settles it.
    """
    steps = steps_of(record)
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
    """True when an event says the job ended but not when or why: Describe knows more."""
    return record.end is None and seen.what == "status" and seen.status in TERMINAL


def settle_end(record: JobRecord) -> JobRecord:
    """The record ended by an event that does not tell all, where Batch says the same (a job that never ran).

    About a classic job Batch is not asked. Else the end stays in doubt: an event is a hint.
    """
    read = record.snapshot
    if record.classic:
        return _ended_as_told(record, None, hinted=False)
    if read is None or read.status not in TERMINAL:
        return record
    return _ended_as_told(record, read.reason, hinted=False)


def settle_end_forgotten(record: JobRecord) -> JobRecord:
    """The record ended by an event that does not tell all, where Batch knows no such job (any more)."""
    return _ended_as_told(record, None, hinted=True)


def _ended_as_told(record: JobRecord, reason: str | None, *, hinted: bool) -> JobRecord:
    told = next((step for step in steps_of(record) if step.status in TERMINAL), None)
    if record.end is not None or told is None or told.status is None:
        return record
    end = End(status=told.status, at=told.stopped_at or told.at, reason=told.reason or reason, hinted=hinted)
    return record.model_copy(update={"end": end})


def settle_end_read(record: JobRecord, now: int, patience: int) -> JobRecord:
    """The record ended by the terminal state that was read ``patience`` ms ago: no event will tell more."""
    read = record.snapshot
    if record.end is not None or read is None or read.status not in TERMINAL:
        return record
    if now - read.read_at < patience:
        return record
    return record.model_copy(update={"end": End(status=read.status, at=read.read_at, reason=read.reason)})


def last_step(record: JobRecord) -> Transition | None:
    """The newest state change in the timeline."""
    return next(reversed(steps_of(record)), None)


def running_attempt(record: JobRecord) -> str | None:
    """ARN of the newest attempt, by whichever is newer, the last step or Batch's answer; None: not told."""
    last, read = last_step(record), record.snapshot
    if read is not None and (last is None or read.read_at >= last.at + SECOND):
        return read.attempt
    return last.attempt if last else None


def dispatched_since(record: JobRecord) -> int | None:
    """When the job was last handed to SageMaker, if it holds or may hold capacity now; None if it does not.

    The last steps that climb are those of one attempt: what Batch said of it counts if it is not older than
    the step before them, and is exact; else the first of them does.
    """
    if not _may_be_dispatched(record):
        return None
    steps = steps_of(record)
    run = _last_run(steps)
    before = steps[-len(run) - 1].at if len(steps) > len(run) else record.created_at
    read = record.snapshot
    if read is not None and read.status in DISPATCHED and (read.dispatched_at or 0) >= before:
        return read.dispatched_at
    return run[0].at if run else None


def _was_taken_for_over(record: JobRecord) -> bool:
    return record.closed_at is not None if record.end is None else record.end.hinted


def _shows_active(record: JobRecord, read: JobDescription) -> bool:
    return read.status not in TERMINAL and not is_old_news(read.read_at, record.missing_since or 0)


def _reopened(record: JobRecord, at: int) -> JobRecord:
    update = {"end": None, "end_audited": False, "closed_at": None, "reopened": record.reopened + 1}
    return record.model_copy(update=update | {"marks": without_acts(record.marks, at)})


def _may_be_dispatched(record: JobRecord) -> bool:
    """An answer read in the second of the newest event may be newer than that."""
    read, last = record.snapshot, last_step(record)
    if record.end is not None or status(record) in DISPATCHED:
        return record.end is None
    return read is not None and read.status in DISPATCHED and last is not None and read.read_at >= last.at


def _last_run(steps: list[Transition]) -> list[Transition]:
    run: list[Transition] = []
    for step in reversed(steps):
        if step.status not in DISPATCHED or (run and _rank(step) >= _rank(run[0])):
            break
        run.insert(0, step)
    return run


def _named(seen: JobObservation | JobDescription) -> tuple[AttemptSeen, ...]:
    return (AttemptSeen(training_job=seen.attempt),) if seen.attempt else ()


def _preempted_in(seen: JobObservation | JobDescription) -> int:
    return sum(attempt.preempted for attempt in seen.attempts)


def _told_identity(record: JobRecord, seen: JobObservation) -> dict[str, object]:
    """What events tell of a job that Batch was never able to describe, whichever of them came first."""
    if record.snapshot is not None:
        return {}
    return {
        "name": (seen.name or record.name) if record.name == record.job else record.name,
        "created_at": min(record.created_at, seen.created_at or seen.at),
        "tags": record.tags or seen.tags,
    }


def _merge(timeline: tuple[Transition, ...], entry: Transition) -> tuple[Transition, ...]:
    if entry in timeline:
        return timeline
    return tuple(sorted((*timeline, entry), key=_timeline_order)[-KEPT_TRANSITIONS:])


def _timeline_order(entry: Transition) -> tuple[int, int, str, str, str, int]:
    told = (entry.what, entry.attempt or "", entry.reason or "", entry.stopped_at or 0)
    return (entry.at, _rank(entry), *told)


def _rank(entry: Transition) -> int:
    return -1 if entry.status is None else STATUS_ORDER[entry.status]


def steps_of(record: JobRecord) -> list[Transition]:
    """The state changes in the timeline, oldest first."""
    return [entry for entry in record.timeline if entry.what == "status" and entry.status]


def _end_in_event(seen: JobObservation) -> End | None:
    """Without stop time and reason it is no end yet, or the record would depend on who told of it first."""
    if seen.what != "status" or seen.status not in TERMINAL:
        return None
    if seen.stopped_at is None or seen.reason is None:
        return None
    return End(status=seen.status, at=seen.stopped_at, reason=shortened(seen.reason, LONG_REASON))


def _end_in_description(read: JobDescription) -> End | None:
    if read.status not in TERMINAL or read.stopped_at is None:
        return None
    return End(status=read.status, at=read.stopped_at, reason=shortened(read.reason, LONG_REASON))


def _snapshot(read: JobDescription) -> Snapshot:
    return Snapshot(
        read_at=read.read_at,
        status=read.status,
        reason=shortened(read.reason, LONG_REASON),
        attempt=read.attempt,
        dispatched_at=read.scheduled_at,
        started_at=read.started_at,
        terminated=read.terminated,
    )


def _identity(read: JobDescription) -> dict[str, object]:
    return {name: getattr(read, name) for name in _DESCRIBED}
