"""The share record: what a quota share was last seen to be."""

import hashlib
from typing import ClassVar

from .base import Frozen
from .observation import ShareDescription
from .stored import MINUTE, Stored

#: Changes that the sweep found and CloudTrail may still tell of: its events come within minutes.
KEPT_CHANGES = 10
#: CloudTrail writes whole seconds: a call may look up to a second older than it was.
LATENESS = 1000
#: Our clock may run behind that of AWS by so much: a call that a sweep has found looks newer than the look.
SKEW = 5000

#: CloudTrail's events come within minutes, if there is a trail: who made a change is waited for so long.
PATIENCE = 15 * MINUTE


class FoundChange(Frozen):
    """A change that a sweep found before CloudTrail told of it, and its audit key.

    It came after the read before (when that was asked for) and before the answer that showed it.
    """

    after: int
    before: int
    key: str
    change: str = ""
    """What was different."""
    judged: bool = True
    """Guardrails have decided on it: once CloudTrail has named who made it, or did not in ``PATIENCE``."""


class Lowered(Frozen):
    """A limit of a share that was lowered, at some time from ``not_before`` to ``at``."""

    share: str
    unit: str
    before: int
    after: int
    not_before: int
    at: int


class ShareRecord(Stored):
    """One quota share."""

    item: ClassVar[str] = "SHARE"

    arn: str
    queue: str
    description: ShareDescription | None = None
    """None: deleted, or known only from CloudTrail so far."""
    read_at: int = 0
    told_at: int = 0
    """Time of the newest call that CloudTrail told of and that the sweep had not found before."""
    told: bool = False
    """Such a call came since the last read: what the next read finds changed is on record already."""
    found: tuple[FoundChange, ...] = ()
    """For the late attribution of each change."""
    lowered: tuple[Lowered, ...] = ()
    """The last limits that were lowered: what was preempted then had no preemptor."""

    @property
    def key(self) -> str:
        return self.arn

    @property
    def open_queue(self) -> str | None:
        """Found by queue as long as the share exists, or a change of it waits to be decided on."""
        waits = any(not one.judged for one in self.found)
        return deleted_under(self.queue) if self.deleted and not waits else self.queue

    @property
    def deleted(self) -> bool:
        """Batch no longer had it when it was last asked."""
        return bool(self.read_at) and self.description is None


def deleted_under(queue: str) -> str:
    """Where the deleted shares of a queue are listed, for those who read what is on record of them."""
    return f"{queue}#deleted"


def told_of(record: ShareRecord, at: int) -> ShareRecord:
    """The record after CloudTrail told of a call at ``at`` that no sweep has found.

    A call from before the last read that the read did not show as a change is one that it knew already.
    """
    if at <= record.told_at:
        return record
    return record.model_copy(update={"told_at": at, "told": at + LATENESS > record.read_at})


def found_at(record: ShareRecord, at: int) -> FoundChange | None:
    """The change that a sweep found and that a call at ``at`` made, if it was not told of before."""
    if at == record.told_at:
        return None
    near = (one for one in record.found if one.after - LATENESS < at <= one.before + SKEW)
    return min(near, key=lambda one: max(0, at - one.before), default=None)


def unjudged(record: ShareRecord, now: int) -> tuple[FoundChange, ...]:
    """The changes of which CloudTrail did not tell in time who made them, and that were not decided on."""
    return tuple(one for one in record.found if not one.judged and now - one.before >= PATIENCE)


def judged(record: ShareRecord, changes: tuple[FoundChange, ...]) -> ShareRecord:
    """The record with these changes decided on."""
    found = tuple(one.model_copy(update={"judged": True}) if one in changes else one for one in record.found)
    return record.model_copy(update={"found": found})


def with_lowered(record: ShareRecord, seen: ShareDescription | None, answered_at: int) -> ShareRecord:
    """The record with the limits that ``seen`` has lower than the last read had them.

    They were lowered when CloudTrail says so, or at some time between the two reads.
    """
    if record.description is None:
        return record
    now = {} if seen is None else dict(seen.limits)
    times = {
        "not_before": record.told_at if record.told else record.read_at,
        "at": record.told_at if record.told else answered_at,
    }
    found = tuple(
        Lowered(share=record.description.name, unit=unit, before=limit, after=now.get(unit, 0), **times)
        for unit, limit in record.description.limits
        if now.get(unit, 0) < limit
    )
    return record.model_copy(update={"lowered": (*record.lowered, *found)[-KEPT_CHANGES:]})


def content_hash(description: ShareDescription | None) -> str:
    """Names the exact settings of a share; ``deleted`` when there is none."""
    if description is None:
        return "deleted"
    return hashlib.sha256(description.model_dump_json().encode()).hexdigest()[:16]
