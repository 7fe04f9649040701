"""GPUs per training instance type, from ``accelerators.csv`` (its head names source and date)."""

import csv
from functools import cache
from importlib.resources import files


def gpus_per_instance(instance_type: str | None) -> int | None:
    """GPUs of one instance; None when the type is not known, which is never the same as 0."""
    return None if instance_type is None else _table().get(instance_type)


def gpus_of(instance_type: str | None, instances: int | None) -> int | None:
    """GPUs of so many instances; None when the type or the number is not known."""
    gpus = gpus_per_instance(instance_type)
    return None if gpus is None or instances is None else gpus * instances


def gpu_seconds(instance_type: str | None, instances: int | None, duration_ms: int) -> float | None:
    """GPUs x seconds of ``instances`` instances; None when the type or the number is not known."""
    gpus = gpus_of(instance_type, instances)
    return None if gpus is None else gpus * max(0, duration_ms) / 1000


def table_source() -> str:
    """Date and source of the table, for whoever reads figures made with it."""
    return _lines()[0].removeprefix("# ")


@cache
def _table() -> dict[str, int]:
    rows = csv.DictReader(line for line in _lines() if not line.startswith("#"))
    return {row["instance_type"]: int(row["gpus"]) for row in rows}


def _lines() -> list[str]:
    return (files(__package__) / "accelerators.csv").read_text(encoding="utf-8").splitlines()
