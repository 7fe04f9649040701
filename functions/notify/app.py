"""Notices, by way of SQS: people are told of each, once at most on each channel."""

from collections.abc import Mapping
from typing import Any

from sharewarden.bootstrap import lambda_runtime
from sharewarden.intake.notices import tell
from sharewarden.messages import consume
from sharewarden.ports import Runtime


def handler(event: Mapping[str, Any], context: Any, runtime: Runtime | None = None) -> Mapping[str, Any]:
    ports = runtime or lambda_runtime()
    return consume(
        event,
        ports,
        "notices",
        lambda body: tell(ports, body),
        fifo=False,
        remaining=context.get_remaining_time_in_millis,
    )
