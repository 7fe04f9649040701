"""Events of SageMaker about one training job: PascalCase, best effort, often several per change."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_pascal

from sharewarden.domain.observation import TrainingObservation

from .envelope import Count, Detail, Envelope, Label, Millis

#: SageMaker API reference, DescribeTrainingJob: TrainingJobStatus and SecondaryStatus.
_STATES = {
    state.lower(): state
    for state in (
        *("InProgress", "Completed", "Failed", "Stopping", "Stopped", "Deleting"),
        *("Starting", "Pending", "Downloading", "Training", "Interrupted", "Uploading"),
        *("MaxRuntimeExceeded", "MaxWaitTimeExceeded", "Updating", "Restarting"),
    )
}


class ResourceConfig(BaseModel):
    model_config = ConfigDict(alias_generator=to_pascal)

    instance_type: str | None = None
    instance_count: Count = None


class TrainingJobStateChange(Detail):
    """SageMaker developer guide, automating-sagemaker-with-eventbridge."""

    model_config = ConfigDict(alias_generator=to_pascal)

    training_job_arn: str | None = None
    training_job_status: Label
    secondary_status: str | None = None
    failure_reason: str | None = None
    resource_config: ResourceConfig | None = None
    training_start_time: Millis = None
    training_end_time: Millis = None

    def observation(self, envelope: Envelope) -> TrainingObservation:
        resources = self.resource_config or ResourceConfig()
        return TrainingObservation(
            training_job=envelope.arn(self.training_job_arn, "detail.TrainingJobArn", "training job"),
            at=envelope.time,
            status=_spelled(self.training_job_status),
            secondary_status=_spelled(self.secondary_status) if self.secondary_status else None,
            failure_reason=self.failure_reason,
            instance_type=resources.instance_type,
            instance_count=resources.instance_count,
            started_at=self.training_start_time,
            stopped_at=self.training_end_time,
        )


def _spelled(state: str) -> str:
    """The documented spelling (SageMaker's other events write IN_PROGRESS); a new state stays as told."""
    return _STATES.get(state.replace("_", "").lower(), state)
