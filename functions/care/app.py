"""Steps of the preemption workflow, called by Step Functions: one at a time for one preempted attempt."""

from collections.abc import Mapping
from typing import Any

from sharewarden.bootstrap import lambda_runtime
from sharewarden.intake.care import take_care
from sharewarden.ports import Runtime


def handler(event: Mapping[str, Any], _context: Any, runtime: Runtime | None = None) -> Mapping[str, Any]:
    return take_care(runtime or lambda_runtime(), event)
