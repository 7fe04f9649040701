"""What the sweep remembers, and what it decides about one record."""

from typing import ClassVar

from .audit import AuditFact, subject_key
from .boosts import drop_wish, end_due_boosts
from .decide import Decision, decide
from .facts import gap_fact, timeline_fact
from .observation import DISPATCHED, JobSummary
from .policy import Policy
from .priority import live_boosts
from .record import JobRecord, doubtful, status, unexplained_preemptions
from .stored import MINUTE, Stored

#: Events later than this are no longer waited for: what they did not bring is a gap.
SETTLE = 10 * MINUTE
#: Names that one adoption digest spells out; the count is always right.
NAMED_IN_DIGEST = 200


class SweepState(Stored):
    """The lease, the cursor, and what was adopted since the last digest."""

    item: ClassVar[str] = "SWEEP"

    holder: str | None = None
    until: int = 0
    next_queue: int = 0
    """Index into the sorted queues where the next sweep begins."""
    adopted: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return "all"


def needs_read(record: JobRecord, listed: JobSummary | None) -> bool:
    """True when only Batch can tell: the listing disagrees, or something of ours is under way."""
    if record.classic:
        return False
    if record.end is not None:
        return unexplained_preemptions(record) > record.gaps
    ledger = record.priority
    busy = ledger.wish is not None or ledger.sent or ledger.suspect is not None or live_boosts(ledger)
    return (
        bool(busy)
        or listed is None
        or _disagrees(record, listed)
        or doubtful(record)
        or unexplained_preemptions(record) > record.gaps
    )


def housekeeping(record: JobRecord, policy: Policy, now: int, *, may_act: bool) -> Decision:
    """Everything that time alone makes due for one record."""
    decision = decide(record, policy)
    record, facts = decision.record, decision.facts
    for step in (_expire_wish, *([end_due_boosts] if may_act else []), _gaps, _close):
        decision = step(record, policy, now)
        record, facts = decision.record, facts + decision.facts
    return Decision(record=record, facts=facts)


def missing(record: JobRecord, policy: Policy, now: int) -> Decision:
    """Batch says it knows no such job: believed when it says so again after ``SETTLE``."""
    if record.end is not None:
        return Decision(record=record)
    if record.missing_since is None:
        return Decision(record=record.model_copy(update={"missing_since": now}))
    if now - record.missing_since < SETTLE:
        return Decision(record=record)
    fact = gap_fact(
        record,
        policy,
        subject="vanished",
        at=record.missing_since,
        reason=f"Batch forgot the job before its end was seen; last known state {status(record)}",
    )
    return Decision(record=record.model_copy(update={"closed_at": now}), facts=(fact,))


def digest(adopted: tuple[str, ...], since: int, policy: Policy, now: int) -> AuditFact:
    """One record for all the jobs that were there before Sharewarden looked."""
    return AuditFact(
        key=subject_key("adoption", since),
        kind="adoption",
        at=now,
        actor="sharewarden",
        reason=f"{len(adopted)} jobs were there before: listed here, nothing was escalated",
        figures={"count": len(adopted), "jobs": list(adopted[:NAMED_IN_DIGEST])},
        policy=policy.hash,
    )


def _disagrees(record: JobRecord, listed: JobSummary) -> bool:
    known = {attempt.training_job for attempt in record.attempts}
    dispatched_unknown = listed.status in DISPATCHED and listed.attempt and listed.attempt not in known
    return listed.status != status(record) or bool(dispatched_unknown)


def _expire_wish(record: JobRecord, policy: Policy, now: int) -> Decision:
    wish = record.priority.wish
    if wish is None or now <= wish.not_after:
        return Decision(record=record)
    return drop_wish(record, wish, "its time ran out before it could be done", policy, now)


def _gaps(record: JobRecord, policy: Policy, now: int) -> Decision:
    """Batch keeps a sliding window of preempted attempts: what it has dropped is known by number alone."""
    lost = unexplained_preemptions(record)
    if lost <= record.gaps or now - _last_heard(record) < SETTLE:
        return Decision(record=record)
    facts = tuple(
        gap_fact(
            record,
            policy,
            subject=f"preemption-{number}",
            at=_last_heard(record),
            reason=f"{number} of the {record.preempted_count} preemptions that Batch counts left no details",
        )
        for number in range(record.gaps + 1, lost + 1)
    )
    return Decision(record=record.model_copy(update={"gaps": lost}), facts=facts)


def _close(record: JobRecord, policy: Policy, now: int) -> Decision:
    if record.end is None or record.closed_at is not None or now - _last_heard(record) < SETTLE:
        return Decision(record=record)
    fact = timeline_fact(record, policy)
    return Decision(record=record.model_copy(update={"closed_at": now}), facts=(fact,))


def _last_heard(record: JobRecord) -> int:
    """The newest time that the record knows of."""
    times = [record.created_at, *(entry.at for entry in record.timeline[-1:])]
    return max(times + ([record.end.at] if record.end else []))
