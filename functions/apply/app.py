"""Wishes, in order per job: the only function that may change a job in Batch."""

from collections.abc import Mapping
from typing import Any

from sharewarden.bootstrap import lambda_runtime
from sharewarden.intake.wishes import carry_out
from sharewarden.messages import consume
from sharewarden.ports import Runtime


def handler(event: Mapping[str, Any], context: Any, runtime: Runtime | None = None) -> Mapping[str, Any]:
    ports = runtime or lambda_runtime()
    return consume(
        event,
        ports,
        "wishes",
        lambda body: carry_out(ports, body),
        fifo=True,
        remaining=context.get_remaining_time_in_millis,
    )
