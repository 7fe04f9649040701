"""On a schedule: compare the records with what Batch says, and let time do its work."""

from collections.abc import Mapping
from typing import Any

from sharewarden.bootstrap import lambda_runtime
from sharewarden.intake.sweeps import walk
from sharewarden.ports import Runtime


def handler(_event: Mapping[str, Any], context: Any, runtime: Runtime | None = None) -> Mapping[str, Any]:
    return walk(runtime or lambda_runtime(), context)
