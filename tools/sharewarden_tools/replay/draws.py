"""Random choices from the tables of ``numbers``. Streams are named, so that one does not disturb another."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from typing import TypeVar

from .numbers import Parts, Priorities, numbers
from .workload import Sla

T = TypeVar("T")
MINUTE = 60_000


def stream(*names: object) -> random.Random:
    """The random numbers of that name: the same each time."""
    return random.Random("/".join(map(str, names)))


def poisson(rng: random.Random, mean: float) -> int:
    """How often something of that rate happens (Knuth's product of uniform numbers; for small means)."""
    floor, product, count = math.exp(-mean), rng.random(), 0
    while product > floor:
        product *= rng.random()
        count += 1
    return count


def one_of(rng: random.Random, weighted: Iterable[tuple[T, float]]) -> T:
    """One of the things, by weights that need not sum to one."""
    things, weights = zip(*weighted, strict=True)
    chosen: T = rng.choices(things, weights)[0]
    return chosen


def log_normal(rng: random.Random, mixture: Sequence[tuple[float, int, float]]) -> float:
    """Of a mixture of log-normals, given as (weight, median, sigma)."""
    median, sigma = one_of(rng, [((median, sigma), weight) for weight, median, sigma in mixture])
    return median * math.exp(rng.gauss(0, sigma))


def priority(rng: random.Random, high_normal_low: Priorities) -> int:
    return one_of(rng, zip(high_normal_low, numbers().priority_parts, strict=True))


def sla_class(rng: random.Random, parts: Parts) -> str | None:
    """The class of one job or batch; None for most."""
    choices: list[tuple[str | None, float]] = [*parts.items(), (None, 1 - sum(parts.values()))]
    return one_of(rng, choices)


def promise(rng: random.Random, name: str, submitted_at: int, runtime: int) -> Sla:
    """What the class means for a job; people tell its run time beforehand, in minutes and not exactly."""
    given = numbers().sla.classes[name]
    told = runtime * math.exp(rng.gauss(0, numbers().sla.guess))
    finish_by = None if given.factor is None else submitted_at + round(given.factor * runtime) + given.plus
    return Sla(
        name=name,
        start_within=given.start_within,
        restart_within=given.restart_within,
        finish_by=finish_by,
        expected_runtime=MINUTE * max(1, round(told / MINUTE)),
    )
