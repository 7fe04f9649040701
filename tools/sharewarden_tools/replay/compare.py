"""Runs side by side: one column for each controller and heuristic, over all seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median
from typing import Any, NamedTuple

from .figures import HOUR, Figures, figures_by_team, figures_of
from .outcome import Outcome

Value = float | None  # None: there is nothing to count or rank


class Run(NamedTuple):
    """One replay."""

    seed: int
    controller: str
    heuristic: str
    offered: float  # load, as a part of the pool
    figures: Figures
    teams: dict[str, Figures]

    @property
    def column(self) -> tuple[str, str]:
        return (self.controller, self.heuristic)


class Spread(NamedTuple):
    """A figure over the seeds that have it; all None where none has."""

    median: Value
    lowest: Value
    highest: Value


class Metric(NamedTuple):
    """One line of the table, or one part of the picture."""

    key: str
    label: str
    of: Callable[[Figures], Value]
    text: Callable[[float], str]


def run_of(outcome: Outcome, seed: int) -> Run:
    return Run(
        seed,
        outcome.controller,
        outcome.heuristic,
        outcome.workload.offered,
        figures_of(outcome),
        figures_by_team(outcome),
    )


def columns(runs: Iterable[Run]) -> dict[tuple[str, str], list[Run]]:
    """The runs of each controller and heuristic, in the order in which they first come."""
    found: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        found.setdefault(run.column, []).append(run)
    return found


def spread(values: Iterable[Value]) -> Spread:
    known = [value for value in values if value is not None]
    return Spread(median(known), min(known), max(known)) if known else Spread(None, None, None)


def short_time(ms: float) -> str:
    """``4 min``, ``14.8 h``, ``5.1 d``: as long as a cell of a table may be."""
    if ms < HOUR:
        return f"{ms / 60_000:.0f} min"
    return f"{ms / HOUR:.1f} h" if ms < 48 * HOUR else f"{ms / HOUR / 24:.1f} d"


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %"


def _number(value: float) -> str:
    return f"{value:.1f}" if value % 1 else f"{value:.0f}"


def _field(name: str) -> Callable[[Figures], Value]:
    def of(figures: Figures) -> Value:
        value: Value = getattr(figures, name)
        return value

    return of


METRICS = tuple(
    Metric(key, label, _field(key), text)
    for key, label, text in (
        ("jobs", "jobs", _number),
        ("sla_jobs", "jobs with an SLA", _number),
        ("miss_rate", "jobs that missed their SLA", _percent),
        ("missed_start", "  started too late", _number),
        ("missed_restart", "  restarted too late", _number),
        ("missed_finish", "  missed their deadline", _number),
        ("sla_wait_p50_ms", "wait with an SLA, p50", short_time),
        ("sla_wait_p95_ms", "wait with an SLA, p95", short_time),
        ("other_wait_p50_ms", "wait without an SLA, p50", short_time),
        ("other_wait_p95_ms", "wait without an SLA, p95", short_time),
        ("lost_gpu_hours", "lost GPU-hours", _number),
        ("preemptions", "preemptions", _number),
        ("preemptions_p99", "preemptions of a job, p99", _number),
        ("used", "GPUs in use", _percent),
        ("unfinished", "jobs not ended", _number),
    )
)
BY_KEY = {metric.key: metric for metric in METRICS}


def comparison(runs: Iterable[Run]) -> dict[str, Any]:
    """Every run, and the spread of each figure over the seeds; times in ms, parts between 0 and 1."""
    listed = list(runs)
    return {
        "runs": [
            {
                "seed": run.seed,
                "controller": run.controller,
                "heuristic": run.heuristic,
                "offered_load": run.offered,
                "figures": _values(run.figures),
                "teams": {team: _values(figures) for team, figures in run.teams.items()},
            }
            for run in listed
        ],
        "compared": [
            {
                "controller": controller,
                "heuristic": heuristic,
                "figures": {
                    metric.key: spread(metric.of(run.figures) for run in group)._asdict()
                    for metric in METRICS
                },
            }
            for (controller, heuristic), group in columns(listed).items()
        ],
    }


def _values(figures: Figures) -> dict[str, Value]:
    return {metric.key: metric.of(figures) for metric in METRICS}
