"""Queues with SQS semantics in the lab's own time; ``sqs.py`` puts them on the wire.

They exist because moto's queues live in wall time, while a demo or simulation of a week takes seconds:
visibility time-outs, delays, the de-duplication window and redrive must follow the virtual clock. Source
of the rules: Amazon SQS developer guide (Standard queues, FIFO queues, Visibility timeout, Dead-letter
queues) and API reference. Differences: standard queues deliver in order and once (faults have their own
place, `delivery.py`); no permissions, no encryption.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from .errors import ApiError

DEDUPLICATION_MS = 300_000
DEFAULTS = {
    "VisibilityTimeout": "30",
    "DelaySeconds": "0",
    "MessageRetentionPeriod": "345600",
    "MaximumMessageSize": "1048576",
}
RANGES = {  # seconds and bytes (API_CreateQueue, API_SendMessage, API_ChangeMessageVisibility)
    "VisibilityTimeout": (0, 43_200),
    "DelaySeconds": (0, 900),
    "MessageRetentionPeriod": (60, 1_209_600),
    "MaximumMessageSize": (1_024, 1_048_576),
}


class Clock(Protocol):
    def now(self) -> int: ...


@dataclass
class Message:
    """One message; times in epoch ms. ``attributes`` are message attributes in the wire's shape."""

    id: str
    body: str
    sent_at: int
    visible_at: int
    sequence: int
    attributes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    group: str | None = None
    deduplication_id: str | None = None
    receive_count: int = 0
    first_received_at: int | None = None
    source_arn: str | None = None

    @property
    def receipt(self) -> str:
        """The handle of the latest receive; earlier ones are stale."""
        return f"{self.id}/{self.receive_count}"

    def system_attributes(self) -> dict[str, str]:
        """The attributes that SQS itself keeps, as strings, without those that do not apply."""
        values = {
            "SenderId": "lab",
            "SentTimestamp": self.sent_at,
            "ApproximateReceiveCount": self.receive_count,
            "ApproximateFirstReceiveTimestamp": self.first_received_at,
            "MessageGroupId": self.group,
            "MessageDeduplicationId": self.deduplication_id,
            "SequenceNumber": f"{self.sequence:020d}" if self.deduplication_id else None,
            "DeadLetterQueueSourceArn": self.source_arn,
        }
        return {name: str(value) for name, value in values.items() if value is not None}


