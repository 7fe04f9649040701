"""Batch says that the job at the front of its queue is blocked: what that means, and what helps."""

import re
from typing import ClassVar, Literal

from sharewarden.domain.fits import Misfit, misfit

from .base import Fires, Guardrail, Verdict
from .facts import Facts

_QUOTA = "QUOTA_MANAGEMENT_LIMIT_EXCEEDED"

#: Cause and advice for each documented reason (Batch user guide, sm_job_stuck_in_runnable pages).
_CAUSES = {
    "INSUFFICIENT_INSTANCE_CAPACITY": (
        "AWS has no instances of the type that it asks for at the moment:"
        " wait, ask for another instance type, or reserve capacity with a training plan"
    ),
    "SERVICE_ENVIRONMENT_MAX_RESOURCE": (
        "it asks for more than the queue's whole service environment may use:"
        " ask for fewer instances, or have the environment's capacity limit raised"
    ),
    _QUOTA: (
        "it asks for more than its share can ever have:"
        " ask for fewer instances, or have the share's limit raised"
    ),
}
_CODE = re.compile(r"(?:CAPACITY|MISCONFIGURATION):([A-Z_]+)")


class Rule(Guardrail):
    """A job that Batch reports as blocked. To end such jobs is the queue's own jobStateTimeLimitActions."""

    acts: ClassVar[bool] = False

    rule: Literal["queue-blocked"]

    def decide(self, facts: Facts) -> Verdict:
        said = facts.job.blocked
        if said is None:
            return None
        found = _CODE.search(said)
        code = found[1] if found else ""
        return Fires(
            text=f"blocks the front of its queue, because {_cause(code, facts) or f'Batch says: {said}'}",
            figures={"reason": said},
            subject=code or "other",
        )


def _cause(code: str, facts: Facts) -> str | None:
    return (_arithmetic(facts) if code == _QUOTA else None) or _CAUSES.get(code)


def _arithmetic(facts: Facts) -> str | None:
    """The same reason with the figures, when they are known and agree that it cannot fit."""
    job, share = facts.job, facts.share
    if share is None or job.instance_type is None or job.instances is None:
        return None
    word = misfit(share, job.instance_type, job.instances)
    return f"it {word.text}" if isinstance(word, Misfit) else None
