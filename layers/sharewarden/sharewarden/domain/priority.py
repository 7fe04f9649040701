"""The priority ledger of one job: whose number it is, and why.

``effective = base + clamped(max positive boost) + min negative boost`` (law 4). UpdateServiceJob has no
compare-and-set and does not return the old value, so the ledger remembers the value sent until Batch
shows it: a value that we sent is ours, any other is drift, and drift is accepted, never fought (law 3).
One value at a time is under way, so whatever Batch shows can be told apart.
"""

from typing import Literal

from .base import Frozen
from .observation import is_old_news
from .policy import Bands
from .stored import HOUR, MINUTE

LOWEST, HIGHEST = 0, 9999
#: A value sent that Batch does not show after this time had no effect: whoever sent it has stopped long
#: since (``apply`` may run for a minute, and its messages come again after six).
IN_FLIGHT = 2 * MINUTE
#: So often a wish may be refused before it is given up.
MOST_REFUSALS = 3
#: A restore that was refused is asked for again after this time: it must not be forgotten (design law 5).
REST = HOUR
#: A commit has room for so many ends of boosts; more boosts than this at once help nobody.
MOST_LIVE_BOOSTS = 10
#: Those of guardrails have room of their own, or bumps could crowd them out.
MOST_LIVE_DEMOTIONS = 5
#: Boosts that ended are kept for explanations up to this many.
KEPT_ENDED_BOOSTS = 20

BoostEnd = Literal["expired", "revoked", "superseded", "job-ended", "refused", "cleared"]


class Boost(Frozen):
    """Points added to a job's base. ``id`` is that of the request or act that asked for it.

    A ``guardrail`` takes points away (a negative ``amount``) for as long as its rule is broken.
    """

    id: str
    kind: Literal["human", "automatic", "guardrail"]
    amount: int
    by: str
    reason: str
    since: int
    until: int | None = None
    revoked: str | None = None
    """Id of the request that took it back at ``until``: it ends as ``revoked`` once nothing holds it."""
    held_from: int | None = None
    """The first dispatch after ``until``, once seen: the last one that is held."""
    waived: str | None = None
    """Id of the request that gave up its hold: a person takes the risk that the job is preempted."""
    end: BoostEnd | None = None
    ended_at: int | None = None


class Wish(Frozen):
    """The priority that ``apply`` shall set. A newer version supersedes it; after ``not_after`` it dies."""

    version: int
    value: int
    actor: str
    reason: str
    created_at: int
    not_after: int
    refusals: int = 0
    """How often AWS has refused to do it."""
    paced: bool = False
    """A guardrail's: only a sweep gives it to ``apply``, and ``not_after`` counts from then."""


class Sent(Frozen):
    """A value that we are about to send, or sent, and that Batch has not shown since."""

    version: int
    before: int
    value: int
    actor: str
    reason: str
    at: int
    may_evict: bool = False
    """It lowers a dispatched job, which makes that a likelier victim of preemption."""


class Suspect(Frozen):
    """A value that is not ours, the newest one; ``first_seen`` is since when Batch shows none of ours."""

    value: int
    first_seen: int


class Refusal(Frozen):
    """A value that AWS refused for good, and that no boost asks for: it rests since ``at``."""

    value: int
    at: int


class PriorityLedger(Frozen):
    """``base`` as submitted or as drifted; ``confirmed`` as Batch last showed or accepted it."""

    base: int | None = None
    boosts: tuple[Boost, ...] = ()
    version: int = 0
    wish: Wish | None = None
    sent: Sent | None = None
    confirmed: int | None = None
    as_of: int = 0
    """When Batch was last known to show ``confirmed`` or ``suspect``: an answer read before is old news."""
    suspect: Suspect | None = None
    refusal: Refusal | None = None


class Done(Frozen):
    """A value of ours took effect."""

    sent: Sent


class Drift(Frozen):
    """Somebody else's value was taken as the base; ``ended`` are the boosts that it superseded.

    ``unknown`` is a value of ours that was under way: nobody can tell any more whether it took effect.
    """

    before: int
    value: int
    first_seen: int
    ended: tuple[Boost, ...]
    unknown: Sent | None = None


def live_boosts(ledger: PriorityLedger) -> tuple[Boost, ...]:
    """The boosts that have not ended."""
    return tuple(boost for boost in ledger.boosts if boost.end is None)


def effective(ledger: PriorityLedger, bands: Bands) -> int:
    """The priority that the base and the live boosts ask for. Raises ValueError without a base."""
    if ledger.base is None:
        raise ValueError("the base priority of the job is not known yet")
    base = ledger.base
    boosts = live_boosts(ledger)
    raised = max((_clamped(base, boost, bands) for boost in boosts if boost.amount > 0), default=base)
    lowered = min((boost.amount for boost in boosts if boost.amount < 0), default=0)
    return min(HIGHEST, max(LOWEST, raised + lowered))


