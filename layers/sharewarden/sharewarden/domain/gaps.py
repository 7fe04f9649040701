"""Preemptions that Batch counts and that left no details."""

from .attempts import KEPT_ATTEMPTS
from .audit import AuditFact
from .record import JobRecord

#: In the key of a gap that stands for a preemption, before its number.
UNKNOWN = "preemption"


def unexplained_preemptions(record: JobRecord) -> int:
    """How many preemptions Batch counts beyond those whose attempt is known.

    Once attempts have been forgotten nobody can tell: then none, rather than a false alarm. No more than
    could be kept: each becomes an audit record of its own, and a count may be nonsense.
    """
    if len(record.attempts) >= KEPT_ATTEMPTS:
        return 0
    known = sum(attempt.preempted for attempt in record.attempts)
    return min(record.preempted_count - known, KEPT_ATTEMPTS)


def forgotten_preemptions(record: JobRecord) -> int:
    """How many preemptions were pushed out by newer attempts before they could be put on record."""
    if len(record.attempts) < KEPT_ATTEMPTS:
        return 0
    return max(0, record.preempted_count - record.preemptions_told - record.gaps)


def is_preemption(fact: AuditFact) -> bool:
    """Whether a gap stands for a preemption of which nothing but its number is known."""
    return fact.kind == "gap" and f"#{UNKNOWN}-" in fact.key
