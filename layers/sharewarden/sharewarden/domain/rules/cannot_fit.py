"""A job asks for more than its share can ever give it: it waits for nothing, and so do the jobs behind it."""

from typing import Literal

from sharewarden.domain.fits import Misfit, misfit

from .base import Fires, Guardrail, Unknown, Verdict
from .facts import Facts


class Rule(Guardrail):
    """A job fits the capacity limit and borrow limit of its share."""

    rule: Literal["cannot-fit"]

    def decide(self, facts: Facts) -> Verdict:
        job, share = facts.job, facts.share
        if share is None:
            return Unknown(what="share")
        if job.instance_type is None or job.instances is None:
            return Unknown(what="job.instance_type" if job.instance_type is None else "job.instances")
        word = misfit(share, job.instance_type, job.instances)
        return Fires(text=word.text, figures=word.figures) if isinstance(word, Misfit) else word
