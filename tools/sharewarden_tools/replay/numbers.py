"""The numbers of ``week.yaml``, checked and typed."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import Field
from sharewarden.domain.base import Frozen
from sharewarden.domain.durations import Duration

FILE = Path(__file__).with_name("week.yaml")
Part = Annotated[float, Field(ge=0, le=1)]
Three = tuple[float, float, float]
Priorities = tuple[int, int, int]
Parts = dict[str, Part]


class Arrivals(Frozen):
    weekday: tuple[float, ...] = Field(min_length=24, max_length=24)
    weekend: tuple[float, ...] = Field(min_length=24, max_length=24)
    days: tuple[float, ...] = Field(min_length=7, max_length=7)
    day_variation: float
    stormy_day_variation: float
    gap: Duration
    users: tuple[int, int]
    zipf: float


class Failures(Frozen):
    early: Part
    early_within: Duration


class Checkpoints(Frozen):
    bytes_per_parameter: float
    bytes_per_second_and_node: float
    gpus_per_node: int
    ignore_sigterm: Part


class Restart(Frozen):
    pending: tuple[Duration, Duration]
    downloading: tuple[Duration, Duration]


class Team(Frozen):
    gpus: int
    sessions: float
    batch: str
    sizes: dict[int, Part]
    run: tuple[tuple[Part, Duration, float], ...]
    longest: Duration
    save_every: Duration | None = None
    users_without_saves: Part = 0
    parameters: tuple[float, float] | None = None
    in_share_preemption: bool
    priorities: Priorities
    sla: Parts


class Promise(Frozen):
    """An SLA class: waits, or a deadline of ``factor`` times the run time and ``plus``."""

    start_within: Duration | None = None
    restart_within: Duration | None = None
    factor: float | None = None
    plus: Duration = 0


class Promises(Frozen):
    classes: dict[str, Promise]
    guess: float


class Gaps(Frozen):
    """What stands in for what a trace leaves out."""

    load: float
    priorities: Priorities
    save_every: Duration
    load_small: Duration
    load_large: Duration
    in_share_preemption: bool
    sla: Parts


class Numbers(Frozen):
    arrivals: Arrivals
    batches: dict[str, tuple[tuple[Part, int, int], ...]]
    outcomes: dict[int, Three]
    failures: Failures
    checkpoints: Checkpoints
    restart: Restart
    teams: dict[str, Team]
    shortest: Duration
    priority_parts: Three
    sla: Promises
    trace: Gaps


@cache
def numbers() -> Numbers:
    """The numbers as they lie beside this module."""
    return Numbers.model_validate(yaml.safe_load(FILE.read_text()))
