"""Figures of an outcome: what became of promises, waits, work and GPUs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .outcome import Outcome, Played
from .workload import Sla

HOUR = 3_600_000


class Missed(NamedTuple):
    """Which of the promises to a job were not kept."""

    start: bool
    restart: bool
    finish: bool


class Figures(NamedTuple):
    """Of all jobs, or of one team's. A percentile is the nearest rank; None where there is nothing to rank.

    A job that never ran, or waits at the end, counts with its wait so far. ``used`` is the part of the pool
    that was held within the workload's span; of a team, the part of its own capacity, above 1 if it borrowed.
    """

    jobs: int
    unfinished: int
    sla_jobs: int
    sla_missed: int
    missed_start: int
    missed_restart: int
    missed_finish: int
    sla_wait_p50_ms: int | None
    sla_wait_p95_ms: int | None
    other_wait_p50_ms: int | None
    other_wait_p95_ms: int | None
    preemptions: int
    preemptions_p99: int | None
    lost_gpu_hours: float
    used: float | None

    @property
    def miss_rate(self) -> float | None:
        return self.sla_missed / self.sla_jobs if self.sla_jobs else None


def figures_of(outcome: Outcome) -> Figures:
    """Of all jobs of the workload."""
    return _figures(outcome.jobs, outcome.workload.gpus, outcome.workload.span)


def figures_by_team(outcome: Outcome) -> dict[str, Figures]:
    """The same of each team."""
    teams: dict[str, Figures] = {}
    for share in outcome.workload.shares:
        mine = [played for played in outcome.jobs if played.job.share == share.name]
        teams[share.name] = _figures(mine, share.gpus, outcome.workload.span)
    return teams


def missed(played: Played) -> Missed:
    """What was promised to the job and not kept; what can still be kept is not missed yet."""
    sla = played.job.sla or Sla("none")
    ended = played.seen_until if played.ended_at is None else played.ended_at
    return Missed(
        start=sla.start_within is not None and played.waited > sla.start_within,
        restart=sla.restart_within is not None and max(played.restart_waits, default=0) > sla.restart_within,
        finish=sla.finish_by is not None and ended > sla.finish_by,
    )


def percentile(values: Iterable[int], percent: int) -> int | None:
    """The smallest value that so many percent do not exceed."""
    ranked = sorted(values)
    return ranked[math.ceil(len(ranked) * percent / 100) - 1] if ranked else None


def _figures(jobs: Sequence[Played], gpus: int, span: int) -> Figures:
    promised = [played for played in jobs if played.job.sla]
    misses = [missed(played) for played in promised]
    sla_waits = [played.waited for played in promised]
    other_waits = [played.waited for played in jobs if not played.job.sla]
    held = sum(played.job.gpus * attempt.held(span) for played in jobs for attempt in played.attempts)
    return Figures(
        jobs=len(jobs),
        unfinished=sum(played.ended_at is None for played in jobs),
        sla_jobs=len(promised),
        sla_missed=sum(map(any, misses)),
        missed_start=sum(miss.start for miss in misses),
        missed_restart=sum(miss.restart for miss in misses),
        missed_finish=sum(miss.finish for miss in misses),
        sla_wait_p50_ms=percentile(sla_waits, 50),
        sla_wait_p95_ms=percentile(sla_waits, 95),
        other_wait_p50_ms=percentile(other_waits, 50),
        other_wait_p95_ms=percentile(other_waits, 95),
        preemptions=sum(played.preemptions for played in jobs),
        preemptions_p99=percentile((played.preemptions for played in jobs), 99),
        lost_gpu_hours=sum(played.job.gpus * played.lost for played in jobs) / HOUR,
        used=held / (gpus * span) if gpus else None,
    )
