"""Dead letters: why each lies there, where it came from, and whether it would fail again."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ValidationError
from sharewarden.events import BadEvent, observe
from sharewarden.intake.looks import LookMessage
from sharewarden.intake.notices import NoticeMessage
from sharewarden.intake.wishes import WishMessage

from sharewarden_tools.cli.output import plain

Home = Literal["EventsQueue", "WishesQueue", "NoticesQueue", "LooksQueue"]

#: Where messages come from, by the ``origin`` that the functions give, and which function took them there.
_HOMES: dict[str, Home] = {
    "events": "EventsQueue",
    "wishes": "WishesQueue",
    "notices": "NoticesQueue",
    "looks": "LooksQueue",
}
_READERS: dict[Home, str] = {
    "EventsQueue": "react",
    "WishesQueue": "apply",
    "NoticesQueue": "notify",
    "LooksQueue": "watch",
}

#: Members of an event that may hold what is nobody's business, wherever they stand (SageMaker API reference,
#: CreateTrainingJob; CloudTrail user guide, userIdentity).
_PRIVATE = re.compile(
    r"hyper.?parameters|environment|servicerequestpayload|accesskeyid|secret|token|password|credential",
    re.IGNORECASE,
)
_HIDDEN = "(hidden)"


@dataclass(frozen=True)
class Letter:
    """One message of a dead-letter queue. ``queue`` is that queue's logical id; ``sent_at`` epoch ms."""

    id: str
    queue: str
    receipt: str
    body: str
    sent_at: int
    attributes: Mapping[str, str]
    group: str | None = None

    @property
    def home(self) -> Home:
        """The queue that it came from: all functions bury their messages among the events'."""
        own = self.queue.removesuffix("DeadLetters").lower()
        return (
            _HOMES[own] if own != "events" else _HOMES.get(self.attributes.get("origin", own), "EventsQueue")
        )

    @property
    def origin(self) -> str:
        """Who gave it up."""
        if "RULE_ARN" in self.attributes:
            return f"EventBridge, rule {self.attributes['RULE_ARN'].rpartition('/')[2]}"
        if "origin" in self.attributes:
            return _READERS[self.home]
        return f"SQS, from {self.home}"

    @property
    def reason(self) -> str:
        """Why it lies here, on one line."""
        if "ERROR_CODE" in self.attributes:
            return plain(_delivery(self.attributes))
        return plain(self.attributes.get("reason", "received too often without being finished"))

    @property
    def job(self) -> str | None:
        """The job of a wish; its message group, since the wishes of a job stay in order."""
        wish = _wish(self.body)
        return self.group or (wish.job if wish else None)

    @property
    def fault(self) -> str | None:
        """Why this version of the code could not read it either; None when it could."""
        if self.home == "WishesQueue":
            return None if _wish(self.body) else "not a wish"
        if self.home == "NoticesQueue":
            return None if _is(NoticeMessage, self.body) else "not a notice"
        if self.home == "LooksQueue":
            return None if _is(LookMessage, self.body) else "not a look"
        try:
            observe(json.loads(self.body))
        except (ValueError, RecursionError, BadEvent) as error:
            return plain(str(error))
        return None

    def shown(self) -> str:
        """The body for a person: what may be private is hidden, and so is all that is no JSON."""
        try:
            return json.dumps(_masked(json.loads(self.body)), indent=2)
        except (ValueError, RecursionError):
            return f"(no JSON, {len(self.body.encode())} bytes)"


def read_letter(queue: str, message: Mapping[str, Any]) -> Letter:
    """The message as ReceiveMessage gave it."""
    system = message.get("Attributes", {})
    attributes = message.get("MessageAttributes", {})
    return Letter(
        id=message["MessageId"],
        queue=queue,
        receipt=message["ReceiptHandle"],
        body=message.get("Body", ""),
        sent_at=int(system.get("SentTimestamp", 0)),
        attributes={name: value.get("StringValue", "") for name, value in attributes.items()},
        group=system.get("MessageGroupId"),
    )


def _delivery(attributes: Mapping[str, str]) -> str:
    """What EventBridge says (user guide, Using dead-letter queues to process undelivered events)."""
    text = f"{attributes['ERROR_CODE']}: {attributes.get('ERROR_MESSAGE', 'no message')}"
    more = [
        f"{name.lower().replace('_', ' ')} {attributes[name]}"
        for name in ("EXHAUSTED_RETRY_CONDITION", "RETRY_ATTEMPTS")
        if name in attributes
    ]
    return f"{text} ({', '.join(more)})" if more else text


def _wish(body: str) -> WishMessage | None:
    try:
        return WishMessage.model_validate_json(body)
    except ValidationError:
        return None


def _is(kind: type[BaseModel], body: str) -> bool:
    try:
        kind.model_validate_json(body)
    except ValidationError:
        return False
    return True


def _masked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _HIDDEN if _PRIVATE.search(key) else _masked(item) for key, item in value.items()}
    return [_masked(item) for item in value] if isinstance(value, list) else value
