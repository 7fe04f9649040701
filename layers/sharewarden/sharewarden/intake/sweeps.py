"""Sweeps, on a schedule."""

from dataclasses import asdict
from typing import Any

from sharewarden.messages import logger, measure
from sharewarden.ports import Runtime
from sharewarden.usecases.sweep import sweep
from sharewarden.usecases.walk import Limits

#: Kept back from the function's time: enough to end the sweep in order.
SWEEP_SPARE_MS = 20_000
#: The figures of a sweep that are metrics, for alarms and graphs; the log has all of its report.
MEASURED = ("queues", "records", "behind", "repaired", "unread", "failed", "left", "oldest_wish_ms")


def walk(runtime: Runtime, context: Any) -> dict[str, Any]:
    """One sweep, within the time that ``context`` leaves. The answer is its report."""
    stop_at = runtime.clock.now() + context.get_remaining_time_in_millis() - SWEEP_SPARE_MS
    report = asdict(sweep(runtime, context.aws_request_id, Limits(stop_at=stop_at)))
    logger.info("swept", **report)
    measure({name: report[name] for name in MEASURED})
    return report
