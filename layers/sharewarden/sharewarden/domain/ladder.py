"""The steps of an SLA class's ladder, each at its exact time."""

from typing import Literal

from .base import Frozen
from .percent import percent_of
from .policy import LadderStep
from .sla import Sla


class Step(Frozen):
    """One step of the ladder of one waiting epoch."""

    number: int
    """From 1."""
    percent: int
    at: int
    """Epoch ms; a time in which no whole millisecond falls is the next one, never one too early."""
    boost: int | None
    notify: Literal["team", "oncall"] | None


def steps(sla: Sla, ladder: tuple[LadderStep, ...]) -> tuple[Step, ...]:
    """Every step in its order. All are due at once where there was no time from the beginning."""
    return tuple(_step(sla, number, step) for number, step in enumerate(ladder, start=1))


def due_steps(sla: Sla, ladder: tuple[LadderStep, ...], now: int) -> tuple[Step, ...]:
    """The steps whose time has come."""
    return tuple(step for step in steps(sla, ladder) if step.at <= now)


def next_step(sla: Sla, ladder: tuple[LadderStep, ...], now: int) -> Step | None:
    """The first step whose time is to come; None: there is none."""
    return next((step for step in steps(sla, ladder) if step.at > now), None)


def _step(sla: Sla, number: int, step: LadderStep) -> Step:
    percent = percent_of(step.at)
    at = sla.since - sla.limit * percent // -100
    return Step(number=number, percent=percent, at=at, boost=step.boost, notify=step.notify)
