"""A job lacks a tag that the policy asks for, or has it with nothing in it that can be used."""

from typing import Literal

from pydantic import Field

from .base import Fires, Guardrail, Listed, Unknown, Verdict, counted
from .facts import Facts, JobFacts


class Rule(Guardrail):
    """Each of ``tags`` has to be there, with a value that Sharewarden understands where it reads it."""

    rule: Literal["required-tags"]
    tags: Listed = Field(min_length=1)

    def decide(self, facts: Facts) -> Verdict:
        if facts.job.tags is None:
            return Unknown(what="job.tags")
        wrong = {tag: why for tag in self.tags if (why := _wrong(facts.job, facts.job.tags, tag))}
        if not wrong:
            return None
        told = ", ".join(f"{tag} ({why})" for tag, why in wrong.items())
        return Fires(
            text=f"lacks {counted(len(wrong), 'required tag')}: {told}; give them when you submit",
            figures={"tags": wrong},
        )


def _wrong(job: JobFacts, tags: dict[str, str], tag: str) -> str | None:
    if tag not in tags:
        return "missing"
    return job.odd_tags.get(tag) or (None if tags[tag].strip() else "empty")
