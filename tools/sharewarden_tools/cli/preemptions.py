"""``sharewarden preemptions``: what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from sharewarden.domain.accelerators import table_source
from sharewarden.domain.base import last_part
from sharewarden.domain.durations import format_duration
from sharewarden.domain.stored import SECOND

from sharewarden_tools.preemption_report import CAUSES, KINDS, Cost, costs

from .audit import parse_since
from .audit_reading import Wanted, queues_of, read_audit
from .deployment import Deployment
from .output import OK, full_time, note, print_json, say

_HEADS = ("number", *CAUSES, "lost", "at most", "held", "pause", "owner's wait")
_WIDTHS = (8, 13, 10, 15, 9, 9, 9, 9, 13, 14)


def show_preemptions(deployment: Deployment, *, share: str | None, since: str, as_json: bool) -> int:
    """Print what the preemptions since then cost each share. Raises BadInput, Unavailable."""
    runtime = deployment.runtime
    now = runtime.clock.now()
    start = parse_since(since, now)
    wanted = Wanted(KINDS, start, now, share)
    table = costs(read_audit(runtime, queues_of(runtime, None), wanted))
    if as_json:
        rows = [row.as_json() for row in table]
        print_json({"since": start, "until": now, "gpus": table_source(), "preemptions": rows})
        return OK
    for queue, rows_of in groupby(table, key=lambda row: row.queue):
        say(f"preemptions on {last_part(queue)} since {full_time(start)}; lost and held in GPU-hours")
        say(_cells("share", _HEADS))
        say(*(_line(row) for row in rows_of))
    note(*_explained(table))
    if not table:
        whose = "" if share is None else f" of share {share}"
        note(f"no preemption{whose} since {full_time(start)}")
    return OK


def _cells(first: str, rest: Iterable[str]) -> str:
    return f"  {first:<16}" + "".join(f"{cell:>{width}}" for cell, width in zip(rest, _WIDTHS, strict=True))


def _line(row: Cost) -> str:
    name = "in all" if row.share is None else row.share or "(no share)"
    hours = (row.lost_gpu_hours, row.lost_at_most_gpu_hours, row.held_gpu_hours)
    cells = (
        str(row.preemptions),
        *(str(row.causes[cause]) for cause in CAUSES),
        *(f"{one:.2f}" for one in hours),
        _time(row.pause),
        _time(row.owners_wait),
    )
    by = ", ".join(f"{share} {number}" for share, number in row.by.items())
    return _cells(name, cells) + (f"  by {by}" if by else "")


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else format_duration(round(seconds * SECOND))


def _explained(table: Iterable[Cost]) -> Iterator[str]:
    """What the figures leave out."""
    for row in table:
        if row.share is None:
            continue
        who = row.share or "(no share)"
        if row.bounded:
            yield f"{who}: what {row.bounded} had saved is not known: 'at most' has all of the attempt"
        if row.unsized:
            yield f"{who}: {row.unsized} on instances whose GPUs are not known are in no GPU-hours"
        if row.unmeasured:
            yield f"{who}: {row.unmeasured} have not been measured, or their stop was never told"
        if row.without_details:
            yield f"{who}: {row.without_details} more are known by number alone"
