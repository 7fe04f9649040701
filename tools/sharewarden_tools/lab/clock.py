"""Two clocks, and the timers that run on either. All times are epoch milliseconds."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """What the lab asks of time; `advance_to` is called just before the timers of that moment run."""

    def now(self) -> int: ...

    def advance_to(self, ms: int) -> None: ...


class VirtualClock:
    """A clock that stands still until it is moved; it never runs backwards."""

    def __init__(self, start_ms: int = 0) -> None:
        self._now = start_ms

    def now(self) -> int:
        return self._now

    def advance_to(self, ms: int) -> None:
        self._now = max(self._now, ms)


class WallClock:
    """The machine's clock; time passes by itself, so moving it does nothing."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def advance_to(self, ms: int) -> None:  # noqa: ARG002 - the protocol's name
        return None


@dataclass(slots=True)
class Timer:
    due_at: int
    action: Callable[[], None]
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


class Timers:
    """A heap of timers; those of the same moment run in the order in which they were set."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Timer]] = []
        self._serial = 0

    def at(self, due_at: int, action: Callable[[], None]) -> Timer:
        self._serial += 1
        timer = Timer(due_at, action)
        heapq.heappush(self._heap, (due_at, self._serial, timer))
        return timer

    def next_due(self) -> int | None:
        while self._heap and self._heap[0][2].cancelled:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now_ms: int) -> Timer | None:
        """The earliest timer due at `now_ms`, taken off the heap."""
        due = self.next_due()
        return heapq.heappop(self._heap)[2] if due is not None and due <= now_ms else None
