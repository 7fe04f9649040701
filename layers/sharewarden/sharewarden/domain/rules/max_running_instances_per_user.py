"""A user's jobs hold more instances at once than one user may have."""

from typing import ClassVar, Literal

from pydantic import Field

from .base import Fires, Guardrail, Verdict, counted, unseen
from .facts import Facts


class Rule(Guardrail):
    """At most ``limit`` instances at once for a user; the jobs dispatched last are the ones beyond it."""

    needs_pool: ClassVar[bool] = True

    rule: Literal["max-running-instances-per-user"]
    limit: int = Field(ge=1)

    def decide(self, facts: Facts) -> Verdict:
        user = facts.user
        if user is None:
            return unseen("user", facts.job.user, facts)
        held = user.running_up_to_job
        if held is None or held <= self.limit:
            return None
        return Fires(
            text=f"brings user {user.name} to {counted(held, 'running instance')}, and a user may have"
            f" {self.limit} at once: let another job end before you start the next",
            figures={"instances": held, "limit": self.limit, "user": user.name},
        )
