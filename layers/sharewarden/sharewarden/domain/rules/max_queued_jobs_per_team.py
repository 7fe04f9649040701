"""A team has more jobs waiting than it may have."""

from typing import ClassVar, Literal

from pydantic import Field

from .base import Fires, Guardrail, Verdict, unseen
from .facts import Facts


class Rule(Guardrail):
    """At most ``limit`` waiting jobs of a team; those submitted last are the ones beyond it."""

    needs_pool: ClassVar[bool] = True

    rule: Literal["max-queued-jobs-per-team"]
    limit: int = Field(ge=1)

    def decide(self, facts: Facts) -> Verdict:
        team = facts.team
        if team is None:
            return unseen("team", facts.job.team, facts)
        place = team.queued_up_to_job
        if place is None or place <= self.limit:
            return None
        return Fires(
            text=f"is waiting job number {place} of team {team.name}, and a team may have {self.limit}:"
            " submit it when others have started",
            figures={"place": place, "limit": self.limit, "team": team.name},
        )
