"""A team has used the GPU-hours that it has for a day, a week or a month."""

from datetime import UTC, datetime, timedelta
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from sharewarden.domain.observation import STATUS_ORDER
from sharewarden.domain.stored import SECOND

from .base import Fires, Guardrail, Unknown, Verdict, unseen
from .facts import Facts, TeamFacts

Period = Literal["day", "week", "month"]


class Rule(Guardrail):
    """GPU-hours of a team in a period (UTC, weeks from Monday): in all, on own, or on borrowed capacity.

    What follows falls on the team's waiting jobs; those that run are spared.
    """

    needs_pool: ClassVar[bool] = True

    rule: Literal["gpu-hour-budget"]
    period: Period = "week"
    total: float | None = Field(default=None, ge=0)
    owned: float | None = Field(default=None, ge=0)
    borrowed: float | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        if self.total is None and self.owned is None and self.borrowed is None:
            raise ValueError("gpu-hour-budget needs a limit: total, owned or borrowed, such as total: 2000")
        return self

    def decide(self, facts: Facts) -> Verdict:
        if facts.team is None:
            return unseen("team", facts.job.team, facts)
        owned = facts.team.owned_gpu_hours.get(self.period)
        borrowed = facts.team.borrowed_gpu_hours.get(self.period)
        if owned is None or borrowed is None:
            return Unknown(what="team.owned_gpu_hours, team.borrowed_gpu_hours")
        used = (("total", owned + borrowed), ("owned", owned), ("borrowed", borrowed))
        spent = [
            (kind, hours, limit) for kind, hours in used if (limit := self._limit(kind, hours)) is not None
        ]
        return self._fires(facts, facts.team, spent) if spent else None

    def _limit(self, kind: str, hours: float) -> float | None:
        """The limit, when it is reached."""
        limit: float | None = getattr(self, kind)
        return limit if limit is not None and hours >= limit else None

    def _fires(self, facts: Facts, team: TeamFacts, spent: list[tuple[str, float, float]]) -> Fires:
        start, name = period_of(facts.now, self.period)
        told = " and ".join(
            f"{hours:.1f} of {limit:g} {_KINDS[kind]}GPU-hours" for kind, hours, limit in spent
        )
        return Fires(
            text=f"belongs to team {team.name}, which has used {told} of {name}:"
            f" the next {self.period} begins {next_start(start, self.period):%Y-%m-%d} 00:00 UTC",
            figures={kind: {"used": hours, "limit": limit} for kind, hours, limit in spent},
            subject=name,
            about="team",
            only_told=STATUS_ORDER[facts.job.status] > STATUS_ORDER["RUNNABLE"],
        )


_KINDS = {"total": "", "owned": "owned ", "borrowed": "borrowed "}


def period_of(now: int, period: Period) -> tuple[datetime, str]:
    """Start and name of the period that ``now`` is in: ``2026-11-30``, ``2026-W49``, ``2026-11``."""
    day = datetime.fromtimestamp(now // SECOND, UTC).replace(hour=0, minute=0, second=0)
    if period == "day":
        return day, f"{day:%Y-%m-%d}"
    if period == "month":
        return day.replace(day=1), f"{day:%Y-%m}"
    year, week, weekday = day.isocalendar()
    return day - timedelta(days=weekday - 1), f"{year}-W{week:02}"


def next_start(start: datetime, period: Period) -> datetime:
    """When the period after the one that began at ``start`` begins."""
    if period == "month":
        return (start + timedelta(days=31)).replace(day=1)
    return start + timedelta(days=1 if period == "day" else 7)
