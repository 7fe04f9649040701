"""SQS messages into use cases: one bad message never blocks the others, and none is lost.

Powertools' own batch processor would do the loop, but importing it (models of every event source) was a sixth
of what react's cold start adds to that of boto3: see ``make bench``.
"""

from collections.abc import Callable, Mapping
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import Metrics, MetricUnit

from .ports import Runtime, Unavailable

#: A message that failed for another reason than AWS being unavailable is for a person after so many tries.
TRIES_WHEN_BROKEN = 3
#: One that AWS would not let us process is for a person after so many (the queue's own redrive is later).
TRIES_WHEN_UNAVAILABLE = 10

#: With less time than this no further message is begun: more than one call to AWS may take (``bootstrap``).
MESSAGE_SPARE_MS = 20_000

Message = Mapping[str, Any]
"""A record of an SQS event, as Lambda hands it over."""

logger = Logger()
metrics = Metrics()


class Poison(Exception):
    """The message can never be processed; the text says what is wrong and where."""


def consume(
    event: Mapping[str, Any],
    runtime: Runtime,
    origin: str,
    use: Callable[[str], str],
    *,
    fifo: bool,
    remaining: Callable[[], int],
) -> Mapping[str, Any]:
    """Call ``use`` with the body of each message; the answer names those that must come again.

    ``remaining`` tells the milliseconds until the function is stopped: what there is no time for comes again,
    or one hung call would bring back the messages that were handled before it.

    ``use`` returns what came of it (counted as a metric) and raises Poison, Unavailable, or anything else.
    What has failed for good goes to the dead letters with the reason. In a FIFO queue the messages that
    follow a failed one of their group come again with it, untried (Lambda developer guide, Handling errors
    for an SQS event source).
    """
    again: list[str] = []
    held: set[str] = set()
    for message in event["Records"]:
        group = message["attributes"]["MessageGroupId"] if fifo else message["messageId"]
        if remaining() < MESSAGE_SPARE_MS or group in held or not _done(message, runtime, origin, use):
            held.add(group)
            again.append(message["messageId"])
    metrics.flush_metrics()
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in again]}


def measure(figures: Mapping[str, int]) -> None:
    """Write the figures as metrics of this name, once per invocation."""
    for name, value in figures.items():
        metrics.add_metric(name=name, unit=MetricUnit.Count, value=value)
    metrics.flush_metrics()


def policy_unloadable() -> None:
    """Count that the stored policy does not load; written with the figures of the invocation."""
    _count("policy_unloadable")


def rules_failed(number: int) -> None:
    """Count guardrails whose rule raised; written with the figures of the invocation."""
    metrics.add_metric(name="rules_failed", unit=MetricUnit.Count, value=number)


def _done(message: Message, runtime: Runtime, origin: str, use: Callable[[str], str]) -> bool:
    """False when the message must come again, whatever the reason."""
    try:
        _take(message, runtime, origin, use)
    except Exception as error:  # noqa: BLE001 (what happens to one message is that message's alone)
        logger.warning("deferred", reason=_reason(error), message_id=message["messageId"])
        _count("deferred")
        return False
    return True


def _take(message: Message, runtime: Runtime, origin: str, use: Callable[[str], str]) -> None:
    """Use the message, or bury it. Raises what makes it come again."""
    try:
        _count(use(message["body"]))
    except Exception as error:
        if not _hopeless(error, message):
            raise
        runtime.dead_letters.bury(message["body"], _reason(error), origin)
        logger.error("buried", reason=_reason(error), message_id=message["messageId"])
        _count("buried")


def _hopeless(error: Exception, message: Message) -> bool:
    if isinstance(error, Poison):
        return True
    tries = int(message["attributes"]["ApproximateReceiveCount"])
    return tries >= (TRIES_WHEN_UNAVAILABLE if isinstance(error, Unavailable) else TRIES_WHEN_BROKEN)


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _count(what: str) -> None:
    metrics.add_metric(name=what, unit=MetricUnit.Count, value=1)
