"""What SageMaker said about a training job, kept apart: its events do not name the Batch job."""

from typing import ClassVar

from .base import Frozen
from .observation import TrainingObservation
from .stored import KEEP_AFTER_END, Stored

KEPT_TRAINING_STEPS = 100


class TrainingStep(Frozen):
    """One reported state. SageMaker sends several events per change, best effort."""

    at: int
    status: str
    secondary_status: str | None = None
    failure_reason: str | None = None


class TrainingRecord(Stored):
    """One training job, by ARN: what SageMaker said of it outlives SageMaker's own memory of it."""

    item: ClassVar[str] = "TRAINING"

    training_job: str
    steps: tuple[TrainingStep, ...] = ()

    @property
    def key(self) -> str:
        return self.training_job

    @property
    def expires_at(self) -> int | None:
        return self.steps[-1].at + KEEP_AFTER_END if self.steps else None


def fold_training(record: TrainingRecord, seen: TrainingObservation) -> TrainingRecord:
    """The record with one event added; order and number of deliveries do not matter."""
    step = TrainingStep(
        at=seen.at,
        status=seen.status,
        secondary_status=seen.secondary_status,
        failure_reason=seen.failure_reason,
    )
    if step in record.steps:
        return record
    steps = sorted(
        (*record.steps, step),
        key=lambda s: (s.at, s.status, s.secondary_status or "", s.failure_reason or ""),
    )
    return record.model_copy(update={"steps": tuple(steps[-KEPT_TRAINING_STEPS:])})
