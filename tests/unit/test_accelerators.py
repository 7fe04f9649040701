"""GPUs per instance type."""

from __future__ import annotations

import pytest
from sharewarden.domain.accelerators import gpu_seconds, gpus_per_instance


@pytest.mark.parametrize(
    ("instance_type", "gpus"),
    [
        ("ml.g5.xlarge", 1),
        ("ml.g5.12xlarge", 4),
        ("ml.p4d.24xlarge", 8),
        ("ml.m5.large", 0),
        ("ml.not-yet-known", None),  # never 0
        (None, None),
    ],
)
def test_gpus(instance_type: str | None, gpus: int | None) -> None:
    assert gpus_per_instance(instance_type) == gpus


def test_gpu_seconds_count_all_instances_and_never_go_below_zero() -> None:
    assert gpu_seconds("ml.g5.12xlarge", 3, 2500) == 30.0
    assert gpu_seconds("ml.g5.12xlarge", 3, -1) == 0
