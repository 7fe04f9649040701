"""Whom a start may push out, and what they would lose."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from sharewarden.domain.accelerators import gpus_of

from .answer import Victim
from .reading import Reading
from .view import JobView, PoolView


class Eligible(NamedTuple):
    """A job that may be pushed out: ``direct`` for the job itself, else for one that it held up."""

    job: JobView
    direct: bool


def eligible(base: list[Reading], priority: int) -> tuple[Eligible, ...]:
    """Every job that may be chosen in some reading, the likeliest first.

    Batch looks at instances borrowed, relative priority and duration, and keeps the formula to itself (user
    guide, preemption): that order is a guess, the set is not.
    """
    ways = (reading.way(reading.job, priority) for reading in base)
    direct = {job.job: job for way in ways if way for job in way.victims}
    others = {job.job: job for reading in base for job in reading.unblocked(priority)}
    found = (
        *_likeliest(base[0], direct),
        *_likeliest(base[0], {k: others[k] for k in others.keys() - direct}),
    )
    return tuple(Eligible(job, job.job in direct) for job in found)


def _likeliest(reading: Reading, jobs: Mapping[str, JobView]) -> list[JobView]:
    below = _lower(jobs.values())

    def likeliness(job: JobView) -> tuple[int, float, int, str]:
        borrowed = reading.book(job.unit).over(job.share or "")
        return (-borrowed, below[job.job], -(job.dispatched_at or 0), job.job)

    return sorted(jobs.values(), key=likeliness)


def _lower(jobs: Collection[JobView]) -> dict[str, float]:
    """By job: the part of its share's jobs here that have a lower priority."""
    shares: dict[str, list[int]] = {}
    for job in jobs:
        shares.setdefault(job.share or "", []).append(job.priority or 0)
    return {job.job: _part_below(shares[job.share or ""], job.priority or 0) for job in jobs}


def _part_below(priorities: list[int], priority: int) -> float:
    return sum(one < priority for one in priorities) / len(priorities)


def described(pool: PoolView, one: Eligible, now: int) -> Victim:
    """What it would mean for the job to be pushed out now."""
    job = one.job
    share = pool.share(job.share)
    return Victim(
        job=job.job,
        name=job.name,
        share=job.share or "",
        team=job.team,
        priority=job.priority,
        instances=job.instances or 0,
        gpus=gpus_of(job.unit, job.instances),
        loses=_loses(job, now),
        saved=job.saved_at is not None,
        old_enough_at=old_enough_at(pool, job),
        protected=share is not None and share.protected,
        sla=job.sla,
        direct=one.direct,
    )


def old_enough_at(pool: PoolView, job: JobView) -> int | None:
    """When the job has had its share's minimum runtime (design law 7); None: its dispatch is not known."""
    share = pool.share(job.share)
    if share is None or job.dispatched_at is None:
        return None
    return job.dispatched_at + share.min_runtime


def _loses(job: JobView, now: int) -> int | None:
    """What is not saved of its training, in ms: nothing before it runs."""
    if job.status != "RUNNING":
        return 0
    since = job.started_at if job.saved_at is None else job.saved_at
    return None if since is None else max(0, now - since)
