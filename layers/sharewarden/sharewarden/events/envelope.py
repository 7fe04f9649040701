"""What all events share: the envelope of EventBridge, and the kinds of values in the details."""

import logging
import re
from datetime import datetime
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic.alias_generators import to_camel

from sharewarden.domain.observation import Observation, Unrecognised

from .reading import BadEvent, shown

logger = logging.getLogger(__name__)

_ARNS = {
    kind: re.compile(rf"arn:[^:\s]*:{service}:[^:\s]*:[^:\s]*:{resource}/[^/\s]{{1,256}}")
    for kind, service, resource in (
        ("job", "batch", "(service-)?job"),
        ("training job", "sagemaker", "training-job"),
    )
}


def _epoch_ms(text: object) -> int:
    """pydantic's own reading of a time would take numbers, and texts without a zone, too."""
    try:
        moment = datetime.fromisoformat(text if isinstance(text, str) else "")
    except ValueError:
        raise ValueError("is not a time in ISO 8601") from None
    if moment.tzinfo is None:
        raise ValueError("has no time zone")
    return round(moment.timestamp() * 1000)


Instant = Annotated[int, BeforeValidator(_epoch_ms), Field(ge=0)]
"""Epoch milliseconds, told as a time in ISO 8601 with its zone."""


def _or_not_told(value: object, read: ValidatorFunctionWrapHandler, place: ValidationInfo) -> int | None:
    """A figure that makes no sense is as good as none: the rest of the event still counts."""
    try:
        return None if value is None else read(value)
    except ValidationError:
        logger.warning("%s: %s makes no sense, and counts as not told", place.field_name, shown(value))
        return None


Millis = Annotated[int | None, Field(ge=10**11, lt=10**14), WrapValidator(_or_not_told)]
"""Epoch milliseconds, told as a number or numeric text. Seconds and booleans are out of bounds."""

Count = Annotated[int | None, Field(ge=0, lt=2**31), WrapValidator(_or_not_told)]

Label = Annotated[str, Field(min_length=1, max_length=256)]
"""A short text: it becomes part of a key."""


class Envelope(BaseModel):
    """What EventBridge puts around every event (EventBridge user guide, eb-events-structure)."""

    source: Label
    detail_type: Label = Field(alias="detail-type")
    time: Instant
    account: str | None = None
    resources: list[str | None] | None = None
    detail: dict[str, object]

    def unrecognised(self, what: str) -> Unrecognised:
        """The observation of ``what`` this version does not know."""
        return Unrecognised(source=self.source, detail_type=what, at=self.time)

    def arn(self, told: str | None, path: str, kind: Literal["job", "training job"]) -> str:
        """The ARN that the detail told at ``path``, else the first of the envelope's resources.

        Raises BadEvent if there is none, or if it is of something else.
        """
        first = next(iter(self.resources or ()), None)
        for place, arn in ((path, told), ("resources[0]", first)):
            if arn is not None:
                return _checked(arn, place, kind)
        raise BadEvent(path, "missing, and resources[0] too")


def _checked(arn: str, path: str, kind: str) -> str:
    if not _ARNS[kind].fullmatch(arn):
        raise BadEvent(path, f"{shown(arn)} is not the ARN of a {kind}")
    return arn


class Member(BaseModel):
    """A part of an event that is written in lowerCamelCase."""

    model_config = ConfigDict(alias_generator=to_camel)


class Detail(Member):
    """The ``detail`` of an event."""

    def observation(self, envelope: Envelope) -> Observation | None:
        """What the event tells; None if nothing happened. Raises BadEvent."""
        raise NotImplementedError
