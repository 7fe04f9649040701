"""The attempts (training jobs) of a job, joined from every source that names them.

The join is commutative, associative and idempotent, so the order and the number of deliveries
cannot change the result.
"""

from collections.abc import Iterable

from .base import Frozen, shortened
from .observation import AttemptSeen

#: More attempts than this are forgotten, oldest first: an item of DynamoDB ends at 400 KB.
KEPT_ATTEMPTS = 200


class Attempt(Frozen):
    """One training job of the job. ``audited`` is ours: its preemption is on record.

    The two reasons are kept apart: ``attempts`` may name the stop of a preempted one in SageMaker's words.
    """

    training_job: str
    started_at: int | None = None
    stopped_at: int | None = None
    reason: str | None = None
    preemption_reason: str | None = None
    preempted: bool = False
    audited: bool = False
    cased: bool = False
    """Its case was opened: see ``preemption/case.py``."""
    mistaken: bool = False
    """That case was a mistake: after it only the preemption itself opens another one."""


def join(attempts: tuple[Attempt, ...], seen: Iterable[AttemptSeen]) -> tuple[Attempt, ...]:
    """``attempts`` with what was ``seen`` of them, ordered by time and name."""
    known = {attempt.training_job: attempt for attempt in attempts}
    for one in seen:
        known[one.training_job] = _join_one(
            known.get(one.training_job) or Attempt(training_job=one.training_job), one
        )
    return tuple(sorted(known.values(), key=_order)[-KEPT_ATTEMPTS:])


def _join_one(known: Attempt, seen: AttemptSeen) -> Attempt:
    reason = shortened(seen.reason)
    plain, preemption = (None, reason) if seen.preempted else (reason, None)
    return Attempt(
        training_job=known.training_job,
        started_at=_greatest(known.started_at, seen.started_at),
        stopped_at=_greatest(known.stopped_at, seen.stopped_at),
        reason=_greatest_text(known.reason, plain),
        preemption_reason=_greatest_text(known.preemption_reason, preemption),
        preempted=known.preempted or seen.preempted,
        audited=known.audited,
        cased=known.cased,
        mistaken=known.mistaken,
    )


def _greatest_text(a: str | None, b: str | None) -> str | None:
    return max(filter(None, (a, b)), default=None)


def _greatest(a: int | None, b: int | None) -> int | None:
    return max((value for value in (a, b) if value is not None), default=None)


def _order(attempt: Attempt) -> tuple[bool, int, str]:
    """One without any time has not started yet: it is the newest."""
    at = attempt.stopped_at or attempt.started_at
    return (at is None, at or 0, attempt.training_job)
