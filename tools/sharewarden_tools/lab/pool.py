"""The scheduler's picture of one queue: shares, what they use, who waits, who runs.

Kept up to date change by change, so that neither a pass nor a change costs more with more jobs:
queues are sorted lists, use is kept as running totals. Quantities are instances per capacity unit
(an instance type). Rules: Batch user guide, quota-shares.html and preemption.html.
"""

from __future__ import annotations

import heapq
import itertools
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

Strategy = Literal["RESERVE", "LEND", "LEND_AND_BORROW"]
Demand = tuple[tuple[str, int], ...]
UNLIMITED = -1


@dataclass(frozen=True, slots=True)
class ShareRules:
    """The configuration of a share that scheduling depends on."""

    own: Mapping[str, int]
    strategy: Strategy = "RESERVE"
    borrow_limit: int = UNLIMITED
    in_share: bool = False

    @property
    def lends(self) -> bool:
        return self.strategy != "RESERVE"

    def may_use(self, unit: str) -> float:
        """Own capacity plus the borrow limit, a percentage of it per unit (create-quota-shares.html)."""
        own = self.own.get(unit, 0)
        if self.strategy != "LEND_AND_BORROW" or unit not in self.own:
            return own
        if self.borrow_limit == UNLIMITED:
            return float("inf")
        return own + own * self.borrow_limit // 100


@dataclass(eq=False, slots=True)
class PoolJob:
    """A job as the scheduler sees it. `order` is its place among equals; times are None until they happen."""

    id: str
    share: str
    demand: Demand
    priority: int
    order: int
    dispatched_at: int | None = None
    saved_at: int | None = None

    @property
    def key(self) -> tuple[int, int, str]:
        """Dispatch order within a share: priority first, then FIFO."""
        return (-self.priority, self.order, self.id)


@dataclass(eq=False, slots=True)
class ShareState:
    name: str
    rules: ShareRules
    waiting: list[tuple[tuple[int, int, str], PoolJob]] = field(default_factory=list)
    running: dict[str, PoolJob] = field(default_factory=dict)
    stopping: dict[str, PoolJob] = field(default_factory=dict)
    priorities: Counter[int] = field(default_factory=Counter)

    def lowest_running_priority(self) -> int | None:
        return min(self.priorities, default=None)


class Book:
    """Use per share and unit, with the totals that say whether a job fits.

    Two laws hold for every dispatch: the environment's limit is never passed, and what is borrowed beyond
    own capacity is covered by idle capacity of shares that lend.
    """

    __slots__ = ("_rules", "_used", "borrowed", "environment", "lendable", "total")

    def __init__(self, environment: Mapping[str, int], rules: Mapping[str, ShareRules]) -> None:
        self.environment = environment
        self._rules = rules
        self._used: Counter[tuple[str, str]] = Counter()
        self.total: Counter[str] = Counter()
        self.borrowed: Counter[str] = Counter()
        self.lendable: Counter[str] = Counter()
        for share in rules.values():
            if share.lends:
                self.lendable.update(share.own)

    def copy(self) -> Book:
        twin = Book.__new__(Book)
        twin.environment, twin._rules = self.environment, self._rules
        twin._used, twin.total = self._used.copy(), self.total.copy()
        twin.borrowed, twin.lendable = self.borrowed.copy(), self.lendable.copy()
        return twin

    def used(self, share: str, unit: str) -> int:
        return self._used[share, unit]

    def over_own(self, share: str, unit: str) -> int:
        """Instances that the share uses beyond its own capacity, that is, borrows."""
        return max(0, self._used[share, unit] - self._rules[share].own.get(unit, 0))

    def own_idle(self, share: str, unit: str) -> int:
        return max(0, self._rules[share].own.get(unit, 0) - self._used[share, unit])

    def add(self, job: PoolJob) -> None:
        for unit, quantity in job.demand:
            self._move(job.share, unit, quantity)

    def remove(self, job: PoolJob) -> None:
        for unit, quantity in job.demand:
            self._move(job.share, unit, -quantity)

    def _move(self, share: str, unit: str, quantity: int) -> None:
        borrow, lend = self._change(share, unit, quantity)
        self._used[share, unit] += quantity
        self.total[unit] += quantity
        self.borrowed[unit] += borrow
        self.lendable[unit] += lend

    def _change(self, share: str, unit: str, quantity: int) -> tuple[int, int]:
        """How borrowed and lendable change when the share uses `quantity` more."""
        rules = self._rules[share]
        own, before = rules.own.get(unit, 0), self._used[share, unit]
        after = before + quantity
        borrow = max(0, after - own) - max(0, before - own)
        lend = max(0, own - after) - max(0, own - before) if rules.lends else 0
        return borrow, lend

    def allows(self, job: PoolJob) -> bool:
        """Whether the job stays within its share's own capacity plus borrow limit."""
        rules = self._rules[job.share]
        return all(self._used[job.share, unit] + n <= rules.may_use(unit) for unit, n in job.demand)

    def lack(self, job: PoolJob) -> dict[str, int]:
        """Instances per unit that others would have to give up before the job can start."""
        lacks = ((unit, self._lack(job.share, unit, quantity)) for unit, quantity in job.demand)
        return {unit: lack for unit, lack in lacks if lack > 0}

    def _lack(self, share: str, unit: str, quantity: int) -> int:
        borrow, lend = self._change(share, unit, quantity)
        over_limit = self.total[unit] + quantity - self.environment.get(unit, 0)
        uncovered = self.borrowed[unit] + borrow - self.lendable[unit] - lend if borrow > lend else 0
        return max(0, over_limit, uncovered)

    def fits(self, job: PoolJob) -> bool:
        return self.allows(job) and not self.lack(job)

    def within_own(self, job: PoolJob) -> bool:
        own = self._rules[job.share].own
        return all(self._used[job.share, unit] + n <= own.get(unit, 0) for unit, n in job.demand)

    def uncovered(self, unit: str) -> int:
        """Use that no rule covers any more: after a lowered limit or a lender that stopped lending."""
        over_limit = self.total[unit] - self.environment.get(unit, 0)
        return max(0, over_limit, self.borrowed[unit] - self.lendable[unit])


