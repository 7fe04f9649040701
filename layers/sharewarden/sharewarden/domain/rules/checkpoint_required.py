"""A job that preemption can reach saves no checkpoints, so a preemption would cost it everything."""

from typing import Literal

from .base import Fires, Guardrail, Unknown, Verdict
from .facts import Facts


class Rule(Guardrail):
    """A CheckpointConfig where preemption can reach: in-share preemption, or a share that may borrow."""

    rule: Literal["checkpoint-required"]

    def decide(self, facts: Facts) -> Verdict:
        job, share = facts.job, facts.share
        if job.checkpoint_uri is not None:
            return None
        if share is None:
            return Unknown(what="share")
        if not share.preemptible:
            return None
        # both come from the same payload: with no instance type either, it was not, or could not be, read
        if job.instance_type is None:
            return Unknown(what="job.checkpoint_uri")
        return Fires(
            text=f"has no CheckpointConfig, and a preemption in share {share.name} would cost all its work:"
            " give it an S3Uri for checkpoints and save to it",
            figures={"strategy": share.strategy, "in_share_preemption": share.in_share_preemption},
        )
