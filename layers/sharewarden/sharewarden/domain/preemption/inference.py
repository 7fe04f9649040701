"""What is taken to be behind a preemption, with how sure that is: Batch names no preemptor (facts 1.3)."""

from typing import Any, Literal

from pydantic import Field

from sharewarden.domain.base import Frozen

#: ``cross-share``: lent capacity went back to its owner; ``in-share``: a higher priority of the same share;
#: ``lowered-limit``: a share's limit was lowered below what was used.
Cause = Literal["cross-share", "in-share", "lowered-limit", "unknown"]
Confidence = Literal["high", "medium", "low"]


class Inferred(Frozen):
    """``job`` None: nobody is named. ``confidence`` is that of the cause, too; None: nothing is claimed."""

    kind: Cause
    why: str
    confidence: Confidence | None = None
    job: str | None = None
    attempt: str | None = None
    """ARN of the preemptor's training job, if it was told."""
    waited_since: int | None = None
    figures: dict[str, Any] = Field(default_factory=dict)
    """The evidence."""
