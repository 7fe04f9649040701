"""The comparison as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .compare import BY_KEY, METRICS, Metric, Run, Spread, columns, spread
from .figures import Figures
from .workload import Workload

BY_TEAM = ("miss_rate", "sla_wait_p95_ms", "other_wait_p95_ms", "lost_gpu_hours", "preemptions_p99", "used")


def heading(workload: Workload, runs: Sequence[Run]) -> Iterator[str]:
    """What was played, and what is assumed; ``workload`` is that of any of the seeds."""
    seeds = sorted({run.seed for run in runs})
    which = f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds from {seeds[0]} on"
    loads = {run.seed: run.offered for run in runs}
    load = _cell(BY_KEY["used"], spread(loads.values()))
    yield f"simulated: {workload.title}, on Batch's lab in virtual time"
    shares = ", ".join(f"{share.name} {share.gpus}" for share in workload.shares)
    yield f"  {workload.gpus} GPUs ({shares}); {which}; the jobs need {load} of the pool"
    yield from (f"  [assumed] {text}" for text in workload.assumed)
    if len(seeds) > 1:
        yield "  over the seeds: median (lowest - highest)"


def table(runs: Sequence[Run]) -> Iterator[str]:
    """A line a figure, a column for each controller and heuristic."""
    groups = columns(runs)
    heads = [["", *(name for name, _ in groups)], ["", *(heuristic for _, heuristic in groups)]]
    body = [[metric.label, *_across(metric, groups.values())] for metric in METRICS]
    return _aligned([*heads, *body])


def team_table(runs: Sequence[Run]) -> Iterator[str]:
    """A line for each team and column of the other table."""
    head = ["by team", "", *(BY_KEY[key].label for key in BY_TEAM)]
    body = [
        [team, " ".join(column), *(_of_team(BY_KEY[key], team, group) for key in BY_TEAM)]
        for team in runs[0].teams
        for column, group in columns(runs).items()
    ]
    return _aligned([head, *body])


def cell(metric: Metric, figures: Iterable[Figures]) -> str:
    """``23 %``, or over several seeds ``23 % (14 % - 27 %)``; ``-`` where there is nothing."""
    return _cell(metric, spread(metric.of(one) for one in figures))


def _across(metric: Metric, groups: Iterable[Sequence[Run]]) -> Iterator[str]:
    return (cell(metric, [run.figures for run in group]) for group in groups)


def _of_team(metric: Metric, team: str, group: Sequence[Run]) -> str:
    return cell(metric, [run.teams[team] for run in group])


def _cell(metric: Metric, over: Spread) -> str:
    if over.median is None or over.lowest is None or over.highest is None:
        return "-"
    middle = metric.text(over.median)
    if over.lowest == over.highest:
        return middle
    return f"{middle} ({metric.text(over.lowest)} - {metric.text(over.highest)})"


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (text.ljust(width) for text, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()
