"""From what a function is handed to its use case, and back to what it answers."""

import json
from dataclasses import asdict
from typing import Any, Self

from pydantic import Field, ValidationError, model_validator

from .domain.base import Frozen, well_formed
from .events import BadEvent, observe
from .messages import Poison, logger, measure, rules_failed
from .ports import Runtime
from .usecases.apply import apply
from .usecases.guarding import FailedRules
from .usecases.notify import notify
from .usecases.react import Reaction, react
from .usecases.sweep import sweep
from .usecases.walk import Limits
from .usecases.watch import watch

#: Kept back from the function's time: enough to end the sweep in order.
SWEEP_SPARE_MS = 20_000
#: The figures of a sweep that are metrics, for alarms and graphs; the log has all of its report.
MEASURED = ("queues", "records", "behind", "repaired", "unread", "failed", "left", "oldest_wish_ms")


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


class NoticeMessage(Frozen):
    """What ``NoticeQueue.send`` puts on the queue: the key of a notice."""

    notice: str


class LookMessage(Frozen):
    """What ``LookQueue.send`` puts on the queue: a job whose checkpoints are to be looked at."""

    job: str


def take_in(runtime: Runtime, body: str) -> Reaction:
    """One EventBridge event as JSON text. Raises Poison for what can never be read, Unavailable."""
    try:
        seen = observe(well_formed(json.loads(body)))
    except (ValueError, RecursionError, BadEvent) as error:
        raise Poison(f"not an event: {error}") from error
    reaction = react(runtime, seen) if seen is not None else Reaction("ignored")
    if reaction.failed_rules:
        rules_failed(reaction.failed_rules)
    return reaction


def carry_out(runtime: Runtime, body: str) -> str:
    """One wish message as JSON text. Raises Poison, Unavailable."""
    try:
        message = WishMessage.model_validate_json(body)
    except ValidationError as error:
        raise Poison(f"not a wish: {error.errors(include_url=False, include_input=False)}") from error
    outcome = apply(runtime, message.job, message.wish)
    logger.info("applied", outcome=outcome, job=message.job, wish=message.wish)
    return outcome


def tell(runtime: Runtime, body: str) -> str:
    """One notice message as JSON text. Raises Poison, Unavailable."""
    try:
        message = NoticeMessage.model_validate_json(body)
    except ValidationError as error:
        raise Poison(f"not a notice: {error.errors(include_url=False, include_input=False)}") from error
    outcome = notify(runtime, message.notice)
    logger.info("notified", outcome=outcome, notice=message.notice)
    return outcome


def look_at(runtime: Runtime, body: str) -> str:
    """One look message as JSON text. Raises Poison, Unavailable."""
    try:
        message = LookMessage.model_validate_json(body)
    except ValidationError as error:
        raise Poison(f"not a look: {error.errors(include_url=False, include_input=False)}") from error
    failed = FailedRules()
    outcome = watch(runtime, message.job, failed)
    if failed.labels:
        rules_failed(len(failed.labels))
    logger.info("watched", outcome=outcome, job=message.job)
    return outcome


def walk(runtime: Runtime, context: Any) -> dict[str, Any]:
    """One sweep, within the time that ``context`` leaves. The answer is its report."""
    stop_at = runtime.clock.now() + context.get_remaining_time_in_millis() - SWEEP_SPARE_MS
    report = asdict(sweep(runtime, context.aws_request_id, Limits(stop_at=stop_at)))
    logger.info("swept", **report)
    measure({name: report[name] for name in MEASURED})
    return report
