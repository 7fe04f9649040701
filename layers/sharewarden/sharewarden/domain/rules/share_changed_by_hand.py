"""A quota share was changed, created or deleted, and not by the pipeline that is meant to do so."""

from typing import ClassVar, Literal

from .base import Fires, Guardrail, Listed, Scope, Verdict, any_matches
from .facts import ShareChangeFacts


class Rule(Guardrail):
    """Only the principals ``by`` change shares: ARNs, or patterns of them. Without it, any change is told."""

    scope: ClassVar[Scope] = "share-change"
    acts: ClassVar[bool] = False

    rule: Literal["share-changed-by-hand"]
    by: Listed = ()

    def decide_change(self, facts: ShareChangeFacts) -> Verdict:
        if facts.by is not None and any_matches(self.by, facts.by):
            return None
        who = facts.by or "somebody whom only CloudTrail could name"
        call = f" with {facts.operation}" if facts.operation else ""
        return Fires(
            text=f"share {facts.share} of {facts.queue} was changed by {who}{call}: {facts.change}",
            figures={"by": facts.by, "operation": facts.operation},
        )
