"""Usage by team and period, beside the budgets of the policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from sharewarden.domain.base import Frozen, last_part
from sharewarden.domain.periods import Period, period_name
from sharewarden.domain.policy import Policy
from sharewarden.domain.stored import DAY, HOUR
from sharewarden.domain.usage import Usage, total
from sharewarden.usecases.usage import QueueUsage, budgets

from .prices import Cost, Prices, cost


class Budget(Frozen):
    """One limit of a guardrail, in GPU-hours. ``remaining`` is below zero once it is overdrawn."""

    guardrail: str
    of: str
    """``total``, ``owned`` or ``borrowed``."""
    limit: float
    used: float

    @property
    def remaining(self) -> float:
        return self.limit - self.used

    @property
    def percent(self) -> float | None:
        return 100 * self.used / self.limit if self.limit else None


class Row(Frozen):
    """A team in a period on one queue; ``until`` is where the period or the present ends."""

    period: str
    since: int
    until: int
    queue: str
    team: str
    usage: Usage
    budgets: tuple[Budget, ...] = ()
    cost: Cost | None = None

    def as_json(self) -> dict[str, Any]:
        """Hours; times in epoch milliseconds."""
        owned, borrowed = self.usage.owned_gpu_hours, self.usage.borrowed_gpu_hours
        known = self.model_dump(include={"period", "since", "until", "queue", "team"})
        return known | {
            "owned_gpu_hours": owned,
            "borrowed_gpu_hours": borrowed,
            "total_gpu_hours": owned + borrowed,
            "unknown_instance_hours": self.usage.unknown_instance_hours,
            "unsized_hours": self.usage.unsized / HOUR,
            "instance_hours": {
                unit: {"owned": time.owned / HOUR, "borrowed": time.borrowed / HOUR}
                for unit, time in self.usage.units.items()
            },
            "budgets": [
                one.model_dump() | {"remaining": one.remaining, "percent": one.percent}
                for one in self.budgets
            ],
            "cost": self.cost.model_dump() if self.cost else None,
        }


class Frame(NamedTuple):
    """What the rows are about: the periods, oldest first, until ``now``."""

    period: Period
    spans: tuple[range, ...]
    now: int
    team: str | None = None


def rows(used: QueueUsage, frame: Frame, policy: Policy, prices: Prices | None) -> Iterator[Row]:
    """One row for each team that used something in a period, or that a budget names."""
    for days in frame.spans:
        teams = {day.team for day in used.days if day.day in days} | _named(policy, used.queue, frame.period)
        for team in sorted(teams if frame.team is None else teams & {frame.team}):
            usage = total(day.usage for day in used.days if day.team == team and day.day in days)
            yield Row(
                period=period_name(frame.period, days),
                since=days.start * DAY,
                until=min(days.stop * DAY, frame.now),
                queue=last_part(used.queue),
                team=team,
                usage=usage,
                budgets=tuple(_budgets(policy, used.queue, team, usage, frame.period)),
                cost=cost(usage, prices) if prices else None,
            )


def other_budgets(policy: Policy, queues: Iterable[str], period: Period) -> list[str]:
    """The periods of budgets that rows of this period do not show."""
    return sorted({one.period for queue in queues for one in budgets(policy, queue)} - {period})


def _named(policy: Policy, queue: str, period: Period) -> set[str]:
    return {team for one in budgets(policy, queue) if one.period == period for team in one.teams}


def _budgets(policy: Policy, queue: str, team: str, usage: Usage, period: Period) -> Iterator[Budget]:
    owned, borrowed = usage.owned_gpu_hours, usage.borrowed_gpu_hours
    used = {"total": owned + borrowed, "owned": owned, "borrowed": borrowed}
    for entry in budgets(policy, queue):
        if entry.period != period or (entry.teams and team not in entry.teams):
            continue
        for of, limit in entry.limits.items():
            yield Budget(guardrail=entry.label, of=of, limit=limit, used=used[of])
