"""The sweep's look at one queue: what Batch lists, what is on record, and what of it wants to be asked about.

Nothing is decided here. An answer that Batch did not give in full is used for what it does say: a job that is
not in it may be there all the same (design law 2).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, get_args

from sharewarden.domain.decide import Decision
from sharewarden.domain.guardrails import needs_pool
from sharewarden.domain.observation import TERMINAL, JobSummary, Status
from sharewarden.domain.pool import GpuHours, pool_of
from sharewarden.domain.record import JobRecord
from sharewarden.domain.sweeping import housekeeping, lags, needs_read
from sharewarden.ports import Runtime, Unavailable

from .guarding import Around
from .send_looks import overdue
from .shares import sweep_shares
from .usage import team_gpu_hours
from .walk import Walk

ACTIVE: tuple[Status, ...] = tuple(status for status in get_args(Status) if status not in TERMINAL)


class Question(NamedTuple):
    """A job to ask Batch about; they sort by how long it was not read."""

    read_at: int
    job: str
    arn: str
    absent: bool
    """Batch listed every active job, and not this one."""


@dataclass
class Found:
    """What the looks at the queues found to do."""

    due: list[str] = field(default_factory=list)
    """Jobs for whose record the time has come for something, whatever Batch says."""
    urgent: list[Question] = field(default_factory=list)
    """Something of ours is under way, or record and listing disagree."""
    unknown: list[Question] = field(default_factory=list)
    """Listed, and not among the open records."""
    quiet: list[Question] = field(default_factory=list)
    looks: list[tuple[int, str]] = field(default_factory=list)
    """Jobs whose checkpoints nobody looks at though it is due, and since when."""


@dataclass
class Listing:
    """The active jobs of a queue by key; ``whole`` when these are all of them, ``odd`` could not be read."""

    rows: dict[str, JobSummary] = field(default_factory=dict)
    whole: bool = False
    odd: int = 0


def look(walk: Walk, queue: str, until: int | None, found: Found) -> None:
    """Add to ``found`` what the queue has to do, as far as Batch and the table tell until then."""
    listing = Listing()
    walk.around[queue] = Around(walk.policy, walk.started_at)
    if queue not in walk.runtime.classic_queues:
        walk.apart(queue, partial(_shares, walk, queue))
        walk.apart(queue, partial(_list, walk, queue, until, listing))
    known: set[str] = set()
    try:
        for record in _records(walk, queue, listing):
            known.add(record.job)
            walk.report.records += 1
            walk.apart(record.job, partial(_sort_in, walk, record, listing, found))
    except Unavailable:
        walk.report.unread += 1
        return  # which of the listed jobs are unknown can not be told
    found.unknown += [
        Question(row.created_at, row.job, row.arn, absent=False)
        for row in listing.rows.values()
        if row.job not in known
    ]


def _records(walk: Walk, queue: str, listing: Listing) -> Iterator[JobRecord]:
    """The queue's open records. Raises Unavailable, after those that it gave.

    Where a rule needs the pool they are all read before the first is looked at.
    """
    records = walk.runtime.ledger.open_items(JobRecord, queue)
    if not needs_pool(walk.policy, queue):
        yield from records
        return
    found: list[JobRecord] = []
    try:
        for record in records:
            found.append(record)
    except Unavailable:
        yield from found
        raise
    if listing.whole:
        walk.apart(queue, partial(_pool, walk, queue, found, listing))
    yield from found


def _pool(walk: Walk, queue: str, records: list[JobRecord], listing: Listing) -> None:
    """What they make together, each in the state that Batch lists it in."""
    around = walk.around[queue]
    listed = [(record, row) for record in records if (row := listing.rows.get(record.job))]
    behind = {record.job for record, row in listed if lags(record, row, whole=True)}
    hours: dict[str, GpuHours] = {}
    if around.shares.whole:  # else nobody can tell what was borrowed
        shares = around.shares.shares
        hours = team_gpu_hours(walk.runtime, queue, records, shares, walk.policy, walk.started_at)
    states = [(record, row.status) for record, row in listed]
    pool = pool_of(states, walk.policy, hours, behind)
    walk.around[queue] = around._replace(pool=pool)


def _shares(walk: Walk, queue: str) -> None:
    compared = sweep_shares(walk.runtime, queue, walk.policy, walk.failed_rules)
    walk.around[queue] = walk.around[queue]._replace(shares=compared.shares)
    walk.report.shares_changed += compared.changes
    walk.report.odd += compared.odd


def _list(walk: Walk, queue: str, until: int | None, listing: Listing) -> None:
    list_active(walk.runtime, queue, listing, until)
    walk.report.odd += listing.odd


def list_active(runtime: Runtime, queue: str, listing: Listing, until: int | None = None) -> None:
    """Add every active job of the queue, as far as Batch tells until then. Raises Unavailable."""
    for status in ACTIVE:
        token: str | None = None
        while True:
            if until is not None and runtime.clock.now() >= until:
                return
            page = runtime.batch.jobs(queue, status, token)
            listing.rows |= {job.job: job for job in page.jobs}
            listing.odd += page.odd
            token = page.next_token
            if token is None:
                break
    listing.whole = listing.odd == 0


def _sort_in(walk: Walk, record: JobRecord, listing: Listing, found: Found) -> None:
    row = listing.rows.get(record.job)
    read_at = record.snapshot.read_at if record.snapshot else 0
    if (due := overdue(walk.runtime, record, walk.started_at)) is not None:
        found.looks.append((due, record.job))
    question = Question(read_at, record.job, record.arn, absent=row is None and listing.whole)
    if needs_read(record, row, whole=listing.whole):
        walk.report.behind += lags(record, row, whole=listing.whole)
        found.urgent.append(question)
        return
    if _due(walk, record) != Decision(record=record):
        found.due.append(record.job)
    if record.end is None and not record.classic:
        found.quiet.append(question)


def _due(walk: Walk, record: JobRecord) -> Decision:
    return walk.guarded(housekeeping(record, walk.policy, walk.started_at, may_act=False))
