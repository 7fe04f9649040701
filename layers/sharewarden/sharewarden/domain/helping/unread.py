"""What of the pool is not known, or not settled, so that no answer can be given (design laws 2 and 6)."""

from collections.abc import Iterator

from .levers import Why
from .reading import readings
from .view import JobView, PoolView


def unknown(pool: PoolView, job: JobView) -> Why | None:
    """Why nothing can be said of the job; None when something can."""
    if job.status != "RUNNABLE":
        return Why("not-queued-yet", f"it is {job.status}: Batch has not queued it yet")
    gap = next(_gaps(pool, job), None)
    if gap is not None:
        return Why("unread", gap)
    units = pool.linked(job.unit or "")
    under_way = next((text for one in pool.jobs if (text := _on_its_way(one, job, units))), None)
    if under_way is not None:
        return Why("under-way", under_way)
    moves = (reading.moving(units) for reading in readings(pool, job))
    moving = next((text for text in moves if text), None)
    return None if moving is None else Why("moving", moving)


def _gaps(pool: PoolView, job: JobView) -> Iterator[str]:
    yield from pool.gaps
    if job.unit is None or job.instances is None or job.priority is None:
        yield "its instance type, number of instances or priority is not known"
    elif pool.share(job.share) is None:
        yield f"its share {job.share or '(none)'} could not be read"
    else:
        units = pool.linked(job.unit)
        yield from (f"not all is known of {one.name}" for one in pool.jobs if _is_open(pool, one, units))


def _is_open(pool: PoolView, one: JobView, units: frozenset[str]) -> bool:
    """Whether the job may stand in the way, and how is not known."""
    if one.unit is None or pool.share(one.share) is None:
        return True
    return one.unit in units and (one.instances is None or one.priority is None)


def _on_its_way(one: JobView, job: JobView, units: frozenset[str]) -> str | None:
    if one.unit not in units or one.job == job.job:
        return None
    if one.stopping:
        return f"{one.name} is being stopped: whose its {one.unit} will be shows once it has"
    return f"{one.name} is about to be queued" if one.waits and one.status != "RUNNABLE" else None
