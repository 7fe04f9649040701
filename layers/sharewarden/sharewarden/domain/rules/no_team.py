"""A job belongs to no team, so nobody answers for it and no team's limits hold for it."""

from typing import Literal

from .base import Fires, Guardrail, Unknown, Verdict
from .facts import Facts


class Rule(Guardrail):
    """Every job belongs to a team: its share's, or the one that its tag names."""

    rule: Literal["no-team"]

    def decide(self, facts: Facts) -> Verdict:
        if facts.job.team is not None:
            return None
        if facts.job.tags is None:
            return Unknown(what="job.tags")
        return Fires(
            text="is shown under (no team), as its share belongs to none and it has no team tag:"
            " submit it with one"
        )
