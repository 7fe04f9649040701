"""A running job has not saved for much longer than it usually takes between two checkpoints."""

from typing import ClassVar, Literal

from pydantic import Field

from sharewarden.domain.durations import Duration, format_duration, whole_seconds
from sharewarden.domain.stored import SECOND

from .base import Fires, Guardrail, Unknown, Verdict
from .facts import Facts


class Rule(Guardrail):
    """No more than ``times`` the job's own interval between checkpoints; ``interval`` while that is unknown.

    Nothing is done to the job: to lower it would make it a likelier victim just when most would be lost.
    """

    acts: ClassVar[bool] = False

    rule: Literal["stale-checkpoint"]
    times: float = Field(default=3, ge=1)
    interval: Duration | None = Field(default=None, gt=0)

    def decide(self, facts: Facts) -> Verdict:
        job = facts.job
        if job.status != "RUNNING" or job.checkpoint_uri is None:
            return None
        usual = job.save_interval if job.save_interval is not None else whole_seconds(self.interval)
        if job.checkpoint_age is None or usual is None:
            return Unknown(what="job.checkpoint_age" if job.checkpoint_age is None else "job.save_interval")
        return self._fires(job.checkpoint_age, usual) if job.checkpoint_age > self.times * usual else None

    def _fires(self, age: int, usual: int) -> Fires:
        return Fires(
            text=f"has saved no complete checkpoint for {format_duration(age * SECOND)}, and one is due every"
            f" {format_duration(usual * SECOND)}: look whether it still saves to its S3Uri",
            figures={"age": age, "interval": usual, "times": self.times},
        )
