"""The scheduling decision: from the state of a pool to a list of actions, with no side effect.

One pass, in this order (quota-shares.html, preemption.html):
1. jobs over a lowered limit are preempted, whatever their share's strategy;
2. each share fills its own capacity; what it lent out comes back by cross-share preemption;
3. idle capacity of lenders goes to borrowers, first in first out;
4. where the share itself is full, higher priority pushes out lower, if in-share preemption is on.

A job that waits for victims to stop holds a claim, which the pool keeps until the next pass. So the same
capacity is neither asked for twice nor given to somebody else; a pass over an unchanged pool does nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from .book import Book, PoolJob
from .heuristics import Heuristic
from .pool import Pool, ShareState

Kind = Literal["cross-share", "in-share", "limit"]
Turn = tuple[bool, int, str, PoolJob]

ENVIRONMENT_MAX = (
    "MISCONFIGURATION:SERVICE_ENVIRONMENT_MAX_RESOURCE - Service environment(s) associated with the job "
    "queue cannot meet the capacity requirement of the job."
)
_QUOTA = "MISCONFIGURATION:QUOTA_MANAGEMENT_LIMIT_EXCEEDED - "
OVER_LIMIT = _QUOTA + "Job requirements exceed quota share capacity limits."
OVER_BORROW_LIMIT = _QUOTA + "Job requirements exceed quota share capacity limits and borrow limits."
OVER_BORROWABLE = _QUOTA + "Job requires borrowing that exceeds all configured borrowable capacity."


@dataclass(frozen=True, slots=True)
class Dispatch:
    job: PoolJob


@dataclass(frozen=True, slots=True)
class Preempt:
    """Stop `job` so that `demander` can start; a lowered limit has no demander."""

    job: PoolJob
    kind: Kind
    demander: PoolJob | None = None


@dataclass(frozen=True, slots=True)
class Blocked:
    """The job stands first in its share and can never start as things are configured."""

    job: PoolJob
    reason: str


@dataclass(frozen=True, slots=True)
class Rules:
    borrow_backfill: bool = True
    blocked_share_holds_queue: bool = False
    reclaim_uncovered: bool = True


@dataclass(slots=True)
class Plan:
    dispatches: list[Dispatch] = field(default_factory=list)
    preemptions: list[Preempt] = field(default_factory=list)
    blocked: list[Blocked] = field(default_factory=list)
    claims: dict[str, int] = field(default_factory=dict)  # waiting jobs per share, capacity on its way


def plan(pool: Pool, heuristic: Heuristic, now_ms: int, rules: Rules = Rules()) -> Plan:
    """What to do with the pool as it is; the pool is only read.

    When an owner's job comes to light only after idle capacity that it needs was given away, the pass is
    run again without that gift; otherwise the next pass would preempt what this one dispatched.
    """
    barred: set[PoolJob] = set()
    while True:
        attempt = _Pass(pool, heuristic, now_ms, rules, barred)
        decided = attempt.run()
        if attempt.premature is None:
            return decided
        barred.add(attempt.premature)


def never_fits(pool: Pool, job: PoolJob) -> str | None:
    """Why the job can never start in its share, in AWS's words (sm_job_stuck_in_runnable pages).

    The answer depends on configuration only and is remembered until that changes.
    """
    if job not in pool.verdicts:
        pool.verdicts[job] = _verdict(pool, job)
    return pool.verdicts[job]


def _verdict(pool: Pool, job: PoolJob) -> str | None:
    rules = pool.shares[job.share].rules
    borrows = rules.strategy == "LEND_AND_BORROW"
    for unit, quantity in job.demand:
        if quantity > pool.environment.get(unit, 0):
            return ENVIRONMENT_MAX
        if quantity > rules.may_use(unit):
            return OVER_BORROW_LIMIT if borrows else OVER_LIMIT
        borrowed = quantity - rules.own.get(unit, 0)
        if borrowed > 0 and borrowed > _lent_by_others(pool, job.share, unit):
            return OVER_BORROWABLE
    return None


def _lent_by_others(pool: Pool, share: str, unit: str) -> int:
    lenders = (s.rules for s in pool.shares.values() if s.name != share and s.rules.lends)
    return sum(rules.own.get(unit, 0) for rules in lenders)


class _Pass:
    """One run of the scheduler on private copies of the pool's books.

    `_now` is all use, with this pass's dispatches; `_stay` leaves out what stops and counts claims; `_held`
    is `_stay` without what this pass adds: only a job that really holds borrowed capacity may lose it.
    """

    def __init__(
        self, pool: Pool, heuristic: Heuristic, now_ms: int, rules: Rules, barred: set[PoolJob]
    ) -> None:
        self.premature: PoolJob | None = None
        self._barred = barred
        self._borrowers_placed: list[PoolJob] = []
        self._pool = pool
        self._heuristic = heuristic
        self._now_ms = now_ms
        self._rules = rules
        self._now = pool.now.copy()
        self._stay = pool.stay.copy()
        self._held = pool.stay.copy()
        self._claims = dict(pool.claims)
        self._wanted: set[str] = set()
        self._leaving: set[str] = set()
        self._next = {name: 0 for name, share in pool.shares.items() if share.waiting}
        self._plan = Plan()

    def run(self) -> Plan:
        self._trim()
        fronts = (job for share in self._next if (job := self._front(share)))
        self._plan.blocked = [Blocked(job, why) for job in fronts if (why := never_fits(self._pool, job))]
        if not (self._rules.blocked_share_holds_queue and self._plan.blocked):
            self._serve()
        return self._plan

    def _serve(self) -> None:
        """Until no more victims are chosen: what a large one leaves over may help a job that failed."""
        before = -1
        while len(self._plan.preemptions) > before:
            before = len(self._plan.preemptions)
            self._serve_fronts(own_only=True)
            self._serve_fronts(own_only=False)

    def _serve_fronts(self, *, own_only: bool) -> None:
        """Shares take turns with their first waiting jobs; `own_only` is for what needs no borrowing."""
        fronts = sorted(self._turn(job) for share in self._next if (job := self._front(share)))
        while fronts:
            unclaimed, *_, job = heapq.heappop(fronts)
            own = self._stay.within_own(job)
            if own_only and not own:
                continue
            borrows = not own and self._may_borrow(job)
            if self._place(job) if own or borrows else self._push_out(job):
                if borrows:
                    self._borrowers_placed.append(job)
                if follower := self._advance(job.share):
                    heapq.heappush(fronts, self._turn(follower))
            elif not unclaimed:
                self._claims[job.share] = 0
                heapq.heappush(fronts, self._turn(job))
            elif (own or not self._rules.borrow_backfill) and not never_fits(self._pool, job):
                self._wanted.update(unit for unit, _ in job.demand)
                self.premature = self.premature or self._given_away(job)

    def _may_borrow(self, job: PoolJob) -> bool:
        """Idle capacity that an owner, or with strict FIFO an earlier borrower, waits for is not lent."""
        return job not in self._barred and self._wanted.isdisjoint(unit for unit, _ in job.demand)

    def _given_away(self, owner: PoolJob) -> PoolJob | None:
        """The last borrower of this pass that holds what the owner's job lacks."""
        lack = self._stay.lack(owner) if self._stay.within_own(owner) else {}
        return next((job for job in reversed(self._borrowers_placed) if _helps(self._stay, job, lack)), None)

    def _turn(self, job: PoolJob) -> Turn:
        """Sorts first who has capacity on its way, then who waits longest."""
        return (self._claims.get(job.share, 0) <= 0, job.order, job.id, job)

    def _front(self, share: str) -> PoolJob | None:
        waiting, index = self._pool.shares[share].waiting, self._next[share]
        return waiting[index][1] if index < len(waiting) else None

    def _advance(self, share: str) -> PoolJob | None:
        self._next[share] += 1
        self._claims[share] = self._claims.get(share, 0) - 1
        return self._front(share)

    # One job.

    def _place(self, job: PoolJob) -> bool:
        """Dispatch the job, or claim capacity that is on its way or can be taken back for it."""
        if not self._stay.allows(job):
            return self._push_out(job)
        if lack := self._stay.lack(job):
            return self._take_back(job, lack) or self._push_out(job)
        self._start_or_hold(job)
        return True

    def _start_or_hold(self, job: PoolJob) -> None:
        """Dispatch now, or, when capacity is still on its way or an earlier job of the share waits, later."""
        self._stay.add(job)
        if job.share not in self._plan.claims and self._now.fits(job):
            self._now.add(job)
            self._plan.dispatches.append(Dispatch(job))
        else:
            self._plan.claims[job.share] = self._plan.claims.get(job.share, 0) + 1

    def _take_back(self, job: PoolJob, lack: dict[str, int]) -> bool:
        """Cross-share: what the job's share lent out comes back, for jobs within its own capacity."""
        if not self._stay.within_own(job):
            return False
        return self._preempt_for(job, self._borrowers(lack), "cross-share")

    def _push_out(self, job: PoolJob) -> bool:
        """In-share: running jobs of the same share with a lower priority."""
        share = self._pool.shares[job.share]
        lowest = share.lowest_running_priority()
        if not share.rules.in_share or lowest is None or lowest >= job.priority:
            return False
        units = {unit for unit, _ in job.demand}
        lower = [j for j in self._staying(share, units) if j.priority < job.priority]
        return self._preempt_for(job, lower, "in-share")

    def _staying(self, share: ShareState, units: Iterable[str]) -> list[PoolJob]:
        """The share's dispatched jobs that hold one of the units and are not chosen already."""
        wanted = set(units)
        running = (job for job in share.running.values() if job.id not in self._leaving)
        return [job for job in running if any(unit in wanted for unit, _ in job.demand)]

    def _borrowers(self, units: Iterable[str]) -> list[PoolJob]:
        """Dispatched jobs of the shares that use more than their own of one of the units."""
        books = [self._held.units[unit] for unit in units]
        over = [s for s in self._pool.shares.values() if any(book.over_own(s.name) for book in books)]
        return [job for share in over for job in self._staying(share, units)]

    # Victims.

    def _preempt_for(self, job: PoolJob, candidates: list[PoolJob], kind: Kind) -> bool:
        victims = self._enough(job, candidates, borrowed_only=kind == "cross-share")
        for victim in victims:
            self._let_go(Preempt(victim, kind, job))
        if victims:
            self._start_or_hold(job)
        return bool(victims)

    def _let_go(self, preemption: Preempt) -> None:
        self._plan.preemptions.append(preemption)
        self._leaving.add(preemption.job.id)
        self._stay.remove(preemption.job)
        self._held.remove(preemption.job)

    def _enough(self, job: PoolJob, candidates: list[PoolJob], *, borrowed_only: bool) -> list[PoolJob]:
        """The victims that make room for the job, none of them in vain; empty when they cannot."""
        book, held = self._stay.copy(), self._held.copy()
        chosen: list[PoolJob] = []
        for victim in self._heuristic(candidates, book, self._now_ms):
            if borrowed_only and not _helps(held, victim, book.lack(job)):
                continue
            book.remove(victim)
            held.remove(victim)
            chosen.append(victim)
            if book.fits(job):
                return _without_idle_victims(book, job, chosen)
        return []

    def _trim(self) -> None:
        """Preempt what lowered limits no longer allow (preemption.html: also in RESERVE and LEND shares)."""
        for name, unit in self._stay.units.items():
            for share in self._pool.shares.values():
                if unit.over_may_use(share.name):
                    self._trim_share(share, name)
            if self._rules.reclaim_uncovered and unit.uncovered():
                self._trim_unit(name)

    def _trim_share(self, share: ShareState, name: str) -> None:
        unit = self._stay.units[name]
        for victim in self._heuristic(self._staying(share, [name]), self._stay, self._now_ms):
            if not unit.over_may_use(share.name):
                return
            self._let_go(Preempt(victim, "limit"))

    def _trim_unit(self, name: str) -> None:
        unit = self._stay.units[name]
        for victim in self._heuristic(self._borrowers([name]), self._stay, self._now_ms):
            if not unit.uncovered():
                return
            if unit.over_own(victim.share):
                self._let_go(Preempt(victim, "limit"))


def _helps(held: Book, victim: PoolJob, lack: dict[str, int]) -> bool:
    """Whether the victim's share borrows a unit that is lacking and that the victim holds."""
    return any(unit in lack and held.units[unit].over_own(victim.share) for unit, _ in victim.demand)


def _without_idle_victims(book: Book, job: PoolJob, chosen: list[PoolJob]) -> list[PoolJob]:
    """Drop victims that turned out not to be needed after the later ones were added."""
    needed = list(chosen)
    for victim in chosen[:-1]:
        book.add(victim)
        if book.fits(job):
            needed.remove(victim)
        else:
            book.remove(victim)
    return needed