def with_boost(ledger: PriorityLedger, boost: Boost) -> PriorityLedger:
    """The ledger with one more boost; the same id twice changes nothing."""
    if any(known.id == boost.id for known in ledger.boosts):
        return ledger
    return ledger.model_copy(update={"boosts": _bounded((*ledger.boosts, boost))})


def demotions(ledger: PriorityLedger) -> tuple[Boost, ...]:
    """The live boosts of guardrails, the deepest first."""
    lowering = (boost for boost in live_boosts(ledger) if boost.kind == "guardrail")
    return tuple(sorted(lowering, key=lambda boost: (boost.amount, boost.since, boost.id)))


def end_boosts(
    ledger: PriorityLedger, ids: frozenset[str], why: BoostEnd, at: int
) -> tuple[PriorityLedger, tuple[Boost, ...]]:
    """The ledger with the live boosts among ``ids`` ended, and those boosts."""
    changed = {
        boost.id: boost.model_copy(update={"end": why, "ended_at": at})
        for boost in live_boosts(ledger)
        if boost.id in ids
    }
    boosts = tuple(changed.get(boost.id, boost) for boost in ledger.boosts)
    return ledger.model_copy(update={"boosts": boosts}), tuple(changed.values())


def revoke(ledger: PriorityLedger, request: str, at: int) -> PriorityLedger:
    """The ledger with the boosts of people due now; a hold may still keep them."""
    return _due_now(ledger, frozenset({"human"}), request, at)


def revoke_all(ledger: PriorityLedger, request: str, at: int) -> PriorityLedger:
    """The same for every boost, whoever gave it."""
    return _due_now(ledger, frozenset({"human", "automatic", "guardrail"}), request, at)


def waive(ledger: PriorityLedger, request: str) -> PriorityLedger:
    """The ledger whose boosts hold nothing any more: one that has ended may still keep a restore waiting."""
    boosts = tuple(
        boost if boost.waived else boost.model_copy(update={"waived": request}) for boost in ledger.boosts
    )
    return ledger.model_copy(update={"boosts": boosts})


def _due_now(ledger: PriorityLedger, kinds: frozenset[str], request: str, at: int) -> PriorityLedger:
    boosts = tuple(
        boost.model_copy(update={"until": min(at, boost.until or at), "revoked": request})
        if boost.end is None and boost.kind in kinds and boost.revoked is None
        else boost
        for boost in ledger.boosts
    )
    return ledger.model_copy(update={"boosts": boosts})


def expected(ledger: PriorityLedger) -> int | None:
    """What Batch will show once the open wish is done."""
    return ledger.wish.value if ledger.wish else ledger.confirmed


def wish_for(
    ledger: PriorityLedger, bands: Bands, *, actor: str, reason: str, now: int, life: int
) -> PriorityLedger:
    """The ledger with the wish that its boosts ask for: none when Batch shows that value already."""
    value = effective(ledger, bands)
    if value == expected(ledger):
        return ledger
    if _rests(ledger, value, now) or (value == ledger.confirmed and ledger.sent is None):
        return ledger.model_copy(update={"wish": None})
    version = ledger.version + 1
    wish = Wish(
        version=version,
        value=value,
        actor=actor,
        reason=reason,
        created_at=now,
        not_after=now + life,
    )
    return ledger.model_copy(update={"version": version, "wish": wish})


def _rests(ledger: PriorityLedger, value: int, now: int) -> bool:
    refusal = ledger.refusal
    return refusal is not None and refusal.value == value and abs(now - refusal.at) < REST


def withdraw(ledger: PriorityLedger, version: int) -> PriorityLedger:
    """The ledger without the value under way of that version, which is known not to have taken effect."""
    ours = ledger.sent is not None and ledger.sent.version == version
    return ledger.model_copy(update={"sent": None}) if ours else ledger


def refuse(ledger: PriorityLedger, bands: Bands, now: int) -> tuple[PriorityLedger, tuple[Boost, ...]]:
    """The ledger once its wish was refused for good, and the boosts that this ends.

    They are those that ask for more than Batch shows. Where there is none it was a restore, and that rests.
    """
    base, shown, wish = ledger.base or 0, ledger.confirmed or 0, ledger.wish
    raising = frozenset(
        boost.id for boost in live_boosts(ledger) if boost.amount > 0 and _clamped(base, boost, bands) > shown
    )
    resting = ledger.refusal if raising or wish is None else Refusal(value=wish.value, at=now)
    return end_boosts(ledger.model_copy(update={"wish": None, "refusal": resting}), raising, "refused", now)


