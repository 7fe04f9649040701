"""When a boost ends and what that sets off, and how a wish dies."""

from .decide import Decision, with_ledger
from .facts import boost_ended_fact, wish_dropped_fact
from .observation import TERMINAL
from .policy import Policy
from .priority import (
    MOST_REFUSALS,
    Boost,
    PriorityLedger,
    Wish,
    end_boosts,
    live_boosts,
    refuse,
    wish_for,
    withdraw,
)
from .record import JobRecord, dispatched_since, status
from .stored import SECOND

OURSELVES = "sharewarden"
TOO_LATE = "its time ran out before it could be done"


def hold_until(record: JobRecord, boost: Boost, policy: Policy) -> int | None:
    """Until when a boost that started the job is kept; None when it did not start it.

    Lowering a dispatched job makes it a likelier victim (Batch user guide, preemption). Without the
    evidence of a complete checkpoint, the policy's ``hold`` decides, and never less than ``min_runtime``.
    Events are cut to whole seconds, so a dispatch may look a second older than it was. After the boost's
    time one more dispatch is held and no other: a job that starts again and again would keep it for ever.
    """
    if boost.waived is not None:
        return None
    dispatched = dispatched_since(record)
    if dispatched is None or dispatched + SECOND <= boost.since:
        return None
    start = dispatched if boost.held_from is None else min(dispatched, boost.held_from + SECOND)
    return start + max(policy.hold, policy.share(record.queue, record.share).min_runtime)


def lowering_waits(record: JobRecord, wish: Wish, policy: Policy, now: int) -> bool:
    """True while the wish would lower a job that a boost has started, even one that has ended meanwhile.

    The job may be dispatched between the end of the boost and the moment at which ``apply`` acts on it.
    """
    if wish.value >= (record.priority.confirmed or 0):
        return False
    return any((hold_until(record, boost, policy) or 0) > now for boost in record.priority.boosts)


def end_due_boosts(record: JobRecord, policy: Policy, now: int) -> Decision:
    """End each boost whose time is over and that nothing holds, and wish for what the rest asks for.

    A wish that died without effect is renewed here, so no boost and no restore is forgotten. Nothing is
    wished while the job has ended, its base is unknown, or somebody else's priority is settling.
    """
    unsettled = record.priority.base is None or record.priority.suspect is not None
    if unsettled or status(record) in TERMINAL:
        return Decision(record=record)
    record = _note_holds(record)
    due = [boost for boost in live_boosts(record.priority) if _is_over(record, boost, policy, now)]
    ledger, ended = _end(record.priority, due, now)
    actor = ended[0].by if ended else OURSELVES
    reason = f"boost {ended[0].end}: {ended[0].reason}" if ended else "an earlier wish had no effect"
    record = wish_again(with_ledger(record, ledger), policy, now, actor=actor, reason=reason)
    return Decision(record=record, facts=tuple(boost_ended_fact(record, boost, policy) for boost in ended))


def _note_holds(record: JobRecord) -> JobRecord:
    """The record whose boosts remember the dispatch that they are held for after their time."""
    dispatched = dispatched_since(record)
    if dispatched is None:
        return record
    boosts = tuple(
        boost.model_copy(update={"held_from": dispatched})
        if boost.held_from is None and boost.until is not None and dispatched > boost.until
        else boost
        for boost in record.priority.boosts
    )
    return with_ledger(record, record.priority.model_copy(update={"boosts": boosts}))


def wish_again(record: JobRecord, policy: Policy, now: int, *, actor: str, reason: str) -> JobRecord:
    """The record with the wish that its boosts ask for under this policy."""
    bands = policy.queue(record.queue).bands
    ledger = wish_for(record.priority, bands, actor=actor, reason=reason, now=now, life=policy.wish_life)
    return with_ledger(record, ledger)


def drop_wish(record: JobRecord, wish: Wish, why: str, policy: Policy, now: int) -> Decision:
    """The record without that wish, and the fact that it died.

    Nothing if another has taken its place, or while its value is under way: then it may still take effect.
    """
    sent = record.priority.sent
    if record.priority.wish != wish or (sent is not None and sent.version == wish.version):
        return Decision(record=record)
    fact = wish_dropped_fact(record, wish, why, policy, now)
    return Decision(
        record=with_ledger(record, record.priority.model_copy(update={"wish": None})), facts=(fact,)
    )


def refused_wish(record: JobRecord, version: int, why: str, policy: Policy, now: int) -> Decision:
    """The record after AWS refused to do its wish: nothing took effect, and after a few tries it is given up.

    A restore that is refused again, having rested, is not told again.
    """
    ledger = withdraw(record.priority, version)
    wish = ledger.wish
    if wish is None or wish.version != version:
        return Decision(record=with_ledger(record, ledger))
    if wish.refusals + 1 < MOST_REFUSALS:
        again = wish.model_copy(update={"refusals": wish.refusals + 1})
        return Decision(record=with_ledger(record, ledger.model_copy(update={"wish": again})))
    known = ledger.refusal is not None and ledger.refusal.value == wish.value
    after, ended = refuse(ledger, policy.queue(record.queue).bands, now)
    record = with_ledger(record, after)
    dropped = () if known else (wish_dropped_fact(record, wish, why, policy, now),)
    return Decision(
        record=record, facts=(*dropped, *(boost_ended_fact(record, boost, policy) for boost in ended))
    )


def _is_over(record: JobRecord, boost: Boost, policy: Policy, now: int) -> bool:
    if boost.until is None or boost.until > now:
        return False
    held = hold_until(record, boost, policy)
    return held is None or held <= now


def _end(ledger: PriorityLedger, due: list[Boost], now: int) -> tuple[PriorityLedger, tuple[Boost, ...]]:
    revoked = frozenset(boost.id for boost in due if boost.revoked is not None)
    expired = frozenset(boost.id for boost in due) - revoked
    ledger, first = end_boosts(ledger, revoked, "revoked", now)
    ledger, second = end_boosts(ledger, expired, "expired", now)
    return ledger, first + second
