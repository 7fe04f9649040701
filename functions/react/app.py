"""Events from EventBridge, by way of SQS: each is folded into its job's record."""

from collections.abc import Mapping
from typing import Any

from sharewarden.bootstrap import lambda_runtime
from sharewarden.intake.events import take_in
from sharewarden.messages import consume
from sharewarden.ports import Runtime


def handler(event: Mapping[str, Any], context: Any, runtime: Runtime | None = None) -> Mapping[str, Any]:
    ports = runtime or lambda_runtime()
    return consume(
        event,
        ports,
        "events",
        lambda body: take_in(ports, body).outcome,
        fifo=False,
        remaining=context.get_remaining_time_in_millis,
    )
