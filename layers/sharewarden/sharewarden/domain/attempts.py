"""The attempts (training jobs) of a job, joined from every source that names them.

The join is commutative, associative and idempotent, so the order and the number of deliveries
cannot change the result.
"""

from collections.abc import Iterable

from .base import Frozen
from .observation import AttemptSeen

#: More attempts than this are forgotten, oldest first: an item of DynamoDB ends at 400 KB.
KEPT_ATTEMPTS = 200


class Attempt(Frozen):
    """One training job of the job. ``audited`` is ours: its preemption is on record."""

    training_job: str
    started_at: int | None = None
    stopped_at: int | None = None
    reason: str | None = None
    preempted: bool = False
    audited: bool = False


def join(attempts: tuple[Attempt, ...], seen: Iterable[AttemptSeen]) -> tuple[Attempt, ...]:
    """``attempts`` with what was ``seen`` of them, ordered by time and name."""
    known = {attempt.training_job: attempt for attempt in attempts}
    for one in seen:
        known[one.training_job] = _join_one(known.get(one.training_job), one)
    return tuple(sorted(known.values(), key=_order)[-KEPT_ATTEMPTS:])


def _join_one(known: Attempt | None, seen: AttemptSeen) -> Attempt:
    if known is None:
        return Attempt(**seen.model_dump())
    return Attempt(
        training_job=known.training_job,
        started_at=_greatest(known.started_at, seen.started_at),
        stopped_at=_greatest(known.stopped_at, seen.stopped_at),
        reason=_reason(known, seen),
        preempted=known.preempted or seen.preempted,
        audited=known.audited,
    )


def _reason(known: Attempt, seen: AttemptSeen) -> str | None:
    """The preemption's own reason wins: ``attempts`` may name the same stop in SageMaker's words."""
    if known.preempted != seen.preempted:
        first, second = (known, seen) if known.preempted else (seen, known)
        return first.reason or second.reason
    return max(filter(None, (known.reason, seen.reason)), default=None)


def _greatest(a: int | None, b: int | None) -> int | None:
    return max((value for value in (a, b) if value is not None), default=None)


def _order(attempt: Attempt) -> tuple[int, str]:
    return (attempt.stopped_at or attempt.started_at or 0, attempt.training_job)
