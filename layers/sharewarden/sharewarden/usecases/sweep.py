"""The safety net: read the pool's truth, repair what events did not bring, let time do its work.

A sweep holds a lease, walks queue by queue (the cursor remembers where to go on), and asks Batch about the
jobs that the records leave open. An answer it could not get changes nothing (design law 2).
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import get_args

from sharewarden.domain.decide import Decision, decide_read
from sharewarden.domain.observation import TERMINAL, JobDescription, JobSummary, Status
from sharewarden.domain.policy import Policy
from sharewarden.domain.record import JobRecord, new_record
from sharewarden.domain.stored import MINUTE, Stored
from sharewarden.domain.sweeping import SETTLE, SweepState, digest, housekeeping, lags, missing, needs_read
from sharewarden.ports import Conflict, Runtime, Unavailable

from .change import change
from .shares import sweep_shares
from .untraced import give_up_untraced
from .wake import wake

logger = logging.getLogger(__name__)

#: Longer than the function may run (240 s in the template), so that no lease ends under a living holder.
LEASE = 5 * MINUTE
ACTIVE: tuple[Status, ...] = tuple(status for status in get_args(Status) if status not in TERMINAL)


@dataclass
class Report:
    """What one sweep did, and how it found things.

    ``behind``: jobs that had moved on without an event; ``unread``: Batch would not tell; ``left``: the caps
    left it to the next sweep; ``oldest_wish_ms``: the age of the oldest wish that may be carried out.
    """

    queues: int = 0
    records: int = 0
    behind: int = 0
    described: int = 0
    adopted: int = 0
    repaired: int = 0
    woken: int = 0
    closed: int = 0
    shares_changed: int = 0
    unread: int = 0
    failed: int = 0
    left: int = 0
    oldest_wish_ms: int = 0
    leased_elsewhere: bool = False


@dataclass(frozen=True)
class Limits:
    """What one sweep may spend: Describes (Batch does not publish their rate), and when it must stop."""

    describes: int = 500
    stop_at: int | None = None


class _MustStop(Exception):
    """The time is over, or the lease went to another sweep; the cursor stays at this queue."""


@dataclass
class _Pass:
    """One sweep under way."""

    runtime: Runtime
    policy: Policy
    limits: Limits
    holder: str
    started_at: int
    report: Report = field(default_factory=Report)
    wishes: list[JobRecord] = field(default_factory=list)
    """Records whose open wish waits for ``apply``."""


def sweep(runtime: Runtime, holder: str, limits: Limits) -> Report:
    """Walk all queues once. ``holder`` names this invocation in the lease."""
    policy, now = runtime.policies.current(), runtime.clock.now()
    state = _lease(runtime, holder, now)
    if state is None:
        return Report(leased_elsewhere=True)
    walk = _Pass(runtime, policy, limits, holder, now)
    with suppress(_MustStop):
        _queues(walk, state.next_queue)
    give_up_untraced(runtime, now)
    _wake(walk)
    with suppress(_MustStop):
        _finish(walk)
    return walk.report


def _lease(runtime: Runtime, holder: str, now: int) -> SweepState | None:
    state = runtime.ledger.load(SweepState, "all") or SweepState()
    if state.until > now and state.holder != holder:
        return None
    held = state.model_copy(update={"holder": holder, "until": now + LEASE})
    try:
        runtime.ledger.commit([held], [], now)
    except Conflict:
        return None
    return held


def _own(walk: _Pass) -> SweepState:
    """Our state as it stands; nobody else writes it while we hold the lease.

    Read anew before each use: a write whose answer was lost may have been done.
    """
    state = walk.runtime.ledger.load(SweepState, "all")
    if state is None or state.holder != walk.holder:
        raise _MustStop
    return state


def _finish(walk: _Pass) -> None:
    """Write the digest of what was adopted, and let the lease go."""
    state, now = _own(walk), walk.runtime.clock.now()
    facts = [digest(state.adopted, walk.started_at, walk.policy, now)] if state.adopted else []
    free = state.model_copy(update={"holder": None, "until": 0, "adopted": (), "finished_at": now})
    walk.runtime.ledger.commit([free], facts, now)


def _queues(walk: _Pass, first: int) -> None:
    """Every queue once, from the cursor on; the cursor moves on behind each one."""
    queues = sorted(walk.runtime.queues | walk.runtime.classic_queues)
    for step in range(len(queues)):
        place = (first + step) % len(queues)
        _records(walk, queues[place], _listing(walk, queues[place]))
        walk.report.queues += 1
        state = _own(walk)
        moved = state.model_copy(update={"next_queue": (place + 1) % len(queues)})
        if moved != state:
            walk.runtime.ledger.commit([moved], [], walk.runtime.clock.now())


def _listing(walk: _Pass, queue: str) -> dict[str, JobSummary] | None:
    """The queue's active jobs by key; None when Batch would not tell all of them."""
    if queue in walk.runtime.classic_queues:
        return {}
    try:
        walk.report.shares_changed += sweep_shares(walk.runtime, queue)
        return {job.job: job for status in ACTIVE for job in _pages(walk, queue, status)}
    except Unavailable:
        walk.report.unread += 1
        return None


