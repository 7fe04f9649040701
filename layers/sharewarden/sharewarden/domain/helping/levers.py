"""Why a bump does not help, and what would: each lever was tried on the pool before it is named."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from .answer import Change, Lever, Reason
from .reading import Reading, readings
from .view import JobView, PoolView, ShareView

#: Jobs to wait for that are named.
MOST_WAITS = 3


class Why(NamedTuple):
    reason: Reason
    text: str


def why_not(reading: Reading, share: ShareView, priority: int) -> Why:
    """Why the job would not start as the first one of its share with that priority."""
    job, book = reading.job, reading.book(reading.job.unit)
    asked = job.instances or 0
    if not book.allows(share.name, asked):
        return _pushing_out(reading, share, priority, Why("share-full", _use(reading, share)))
    if not book.owns(share.name, asked):
        text = f"{_use(reading, share)}, and the others have too little idle {job.unit} to lend"
        return _pushing_out(reading, share, priority, Why("nothing-idle", text))
    text = f"the service environment has {book.limit} {job.unit}, of which {book.total} are in use"
    return _pushing_out(reading, share, priority, Why("environment-full", text))


def _pushing_out(reading: Reading, share: ShareView, priority: int, full: Why) -> Why:
    """The same with why nobody of the share is pushed out."""
    if share.in_share_preemption:
        text = f"{full.text}; jobs of {share.name} with a lower priority do not hold enough"
        return Why(full.reason, text)
    with_it = _changed(reading.pool, share, {"in_share_preemption": True})
    if starts(with_it, reading.job, priority):
        return Why("in-share-off", f"{full.text}; in-share preemption is off in {share.name}")
    return full


def _use(reading: Reading, share: ShareView) -> str:
    job, book = reading.job, reading.book(reading.job.unit)
    most = book.most[share.name]
    room = "may borrow what is idle" if most is None else f"may use {most}"
    return (
        f"{share.name} uses {book.used[share.name]} {job.unit}, has {book.own[share.name]} and {room};"
        f" the job asks for {job.instances}"
    )


def levers(pool: PoolView, job: JobView, share: ShareView, priority: int) -> tuple[Lever, ...]:
    """What would let the job start, each alone, at a priority that makes it the first of its share."""
    base = readings(pool, job)
    tried = _changes(base[0], share)
    working = tuple(lever for lever, update in tried if starts(_changed(pool, share, update), job, priority))
    return (*working, *_waits(base))


def _changes(reading: Reading, share: ShareView) -> Iterator[tuple[Lever, dict[str, Any]]]:
    """Settings of the share that may help, and what they would be."""
    job, name, book = reading.job, share.name, reading.book(reading.job.unit)
    unit, own, wanted = job.unit or "", book.own[name], book.used[name] + (job.instances or 0)
    if not share.in_share_preemption:
        text = f"turn in-share preemption on in {name}"
        yield _lever("in-share-preemption", name, text), {"in_share_preemption": True}
    if share.strategy != "LEND_AND_BORROW":
        text = f"let {name} borrow (strategy LEND_AND_BORROW)"
        yield _lever("strategy", name, text), {"strategy": "LEND_AND_BORROW", "borrow_limit": -1}
    elif own and not book.allows(name, job.instances or 0):
        percent = -(-100 * (wanted - own) // own)
        text = f"raise the borrow limit of {name} to {percent}%"
        yield _lever("borrow-limit", name, text, percent), {"borrow_limit": percent}
    if wanted > own:
        text = f"raise the capacity limit of {name} for {unit} to {wanted}"
        lever = Lever(change="capacity-limit", share=name, unit=unit, value=wanted, text=text)
        yield lever, {"limits": share.limits | {unit: wanted}}


def _lever(change: Change, share: str, text: str, value: int | None = None) -> Lever:
    return Lever(change=change, share=share, text=text, value=value)


def _waits(base: list[Reading]) -> tuple[Lever, ...]:
    """The jobs whose end alone makes room: the soonest expected end first, then the oldest."""
    first = base[0]
    held = sorted(first.held(first.job.unit), key=_ends)
    alone = (job for job in held if all(_frees(reading, job) for reading in base))
    return tuple(_wait(job) for job, _ in zip(alone, range(MOST_WAITS), strict=False))


def _frees(reading: Reading, ended: JobView) -> bool:
    return reading.has_room(reading.book(ended.unit).without([ended]))


def _ends(job: JobView) -> tuple[bool, int, int, str]:
    return (job.expected_end is None, job.expected_end or 0, job.dispatched_at or 0, job.job)


def _wait(job: JobView) -> Lever:
    return Lever(
        change="wait",
        share=job.share,
        job=job.job,
        at=job.expected_end,
        text=f"wait until {job.name} ({job.share}) ends",
    )


def starts(pool: PoolView, job: JobView, priority: int) -> bool:
    """Whether the job starts in every reading."""
    return all(reading.verdict(priority) == "yes" for reading in readings(pool, job))


def _changed(pool: PoolView, share: ShareView, update: dict[str, Any]) -> PoolView:
    new = share.model_copy(update=update)
    return pool.model_copy(update={"shares": tuple(new if one is share else one for one in pool.shares)})
