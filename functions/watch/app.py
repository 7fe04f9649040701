"""Looks at what running jobs have saved, by way of SQS: each job at its own pace."""

from collections.abc import Mapping
from typing import Any

from sharewarden.bootstrap import lambda_runtime
from sharewarden.intake.looks import look_at
from sharewarden.messages import consume
from sharewarden.ports import Runtime


def handler(event: Mapping[str, Any], context: Any, runtime: Runtime | None = None) -> Mapping[str, Any]:
    ports = runtime or lambda_runtime()
    return consume(
        event,
        ports,
        "looks",
        lambda body: look_at(ports, body),
        fifo=False,
        remaining=context.get_remaining_time_in_millis,
    )
