"""What the sweep remembers, and what it decides about one record."""

from collections.abc import Sequence
from typing import ClassVar

from .attempts import Attempt
from .audit import AuditFact, subject_key
from .boosts import end_due_boosts, expire_wish
from .decide import Decision, decide, joined, let_go
from .facts import gap_fact, timeline_fact
from .gaps import UNKNOWN, forgotten_preemptions, unexplained_preemptions
from .observation import DISPATCHED, SETTLE, TERMINAL, JobSummary
from .policy import Policy
from .priority import live_boosts
from .record import (
    JobRecord,
    doubtful,
    settle_end_forgotten,
    settle_end_read,
    status,
)
from .resubmission import is_open
from .resubmitting import expire, forgotten
from .stored import DAY, Stored
from .termination import open_terminations

#: An event may take this long: EventBridge retries a target for a day (EventBridge user guide, Retry policy).
#: A gap waits for it, or what happened would be on record twice.
GAP_AFTER = DAY + SETTLE
#: A classic job of which nothing was heard for so long has lost the event of its end: nobody can be asked.
SILENT = 30 * DAY
#: A clock may be wrong by so much: a time that lies further ahead says nothing of when something happened.
AHEAD = DAY
#: Gaps that one look puts on record, of each of two sorts: a commit holds a hundred actions.
GAPS_AT_ONCE = 10
#: Names that one adoption digest spells out; the count is always right.
NAMED_IN_DIGEST = 200


class SweepState(Stored):
    """The lease, where the next sweep begins, and what was adopted since the last digest."""

    item: ClassVar[str] = "SWEEP"

    holder: str | None = None
    until: int = 0
    next_queue: int = 0
    """Index into the sorted queues where the next sweep begins."""
    finished_at: int = 0
    """When a sweep last came to its end, for whoever asks whether they still do."""
    adopted: tuple[str, ...] = ()
    backlog_since: int = 0
    """The sweep that first left acts to the next one because of the blast radius; 0: none are left."""

    @property
    def key(self) -> str:
        return "all"


