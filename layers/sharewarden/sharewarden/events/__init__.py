"""What AWS says: one model per EventBridge event that the controller hears, and ``observe``.

Lenient at the edge: members that we do not read are ignored, and what AWS does not promise may be
absent or null (Batch user guide, batch_cwe_events: new properties and event types may come). Strict
inside: what comes out is an ``Observation`` of the domain, or a ``BadEvent`` that names the place.
"""

from collections.abc import Mapping

from sharewarden.domain.observation import Observation

from .calls import ApiCall
from .envelope import Detail, Envelope
from .jobs import (
    ClassicJobQueueBlocked,
    ClassicJobStateChange,
    ServiceJobPreemptionCompleted,
    ServiceJobPreemptionStarted,
    ServiceJobQueueBlocked,
    ServiceJobStateChange,
)
from .reading import BadEvent, read
from .training import TrainingJobStateChange

__all__ = ["BadEvent", "observe"]

_DETAILS: dict[tuple[str, str], type[Detail]] = {
    ("aws.batch", "Batch Service Job State Change"): ServiceJobStateChange,
    ("aws.batch", "Batch Service Job Preemption Started"): ServiceJobPreemptionStarted,
    ("aws.batch", "Batch Service Job Preemption Completed"): ServiceJobPreemptionCompleted,
    ("aws.batch", "Batch Service Job Queue Blocked"): ServiceJobQueueBlocked,
    ("aws.batch", "Batch Job State Change"): ClassicJobStateChange,
    ("aws.batch", "Batch Job Queue Blocked"): ClassicJobQueueBlocked,
    ("aws.batch", "AWS API Call via CloudTrail"): ApiCall,
    ("aws.sagemaker", "SageMaker Training Job State Change"): TrainingJobStateChange,
}


def observe(event: Mapping[str, object]) -> Observation | None:
    """What an EventBridge event tells, or None if nothing happened: a call to Batch that read or failed.

    An event type, or a state of a job, that this version does not know is ``Unrecognised``.

    Raises:
        BadEvent: the event can never be processed.
    """
    envelope = read(Envelope, event)
    model = _DETAILS.get((envelope.source, envelope.detail_type))
    if model is None:
        return envelope.unrecognised(envelope.detail_type)
    return read(model, envelope.detail, "detail").observation(envelope)
