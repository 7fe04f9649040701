"""A job runs longer than it may, or asks for more time than it may have."""

from typing import Literal, Self

from pydantic import Field, model_validator

from sharewarden.domain.durations import Duration, format_duration
from sharewarden.domain.stored import SECOND

from .base import Fires, Guardrail, Unknown, Verdict
from .facts import Facts, JobFacts


class Rule(Guardrail):
    """``asked``: what a job may ask for; ``attempt``: one attempt may run; ``total``: all its attempts."""

    rule: Literal["runtime-limit"]
    asked: Duration | None = Field(default=None, gt=0)
    attempt: Duration | None = Field(default=None, gt=0)
    total: Duration | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        if self.asked is None and self.attempt is None and self.total is None:
            raise ValueError("runtime-limit needs a limit: asked, attempt or total, such as attempt: 24h")
        return self

    def decide(self, facts: Facts) -> Verdict:
        words = (
            _total(facts.job, self.total),
            _attempt(facts.job, self.attempt),
            _asked(facts.job, self.asked),
        )
        fires = next((word for word in words if isinstance(word, Fires)), None)
        return fires or next((word for word in words if word is not None), None)


def _total(job: JobFacts, limit: int | None) -> Verdict:
    if limit is None:
        return None
    if job.trained is None:
        return Unknown(what="job.trained")
    return _beyond(
        job.trained, limit, "has run for {} in all its attempts, and a job may run for {}", "total"
    )


def _attempt(job: JobFacts, limit: int | None) -> Verdict:
    if limit is None or job.status != "RUNNING":
        return None
    if job.running is None:
        return Unknown(what="job.running")
    subject = f"attempt-{job.preemptions}"
    return _beyond(job.running, limit, "has been running for {}, and an attempt may run for {}", subject)


def _asked(job: JobFacts, limit: int | None) -> Verdict:
    if limit is None:
        return None
    if job.max_runtime is None:
        return Unknown(what="job.max_runtime")
    text = "asks for up to {} an attempt, and a job may ask for {}: lower its time-out"
    return _beyond(job.max_runtime, limit, text, "asked")


def _beyond(seconds: int, limit: int, text: str, subject: str) -> Verdict:
    if seconds * SECOND <= limit:
        return None
    return Fires(
        text=text.format(format_duration(seconds * SECOND), format_duration(limit)),
        figures={"seconds": seconds, "limit": limit // SECOND},
        subject=subject,
    )