class Pool:
    """One queue. `now` counts every instance in use, `stay` leaves out jobs that are being stopped."""

    def __init__(self, environment: Mapping[str, int]) -> None:
        self.environment = dict(environment)
        self.shares: dict[str, ShareState] = {}
        self.now = Book(self.environment, {})
        self.stay = Book(self.environment, {})

    def configure_environment(self, limits: Mapping[str, int]) -> None:
        self.environment = dict(limits)
        self._recount()

    def configure_share(self, name: str, rules: ShareRules) -> None:
        if name in self.shares:
            self.shares[name].rules = rules
        else:
            self.shares[name] = ShareState(name, rules)
        self._recount()

    def remove_share(self, name: str) -> None:
        del self.shares[name]
        self._recount()

    def _recount(self) -> None:
        rules = {name: share.rules for name, share in self.shares.items()}
        self.now, self.stay = Book(self.environment, rules), Book(self.environment, rules)
        for share in self.shares.values():
            for job in share.running.values():
                self.now.add(job)
                self.stay.add(job)
            for job in share.stopping.values():
                self.now.add(job)

    def enqueue(self, job: PoolJob) -> None:
        job.dispatched_at = job.saved_at = None
        insort(self.shares[job.share].waiting, (job.key, job))

    def withdraw(self, job: PoolJob) -> None:
        """Take a waiting job out of its queue; nothing happens when it does not wait."""
        waiting = self.shares[job.share].waiting
        index = bisect_left(waiting, job.key, key=lambda entry: entry[0])
        if index < len(waiting) and waiting[index][1] is job:
            del waiting[index]

    def dispatch(self, job: PoolJob, now_ms: int) -> None:
        self.withdraw(job)
        share = self.shares[job.share]
        job.dispatched_at = now_ms
        share.running[job.id] = job
        share.priorities[job.priority] += 1
        self.now.add(job)
        self.stay.add(job)

    def stop(self, job: PoolJob) -> None:
        """The job is on its way out: it holds its instances, but can be chosen no more."""
        share = self.shares[job.share]
        if share.running.pop(job.id, None) is None:
            return
        share.stopping[job.id] = job
        self._forget_priority(share, job.priority)
        self.stay.remove(job)

    def release(self, job: PoolJob) -> None:
        """The job's instances are free."""
        self.stop(job)
        if self.shares[job.share].stopping.pop(job.id, None):
            self.now.remove(job)

    def reprioritise(self, job: PoolJob, priority: int) -> None:
        share = self.shares[job.share]
        before = len(share.waiting)
        self.withdraw(job)
        waited = len(share.waiting) < before
        if job.id in share.running:
            self._forget_priority(share, job.priority)
            share.priorities[priority] += 1
        job.priority = priority
        if waited:
            insort(share.waiting, (job.key, job))

    def in_dispatch_order(self) -> Iterator[PoolJob]:
        """Waiting jobs: each share in its own order, among the shares' fronts the longest waiting first."""
        queues = {name: iter(share.waiting) for name, share in self.shares.items()}
        fronts = [(job.order, job.id, job) for queue in queues.values() for _, job in itertools.islice(queue, 1)]
        heapq.heapify(fronts)
        while fronts:
            job = heapq.heappop(fronts)[-1]
            yield job
            for _, follower in itertools.islice(queues[job.share], 1):
                heapq.heappush(fronts, (follower.order, follower.id, follower))

    @staticmethod
    def _forget_priority(share: ShareState, priority: int) -> None:
        share.priorities[priority] -= 1
        if not share.priorities[priority]:
            del share.priorities[priority]
