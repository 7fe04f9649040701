"""A job asks for more instances than one job may have."""

from typing import Literal

from pydantic import Field

from .base import Fires, Guardrail, Unknown, Verdict, counted
from .facts import Facts


class Rule(Guardrail):
    """At most ``limit`` instances for one job."""

    rule: Literal["max-instances-per-job"]
    limit: int = Field(ge=1)

    def decide(self, facts: Facts) -> Verdict:
        asked = facts.job.instances
        if asked is None:
            return Unknown(what="job.instances")
        if asked <= self.limit:
            return None
        return Fires(
            text=f"asks for {counted(asked, 'instance')}, and one job may have {self.limit}:"
            f" ask for {self.limit} or fewer",
            figures={"instances": asked, "limit": self.limit},
        )
