"""The audit is append-only: a record that was changed or removed, by whomever, is an alarm."""

from collections.abc import Mapping
from typing import Any

from .messages import logger, measure


def sound_alarm(event: Mapping[str, Any]) -> None:
    """Name and count the records in an event of the audit's stream."""
    for record in event["Records"]:
        logger.error("AUDIT CHANGED", key=record["dynamodb"]["Keys"]["key"]["S"], change=record["eventName"])
    measure({"audit_changed": len(event["Records"])})
