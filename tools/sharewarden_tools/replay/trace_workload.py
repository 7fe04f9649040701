"""A workload out of a trace: the pool, and an assumption for everything that the trace does not say."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import NamedTuple

from sharewarden.domain.durations import format_duration

from sharewarden_tools.lab.shares_api import MAX_SHARES

from .draws import priority, promise, sla_class, stream
from .numbers import numbers
from .trace import Row, Trace
from .workload import Job, Share, Sla, Workload

HOUR = 3_600_000
SMALL_JOB = 8  # GPUs; larger ones load their checkpoints for longer


class BadPool(Exception):
    """The pool does not suit the trace; the text says which line asks for what."""


class Pool(NamedTuple):
    """GPUs of each team, or what a pool is made to measure for."""

    shares: Mapping[str, int]
    load: float


def trace_workload(name: str, trace: Trace, seed: int, pool: Pool) -> Workload:
    """Times count from the first submission. Raises BadPool."""
    first = trace.rows[0].submitted
    span = HOUR * max(1, math.ceil((trace.rows[-1].submitted - first) / HOUR))
    shares = _shares(trace, span, pool)
    in_share = numbers().trace.in_share_preemption
    return Workload(
        title=name,
        shares=tuple(Share(team, gpus, in_share) for team, gpus in shares.items()),
        jobs=tuple(_job(trace, row, seed, round(row.submitted - first)) for row in trace.rows),
        span=span,
        assumed=tuple(_assumed(trace, pool)),
    )


def _shares(trace: Trace, span: int, pool: Pool) -> dict[str, int]:
    teams = list(dict.fromkeys(row.team for row in trace.rows))
    if len(teams) > MAX_SHARES:
        raise BadPool(f"{len(teams)} teams: a queue has {MAX_SHARES} quota shares at most; join small ones")
    shares = dict(pool.shares) or _made_to_measure(trace, teams, span, pool.load)
    largest = max(trace.rows, key=lambda row: row.gpus)
    if strange := [row for row in trace.rows if row.team not in shares]:
        raise BadPool(f"line {strange[0].line}: team {strange[0].team!r} has no GPUs in the pool")
    if largest.gpus > sum(shares.values()):
        raise BadPool(f"line {largest.line}: {largest.gpus} GPUs, the pool has {sum(shares.values())}")
    return shares


def _made_to_measure(trace: Trace, teams: list[str], span: int, load: float) -> dict[str, int]:
    """Each team's capacity by the GPU time of its jobs, and room for the largest job."""
    wanted = dict.fromkeys(teams, 0)
    for row in trace.rows:
        wanted[row.team] += row.gpus * row.runtime
    shares = {team: math.ceil(time / span / load) for team, time in wanted.items()}
    largest = max(trace.rows, key=lambda row: row.gpus)
    shares[largest.team] += max(0, largest.gpus - sum(shares.values()))
    return shares


def _job(trace: Trace, row: Row, seed: int, submitted_at: int) -> Job:
    """What is drawn depends on seed and line alone."""
    gaps, rng = numbers().trace, stream(seed, "trace", row.line)
    first = priority(rng, gaps.priorities)
    save_every = row.save_every if "save_every_s" in trace.columns else gaps.save_every
    return Job(
        name=f"job-{row.line}",
        share=row.team,
        user=row.user,
        submitted_at=submitted_at,
        gpus=row.gpus,
        runtime=row.runtime,
        fails_after=row.runtime if row.failed else None,
        priority=first if "priority" not in trace.columns else row.priority or 0,
        save_every=save_every,
        load=gaps.load_small if row.gpus <= SMALL_JOB else gaps.load_large,
        sla=_sla(trace, row, rng, submitted_at),
    )


def _sla(trace: Trace, row: Row, rng: Random, submitted_at: int) -> Sla | None:
    said = not {"sla", "finish_within_s"}.isdisjoint(trace.columns)
    named = row.sla if said else sla_class(rng, numbers().trace.sla)
    sla = promise(rng, named, submitted_at, row.runtime) if named else None
    if row.finish_within is not None:
        sla = replace(sla or Sla("deadline"), finish_by=submitted_at + row.finish_within)
    if sla and row.expected_runtime is not None:
        sla = replace(sla, expected_runtime=row.expected_runtime)
    return sla


def _assumed(trace: Trace, pool: Pool) -> Iterator[str]:
    gaps = numbers().trace
    yield "a GPU is an instance of its own: no placement on nodes, and no node fails"
    small, large = map(format_duration, (gaps.load_small, gaps.load_large))
    yield f"loading a checkpoint takes {small}, above {SMALL_JOB} GPUs {large}; no job hears SIGTERM"
    yield "in-share preemption is on in every share"
    if not pool.shares:
        yield f"the pool is made to measure: each team's GPUs by its jobs, for a load of {pool.load:g}"
    if "priority" not in trace.columns:
        yield "10/70/20 % of the jobs have a high, normal or low priority"
    if "save_every_s" not in trace.columns:
        yield f"every job saves each {format_duration(gaps.save_every)} of training"
    if {"sla", "finish_within_s"}.isdisjoint(trace.columns):
        parts = ", ".join(f"{part:.0%} {name}" for name, part in gaps.sla.items())
        yield f"a part of the jobs has an SLA: {parts} (what they promise: week.yaml)"
    if trace.left_out:
        yield f"{trace.left_out} rows without GPUs or run time are left out"