class Queue:
    """One queue. Raises :class:`ApiError` with the codes of the SQS API reference."""

    def __init__(
        self, clock: Clock, name: str, arn: str, settings: Mapping[str, str], dead_letters: Queue | None
    ) -> None:
        self.name = name
        self.arn = arn
        self.settings = {**DEFAULTS, **settings}
        self.fifo = name.endswith(".fifo")
        self._clock = clock
        self._dead_letters = dead_letters
        self._max_receives: int | None = _redrive_policy(settings).get("receives")
        self._messages: dict[str, Message] = {}
        self._accepted: dict[str, Message] = {}
        self._sent = 0

    def send(
        self,
        body: str,
        *,
        group: str | None = None,
        deduplication_id: str | None = None,
        attributes: Mapping[str, Mapping[str, str]] | None = None,
        delay_s: int | None = None,
    ) -> Message:
        """The stored message, or the earlier one of its de-duplication id within 5 minutes (FIFO)."""
        self._check_size(body, attributes or {})
        _check_attributes(attributes or {})
        key = self._deduplication_key(body, group, deduplication_id, delay_s)
        now = self._clock.now()
        self._forget_accepted(now)
        if key and key in self._accepted:
            return self._accepted[key]
        wait = self._seconds("DelaySeconds", delay_s)
        message = self._new(body, now, now + wait * 1000, attributes or {}, group, key)
        self._messages[message.id] = message
        if key:
            self._accepted[key] = replace(message)
        return message

    def receive(self, limit: int = 1, visibility_s: int | None = None) -> list[Message]:
        """Up to ``limit`` messages, now hidden; a FIFO group with a message in flight gives nothing."""
        now = self._clock.now()
        self._drop_expired(now)
        wait = self._seconds("VisibilityTimeout", visibility_s)
        received: list[Message] = []
        for message in self._deliverable(now):
            if len(received) == limit:
                break
            if self._max_receives is not None and message.receive_count >= self._max_receives:
                self._bury(message)
                continue
            _take(message, now, now + wait * 1000)
            received.append(replace(message))
        return received

    def delete(self, receipt: str) -> None:
        """A stale handle deletes nothing on a standard queue and is an error on a FIFO queue."""
        message = self._by_receipt(receipt)
        if message is None:
            return
        if self.fifo and message.visible_at <= self._clock.now():
            raise invalid("ReceiptHandle", "the receipt handle has expired")
        if message.receipt == receipt:
            del self._messages[message.id]

    def change_visibility(self, receipt: str, visibility_s: int) -> None:
        message, now = self._by_receipt(receipt), self._clock.now()
        wait = self._seconds("VisibilityTimeout", visibility_s)
        if message is None or message.receipt != receipt or message.visible_at <= now:
            raise ApiError("MessageNotInflight", f"{receipt} is not in flight", 400)
        message.visible_at = now + wait * 1000

    def purge(self) -> None:
        self._messages.clear()

    def next_due(self) -> int | None:
        """When the next hidden message becomes visible, in epoch ms, or None."""
        now = self._clock.now()
        return min((m.visible_at for m in self._messages.values() if m.visible_at > now), default=None)

    def counts(self) -> dict[str, int]:
        """Messages ``visible``, ``in_flight`` and ``delayed``; exact, where SQS only approximates."""
        now = self._clock.now()
        self._drop_expired(now)
        hidden = [message for message in self._messages.values() if message.visible_at > now]
        in_flight = sum(1 for message in hidden if message.receive_count)
        delayed = len(hidden) - in_flight
        return {"visible": len(self._messages) - len(hidden), "in_flight": in_flight, "delayed": delayed}

    def _seconds(self, name: str, given: int | None) -> int:
        return _within(name, self.settings[name] if given is None else given)

    def _new(self, body: str, now: int, visible_at: int, attributes: Any, group: Any, key: Any) -> Message:
        self._sent += 1
        message_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.arn}/{self._sent}"))
        return Message(message_id, body, now, visible_at, self._sent, attributes, group, key)

    def _deduplication_key(
        self, body: str, group: str | None, given: str | None, delay_s: int | None
    ) -> str | None:
        if not self.fifo:
            return None
        if group is None:
            raise ApiError("MissingParameter", "The request must contain the parameter MessageGroupId.", 400)
        if delay_s:
            raise invalid("DelaySeconds", "a message of a FIFO queue has no delay of its own")
        if given is None and self.settings.get("ContentBasedDeduplication") != "true":
            raise invalid("MessageDeduplicationId", "needed unless ContentBasedDeduplication is on")
        return given or hashlib.sha256(body.encode()).hexdigest()

    def _check_size(self, body: str, attributes: Mapping[str, Mapping[str, str]]) -> None:
        extra = (len(name) + sum(map(len, value.values())) for name, value in attributes.items())
        if not body:
            raise invalid("MessageBody", "it is empty")
        if len(body.encode()) + sum(extra) > int(self.settings["MaximumMessageSize"]):
            raise invalid("MessageBody", f"longer than {self.settings['MaximumMessageSize']} bytes")

    def _deliverable(self, now: int) -> Iterator[Message]:
        hidden = [message for message in self._messages.values() if message.visible_at > now]
        blocked = {message.group for message in hidden if message.receive_count} if self.fifo else set()
        for message in list(self._messages.values()):
            if message.visible_at <= now and message.group not in blocked:
                yield message

    def _bury(self, message: Message) -> None:
        assert self._dead_letters is not None, "CreateQueue checks that the dead-letter queue exists"
        del self._messages[message.id]
        self._dead_letters.take_dead(message, self.arn)

    def take_dead(self, message: Message, source_arn: str) -> None:
        """A message that used up its receives on ``source_arn``; a standard queue keeps its sending time."""
        now = self._clock.now()
        sent_at = now if self.fifo else message.sent_at
        dead = replace(message, sent_at=sent_at, visible_at=now, receive_count=0, source_arn=source_arn)
        self._messages[dead.id] = dead

    def _drop_expired(self, now: int) -> None:
        oldest = now - int(self.settings["MessageRetentionPeriod"]) * 1000
        for message in [m for m in self._messages.values() if m.sent_at <= oldest]:
            del self._messages[message.id]

    def _forget_accepted(self, now: int) -> None:
        oldest = now - DEDUPLICATION_MS
        for key in [k for k, m in self._accepted.items() if m.sent_at <= oldest]:
            del self._accepted[key]

    def _by_receipt(self, receipt: str) -> Message | None:
        message_id, _, count = receipt.partition("/")
        if not count.isdigit():
            raise ApiError("ReceiptHandleIsInvalid", f"{receipt!r} is not a receipt handle", 400)
        return self._messages.get(message_id)


