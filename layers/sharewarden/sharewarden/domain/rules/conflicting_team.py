"""A job's tag names another team than the one that its share belongs to; the share wins."""

from typing import Literal

from .base import Fires, Guardrail, Unknown, Verdict
from .facts import Facts


class Rule(Guardrail):
    """A team tag agrees with the team of the share."""

    rule: Literal["conflicting-team"]

    def decide(self, facts: Facts) -> Verdict:
        if facts.job.tags is None:
            return Unknown(what="job.tags")
        tagged, team = facts.job.tag_team, facts.job.team
        if tagged is None or tagged == team:
            return None
        return Fires(
            text=f"says team {tagged} in its tag, and counts for {team}, to which share {facts.job.share}"
            f" belongs: correct the tag, or submit it to a share of {tagged}",
            figures={"tag": tagged, "team": team},
        )
