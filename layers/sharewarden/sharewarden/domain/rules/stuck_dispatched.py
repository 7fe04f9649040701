"""A job was handed to SageMaker and does not get to run, while it holds capacity."""

from typing import Literal

from pydantic import Field

from sharewarden.domain.durations import Duration, format_duration
from sharewarden.domain.stored import SECOND

from .base import Fires, Guardrail, Unknown, Verdict
from .facts import Facts

#: What the job waits for (Batch user guide, service-job-status).
_FOR = {
    "SCHEDULED": "SageMaker has no instances for it yet",
    "STARTING": "its instances are being prepared and its data and image downloaded",
}


class Rule(Guardrail):
    """No longer than ``limit`` in SCHEDULED, or in STARTING."""

    rule: Literal["stuck-dispatched"]
    limit: Duration = Field(gt=0)

    def decide(self, facts: Facts) -> Verdict:
        job = facts.job
        if job.status not in _FOR:
            return None
        if job.in_status is None:
            return Unknown(what="job.in_status")
        if job.in_status * SECOND <= self.limit:
            return None
        return Fires(
            text=f"has been {job.status} for {format_duration(job.in_status * SECOND)}, and the limit is"
            f" {format_duration(self.limit)}: {_FOR[job.status]}",
            figures={"status": job.status, "seconds": job.in_status, "limit": self.limit // SECOND},
            subject=f"{job.status}-{job.preemptions}",
        )
