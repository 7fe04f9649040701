"""Events of AWS Batch about one job: lowerCamelCase, times in epoch milliseconds."""

from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

from pydantic import Field

from sharewarden.domain.base import last_part
from sharewarden.domain.observation import (
    STATUS_ORDER,
    TERMINAL,
    AttemptSeen,
    JobObservation,
    Status,
    Unrecognised,
)

from .envelope import Count, Detail, Envelope, Label, Member, Millis
from .reading import SHOWN

_STATUSES: dict[str, Status] = {status: status for status in STATUS_ORDER}


class ServiceResource(Member):
    name: str | None = None
    value: str | None = None


class AttemptRow(Member):
    """A row of ``attempts`` or ``recentPreemptedAttempts``, or the ``latestAttempt``."""

    service_resource_id: ServiceResource | None = None
    started_at: Millis = None
    stopped_at: Millis = None
    status_reason: str | None = None

    @property
    def training_job(self) -> str | None:
        """The ARN of the attempt's training job, if the row names one."""
        resource = self.service_resource_id
        return resource.value if resource and resource.name == "TrainingJobArn" else None

    def seen(self, *, preempted: bool) -> AttemptSeen | None:
        """The attempt, if the row tells which one."""
        return self._named(self.training_job, preempted) if self.training_job else None

    def _named(self, key: str, preempted: bool) -> AttemptSeen:
        return AttemptSeen(
            training_job=key,
            started_at=self.started_at,
            stopped_at=self.stopped_at,
            reason=self.status_reason,
            preempted=preempted,
        )


class PreemptionSummary(Member):
    preempted_attempt_count: Count = None
    recent_preempted_attempts: list[AttemptRow | None] | None = None


class JobDetail(Detail):
    """What the events about a job have in common.

    All is optional: AWS says only that the detail resembles the answer of DescribeServiceJob (Batch user
    guide, service-job-events). ``startedAt`` is left out: at the top it may be of an older attempt.
    """

    what: ClassVar[Literal["status", "preemption-started", "preemption-completed", "queue-blocked"]]
    classic: ClassVar[bool] = False

    job_arn: str | None = None
    job_name: str | None = None
    job_queue: str | None = None
    status: str | None = None
    status_reason: str | None = None
    created_at: Millis = None
    stopped_at: Millis = None
    latest_attempt: AttemptRow | None = None
    attempts: Sequence[AttemptRow | None] | None = None
    preemption_summary: PreemptionSummary | None = None

    def observation(self, envelope: Envelope) -> JobObservation | Unrecognised:
        arn = envelope.arn(self.job_arn, self._arn_path(), "job")
        status = _STATUSES.get(self.status.upper()) if self.status else None
        summary = self.preemption_summary or PreemptionSummary()
        ended = self.what == "status" and status in TERMINAL
        return JobObservation(
            job=last_part(arn),
            arn=arn,
            at=envelope.time,
            what=self.what,
            classic=self.classic,
            name=self.job_name,
            queue=self.job_queue,
            status=status,
            reason=self.status_reason,
            created_at=self.created_at,
            stopped_at=self.stopped_at if ended else None,
            attempt=self.latest_attempt.training_job if self.latest_attempt else None,
            attempts=(
                *_seen(self.attempts, preempted=False),
                *_seen(summary.recent_preempted_attempts, preempted=True),
            ),
            preempted_count=summary.preempted_attempt_count,
            tags=self._tags(),
        )

    def _arn_path(self) -> str:
        return f"detail.{type(self).model_fields['job_arn'].alias}"

    def _tags(self) -> tuple[tuple[str, str], ...]:
        """The events of service jobs carry none."""
        return ()


class ServiceJobStateChange(JobDetail):
    """Batch user guide, service-job-events. Without a state it says nothing, so that is required."""

    what = "status"
    status: Label

    def observation(self, envelope: Envelope) -> JobObservation | Unrecognised:
        if self.status.upper() not in _STATUSES:
            return envelope.unrecognised(f"{envelope.detail_type}: status {self.status[:SHOWN]}")
        return super().observation(envelope)


class ServiceJobPreemptionStarted(JobDetail):
    """Batch user guide, batch-service-job-preemption-events: ARN, state and reason, no attempt."""

    what = "preemption-started"
    job_arn: str | None = Field(default=None, alias="preemptedJobArn")


class ServiceJobPreemptionCompleted(JobDetail):
    """Same page: ARN, state, and the summary of the attempts that were preempted, no reason."""

    what = "preemption-completed"
    job_arn: str | None = Field(default=None, alias="preemptedJobArn")


class ServiceJobQueueBlocked(JobDetail):
    """Batch user guide, batch-service-job-queue-blocked-events: the reason says what is in the way."""

    what = "queue-blocked"


class Classic(Member):
    """What makes it a container job: its event carries the tags, with the job's own ARN among them."""

    classic: ClassVar[bool] = True
    tags: dict[str, object] | None = None

    def _tags(self) -> tuple[tuple[str, str], ...]:
        told = (self.tags or {}).items()
        return tuple(
            sorted((key, value) for key, value in told if isinstance(value, str) and key != "resourceArn")
        )


class Container(Member):
    task_arn: str | None = None


class ContainerAttempt(AttemptRow):
    """A row of ``attempts`` of a container job (Batch API reference, AttemptDetail)."""

    container: Container | None = None

    def seen(self, *, preempted: bool) -> AttemptSeen | None:  # noqa: ARG002 (its own words tell)
        """The attempt by the ARN of its task, if its host was taken away; of others nothing is told.

        The reason then begins with ``Host EC2`` (Batch user guide, Automated job retries).
        """
        task = self.container.task_arn if self.container else None
        reclaimed = (self.status_reason or "").startswith("Host EC2")
        return self._named(task, preempted=True) if task and reclaimed else None


class ClassicJobStateChange(Classic, ServiceJobStateChange):
    """Batch user guide, batch_job_events."""

    attempts: Sequence[ContainerAttempt | None] | None = None


class ClassicJobQueueBlocked(Classic, ServiceJobQueueBlocked):
    """Batch user guide, batch-job-queue-blocked-events."""


def _seen(rows: Iterable[AttemptRow | None] | None, *, preempted: bool) -> Iterable[AttemptSeen]:
    for row in rows or ():
        if row and (one := row.seen(preempted=preempted)):
            yield one
