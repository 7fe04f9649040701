"""Wishes, for ``apply``."""

from typing import Self

from pydantic import Field, model_validator

from sharewarden.domain.base import Frozen
from sharewarden.messages import logger
from sharewarden.ports import Runtime
from sharewarden.usecases.apply import apply

from .bodies import read


class WishMessage(Frozen):
    """What ``WishQueue.send`` puts on the queue: a job, and which of its wishes."""

    job: str
    version: int | None = None
    """Of its priority."""
    termination: str | None = Field(default=None, min_length=1)
    """Id of the act."""

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if (self.version is None) == (self.termination is None):
            raise ValueError("a wish is a version or a termination")
        return self

    @property
    def wish(self) -> int | str:
        """As ``apply`` takes it."""
        return self.termination or self.version or 0


def carry_out(runtime: Runtime, body: str) -> str:
    """One wish message as JSON text. Raises Poison, Unavailable."""
    message = read(WishMessage, body, "wish")
    outcome = apply(runtime, message.job, message.wish)
    logger.info("applied", outcome=outcome, job=message.job, wish=message.wish)
    return outcome
