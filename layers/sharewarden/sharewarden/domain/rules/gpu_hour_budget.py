"""A team has used the GPU-hours that it has for a day, a week or a month."""

from datetime import UTC, datetime
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from sharewarden.domain.observation import STATUS_ORDER
from sharewarden.domain.periods import Period, period_days, period_name
from sharewarden.domain.stored import DAY, SECOND

from .base import Fires, Guardrail, Unknown, Verdict, unseen
from .facts import Facts, TeamFacts


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
        if not self.limits:
            raise ValueError("gpu-hour-budget needs a limit: total, owned or borrowed, such as total: 2000")
        return self

    @property
    def gpu_periods(self) -> tuple[Period, ...]:
        return (self.period,)

    @property
    def limits(self) -> dict[str, float]:
        """The limits that are given, in GPU-hours, of ``total``, ``owned`` and ``borrowed``."""
        given = {"total": self.total, "owned": self.owned, "borrowed": self.borrowed}
        return {of: limit for of, limit in given.items() if limit is not None}

    def decide(self, facts: Facts) -> Verdict:
        if facts.team is None:
            return unseen("team", facts.job.team, facts)
        owned = facts.team.owned_gpu_hours.get(self.period)
        borrowed = facts.team.borrowed_gpu_hours.get(self.period)
        if owned is None or borrowed is None:
            return Unknown(what="team.owned_gpu_hours, team.borrowed_gpu_hours")
        spent = self._spent({"total": owned + borrowed, "owned": owned, "borrowed": borrowed})
        return self._fires(facts, facts.team, spent) if spent else None

    def _spent(self, used: dict[str, float]) -> dict[str, tuple[float, float]]:
        """The hours and the limit of each limit that is reached."""
        return {of: (used[of], limit) for of, limit in self.limits.items() if used[of] >= limit}

    def _fires(self, facts: Facts, team: TeamFacts, spent: dict[str, tuple[float, float]]) -> Fires:
        days = period_days(self.period, facts.now)
        name = period_name(self.period, days)
        following = datetime.fromtimestamp(days.stop * DAY / SECOND, UTC)
        told = " and ".join(
            f"{used:.1f} of {limit:g} {_NAMES[kind]}" for kind, (used, limit) in spent.items()
        )
        return Fires(
            text=f"belongs to team {team.name}, which has used {told} of {name}:"
            f" the next {self.period} begins {following:%Y-%m-%d} 00:00 UTC",
            figures={kind: {"used": used, "limit": limit} for kind, (used, limit) in spent.items()},
            subject=name,
            about="team",
            only_told=STATUS_ORDER[facts.job.status] > STATUS_ORDER["RUNNABLE"],
        )


_NAMES = {"total": "GPU-hours", "owned": "owned GPU-hours", "borrowed": "borrowed GPU-hours"}