class QueueSystem:
    """All queues of the stack.

    ``base_url`` is the address that queue URLs start with.
    """

    def __init__(
        self,
        clock: Clock,
        base_url: str = "http://sqs.lab",
        account: str = "123456789012",
        region: str = "us-east-1",
    ) -> None:
        self._base_url = base_url
        self._clock = clock
        self._account = account
        self._region = region
        self._queues: dict[str, Queue] = {}

    def create(self, name: str, settings: Mapping[str, str] | None = None) -> Queue:
        """``settings`` as the attributes of CreateQueue. The same name with other settings is an error."""
        settings = dict(settings or {})
        _check_name(name, settings)
        for setting in settings.keys() & RANGES.keys():
            _within(setting, settings[setting])
        existing = self._queues.get(name)
        if existing and any(existing.settings.get(key) != value for key, value in settings.items()):
            raise ApiError("QueueNameExists", f"{name} exists with other attributes", 400)
        if existing is None:
            dead_letters = self._dead_letters_of(name, settings)
            self._queues[name] = Queue(self._clock, name, self._arn(name), settings, dead_letters)
        return self._queues[name]

    def queue(self, name: str) -> Queue:
        """Raises QueueDoesNotExist. A queue URL or ARN works as well as a name."""
        found = self._queues.get(re.split(r"[/:]", name)[-1])
        if found is None:
            raise ApiError("QueueDoesNotExist", "The specified queue does not exist.", 400)
        return found

    def url(self, queue: Queue) -> str:
        return f"{self._base_url}/{self._account}/{queue.name}"

    def _arn(self, name: str) -> str:
        return f"arn:aws:sqs:{self._region}:{self._account}:{name}"

    def _dead_letters_of(self, name: str, settings: Mapping[str, str]) -> Queue | None:
        arn = _redrive_policy(settings).get("arn")
        target = self.queue(arn) if arn else None
        if target and target.fifo != name.endswith(".fifo"):
            raise invalid("RedrivePolicy", "the dead-letter queue must be of the same type as its source")
        return target


def _take(message: Message, now: int, visible_at: int) -> None:
    message.receive_count += 1
    message.first_received_at = message.first_received_at or now
    message.visible_at = visible_at


def _redrive_policy(settings: Mapping[str, str]) -> dict[str, Any]:
    if "RedrivePolicy" not in settings:
        return {}
    try:
        policy: dict[str, Any] = json.loads(settings["RedrivePolicy"])
        return {"arn": str(policy["deadLetterTargetArn"]), "receives": int(policy["maxReceiveCount"])}
    except (ValueError, TypeError, KeyError) as error:
        raise invalid("RedrivePolicy", "it needs deadLetterTargetArn and maxReceiveCount, as JSON") from error


def _within(name: str, value: int | str) -> int:
    low, high = RANGES[name]
    try:
        number = int(value)
    except ValueError:
        number = -1
    if not low <= number <= high:
        raise invalid(name, f"it must be between {low} and {high}")
    return number


def _check_attributes(attributes: Mapping[str, Mapping[str, str]]) -> None:
    for name, value in attributes.items():
        kind = value["DataType"].partition(".")[0]
        member = {"String": "StringValue", "Number": "StringValue", "Binary": "BinaryValue"}.get(kind)
        if not value.get(member or ""):
            raise invalid("MessageAttributes", f"{name} needs a type String, Number or Binary and its value")


def _check_name(name: str, settings: Mapping[str, str]) -> None:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,75}(\.fifo)?|[A-Za-z0-9_-]{76,80}", name):
        raise invalid("QueueName", "1 to 80 letters, digits, hyphens and underscores")
    if name.endswith(".fifo") != (settings.get("FifoQueue") == "true"):
        raise invalid("FifoQueue", "it is true if and only if the name ends in .fifo")


def invalid(parameter: str, reason: str) -> ApiError:
    return ApiError(
        "InvalidParameterValue", f"Value for parameter {parameter} is invalid. Reason: {reason}.", 400
    )
