"""Faulty delivery of EventBridge events: doubled, late, overtaken and lost, reproducibly.

EventBridge promises at-least-once without order (EventBridge user guide, "Troubleshooting"); SageMaker's
and CloudTrail's events are best effort (EventBridge reference, "Event delivery level"). So each of these
faults is something a real account may show. How often they happen is not documented: the probabilities are
the user's.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

Event = dict[str, Any]
Planned = tuple[int, Event]
"""(deliver_at in epoch ms, event)"""


class Clock(Protocol):
    def now(self) -> int: ...


@dataclass(frozen=True)
class EventFaults:
    """Probabilities per event (``lose``, ``double``) or per copy (``delay``, ``reorder``), and bounds in ms.

    ``reorder`` holds a copy just long enough for its neighbours to pass, ``delay`` for up to ``delay_ms``.
    """

    lose: float = 0.0
    double: float = 0.0
    reorder: float = 0.0
    reorder_ms: int = 2_000
    delay: float = 0.0
    delay_ms: int = 600_000

    def __post_init__(self) -> None:
        for name in ("lose", "double", "reorder", "delay"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} is a probability, so it lies between 0 and 1")
        if min(self.reorder_ms, self.delay_ms) < 1:
            raise ValueError("reorder_ms and delay_ms are at least 1")


NO_FAULTS = EventFaults()


class Delivery:
    """A due-queue between the lab and whoever takes its events: ``lab.subscribe(delivery.accept)``.

    What happens to an event depends on the seed and the event's id alone, so that a change elsewhere in a
    run does not change the luck of this event. ``faults`` may be replaced while running (law 10: the
    faults stop).
    """

    def __init__(self, clock: Clock, seed: int = 0, faults: EventFaults = NO_FAULTS) -> None:
        self.faults = faults
        self._clock = clock
        self._seed = seed
        self._order = itertools.count()
        self._queue: list[tuple[int, int, Event]] = []

    def accept(self, event: Event) -> None:
        for deliver_at, copy in self.plan(event, self._clock.now()):
            heapq.heappush(self._queue, (deliver_at, next(self._order), copy))

    def plan(self, event: Event, now: int) -> list[Planned]:
        """When each copy of an event that happened ``now`` arrives; empty when it is lost."""
        rng = random.Random(f"{self._seed}:{event['id']}")
        if rng.random() < self.faults.lose:
            return []
        copies = 2 if rng.random() < self.faults.double else 1
        return [(now + self._wait(rng), event) for _ in range(copies)]

    def next_due(self) -> int | None:
        """Epoch ms of the next arrival, or None when nothing is on its way."""
        return self._queue[0][0] if self._queue else None

    def take_due(self) -> Iterator[Event]:
        """Yields what has arrived by now, in order of arrival; also what is accepted meanwhile."""
        while self._queue and self._queue[0][0] <= self._clock.now():
            yield heapq.heappop(self._queue)[2]

    def _wait(self, rng: random.Random) -> int:
        overtaken = _roll(rng, self.faults.reorder, self.faults.reorder_ms)
        return overtaken + _roll(rng, self.faults.delay, self.faults.delay_ms)


def _roll(rng: random.Random, probability: float, bound: int) -> int:
    """1..bound with this probability, else 0; always two draws, so one fault does not shift another."""
    hit, amount = rng.random() < probability, rng.randint(1, bound)
    return amount if hit else 0
