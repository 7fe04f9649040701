"""What teams used: instance time and GPU-hours by UTC day, owned and borrowed apart."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pydantic import Field

from .accelerators import gpus_per_instance
from .base import NO_TEAM, Frozen
from .borrowing import Part, Stint, split
from .observation import ShareDescription
from .stored import DAY, HOUR


class UnitTime(Frozen):
    """Time of instances of one type, in instance-milliseconds."""

    owned: int = 0
    borrowed: int = 0

    @property
    def total(self) -> int:
        return self.owned + self.borrowed


class Usage(Frozen):
    """What one team used. ``units`` by instance type; the empty text is a type that nobody told."""

    units: dict[str, UnitTime] = Field(default_factory=dict)
    unsized: int = 0
    """Milliseconds of attempts whose number of instances is not known: they are in no other figure."""

    @property
    def owned_gpu_hours(self) -> float:
        return sum(time.owned * (gpus_per_instance(unit) or 0) for unit, time in self.units.items()) / HOUR

    @property
    def borrowed_gpu_hours(self) -> float:
        return sum(time.borrowed * (gpus_per_instance(unit) or 0) for unit, time in self.units.items()) / HOUR

    @property
    def unknown_instance_hours(self) -> float:
        """Of types whose GPUs are not known: they are in no GPU-hours."""
        return sum(time.total for unit, time in self.units.items() if gpus_per_instance(unit) is None) / HOUR


class DayOfTeam(Frozen):
    """One UTC day, counted from the epoch, of one team."""

    day: int
    team: str
    usage: Usage


def limits_of(shares: Iterable[ShareDescription]) -> dict[tuple[str, str], int]:
    """(share, instance type) -> maxCapacity, as it is now."""
    return {(share.name, unit): limit for share in shares for unit, limit in share.limits}


class Window(NamedTuple):
    """The time that is looked at; ``until`` is not in it."""

    since: int
    until: int


def daily(
    stints: Iterable[Stint], limits: Mapping[tuple[str, str], int], teams: Mapping[str, str], window: Window
) -> tuple[DayOfTeam, ...]:
    """What each team used on each day in the window. The stints are all those of one queue that touch it.

    ``teams`` by share, which wins over the tag. Where no limit is known, nothing counts as borrowed.
    """
    days: dict[tuple[int, str], _Sum] = defaultdict(_Sum)
    for (share, unit), group in _by_unit(stints).items():
        sized = [stint for stint in group if stint.instances]
        limit = limits.get((share, unit), sum(stint.instances for stint in sized))
        whole = (_unsized(stint) for stint in group if not stint.instances)
        for part in (*split(sized, limit), *whole):
            team = teams.get(share) or part.stint.tag_team or NO_TEAM
            for day, ms in _days(part, window):
                days[day, team].add(part, ms)
    return tuple(
        DayOfTeam(day=day, team=team, usage=one.usage()) for (day, team), one in sorted(days.items())
    )


def total(usages: Iterable[Usage]) -> Usage:
    """All of them in one."""
    days = _Sum()
    for usage in usages:
        days.unsized += usage.unsized
        for unit, time in usage.units.items():
            days.owned[unit] += time.owned
            days.borrowed[unit] += time.borrowed
    return days.usage()


class _Sum:
    """Adds up in whole instance-milliseconds, so that nothing is lost."""

    def __init__(self) -> None:
        self.owned: dict[str, int] = defaultdict(int)
        self.borrowed: dict[str, int] = defaultdict(int)
        self.unsized = 0

    def add(self, part: Part, ms: int) -> None:
        if not part.stint.instances:
            self.unsized += ms
            return
        self.owned[part.stint.unit] += part.owned * ms
        self.borrowed[part.stint.unit] += part.borrowed * ms

    def usage(self) -> Usage:
        units = sorted(self.owned.keys() | self.borrowed.keys())
        times = {unit: UnitTime(owned=self.owned[unit], borrowed=self.borrowed[unit]) for unit in units}
        return Usage(units=times, unsized=self.unsized)


def _by_unit(stints: Iterable[Stint]) -> dict[tuple[str, str], list[Stint]]:
    groups: dict[tuple[str, str], list[Stint]] = defaultdict(list)
    for stint in stints:
        groups[stint.share, stint.unit].append(stint)
    return groups


def _unsized(stint: Stint) -> Part:
    return Part(stint, stint.started_at, stint.stopped_at, 0, 0)


def _days(part: Part, window: Window) -> Iterator[tuple[int, int]]:
    """The milliseconds of the part on each day of the window."""
    since, until = max(part.since, window.since), min(part.until, window.until)
    for day in range(since // DAY, (until - 1) // DAY + 1):
        yield day, min(until, (day + 1) * DAY) - max(since, day * DAY)
