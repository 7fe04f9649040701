"""Owned and borrowed instances, against a reference that looks at every second by itself."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable

import pytest
from sharewarden.domain.borrowing import Part, Stint, split

Split = dict[tuple[str, int], tuple[int, int]]
"""(attempt, second) -> instances owned and borrowed."""


def stint(attempt: str, started_at: int, stopped_at: int, instances: int = 1) -> Stint:
    return Stint(started_at, "job", attempt, stopped_at, "background", "ml.g5.xlarge", instances, "")


def second_by_second(stints: Iterable[Stint], limit: int) -> Split:
    """The rule as it is written down: what is used above the limit falls on those dispatched last."""
    found: Split = {}
    for second in range(200):
        free = limit
        for one in sorted(stints):
            if one.started_at <= second < one.stopped_at:
                owned = min(free, one.instances)
                free -= owned
                found[one.attempt, second] = (owned, one.instances - owned)
    return found


def spelled_out(parts: Iterable[Part]) -> Split:
    found: Split = {}
    for part in parts:
        assert part.since < part.until
        for second in range(part.since, part.until):
            assert (part.stint.attempt, second) not in found, "counted twice"
            found[part.stint.attempt, second] = (part.owned, part.borrowed)
    return found


@pytest.mark.parametrize(
    ("stints", "limit", "owned", "borrowed"),
    [
        ([stint("a", 0, 10)], 1, {"a": 10}, {}),
        ([stint("a", 0, 10)], 0, {}, {"a": 10}),
        ([stint("a", 0, 10, 3)], 2, {"a": 20}, {"a": 10}),
        ([stint("a", 0, 10), stint("b", 5, 15)], 1, {"a": 10, "b": 5}, {"b": 5}),
        ([stint("a", 0, 10), stint("b", 10, 15)], 1, {"a": 10, "b": 5}, {}),
        ([stint("a", 0, 10), stint("b", 0, 10)], 1, {"a": 10}, {"b": 10}),
        ([stint("a", 0, 6), stint("b", 1, 10), stint("c", 2, 10)], 1, {"a": 6, "b": 4}, {"b": 5, "c": 8}),
        ([stint("a", 0, 9), stint("b", 1, 4), stint("c", 2, 9)], 1, {"a": 9}, {"b": 3, "c": 7}),
        ([stint("a", 0, 5, 4), stint("b", 1, 9, 3)], 4, {"a": 20, "b": 12}, {"b": 12}),
        ([stint("a", 5, 5), stint("b", 7, 3)], 1, {}, {}),
        ([], 4, {}, {}),
    ],
)
def test_what_is_borrowed_falls_on_the_latest(
    stints: list[Stint], limit: int, owned: dict[str, int], borrowed: dict[str, int]
) -> None:
    sums: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for part in split(stints, limit):
        sums[0][part.stint.attempt] += part.owned * (part.until - part.since)
        sums[1][part.stint.attempt] += part.borrowed * (part.until - part.since)
    assert (+sums[0], +sums[1]) == (owned, borrowed)


@pytest.mark.parametrize("seed", range(200))
def test_it_equals_the_rule_second_by_second(seed: int) -> None:
    rng = random.Random(seed)
    stints = [
        stint(f"a{number:02}", start := rng.randrange(150), start + rng.randrange(50), rng.randint(1, 4))
        for number in range(rng.randrange(25))
    ]
    limit = rng.randrange(9)
    rng.shuffle(stints)
    parts = list(split(stints, limit))
    assert spelled_out(parts) == second_by_second(stints, limit)
    assert len(parts) <= 3 * len(stints)
    assert all(part.owned >= 0 and part.borrowed >= 0 for part in parts)


def test_the_work_does_not_grow_with_the_square() -> None:
    """Ten thousand at once, above the limit, each stop handing over: still three parts for each at most."""
    many = [stint(f"a{n:05}", n, 100_000 + n, 2) for n in range(10_000)]
    assert len(list(split(many, 5_001))) <= 30_000
