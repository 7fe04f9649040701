"""A team's jobs hold more instances at once than one team may have."""

from typing import ClassVar, Literal

from pydantic import Field

from .base import Fires, Guardrail, Verdict, counted, unseen
from .facts import Facts


class Rule(Guardrail):
    """At most ``limit`` instances at once for a team; the jobs dispatched last are the ones beyond it."""

    needs_pool: ClassVar[bool] = True

    rule: Literal["max-running-instances-per-team"]
    limit: int = Field(ge=1)

    def decide(self, facts: Facts) -> Verdict:
        team = facts.team
        if team is None:
            return unseen("team", facts.job.team, facts)
        held = team.running_up_to_job
        if held is None or held <= self.limit:
            return None
        return Fires(
            text=f"brings team {team.name} to {counted(held, 'running instance')}, and a team may have"
            f" {self.limit} at once: let another job end before you start the next",
            figures={"instances": held, "limit": self.limit, "team": team.name},
        )