def intend(ledger: PriorityLedger, now: int, *, dispatched: bool = False) -> PriorityLedger:
    """The ledger that remembers the open wish's value as ours: committed before it is sent.

    Whoever commits this sends the value, and nobody else may before ``IN_FLIGHT`` has passed. Raises
    ValueError without a wish or a confirmed value, or while another value is under way.
    """
    wish = ledger.wish
    if wish is None or ledger.confirmed is None or ledger.sent is not None:
        raise ValueError("there is no wish that may be sent now")
    sent = Sent(
        version=wish.version,
        before=ledger.confirmed,
        value=wish.value,
        actor=wish.actor,
        reason=wish.reason,
        at=now,
        may_evict=dispatched and wish.value < ledger.confirmed,
    )
    return ledger.model_copy(update={"sent": sent})


def confirm(ledger: PriorityLedger, at: int) -> tuple[PriorityLedger, Done | None]:
    """The ledger after Batch showed or accepted at ``at`` the value that is under way, and that act of ours.

    Nothing under way (somebody else has settled it): nothing to confirm.
    """
    sent = ledger.sent
    if sent is None:
        return ledger, None
    wish = None if ledger.wish and ledger.wish.value == sent.value else ledger.wish
    update = {
        "confirmed": sent.value,
        "suspect": None,
        "wish": wish,
        "sent": None,
        "as_of": at,
        "refusal": None,
    }
    return ledger.model_copy(update=update), Done(sent=sent)


def read(
    ledger: PriorityLedger, value: int, read_at: int, settle: int
) -> tuple[PriorityLedger, Done | Drift | None]:
    """The ledger after a Describe showed ``value``.

    The first read gives the base. A value that is neither confirmed nor sent by us is a suspect, and drift
    once ``settle`` milliseconds later another read shows such a value, be it the same: whoever keeps changing
    it must not keep it open. What was read before the ledger's own knowledge says nothing new.
    """
    if ledger.base is None:
        return ledger.model_copy(update={"base": value, "confirmed": value, "as_of": read_at}), None
    if is_old_news(read_at, ledger.as_of):
        return ledger, None
    if ledger.sent is not None and ledger.sent.value == value:
        return confirm(ledger, read_at)
    if value == ledger.confirmed:
        return _unmoved(ledger, value, read_at), None
    return _foreign(ledger, value, read_at, settle)


def _unmoved(ledger: PriorityLedger, value: int, read_at: int) -> PriorityLedger:
    """Batch shows what it showed before: what was sent long ago is lost, a wish for this value is idle."""
    sent = ledger.sent if ledger.sent and abs(read_at - ledger.sent.at) < IN_FLIGHT else None
    idle = sent is None and ledger.wish is not None and ledger.wish.value == value
    wish = None if idle else ledger.wish
    return ledger.model_copy(update={"suspect": None, "sent": sent, "wish": wish, "as_of": read_at})


def _foreign(
    ledger: PriorityLedger, value: int, read_at: int, settle: int
) -> tuple[PriorityLedger, Drift | None]:
    known = ledger.suspect
    since = read_at if known is None else min(known.first_seen, read_at)
    suspect = Suspect(value=value, first_seen=since)
    if known is None or read_at - since < settle:
        return ledger.model_copy(update={"suspect": suspect, "as_of": read_at}), None
    return _accept(ledger, suspect, read_at)


def _accept(ledger: PriorityLedger, suspect: Suspect, read_at: int) -> tuple[PriorityLedger, Drift]:
    """Drift becomes the base as it is: every boost ends, the open wish dies, nothing is sent."""
    live = frozenset(boost.id for boost in live_boosts(ledger))
    ended_ledger, ended = end_boosts(ledger, live, "superseded", suspect.first_seen)
    before = ledger.base if ledger.confirmed is None else ledger.confirmed
    drift = Drift(
        before=before or 0,
        value=suspect.value,
        first_seen=suspect.first_seen,
        ended=ended,
        unknown=ledger.sent,
    )
    update = {
        "base": suspect.value,
        "confirmed": suspect.value,
        "suspect": None,
        "wish": None,
        "sent": None,
        "as_of": read_at,
    }
    return ended_ledger.model_copy(update=update), drift


def _clamped(base: int, boost: Boost, bands: Bands) -> int:
    """A boost reaches at most the top of its band; a base above that is left alone, never lowered."""
    band = bands.human if boost.kind == "human" else bands.automatic
    return max(base, min(base + boost.amount, band.highest))


def _bounded(boosts: tuple[Boost, ...]) -> tuple[Boost, ...]:
    ended = [boost.id for boost in boosts if boost.end is not None]
    forgotten = frozenset(ended[: max(0, len(ended) - KEPT_ENDED_BOOSTS)])
    return tuple(boost for boost in boosts if boost.id not in forgotten)
