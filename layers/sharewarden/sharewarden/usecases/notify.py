"""Tell people: each notice once at most on each channel (design law 1).

Claim by a commit, send, commit what came of it. Whoever finds a claim whose sender is gone marks it
``unsure`` and sends nothing: it may have gone out. What certainly did not go out is tried again when the
sweep brings it back, after a pause that doubles.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from logging import getLogger
from typing import Literal, NamedTuple, get_args

from sharewarden.domain.notice import (
    Channel,
    Notice,
    claimed,
    delivery,
    due,
    is_lost,
    put_off,
    ready,
    sent,
    unsure,
    untold,
)
from sharewarden.domain.telling import Message, compose
from sharewarden.ports import MAX_ACTIONS, Conflict, Denied, Runtime, Unavailable, Unsure

logger = getLogger(__name__)

#: ``notices_failed``: a channel refused it, or it was given up; ``notices_unsure``: it may have gone out.
Outcome = Literal["gone", "untold", "settled", "busy", "told", "later", "notices_failed", "notices_unsure"]
#: Of the outcomes on several channels, the one that comes last here is the notice's.
WORSE: tuple[Outcome, ...] = get_args(Outcome)

#: Whether others that are alike are claimed with it, try by try: the index may show what is claimed already.
FOLDING = (True, True, False)

#: After this many lost races the outcome is left open, and ends as ``unsure``.
ATTEMPTS = 5


class Claim(NamedTuple):
    """The notices that are ours to send, or why there are none."""

    notices: tuple[Notice, ...] = ()
    outcome: Outcome = "settled"


def notify(runtime: Runtime, key: str) -> Outcome:
    """Deliver the notice of that key, and those alike that wait beside it, on every channel.

    Raises Unavailable when the ledger could not be asked or written: what was claimed ends as ``unsure``.
    """
    notice = runtime.ledger.load(Notice, key)
    if notice is None:
        return "gone"
    channels = [one.channel for one in notice.deliveries] or sorted(runtime.channels)
    if not channels:
        return _nobody(runtime, notice)
    return max((_tell(runtime, key, channel) for channel in channels), key=WORSE.index)


def remind(runtime: Runtime, queue: str, now: int, cap: int) -> int:
    """Send the queue's notices that still wait to ``notify``, ``cap`` at most; returns how many.

    Raises Unavailable.
    """
    waiting = (notice for notice in runtime.ledger.open_items(Notice, queue) if due(notice, now))
    keys = [notice.key for notice in islice(waiting, cap)]
    for key in keys:
        runtime.notices.send(key)
    return len(keys)


def _nobody(runtime: Runtime, notice: Notice) -> Outcome:
    if notice.state != "waiting":
        return "settled"
    now = runtime.clock.now()
    try:
        runtime.ledger.commit([untold(notice, now)], [], now)
    except Conflict:
        return "busy"
    return "untold"


def _tell(runtime: Runtime, key: str, channel: Channel) -> Outcome:
    claim = _claim(runtime, key, channel)
    if not claim.notices:
        return claim.outcome
    outcome, ended = _sent(runtime, channel, compose(claim.notices))
    now = runtime.clock.now()
    notices = [ended(notice, now) for notice in claim.notices]
    _settle(runtime, notices, now)
    gave_up = any(delivery(notice, channel).state == "failed" for notice in notices)
    return "notices_failed" if gave_up else outcome


def _settle(runtime: Runtime, notices: list[Notice], now: int) -> None:
    """Keep what came of it. A claim of others that failed on one of them may have been in the way of all."""
    try:
        runtime.ledger.commit(notices, [], now)
    except Conflict:
        for notice in notices:
            _settle_one(runtime, notice, now)


def _settle_one(runtime: Runtime, notice: Notice, now: int) -> None:
    for _ in range(ATTEMPTS):
        stored = runtime.ledger.load(Notice, notice.key)
        if stored is None or stored.version != notice.version:
            return  # kept already, or given up as lost
        with suppress(Conflict):
            runtime.ledger.commit([notice], [], now)
            return
    raise Unavailable(f"notice {notice.key}: {ATTEMPTS} commits in a row met another writer")


def _claim(runtime: Runtime, key: str, channel: Channel) -> Claim:
    """Begin the delivery; from here on it is ours alone, and ends as ``unsure`` if we vanish."""
    for folding in FOLDING:
        now, notice = runtime.clock.now(), runtime.ledger.load(Notice, key)
        if notice is None:
            return Claim(outcome="gone")
        try:
            if is_lost(delivery(notice, channel), now):
                return _lost(runtime, notice, channel, now)
            if not ready(notice, channel, now):
                return Claim(outcome=_standing(notice, channel))
            alike = _alike(runtime, notice, channel, now) if folding else ()
            begun = [claimed(each, channel, runtime.channels, now) for each in (notice, *alike)]
            runtime.ledger.commit(begun, [], now)
        except Conflict:
            continue
        return Claim(tuple(each.model_copy(update={"version": each.version + 1}) for each in begun))
    raise Unavailable(f"notice {key}: {len(FOLDING)} claims in a row met another writer")


def _alike(runtime: Runtime, notice: Notice, channel: Channel, now: int) -> Iterator[Notice]:
    """Others that one message can tell with it, as far as the index shows them."""
    others = (
        each
        for each in runtime.ledger.open_items(Notice, notice.queue)
        if each.key != notice.key and each.alike == notice.alike and ready(each, channel, now)
    )
    return islice(others, MAX_ACTIONS - 1)


def _standing(notice: Notice, channel: Channel) -> Outcome:
    """Why there is nothing to do on this channel now: the sweep comes back to what is open."""
    if delivery(notice, channel).state in {"sent", "unsure", "failed"}:
        return "settled"
    return "busy" if notice.state == "sending" else "later"


def _lost(runtime: Runtime, notice: Notice, channel: Channel, now: int) -> Claim:
    why = "whoever sent it did not come to say what became of it"
    runtime.ledger.commit([unsure(notice, channel, why, now)], [], now)
    logger.error("nobody knows whether notice %s went out on %s", notice.key, channel)
    return Claim(outcome="notices_unsure")


Ended = Callable[[Notice, int], Notice]


def _sent(runtime: Runtime, channel: Channel, message: Message) -> tuple[Outcome, Ended]:
    """Send it; what came of it, and how that is kept."""
    try:
        _send(runtime, channel, message)
    except Unavailable as error:
        return "later", _kept(put_off, channel, error)
    except Denied as error:
        logger.error("%s refused notice %s: %s", channel, message.id, error)
        return "notices_failed", _kept(put_off, channel, error)
    except Unsure as error:
        logger.error("nobody knows whether notice %s went out on %s: %s", message.id, channel, error)
        return "notices_unsure", _kept(unsure, channel, error)
    return "told", lambda notice, now: sent(notice, channel, now)


def _kept(how: Callable[[Notice, Channel, str, int], Notice], channel: Channel, error: Exception) -> Ended:
    why = str(error)
    return lambda notice, now: how(notice, channel, why, now)


def _send(runtime: Runtime, channel: Channel, message: Message) -> None:
    if channel == "topic":
        runtime.topic.send(message)
    else:
        runtime.webhook.send(message)
