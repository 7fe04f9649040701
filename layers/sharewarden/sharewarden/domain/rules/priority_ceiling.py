"""A job's own priority is higher than the policy allows. What Sharewarden adds to it has bands of its own."""

from typing import Literal

from pydantic import Field

from .base import Fires, Guardrail, Unknown, Verdict
from .facts import Facts


class Rule(Guardrail):
    """No base priority above ``highest``. One that somebody set on the way is told of and never fought."""

    rule: Literal["priority-ceiling"]
    highest: int = Field(ge=0, le=9999)

    def decide(self, facts: Facts) -> Verdict:
        base = facts.job.base
        if base is None:
            return Unknown(what="job.base")
        if base <= self.highest:
            return None
        return _drifted(base, self.highest) if facts.job.drifted else _submitted(base, self.highest)


def _submitted(base: int, highest: int) -> Fires:
    return Fires(
        text=f"was submitted with priority {base}, and the highest allowed is {highest}:"
        f" submit it with {highest} or less",
        figures={"priority": base, "highest": highest},
    )


def _drifted(base: int, highest: int) -> Fires:
    """Law 3: a priority that somebody else set stays as it is."""
    return Fires(
        text=f"was set to priority {base} by hand, and the highest allowed is {highest}:"
        " it stays as it was set",
        figures={"priority": base, "highest": highest},
        subject=f"drift-{base}",
        only_told=True,
    )
