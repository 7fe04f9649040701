"""Whether a job can ever fit its quota share: the arithmetic of capacity limits and borrow limits.

Batch tells three cases apart and names each in a text of its own (user guide,
sm_job_stuck_in_runnable_misconfiguration). Preflight, rules and explanations say the same with the figures.
"""

from typing import Any

from .base import Frozen
from .rules.base import Unknown
from .rules.facts import ShareFacts

OVER_LIMIT = "Job requirements exceed quota share capacity limits."
OVER_BORROW_LIMIT = "Job requirements exceed quota share capacity limits and borrow limits."
OVER_BORROWABLE = "Job requires borrowing that exceeds all configured borrowable capacity."

_NO_LIMIT = -1


class Room(Frozen):
    """What one job may ever have of one instance type in a share, in instances."""

    share: str
    unit: str
    strategy: str
    own: int
    borrow_percent: int | None = None
    """None: it cannot borrow; -1: as much as there is."""
    lendable: int | None = None
    """What the limits of the other shares that lend add up to; None: not known."""

    @property
    def may_borrow(self) -> int | None:
        """What its borrow limit allows beyond its own, 0 when it cannot borrow; None: no limit.

        A percentage of its own limit, per instance type (create-quota-shares); a part of an instance is none.
        """
        if self.borrow_percent is None:
            return 0
        return None if self.borrow_percent == _NO_LIMIT else self.own * self.borrow_percent // 100


class Misfit(Frozen):
    """Why the job can never start in the share. ``text`` goes on from the job's name."""

    reason: str | None
    """Batch's own words; None where it documents none."""
    text: str
    figures: dict[str, Any]


def room(share: ShareFacts, unit: str) -> Room | None:
    """The share's room for one instance type; None when the share has no limit for it."""
    limits = share.units.get(unit)
    if limits is None:
        return None
    borrows = share.strategy == "LEND_AND_BORROW"
    return Room(
        share=share.name,
        unit=unit,
        strategy=share.strategy,
        own=limits.limit,
        borrow_percent=share.borrow_limit if borrows else None,
        lendable=limits.others,
    )


def misfit(share: ShareFacts, unit: str, asked: int) -> Misfit | Unknown | None:
    """Why a job of ``asked`` instances can never start; None when it can.

    Unknown when its share may borrow so much, but what there is to borrow is not known.
    """
    space = room(share, unit)
    if space is None:
        return _without_limit(share, unit)
    beyond = asked - space.own
    if beyond <= 0:
        return None
    if space.may_borrow is not None and beyond > space.may_borrow:
        return _beyond_limit(space, asked, space.may_borrow)
    if space.lendable is None:
        return Unknown(what="share.units.others")
    return _beyond_lendable(space, asked, space.lendable) if beyond > space.lendable else None


def _without_limit(share: ShareFacts, unit: str) -> Misfit:
    types = ", ".join(sorted(share.units)) or "none"
    return Misfit(
        reason=None,
        text=f"asks for {unit}, and share {share.name} has no capacity limit for it:"
        f" ask for one of its types ({types})",
        figures={"unit": unit, "units": sorted(share.units)},
    )


def _beyond_limit(space: Room, asked: int, may_borrow: int) -> Misfit:
    most = space.own + may_borrow
    if space.borrow_percent is None:
        return _misfit(
            space,
            asked,
            most,
            reason=OVER_LIMIT,
            why=f"at most {most}, and as a {space.strategy} share it cannot borrow",
            lever="the share's capacity limit",
        )
    return _misfit(
        space,
        asked,
        most,
        reason=OVER_BORROW_LIMIT,
        why=f"at most {most}: {space.own} of its own,"
        f" {may_borrow} borrowed (borrow limit {space.borrow_percent}%)",
        lever="the share's capacity limit or borrow limit",
    )


def _beyond_lendable(space: Room, asked: int, lendable: int) -> Misfit:
    most = space.own + lendable
    return _misfit(
        space,
        asked,
        most,
        reason=OVER_BORROWABLE,
        why=f"at most {most}: {space.own} of its own, {lendable} that all other shares together can lend",
        lever="the share's capacity limit or a lender's",
    )


def _misfit(space: Room, asked: int, most: int, *, reason: str, why: str, lever: str) -> Misfit:
    return Misfit(
        reason=reason,
        text=f"asks for {asked} {space.unit}, and one job of share {space.share} can have {why}"
        f' (Batch: "{reason}"): ask for {most} or fewer, or have {lever} raised',
        figures={"unit": space.unit, "asked": asked, "own": space.own, "most": most},
    )
