"""Calling a Lambda function's handler the way Lambda does."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sharewarden.ports import Clock, Runtime

from sharewarden_tools.lab.queues import Message

Handler = Callable[[Mapping[str, Any], Any, Runtime], Mapping[str, Any]]


@dataclass(frozen=True)
class Context:
    """What the handlers use of Lambda's context object."""

    aws_request_id: str
    clock: Clock
    ends_at: int

    def get_remaining_time_in_millis(self) -> int:
        return max(0, self.ends_at - self.clock.now())


def load_handler(code: Path) -> Handler:
    """``handler`` in the file, loaded by path: as in Lambda, the folder is no package."""
    spec = importlib.util.spec_from_file_location(f"sharewarden_function_{code.parent.name}", code)
    if spec is None or spec.loader is None:
        raise ImportError(f"{code} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    handler: Handler = module.handler
    return handler


def sqs_event(messages: Iterable[Message], arn: str) -> dict[str, Any]:
    """The event of an SQS source (Lambda developer guide, Using Lambda with Amazon SQS)."""
    return {"Records": [_record(message, arn) for message in messages]}


def failed_ids(answer: Mapping[str, Any] | None) -> set[str]:
    """Ids of the messages that come again, as ReportBatchItemFailures names them."""
    return {row["itemIdentifier"] for row in (answer or {}).get("batchItemFailures", ())}


def _record(message: Message, arn: str) -> dict[str, Any]:
    return {
        "messageId": message.id,
        "receiptHandle": message.receipt,
        "body": message.body,
        "attributes": message.system_attributes(),
        "messageAttributes": {},
        "md5OfBody": hashlib.md5(message.body.encode(), usedforsecurity=False).hexdigest(),
        "eventSource": "aws:sqs",
        "eventSourceARN": arn,
        "awsRegion": arn.split(":")[3],
    }
