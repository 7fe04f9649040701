"""The books of one instance type: who uses how much, and what a job would lack.

The environment's limit is never passed, and what shares borrow is covered by idle capacity of those that
lend (Batch user guide, quota-shares). All figures are instances.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from .view import JobView, PoolView


@dataclass(frozen=True, slots=True)
class Capacity:
    """``most`` and ``limit``: None is without bound."""

    used: dict[str, int]
    own: dict[str, int]
    most: dict[str, int | None]
    lenders: frozenset[str]
    limit: int | None

    @property
    def total(self) -> int:
        return sum(self.used.values())

    @property
    def borrowed(self) -> int:
        return sum(map(self.over, self.used))

    @property
    def idle(self) -> int:
        """What lenders do not use of their own."""
        return sum(max(0, self.own[share] - self.used[share]) for share in self.lenders)

    def over(self, share: str) -> int:
        """What the share borrows."""
        return max(0, self.used[share] - self.own[share])

    def owns(self, share: str, asked: int) -> bool:
        """Whether so many more stay within the share's own capacity."""
        return self.used[share] + asked <= self.own[share]

    def allows(self, share: str, asked: int) -> bool:
        """Whether so many more stay within what the share may use."""
        most = self.most[share]
        return most is None or self.used[share] + asked <= most

    def lack(self, share: str, asked: int) -> int:
        """What others would have to give up before the share can use so many more.

        Only a start that borrows, or takes what is lent out, needs the borrowed to be covered.
        """
        used, own = self.used[share], self.own[share]
        borrows = max(0, used + asked - own) - max(0, used - own)
        takes = max(0, own - used) - max(0, own - used - asked) if share in self.lenders else 0
        uncovered = self.borrowed + borrows - (self.idle - takes) if borrows or takes else 0
        beyond = 0 if self.limit is None else self.total + asked - self.limit
        return max(0, uncovered, beyond)

    def fits(self, share: str, asked: int) -> bool:
        return self.allows(share, asked) and not self.lack(share, asked)

    def ever_fits(self, share: str, asked: int) -> bool:
        """Whether the configuration alone lets a job of this size start in the share."""
        most, lent = self.most[share], sum(self.own[name] for name in self.lenders if name != share)
        return (
            (self.limit is None or asked <= self.limit)
            and (most is None or asked <= most)
            and asked - self.own[share] <= lent
        )

    @property
    def in_order(self) -> bool:
        """False while limits do not cover the use, so that Batch trims it."""
        within = all(self.allows(share, 0) for share in self.used)
        return within and self.borrowed <= self.idle and (self.limit is None or self.total <= self.limit)

    def without(self, jobs: Iterable[JobView]) -> "Capacity":
        """The books once these jobs have stopped."""
        used = dict(self.used)
        for job in jobs:
            used[job.share or ""] -= job.instances or 0
        return replace(self, used=used)

    def without_borrowed(self, share: str) -> "Capacity":
        """The books once no share borrows, at the least: victims of several instances free more."""
        used = {name: min(use, self.own[name]) if name != share else use for name, use in self.used.items()}
        return replace(self, used=used)


def capacity_of(pool: PoolView, unit: str, lenders: frozenset[str]) -> Capacity:
    """The books of the instance type. Jobs whose size or share is not known are not in them."""
    used = {share.name: 0 for share in pool.shares}
    for job in pool.jobs:
        if job.holds and job.unit == unit and job.share in used:
            used[job.share] += job.instances or 0
    return Capacity(
        used=used,
        own={share.name: share.limits.get(unit, 0) for share in pool.shares},
        most={share.name: share.most(unit) for share in pool.shares},
        lenders=lenders,
        limit=None if pool.environment is None else pool.environment.get(unit, 0),
    )
