"""Which instances of a share were its own at a time, and which were borrowed.

``borrowed(t) = max(0, used(t) - limit)``, given to the jobs that were dispatched last: the instances of one
job may be partly borrowed. What a share owned thus goes to its oldest jobs, whatever ran before them: the
split at a time follows from the jobs that run then, and from nothing else.
"""

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import NamedTuple


class Stint(NamedTuple):
    """One attempt on its instances, from its start to its stop (not included). They sort by dispatch.

    Empty texts and 0 instances stand for what is not known.
    """

    started_at: int
    job: str
    attempt: str
    stopped_at: int
    share: str
    unit: str
    """Instance type."""
    instances: int
    tag_team: str


class Part(NamedTuple):
    """A time in which so many instances of a stint were the share's own, and so many borrowed."""

    stint: Stint
    since: int
    until: int
    owned: int
    borrowed: int


def split(stints: Iterable[Stint], limit: int) -> Iterator[Part]:
    """The stints of one share and unit in parts, exactly; n log n.

    A start changes no other stint; a stop hands what it owned to the oldest that borrow: to some of them all
    they lack, which happens to each once, and to one more a part. So there are at most 3 n parts.
    """
    line = _Line(limit)
    for at, starts, stint in _changes(stints):
        if starts:
            line.start(stint)
        else:
            yield from line.stop(stint, at)


def _changes(stints: Iterable[Stint]) -> list[tuple[int, bool, Stint]]:
    """Starts and stops in order; what stops at a time makes room for what starts then."""
    real = [stint for stint in stints if stint.stopped_at > stint.started_at]
    starts = [(stint.started_at, True, stint) for stint in real]
    return sorted(starts + [(stint.stopped_at, False, stint) for stint in real])


class _Line:
    """The share at one moment. ``held``: since when each running stint has owned so many instances."""

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._held: dict[Stint, tuple[int, int]] = {}
        self._borrowing: list[Stint] = []

    def start(self, stint: Stint) -> None:
        owned = min(stint.instances, self._free)
        self._free -= owned
        self._held[stint] = (stint.started_at, owned)
        if owned < stint.instances:
            heappush(self._borrowing, stint)

    def stop(self, stint: Stint, at: int) -> Iterator[Part]:
        yield from self._part(stint, at)
        self._free += self._held.pop(stint)[1]
        while self._free and self._borrowing:
            yield from self._hand_over(self._borrowing[0], at)

    def _hand_over(self, oldest: Stint, at: int) -> Iterator[Part]:
        """What is free becomes the own of the oldest that borrows; one that has stopped needs nothing."""
        if oldest not in self._held:
            heappop(self._borrowing)
            return
        yield from self._part(oldest, at)
        owned = self._held[oldest][1]
        taken = min(self._free, oldest.instances - owned)
        self._free -= taken
        self._held[oldest] = (at, owned + taken)
        if owned + taken == oldest.instances:
            heappop(self._borrowing)

    def _part(self, stint: Stint, until: int) -> Iterator[Part]:
        """What the stint has had since its split last changed."""
        since, owned = self._held[stint]
        if since < until:
            yield Part(stint, since, until, owned, stint.instances - owned)
