"""What guardrails remember on a job's record, so that nothing changed means nothing done."""

from typing import Literal, Self

from .base import Frozen
from .rules.base import Action, Guardrail, Mode

#: A record keeps so many marks (it shares the 400 KB of an item with timeline and attempts): those that ended
#: are forgotten first, and beyond that nothing more is found of the job.
KEPT_MARKS = 60


class Mark(Frozen):
    """One finding about the job, by the exact entry of the policy that made it.

    It stands until ``ended_at``. ``held``: the rule holds again; ``changed``: the policy, or what the entry
    does to this job, is another one.
    """

    label: str
    fingerprint: str
    subject: str
    fact: str
    """Natural key of the finding's audit fact."""
    since: int
    mode: Mode
    action: Action
    """What followed, or would have: less than the entry asks for where nothing may be done."""
    asked: Action
    """What the entry asks for."""
    about: Literal["job", "team"] = "job"
    count: int = 1
    """How often the entry has found this subject."""
    act: str | None = None
    """Id of the act that was begun."""
    ended: Literal["held", "changed"] | None = None
    ended_at: int | None = None

    def is_of(self, entry: Guardrail | Self) -> bool:
        """Whether that entry, with the same options, made it; or the one that made that other mark."""
        return (self.label, self.fingerprint) == (entry.label, entry.fingerprint)


def standing(marks: tuple[Mark, ...]) -> tuple[Mark, ...]:
    """The marks that have not ended."""
    return tuple(mark for mark in marks if mark.ended is None)


def with_mark(marks: tuple[Mark, ...], mark: Mark) -> tuple[Mark, ...]:
    """The marks with this one in the place of the entry's earlier one; the oldest ended ones may go."""
    if mark in marks:
        return marks
    others = tuple(one for one in marks if not mark.is_of(one))
    ended = sorted((one.ended_at or 0, one.fact) for one in others if one.ended is not None)
    forgotten = {fact for _, fact in ended[: max(0, len(others) + 1 - KEPT_MARKS)]}
    return (*(one for one in others if one.ended is None or one.fact not in forgotten), mark)


def without_acts(marks: tuple[Mark, ...], at: int) -> tuple[Mark, ...]:
    """The marks of a job taken for ended: its acts were given up, so what is broken is found anew."""
    return tuple(
        mark.model_copy(update={"act": None, "ended": "changed", "ended_at": at}) if mark.act else mark
        for mark in marks
    )
