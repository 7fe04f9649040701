"""What the platform admin allows. Every default is the safe one: shadow, nothing acts."""

import hashlib
from typing import Literal, Self

from pydantic import Field, model_validator

from .base import Frozen, last_part
from .durations import Duration
from .stored import HOUR, MINUTE

Mode = Literal["shadow", "enforce"]
Priority = Field(ge=0, le=9999)


class Band(Frozen):
    """The priorities of one kind of boost, both ends included.

    ``highest`` binds. ``lowest`` is where the kind's own range begins: a bump may well stay below it, among
    the automatic ones.
    """

    lowest: int = Priority
    highest: int = Priority

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.lowest > self.highest:
            raise ValueError(f"the band {self.lowest}-{self.highest} ends below its start")
        return self


class Bands(Frozen):
    """Automatic boosts stay below those of people."""

    automatic: Band = Band(lowest=0, highest=799)
    human: Band = Band(lowest=800, highest=999)


class SharePolicy(Frozen):
    """What holds for the jobs of one quota share."""

    team: str | None = None
    min_runtime: Duration = Field(default=10 * MINUTE, ge=0)


class QueuePolicy(Frozen):
    """What holds for one job queue."""

    mode: Mode = "shadow"
    bumps: Mode = "shadow"
    bands: Bands = Bands()
    shares: dict[str, SharePolicy] = Field(default_factory=dict)


class Policy(Frozen):
    """The policy in force. Queues are named, not given by ARN: one stack is one account and Region."""

    paused: bool = False
    queues: dict[str, QueuePolicy] = Field(default_factory=dict)
    drift_settle: Duration = Field(default=1 * MINUTE, gt=0)
    """How long somebody else's priority must stand, seen twice, before it is taken as the new base."""
    hold: Duration = Field(default=30 * MINUTE, ge=0)
    """How long a boost that started a job is kept when no complete checkpoint is known."""
    wish_life: Duration = Field(default=1 * HOUR, ge=10 * MINUTE)
    """After this time an act that could not be done is given up; it must outlast two sweeps and a retry."""
    blast_radius: int = Field(default=50, ge=1)
    """How many acts one sweep may set off."""

    def queue(self, arn: str) -> QueuePolicy:
        """The rules of the queue, or the safe defaults when the policy does not name it."""
        return self.queues.get(last_part(arn), QueuePolicy())

    def waits(self, queue: str) -> Literal["paused", "shadow"] | None:
        """Why nothing may be sent to the queue's jobs now; None when it may."""
        if self.paused:
            return "paused"
        return "shadow" if self.queue(queue).bumps == "shadow" else None

    def share(self, queue: str, share: str | None) -> SharePolicy:
        """The rules of a share, or the defaults."""
        return self.queue(queue).shares.get(share or "", SharePolicy())

    @property
    def hash(self) -> str:
        """Names the exact policy that a decision was made under."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]
