"""SQS messages into use cases: one bad message never blocks the others, and none is lost."""

from collections.abc import Callable, Mapping
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import Metrics, MetricUnit
from aws_lambda_powertools.utilities.batch import (
    BatchProcessor,
    EventType,
    SqsFifoPartialProcessor,
    process_partial_response,
)
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from .ports import Runtime, Unavailable

#: A message that failed for another reason than AWS being unavailable is for a person after so many tries.
TRIES_WHEN_BROKEN = 3
#: One that AWS would not let us process is for a person after so many (the queue's own redrive is later).
TRIES_WHEN_UNAVAILABLE = 10

logger = Logger()
metrics = Metrics()


class Poison(Exception):
    """The message can never be processed; the text says what is wrong and where."""


def consume(
    event: Mapping[str, Any],
    context: Any,
    runtime: Runtime,
    origin: str,
    use: Callable[[str], str],
    *,
    fifo: bool,
) -> Mapping[str, Any]:
    """Call ``use`` with the body of each message; the answer names those that must come again.

    ``use`` returns what came of it (counted as a metric) and raises Poison, Unavailable, or anything else.
    What has failed for good goes to the dead letters with the reason.
    """

    def one(record: SQSRecord) -> None:
        try:
            _count(use(record.body))
        except Exception as error:
            if not _hopeless(error, record):
                logger.warning("deferred", reason=_reason(error), message_id=record.message_id)
                _count("deferred")
                raise
            runtime.dead_letters.bury(record.body, _reason(error), origin)
            logger.error("buried", reason=_reason(error), message_id=record.message_id)
            _count("buried")

    processor = (
        SqsFifoPartialProcessor(skip_group_on_error=True)
        if fifo
        else BatchProcessor(event_type=EventType.SQS)
    )
    processor.raise_on_entire_batch_failure = False
    answer = process_partial_response(
        event=dict(event), record_handler=one, processor=processor, context=context
    )
    metrics.flush_metrics()
    return answer


def _hopeless(error: Exception, record: SQSRecord) -> bool:
    if isinstance(error, Poison):
        return True
    tries = int(record.attributes.approximate_receive_count)
    return tries >= (TRIES_WHEN_UNAVAILABLE if isinstance(error, Unavailable) else TRIES_WHEN_BROKEN)


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _count(what: str) -> None:
    metrics.add_metric(name=what, unit=MetricUnit.Count, value=1)