def _pages(walk: _Pass, queue: str, status: Status) -> Iterator[JobSummary]:
    token: str | None = None
    while True:
        _check_time(walk)
        page = walk.runtime.batch.jobs(queue, status, token)
        yield from page.jobs
        token = page.next_token
        if token is None:
            return


def _records(walk: _Pass, queue: str, listed: dict[str, JobSummary] | None) -> None:
    """Every open record, then the jobs without one, then those that nobody asked about for longest."""
    known: set[str] = set()
    quiet: list[tuple[int, str, str]] = []
    for record in walk.runtime.ledger.open_items(JobRecord, queue):
        _check_time(walk)
        known.add(record.job)
        walk.report.records += 1
        if listed is not None and needs_read(record, listed.get(record.job)):
            walk.report.behind += lags(record, listed.get(record.job))
            _apart(walk, record.job, partial(_ask, walk, record.job, record.arn))
            continue
        _apart(walk, record.job, partial(_tend, walk, record.job, None))
        if record.end is None and not record.classic:
            quiet.append((record.snapshot.read_at if record.snapshot else 0, record.job, record.arn))
    if listed is None:
        return
    for row in listed.values():
        if row.job not in known:
            _check_time(walk)
            _apart(walk, row.job, partial(_meet, walk, row))
    for _, job, arn in sorted(quiet)[: walk.limits.describes - walk.report.described]:
        _check_time(walk)
        _apart(walk, job, partial(_ask, walk, job, arn))


def _apart(walk: _Pass, job: str, work: Callable[[], None]) -> None:
    """Do the work of one job; what goes wrong with it does not keep the others waiting."""
    try:
        work()
    except Unavailable:
        walk.report.unread += 1
    except ValueError:  # a record that cannot be decided on or stored: a fault of ours, for a person
        walk.report.failed += 1
        logger.exception("the sweep left job %s as it stands", job)


def _ask(walk: _Pass, job: str, arn: str) -> None:
    """Describe one job and settle its record; what could not be asked is left as it stands."""
    if walk.report.described >= walk.limits.describes:
        walk.report.left += 1
        return
    walk.report.described += 1
    _tend(walk, job, walk.runtime.batch.describe(arn), asked=True)


def _tend(walk: _Pass, job: str, description: JobDescription | None, *, asked: bool = False) -> None:
    """Settle one record with what Batch said, or said it does not know; let time do its work."""
    may_act = description is not None and _may_act(walk.policy, description.queue)
    decision = change(
        walk.runtime, job, lambda record: _settle(walk, record, description, asked=asked, may_act=may_act)
    )
    walk.report.closed += decision.record.closed_at == walk.started_at
    walk.report.repaired += asked and bool(decision.facts)
    if may_act and decision.record.priority.wish is not None:
        walk.wishes.append(decision.record)


def _settle(
    walk: _Pass, record: JobRecord, description: JobDescription | None, *, asked: bool, may_act: bool
) -> Decision:
    policy, now = walk.policy, walk.started_at
    if description is not None:
        first = decide_read(record, description, policy)
    elif asked:
        first = missing(record, policy, now)
    else:
        first = Decision(record=record)
    second = housekeeping(first.record, policy, now, may_act=may_act)
    return Decision(record=second.record, facts=first.facts + second.facts)


def _may_act(policy: Policy, queue: str) -> bool:
    return not policy.paused and policy.queue(queue).bumps == "enforce"


def _wake(walk: _Pass) -> None:
    """Bring open wishes back to ``apply``: what lowers goes first, the blast radius is the limit (law 4)."""
    waiting = sorted(walk.wishes, key=_raises)
    walk.report.oldest_wish_ms = max((_age(walk, record) for record in waiting), default=0)
    for record in waiting[: walk.policy.blast_radius]:
        try:
            wake(walk.runtime, record, again=str(walk.started_at))
        except Unavailable:
            walk.report.unread += 1
            continue
        walk.report.woken += 1
    walk.report.left += max(0, len(waiting) - walk.policy.blast_radius)


def _age(walk: _Pass, record: JobRecord) -> int:
    wish = record.priority.wish
    return 0 if wish is None else walk.started_at - wish.created_at


def _raises(record: JobRecord) -> bool:
    ledger = record.priority
    return ledger.wish is not None and ledger.wish.value > (ledger.confirmed or 0)


def _meet(walk: _Pass, row: JobSummary) -> None:
    """Take in a job that no event told of. One that is older than events may be late was there before us."""
    if walk.report.described >= walk.limits.describes:
        walk.report.left += 1
        return
    walk.report.described += 1
    description = walk.runtime.batch.describe(row.arn)
    if description is None or walk.runtime.ledger.load(JobRecord, description.job) is not None:
        return
    decision = decide_read(new_record(description), description, walk.policy)
    old = walk.started_at - description.created_at >= SETTLE
    items: list[Stored] = [decision.record]
    if old:
        state = _own(walk)
        items.append(state.model_copy(update={"adopted": (*state.adopted, description.name)}))
    try:
        walk.runtime.ledger.commit(items, decision.facts, walk.runtime.clock.now())
    except Conflict:
        return  # its first event came in at this moment
    walk.report.adopted += 1
    walk.report.behind += not old


def _check_time(walk: _Pass) -> None:
    if walk.limits.stop_at is not None and walk.runtime.clock.now() >= walk.limits.stop_at:
        raise _MustStop
