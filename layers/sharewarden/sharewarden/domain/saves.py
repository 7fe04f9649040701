"""What the freshness watch knows of a job's checkpoints, and when it looks again.

A look is one pass over the job's ``S3Uri`` (``usecases/watch.py``), and looks follow the job's own interval
between saves. What is said of freshness is said as of the last look: what was saved after it is not known, so
a late look makes nothing stale.
"""

from collections.abc import Iterable, Iterator
from typing import Literal

from .base import Frozen, last_part, shortened
from .checkpoints import LAST_GAPS, Save, SetSeen, learn_interval
from .stored import HOUR, MINUTE, SECOND

#: Closer looks would see little more: SageMaker copies to S3 a little after a save.
SHORTEST = 1 * MINUTE
#: A job that saves more seldom is looked at all the same: its newest save may end a hold.
LONGEST = 1 * HOUR
#: While the interval is not known, and after S3 did not answer.
UNKNOWN = 5 * MINUTE
#: Until it is tried again whether S3 refuses still.
REFUSED = 15 * MINUTE
#: A look that was begun and did not end is lost: longer than the queue hides its message (template).
LOST = 20 * MINUTE
#: A message may come so much too early: the clocks of SQS and of the function are not one.
EARLY = 5 * SECOND
#: The message of a look may be under way for so long before the sweep sends another one.
LATE = 2 * MINUTE
#: Between the clock of a training and ours. A save dated further ahead buys nothing.
SKEW = 1 * MINUTE

Answer = Literal["none", "whole", "partial", "refused"]


class SaveTime(Frozen):
    """When a set was saved; sets without a step are told apart by their time."""

    step: int | None
    at: int


class Saves(Frozen):
    """What the looks have shown. Times are epoch ms; 0: never."""

    newest: Save | None = None
    """The newest complete save of the last look that could tell."""
    newest_at: int = 0
    """When it was saved; when it was first seen, if that was earlier than its own date."""
    times: tuple[SaveTime, ...] = ()
    """Of the last saves, oldest first: they tell the usual interval."""
    looked_at: int = 0
    """When the last look began that S3 answered."""
    answer: Answer = "none"
    """What that look was: ``partial`` leaves open what was saved last, ``refused`` was by S3."""
    refusal: str | None = None
    """S3's first refusal: people were told of it."""
    asked_at: int = 0
    """When the last look was begun, whatever came of it."""
    next_look_at: int = 0


def due_since(saves: Saves, running_since: int | None) -> int:
    """Since when a look is due: at once in a new attempt, else when the pace says so."""
    if running_since is not None and saves.asked_at < running_since:
        return running_since
    return saves.next_look_at


def begun(saves: Saves, now: int) -> Saves:
    """A look begins: until it ends, or is taken for lost, no other one does."""
    return saves.model_copy(update={"asked_at": now, "next_look_at": now + LOST})


def seen(saves: Saves, newest: Save | None, sets: Iterable[SetSeen], began_at: int, *, whole: bool) -> Saves:
    """A look ended. One that was not ``whole`` shows saves, but not that there is none, or none newer.

    The newest is that of the highest step. Where another one was saved later, as by a training that began
    again from zero, how fresh its checkpoints are is not known.
    """
    sets = tuple(sets)
    times = _times(saves.times, sets, began_at)
    last = newest.saved_at + SKEW if newest else 0
    clear = whole and not any(one.saved_at > last for one in _saved(sets, began_at))
    update: dict[str, object] = {
        "times": times,
        "looked_at": began_at,
        "answer": "whole" if clear else "partial",
        "next_look_at": began_at + _pace(interval_of(times)),
    }
    if whole or newest is not None:
        update |= {"newest": newest, "newest_at": _dated(saves, newest, began_at)}
    return saves.model_copy(update=update)


def unanswered(saves: Saves, now: int) -> Saves:
    """S3 could not be asked: what is known stays, and the look is tried again soon."""
    return saves.model_copy(update={"next_look_at": now + UNKNOWN})


def refused(saves: Saves, why: str, began_at: int) -> Saves:
    """S3 would not tell: nothing is known of freshness. Whether it has been allowed since is looked up."""
    update = {
        "looked_at": began_at,
        "answer": "refused",
        "refusal": saves.refusal or shortened(why),
        "next_look_at": began_at + REFUSED,
    }
    return saves.model_copy(update=update)


def usual_interval(saves: Saves) -> int | None:
    """The usual distance between two saves in ms; None until two are known."""
    return interval_of(saves.times)


def interval_of(times: tuple[SaveTime, ...]) -> int | None:
    """The median of the last gaps, never below what looks can tell apart."""
    learnt = learn_interval([one.at for one in times])
    return None if learnt is None else max(SHORTEST, learnt)


def age_at_look(saves: Saves, running_since: int, attempt: str | None) -> int | None:
    """How old the newest complete save of the running attempt was at the last look, in ms.

    Without one the age of the attempt. None: not known, since no look in this attempt saw all, or the newest
    save is of a training job that is not the running one.
    """
    if saves.answer != "whole" or saves.looked_at < running_since:
        return None
    if saves.newest_at > running_since and not _may_be_of(saves.newest, attempt):
        return None
    return saves.looked_at - max(running_since, saves.newest_at)


def saved_since(saves: Saves, dispatched: int, attempt: str | None) -> bool:
    """Whether a complete save of the attempt is known that was made after its dispatch.

    A dispatch may look a second older than it was. What is dated ahead of when it was seen proves nothing.
    """
    save = saves.newest
    if save is None or saves.newest_at < dispatched + SECOND:
        return False
    return save.saved_at <= saves.newest_at + SKEW and _may_be_of(save, attempt)


def _may_be_of(save: Save | None, attempt: str | None) -> bool:
    """False when the save says that another training job made it; not every layout tells."""
    told = save.training_job if save else None
    return told is None or attempt is None or told == last_part(attempt)


def _dated(saves: Saves, newest: Save | None, now: int) -> int:
    if newest is None:
        return 0
    known = saves.newest
    if known is not None and (known.name, known.saved_at) == (newest.name, newest.saved_at):
        return saves.newest_at
    return min(newest.saved_at, now)


def _saved(sets: Iterable[SetSeen], now: int) -> Iterator[SetSeen]:
    """Those that are complete, or look so."""
    return (one for one in sets if one.state in ("complete", "unverified") and one.saved_at <= now)


def _times(known: tuple[SaveTime, ...], sets: Iterable[SetSeen], now: int) -> tuple[SaveTime, ...]:
    """The last saves, one a step: its manifest and its files do not tell quite the same time."""
    found = (SaveTime(step=one.step, at=one.saved_at) for one in _saved(sets, now))
    both = sorted((*known, *found), key=_at)
    latest = {_identity(one): one for one in both}
    return tuple(sorted(latest.values(), key=_at)[-(LAST_GAPS + 1) :])


def _at(one: SaveTime) -> int:
    return one.at


def _identity(one: SaveTime) -> tuple[bool, int]:
    return (True, one.at) if one.step is None else (False, one.step)


def _pace(interval: int | None) -> int:
    return UNKNOWN if interval is None else min(LONGEST, interval)
