"""The steps of a ladder: each at its exact time, none too early."""

from __future__ import annotations

import pytest
from sharewarden.domain.ladder import due_steps, next_step, steps
from sharewarden.domain.policy import SlaClass
from sharewarden.domain.sla import Sla

from tests.simulation.world import NOW

LADDER = SlaClass.model_validate(
    {
        "ladder": [
            {"at": "50%", "boost": 100},
            {"at": "80%", "boost": 300, "notify": "team"},
            {"at": "100%", "notify": "oncall"},
        ]
    }
).ladder


def sla(limit: int) -> Sla:
    return Sla(name="gold", team="t", epoch="start", since=NOW, due=NOW + limit, promise="start")


@pytest.mark.parametrize(
    ("limit", "times"),
    [
        (1000, [500, 800, 1000]),
        (1001, [501, 801, 1001]),
        (999, [500, 800, 999]),
        (1, [1, 1, 1]),
        (0, [0, 0, 0]),
        (-5000, [0, 0, 0]),
    ],
)
def test_a_step_has_an_exact_time_and_none_comes_too_early(limit: int, times: list[int]) -> None:
    found = steps(sla(limit), LADDER)
    assert [step.at - NOW for step in found] == times
    assert [(step.number, step.percent, step.boost, step.notify) for step in found] == [
        (1, 50, 100, None),
        (2, 80, 300, "team"),
        (3, 100, None, "oncall"),
    ]


@pytest.mark.parametrize(
    ("now", "due", "coming"),
    [(0, 0, 1), (499, 0, 1), (500, 1, 2), (799, 1, 2), (800, 2, 3), (1000, 3, None), (9999, 3, None)],
)
def test_a_step_is_due_at_its_time_and_the_next_one_is_after_it(
    now: int, due: int, coming: int | None
) -> None:
    assert len(due_steps(sla(1000), LADDER, NOW + now)) == due
    step = next_step(sla(1000), LADDER, NOW + now)
    assert (step.number if step else None) == coming


def test_a_class_without_a_ladder_has_no_steps() -> None:
    assert due_steps(sla(1), (), NOW + 5) == ()
    assert next_step(sla(1), (), NOW) is None