def portions(budget: int, sizes: Sequence[int]) -> list[int]:
    """How much of the budget each kind of work gets, the most important first.

    A tenth of it is kept for each later kind, as far as that needs it: none waits for ever.
    """
    granted: list[int] = []
    for place, size in enumerate(sizes):
        kept = sum(min(later, budget // 10) for later in sizes[place + 1 :])
        granted.append(max(0, min(size, budget - sum(granted) - kept)))
    return granted


def needs_read(record: JobRecord, listed: JobSummary | None, *, whole: bool) -> bool:
    """True when only Batch can tell: the listing disagrees, or something of ours is under way.

    ``whole``: the listing holds every active job. One that it holds is active, whatever an event said.
    """
    if record.classic:
        return False
    if record.end is not None:
        return listed is not None or is_open(record.resubmission) or _gaps_to_ask_about(record)
    ledger = record.priority
    ours = (ledger.wish, ledger.sent, ledger.suspect)
    return (
        any(one is not None for one in ours)
        or bool(open_terminations(record.terminations))
        or bool(live_boosts(ledger))
        or lags(record, listed, whole=whole)
        or doubtful(record)
        or _gaps_to_ask_about(record)
    )


def lags(record: JobRecord, listed: JobSummary | None, *, whole: bool) -> bool:
    """True when Batch lists the job otherwise than the record has it, or no longer among the active ones."""
    return record.end is None and (whole if listed is None else _disagrees(record, listed))


def housekeeping(record: JobRecord, policy: Policy, now: int, *, may_act: bool) -> Decision:
    """Everything that time alone makes due for one record."""
    decision = decide(settle_end_read(record, now, SETTLE), policy)
    acts = [end_due_boosts] if may_act else []
    for step in (expire_wish, expire, *acts, _gaps, _close, _close_silent):
        decision = joined(decision, step(decision.record, policy, now))
    return decision


def missing(record: JobRecord, policy: Policy, now: int) -> Decision:
    """Batch says it knows no such job: believed when it says so again after ``SETTLE``."""
    if record.end is not None and not is_open(record.resubmission):
        return Decision(record=record)
    if record.missing_since is None:
        return Decision(record=record.model_copy(update={"missing_since": now}))
    if now - record.missing_since < SETTLE:
        return Decision(record=record)
    if record.end is not None:
        return forgotten(record, policy, now)
    ended = settle_end_forgotten(record)
    if ended.end is not None:
        return Decision(record=ended)
    fact = gap_fact(
        record,
        policy,
        subject="vanished",
        at=record.missing_since,
        reason=f"Batch forgot the job before its end was seen; last known state {status(record)}",
    )
    freed = let_go(record.model_copy(update={"closed_at": now}), policy, record.missing_since)
    return Decision(record=freed.record, facts=(fact, *freed.facts))


def digest(adopted: tuple[str, ...], since: int, policy: Policy, now: int) -> AuditFact:
    """One record for all the jobs that were there before Sharewarden looked."""
    return AuditFact(
        key=subject_key("adoption", since),
        kind="adoption",
        at=now,
        actor="sharewarden",
        reason=f"{len(adopted)} jobs were there before: listed here, not acted upon",
        figures={"count": len(adopted), "jobs": list(adopted[:NAMED_IN_DIGEST])},
        policy=policy.hash,
    )


def _disagrees(record: JobRecord, listed: JobSummary) -> bool:
    known = {attempt.training_job for attempt in record.attempts}
    dispatched_unknown = listed.status in DISPATCHED and listed.attempt and listed.attempt not in known
    return listed.status != status(record) or bool(dispatched_unknown)


def _has_gaps(record: JobRecord) -> bool:
    return unexplained_preemptions(record) > record.gaps or bool(_unstopped(record))


def _gaps_to_ask_about(record: JobRecord) -> bool:
    """Batch keeps a sliding window of attempts: an answer since the newest event is all it will tell."""
    if not _has_gaps(record):
        return False
    read, heard = record.snapshot, max((entry.at for entry in record.timeline[-1:]), default=0)
    return read is None or (read.status not in TERMINAL and read.read_at <= heard)


def _unstopped(record: JobRecord) -> list[Attempt]:
    """Preempted attempts whose stop nobody has told."""
    return [one for one in record.attempts if one.preempted and one.stopped_at is None and not one.audited]


def _gaps(record: JobRecord, policy: Policy, now: int) -> Decision:
    """Batch keeps a sliding window of preempted attempts: what it has dropped is known by number alone."""
    heard = _last_heard(record, now)
    if not _has_gaps(record) or now - heard < GAP_AFTER:
        return Decision(record=record)
    unstopped = _unstopped(record)[:GAPS_AT_ONCE]
    lost = min(unexplained_preemptions(record), record.gaps + GAPS_AT_ONCE)
    told = [
        (one.training_job, f"attempt {one.training_job} was preempted: Batch never told when it stopped")
        for one in unstopped
    ]
    told += [
        (f"{UNKNOWN}-{number}", f"preemption {number}, details unknown: Batch counts it and tells no more")
        for number in range(record.gaps + 1, lost + 1)
    ]
    facts = tuple(gap_fact(record, policy, subject=subject, at=heard, reason=why) for subject, why in told)
    attempts = tuple(
        one.model_copy(update={"audited": True}) if one in unstopped else one for one in record.attempts
    )
    update = {
        "gaps": max(record.gaps, lost),
        "attempts": attempts,
        "preemptions_told": record.preemptions_told + len(unstopped),
    }
    return Decision(record=record.model_copy(update=update), facts=facts)


def _close(record: JobRecord, policy: Policy, now: int) -> Decision:
    """The end of the story, once everything in it is on record."""
    if record.end is None or record.closed_at is not None or now - _last_heard(record, now) < SETTLE:
        return Decision(record=record)
    if is_open(record.resubmission) or _has_gaps(record) or decide(record, policy) != Decision(record=record):
        return Decision(record=record)
    facts = (timeline_fact(record, policy), *_forgotten(record, policy, now))
    return Decision(record=record.model_copy(update={"closed_at": now}), facts=facts)


def _forgotten(record: JobRecord, policy: Policy, now: int) -> tuple[AuditFact, ...]:
    """One gap with a number, where a job had more attempts than a record keeps."""
    count = forgotten_preemptions(record)
    if not count:
        return ()
    why = f"{count} more preemptions than a record has room for: no details of them were kept"
    return (gap_fact(record, policy, subject="forgotten", at=_last_heard(record, now), reason=why),)


def _close_silent(record: JobRecord, policy: Policy, now: int) -> Decision:
    """A classic job can not be asked about, so one whose end was lost would stay open for ever."""
    heard = _last_heard(record, now)
    over = record.end is not None or record.closed_at is not None
    if over or not record.classic or now - heard < SILENT:
        return Decision(record=record)
    why = f"nothing was heard of the job for {SILENT // DAY} days; last known state {status(record)}"
    fact = gap_fact(record, policy, subject="silent", at=heard, reason=why)
    return Decision(record=record.model_copy(update={"closed_at": now}), facts=(fact,))


def _last_heard(record: JobRecord, now: int) -> int:
    """The newest time that the record knows of and that can have come."""
    times = [record.created_at, *(entry.at for entry in record.timeline)]
    times += [record.end.at] if record.end else []
    return max((at for at in times if at <= now + AHEAD), default=0)
