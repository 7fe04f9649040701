"""Calls to the API of AWS Batch, as CloudTrail reports them: best effort, and only with a trail."""

from itertools import accumulate

from pydantic import Field

from sharewarden.domain.observation import ApiCallObservation

from .envelope import Count, Detail, Envelope, Instant, Label, Member
from .reading import canonical

#: Characters of a request that an observation keeps.
REQUEST_LIMIT = 2000


class UserIdentity(Member):
    arn: str | None = None
    invoked_by: str | None = None
    principal_id: str | None = None

    @property
    def name(self) -> str:
        """The caller's ARN; an AWS service that calls has none."""
        return self.arn or self.invoked_by or self.principal_id or "unknown"


class RequestParameters(Member):
    """Of any call: what the record may hold. Others, as tags and payloads, are not for everybody's eyes."""

    job_id: str | None = None
    jobs: list[str | None] | None = None
    quota_share_arn: str | None = None
    scheduling_priority: Count = None
    reason: object = None
    quota_share_name: object = None
    job_queue: object = None
    state: object = None
    capacity_limits: object = None
    resource_sharing_configuration: object = None
    preemption_configuration: object = None

    def text(self) -> str:
        """Canonical JSON; where that would pass REQUEST_LIMIT the longest members are left out."""
        told = self.model_dump(by_alias=True, exclude_unset=True).items()
        members = sorted((f"{canonical(name)}:{canonical(value)}" for name, value in told), key=len)
        ends = accumulate(len(member) + 1 for member in members)
        kept = (member for member, end in zip(members, ends, strict=True) if end < REQUEST_LIMIT)
        return "{" + ",".join(sorted(kept)) + "}"


class ResponseElements(Member):
    job_arn: str | None = None
    quota_share_arn: str | None = None
    successful: list[str | None] | None = None


class ApiCall(Detail):
    """CloudTrail user guide, cloudtrail-event-reference-record-contents."""

    event_id: Label = Field(alias="eventID")
    event_source: Label
    event_name: Label
    event_time: Instant | None = None
    read_only: bool | None = None
    error_code: str | None = None
    user_identity: UserIdentity | None = None
    request_parameters: RequestParameters | None = None
    response_elements: ResponseElements | None = None

    def observation(self, envelope: Envelope) -> ApiCallObservation | None:
        if not self._changed_batch():
            return None
        request = self.request_parameters or RequestParameters()
        return ApiCallObservation(
            event_id=self.event_id,
            at=envelope.time if self.event_time is None else self.event_time,
            operation=self.event_name,
            principal=(self.user_identity or UserIdentity()).name,
            subjects=_subjects(request, self.response_elements or ResponseElements()),
            priority=request.scheduling_priority,
            request=request.text(),
        )

    def _changed_batch(self) -> bool:
        read_only = self.read_only
        if read_only is None:
            read_only = self.event_name.startswith(("Describe", "Get", "List"))
        return self.event_source == "batch.amazonaws.com" and self.error_code is None and not read_only


def _subjects(request: RequestParameters, response: ResponseElements) -> tuple[str, ...]:
    """The ARN in the answer, else what the request named.

    TerminateServiceJobs names many and may refuse some: its answer says which it took.
    """
    one = response.job_arn or response.quota_share_arn or request.quota_share_arn or request.job_id
    if one:
        return (one,)
    many = request.jobs if response.successful is None else response.successful
    return tuple(filter(None, many or ()))
