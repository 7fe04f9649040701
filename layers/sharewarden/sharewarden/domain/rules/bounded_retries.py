"""A job may be preempted and requeued more often than the policy allows; Batch's default is without end."""

from typing import Literal

from pydantic import Field

from .base import Fires, Guardrail, Unknown, Verdict
from .facts import Facts

_WITHOUT_END = -1


class Rule(Guardrail):
    """At most ``limit`` preemption retries (``preemptionRetriesBeforeTermination``)."""

    rule: Literal["bounded-retries"]
    limit: int = Field(ge=0)

    def decide(self, facts: Facts) -> Verdict:
        retries = facts.job.preemption_retries
        if retries is None:
            return Unknown(what="job.preemption_retries")
        if _WITHOUT_END < retries <= self.limit:
            return None
        often = "without end" if retries == _WITHOUT_END else f"up to {retries} times"
        return Fires(
            text=f"is requeued after preemptions {often}, and the policy allows {self.limit}:"
            f" submit it with preemptionRetriesBeforeTermination of {self.limit} or less",
            figures={"retries": retries, "limit": self.limit},
        )
