"""Who uses how many instances, and whether one more job fits.

Two laws hold for every dispatch: the environment's limit is never passed, and what is borrowed beyond own
capacity is covered by idle capacity of shares that lend (quota-shares.html).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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


class UnitBook:
    """One capacity unit: use per share, and running totals. Copies share the configuration."""

    __slots__ = ("borrowed", "lendable", "lends", "limit", "may_use", "own", "total", "used")

    def __init__(self, unit: str, limit: int, rules: Mapping[str, ShareRules]) -> None:
        self.limit = limit
        self.own = {name: share.own.get(unit, 0) for name, share in rules.items()}
        self.may_use = {name: share.may_use(unit) for name, share in rules.items()}
        self.lends = {name: share.lends for name, share in rules.items()}
        self.used = dict.fromkeys(rules, 0)
        self.total = self.borrowed = 0
        self.lendable = sum(own for name, own in self.own.items() if self.lends[name])

    def copy(self) -> UnitBook:
        twin = UnitBook.__new__(UnitBook)
        twin.limit, twin.own, twin.may_use, twin.lends = self.limit, self.own, self.may_use, self.lends
        twin.used = self.used.copy()
        twin.total, twin.borrowed, twin.lendable = self.total, self.borrowed, self.lendable
        return twin

    def add(self, share: str, quantity: int) -> None:
        borrow, lend = self._change(share, quantity)
        self.used[share] += quantity
        self.total += quantity
        self.borrowed += borrow
        self.lendable += lend

    def _change(self, share: str, quantity: int) -> tuple[int, int]:
        """How borrowed and lendable change when the share uses `quantity` more."""
        before = self.own[share] - self.used[share]
        after = before - quantity
        borrow = (-after if after < 0 else 0) - (-before if before < 0 else 0)
        lend = (after if after > 0 else 0) - (before if before > 0 else 0) if self.lends[share] else 0
        return borrow, lend

    def lack(self, share: str, quantity: int) -> int:
        """Instances that others would have to give up before the share can use `quantity` more.

        Use that no lender covers counts only when this start would make it worse.
        """
        borrow, lend = self._change(share, quantity)
        over_limit = self.total + quantity - self.limit
        uncovered = self.borrowed + borrow - self.lendable - lend if borrow > lend else 0
        return max(0, over_limit, uncovered)

    def over_own(self, share: str) -> int:
        """Instances that the share uses beyond its own capacity, that is, borrows."""
        return max(0, self.used[share] - self.own[share])

    def over_may_use(self, share: str) -> bool:
        return self.used[share] > self.may_use[share]

    def uncovered(self) -> int:
        """Use that no rule covers any more: after a lowered limit, or when a lender stopped lending."""
        return max(0, self.total - self.limit, self.borrowed - self.lendable)


class Book:
    """All capacity units of a queue. Jobs that ask for a unit without a limit never fit."""

    __slots__ = ("units",)

    def __init__(
        self, environment: Mapping[str, int], rules: Mapping[str, ShareRules], units: Iterable[str]
    ) -> None:
        self.units = {unit: UnitBook(unit, environment.get(unit, 0), rules) for unit in units}

    def copy(self) -> Book:
        twin = Book.__new__(Book)
        twin.units = {name: unit.copy() for name, unit in self.units.items()}
        return twin

    def add(self, job: PoolJob) -> None:
        for unit, quantity in job.demand:
            self.units[unit].add(job.share, quantity)

    def remove(self, job: PoolJob) -> None:
        for unit, quantity in job.demand:
            self.units[unit].add(job.share, -quantity)

    def allows(self, job: PoolJob) -> bool:
        """Whether the job stays within its share's own capacity plus borrow limit."""
        for name, quantity in job.demand:
            unit = self.units.get(name)
            if unit is None or unit.used[job.share] + quantity > unit.may_use[job.share]:
                return False
        return True

    def lack(self, job: PoolJob) -> dict[str, int]:
        """Instances per unit that others must give up before the job, which its share allows, starts."""
        lacks = ((unit, self.units[unit].lack(job.share, quantity)) for unit, quantity in job.demand)
        return {unit: lack for unit, lack in lacks if lack}

    def fits(self, job: PoolJob) -> bool:
        return self.allows(job) and not self.lack(job)

    def within_own(self, job: PoolJob) -> bool:
        for name, quantity in job.demand:
            unit = self.units.get(name)
            if unit is None or unit.used[job.share] + quantity > unit.own[job.share]:
                return False
        return True

    def over_own(self, job: PoolJob) -> int:
        """Instances that the job's share borrows, over the units of the job."""
        return sum(self.units[unit].over_own(job.share) for unit, _ in job.demand)
