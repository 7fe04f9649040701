"""Cold start: whole processes in turn, so that what else the machine does falls on each of them alike."""

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from time import perf_counter

from .section import Section

ROOT = Path(__file__).parents[1]
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "interpreter alone": ("-c", "pass"),
    "bare boto3 script": ("bench/cold/bare.py",),
    "react": ("bench/cold/react.py",),
}
BARE, REACT = "bare boto3 script", "react"
PACKAGES_SHOWN = 8
_MEASURES = (
    "a whole process from start to end: imports, and clients for DynamoDB, SQS and Batch made; no event yet"
)
_NO_LAMBDA = "nothing is called; a process of this machine stands for Lambda's, bytecode is cached"

Times = dict[str, list[float]]


def cold_start(rounds: int) -> list[Section]:
    times = _measured(rounds)
    return [
        Section(f"Cold start of react, {rounds} rounds in turn", _MEASURES, _NO_LAMBDA, _rows(times)),
        Section(
            "Cold start, where the difference goes",
            "time in each package's own modules by -X importtime (slower than a run without), median of 3",
            "nothing",
            _packages(),
        ),
    ]


def _measured(rounds: int) -> Times:
    for command in COMMANDS:
        _run(command)  # leaves the bytecode behind, and warms the file cache
    times: Times = {command: [] for command in COMMANDS}
    for _ in range(rounds):
        for command, taken in times.items():
            before = perf_counter()
            _run(command)
            taken.append((perf_counter() - before) * 1000)
    return times


def _run(command: str, *options: str) -> str:
    """What the process wrote to stderr. Raises CalledProcessError."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "layers" / "sharewarden")))}
    process = (sys.executable, *options, *COMMANDS[command])
    return subprocess.run(process, cwd=ROOT, env=env, capture_output=True, text=True, check=True).stderr


def _rows(times: Times) -> list[dict[str, str | float]]:
    return [_row(command, taken, times[BARE]) for command, taken in times.items()]


def _row(command: str, taken: list[float], bare: list[float]) -> dict[str, str | float]:
    """A ratio for each round by itself, so that a busy moment hits both of its sides."""
    ratios = [one / other for one, other in zip(taken, bare, strict=True)]
    return {
        "process": command,
        "median ms": median(taken),
        "min ms": min(taken),
        "max ms": max(taken),
        "ratio to bare": median(ratios),
        "lowest": min(ratios),
        "highest": max(ratios),
    }


def _packages() -> list[dict[str, str | float]]:
    bare, react = _import_times(BARE), _import_times(REACT)
    names = sorted(bare.keys() | react.keys(), key=lambda name: bare[name] - react[name])
    rows = [_package(name, bare[name], react[name]) for name in names[:PACKAGES_SHOWN]]
    return [*rows, _package("all", sum(bare.values()), sum(react.values()))]


def _package(name: str, bare: float, react: float) -> dict[str, str | float]:
    return {"package": name, "bare ms": bare, "react ms": react, "more ms": react - bare}


def _import_times(command: str) -> dict[str, float]:
    runs = [_import_time(_run(command, "-X", "importtime")) for _ in range(3)]
    return sorted(runs, key=lambda times: sum(times.values()))[1]


def _import_time(report: str) -> dict[str, float]:
    """Milliseconds by top-level package; lines are ``import time: self us | cumulative | module``."""
    times: defaultdict[str, float] = defaultdict(float)
    for line in report.splitlines():
        own, _, module = line.removeprefix("import time:").split("|")
        if own.strip().isdigit():
            times[module.strip().partition(".")[0]] += int(own) / 1000
    return times
