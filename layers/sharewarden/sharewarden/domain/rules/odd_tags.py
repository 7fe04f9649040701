"""A tag that Sharewarden reads says nothing that it understands, so the job is treated as if it had none."""

from typing import Literal

from .base import Fires, Guardrail, Unknown, Verdict
from .facts import Facts


class Rule(Guardrail):
    """The tags that Sharewarden reads have to make sense (a deadline is a time, a runtime a duration)."""

    rule: Literal["odd-tags"]

    def decide(self, facts: Facts) -> Verdict:
        if facts.job.tags is None:
            return Unknown(what="job.tags")
        odd = facts.job.odd_tags
        if not odd:
            return None
        told = "; ".join(f"{tag} {why}" for tag, why in sorted(odd.items()))
        return Fires(
            text=f"has tags that are ignored because they make no sense ({told})", figures={"tags": odd}
        )
