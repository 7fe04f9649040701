"""The faulty delivery: what each fault does, and that a seed decides it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from sharewarden_tools.lab.delivery import NO_FAULTS, Delivery, EventFaults


@dataclass
class Clock:
    ms: int = 1_000_000

    def now(self) -> int:
        return self.ms


def events(count: int) -> list[dict[str, Any]]:
    return [{"id": f"e{number}"} for number in range(count)]


def arrivals(seed: int, faults: EventFaults, count: int = 200, gap_ms: int = 500) -> list[tuple[int, str]]:
    """(time of arrival, event id) of events that happen every ``gap_ms``, until nothing is on its way."""
    clock = Clock()
    delivery = Delivery(clock, seed, faults)
    seen: list[tuple[int, str]] = []
    for event in events(count):
        delivery.accept(event)
        seen += [(clock.ms, arrived["id"]) for arrived in delivery.take_due()]
        clock.ms += gap_ms
    while (due := delivery.next_due()) is not None:
        clock.ms = due
        seen += [(clock.ms, arrived["id"]) for arrived in delivery.take_due()]
    return seen


def test_without_faults_each_event_arrives_once_at_once_and_in_order() -> None:
    expected = [(1_000_000 + 500 * number, f"e{number}") for number in range(200)]
    assert arrivals(7, NO_FAULTS) == expected


@pytest.mark.parametrize(
    ("faults", "least", "most"),
    [
        (EventFaults(lose=1.0), 0, 0),
        (EventFaults(double=1.0), 400, 400),
        (EventFaults(lose=0.3), 100, 180),
        (EventFaults(double=0.3), 220, 300),
        (EventFaults(delay=1.0), 200, 200),
    ],
)
def test_loss_and_doubling_change_how_many_arrive(faults: EventFaults, least: int, most: int) -> None:
    assert least <= len(arrivals(7, faults)) <= most


@pytest.mark.parametrize(
    ("faults", "bound_ms"),
    [
        (EventFaults(reorder=1.0, reorder_ms=2_000), 2_000),
        (EventFaults(delay=1.0, delay_ms=60_000), 60_000),
        (EventFaults(reorder=1.0, delay=1.0, reorder_ms=2_000, delay_ms=60_000), 62_000),
    ],
)
def test_late_events_overtake_each_other_within_the_bound(faults: EventFaults, bound_ms: int) -> None:
    arrived = arrivals(7, faults)
    order = [event_id for _, event_id in arrived]
    happened = {f"e{number}": 1_000_000 + 500 * number for number in range(200)}
    waits = [at - happened[event_id] for at, event_id in arrived]

    assert sorted(order) == sorted(happened)
    assert order != list(happened)
    assert min(waits) > 0
    assert max(waits) <= bound_ms + 500  # plus the step in which this test reads


def test_events_of_the_same_moment_keep_their_order() -> None:
    delivery = Delivery(Clock())
    for event in events(3):
        delivery.accept(event)
    assert [event["id"] for event in delivery.take_due()] == ["e0", "e1", "e2"]


def test_a_seed_decides_and_another_seed_decides_otherwise() -> None:
    faults = EventFaults(lose=0.2, double=0.2, reorder=0.5, delay=0.2)
    assert arrivals(7, faults) == arrivals(7, faults)
    assert arrivals(7, faults) != arrivals(8, faults)


def test_the_luck_of_an_event_does_not_depend_on_the_others() -> None:
    faults = EventFaults(lose=0.2, double=0.2, reorder=0.5, delay=0.2)
    alone, crowd = Delivery(Clock(), 7, faults), Delivery(Clock(), 7, faults)
    for event in events(50):
        crowd.plan(event, 0)
    assert alone.plan({"id": "e9"}, 0) == crowd.plan({"id": "e9"}, 0)


def test_faults_can_stop_while_late_events_still_arrive() -> None:
    clock = Clock(0)
    delivery = Delivery(clock, 7, EventFaults(delay=1.0, delay_ms=10))
    delivery.accept({"id": "late"})
    delivery.faults = NO_FAULTS
    delivery.accept({"id": "prompt"})
    assert [event["id"] for event in delivery.take_due()] == ["prompt"]
    clock.ms = 10
    assert [event["id"] for event in delivery.take_due()] == ["late"]
    assert delivery.next_due() is None


def test_an_event_accepted_while_reading_is_read_too() -> None:
    delivery = Delivery(Clock())
    delivery.accept({"id": "first"})
    seen = []
    for event in delivery.take_due():
        seen.append(event["id"])
        if event["id"] == "first":
            delivery.accept({"id": "second"})
    assert seen == ["first", "second"]


@pytest.mark.parametrize("wrong", [{"lose": 1.5}, {"double": -0.1}, {"delay_ms": 0}])
def test_impossible_faults_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"probability|at least"):
        EventFaults(**wrong)
