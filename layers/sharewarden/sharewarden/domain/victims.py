"""Which running jobs a raised one is likely to push out of its share.

Batch chooses; it is documented to look at instances borrowed, relative priority and duration (Batch user
guide, preemption), and keeps the formula to itself. So all that may be chosen are told, the likeliest first.
"""

from collections.abc import Iterable
from itertools import accumulate

from .observation import DISPATCHED, ShareDescription
from .record import JobRecord, dispatched_since, status


def likely_victims(
    raised: JobRecord, value: int, others: Iterable[JobRecord], share: ShareDescription
) -> tuple[JobRecord, ...]:
    """The jobs of the share that in-share preemption may stop for ``raised`` at that priority.

    They hold capacity of its instance type at a lower priority. None where that is off, or where the share
    has room for it. More borrowed instances go first, then lower priority, then the shorter run.
    """
    if not share.in_share_preemption:
        return ()
    held = sorted((one for one in others if _is_beside(raised, one)), key=_since)
    limit = dict(share.limits).get(raised.instance_type or "")
    borrowed = _borrowed(held, limit)
    used = sum(map(_instances, held))
    if limit is not None and raised.instance_count and used + raised.instance_count <= limit:
        return ()
    lower = [one for one in held if one.priority.confirmed is not None and one.priority.confirmed < value]
    lower.sort(key=lambda one: (-borrowed[one.job], one.priority.confirmed or 0, -_since(one)))
    return tuple(lower)


def _is_beside(raised: JobRecord, other: JobRecord) -> bool:
    same = (other.share, other.instance_type) == (raised.share, raised.instance_type)
    return same and status(other) in DISPATCHED


def _since(record: JobRecord) -> int:
    return dispatched_since(record) or record.created_at


def _instances(record: JobRecord) -> int:
    return record.instance_count or 0


def _borrowed(held: list[JobRecord], limit: int | None) -> dict[str, int]:
    """What each job holds beyond the share's own: that goes to those that were dispatched last."""
    if limit is None:
        return dict.fromkeys((one.job for one in held), 0)
    used = accumulate(map(_instances, held))
    return {
        one.job: min(_instances(one), max(0, so_far - limit)) for one, so_far in zip(held, used, strict=True)
    }
