"""When a boost ends and what that sets off, what a wish waits for, and how it dies."""

from typing import Literal

from .audit import rule_actor
from .decide import Decision, with_ledger
from .facts import boost_ended_fact, wish_dropped_fact
from .observation import TERMINAL
from .policy import Policy
from .priority import (
    MOST_REFUSALS,
    Boost,
    PriorityLedger,
    Wish,
    demotions,
    end_boosts,
    live_boosts,
    refuse,
    wish_for,
    withdraw,
)
from .record import JobRecord, dispatched_since, running_attempt, status
from .saves import saved_since
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
    if boost.waived is not None or boost.amount < 0:
        return None
    dispatched = dispatched_since(record)
    if dispatched is None or dispatched + SECOND <= boost.since:
        return None
    start = dispatched if boost.held_from is None else min(dispatched, boost.held_from + SECOND)
    return start + _held_for(record, dispatched, policy)


def _held_for(record: JobRecord, dispatched: int, policy: Policy) -> int:
    """How long a dispatched job is not to be made a likelier victim: the share's ``min_runtime`` always, and
    the policy's ``hold`` until a complete checkpoint is known that it saved since (design law 5)."""
    shortest = policy.share(record.queue, record.share).min_runtime
    saved = saved_since(record.saves, dispatched, running_attempt(record))
    return shortest if saved else max(policy.hold, shortest)


def demotion_from(record: JobRecord, policy: Policy) -> int | None:
    """From when a guardrail may lower the job; None: at once, since it waits or nothing lowers it.

    A dispatched one is left alone as long as a boost that started it would be held, whoever started it.
    """
    dispatched = dispatched_since(record)
    if dispatched is None or not demotions(record.priority):
        return None
    return dispatched + _held_for(record, dispatched, policy)


def lowering_from(record: JobRecord, policy: Policy) -> int | None:
    """From when on the job may be lowered at all; None when nothing holds it."""
    holds = [hold_until(record, boost, policy) for boost in record.priority.boosts]
    return max((at for at in (*holds, demotion_from(record, policy)) if at is not None), default=None)


def lowering_waits(record: JobRecord, wish: Wish, policy: Policy, now: int) -> bool:
    """True while the wish would lower a job that must not be lowered yet.

    A boost has started it, even one that has ended meanwhile: the job may be dispatched between the end of
    the boost and the moment at which ``apply`` acts on it. Or a guardrail lowers it.
    """
    if wish.value >= (record.priority.confirmed or 0):
        return False
    return (lowering_from(record, policy) or 0) > now or not _demotions_stand(record, policy)


def _demotions_stand(record: JobRecord, policy: Policy) -> bool:
    """Whether the policy still asks for them: the next sweep ends those of a rule that went."""
    actors = {rule_actor(label) for label in policy.acting(record.queue)}
    lowering = demotions(record.priority)
    protected = bool(lowering) and policy.share(record.queue, record.share).protected
    return not protected and all(boost.by in actors for boost in lowering)


def waits(record: JobRecord, policy: Policy) -> Literal["paused", "shadow"] | None:
    """Why the job's priority may not be changed now; None when it may.

    A bump of people needs ``bumps: enforce``. A guardrail's act was decided in enforce mode, or it would not
    be there; it, and every way back to the base, need that anything of the queue is enforced.
    """
    bumped = any(boost.kind == "human" for boost in live_boosts(record.priority))
    if bumped and not policy.paused and policy.queue(record.queue).bumps == "shadow":
        return "shadow"
    return policy.stops(record.queue)


def end_due_boosts(record: JobRecord, policy: Policy, now: int) -> Decision:
    """End each boost whose time is over and that nothing holds, and wish for what the rest asks for.

    A wish that died without effect is renewed here, so no boost and no restore is forgotten. Nothing is
    wished while the job has ended, its base is unknown, or somebody else's priority is settling.
    """
    if not is_settled(record):
        return Decision(record=record)
    record = _note_holds(record)
    due = [boost for boost in live_boosts(record.priority) if _is_over(record, boost, policy, now)]
    ledger, ended = _end(record.priority, due, now)
    return ended_boosts(with_ledger(record, ledger), ended, policy, now)


def ended_boosts(record: JobRecord, ended: tuple[Boost, ...], policy: Policy, now: int) -> Decision:
    """The record with the wish for what is left, and the facts of those that ended."""
    actor, reason, paced = _cause(record.priority, ended)
    record = wish_again(record, policy, now, actor=actor, reason=reason, paced=paced)
    return Decision(record=record, facts=tuple(boost_ended_fact(record, boost, policy) for boost in ended))


def is_settled(record: JobRecord) -> bool:
    """Whether a wish may be written: the job goes on, its base is known, and nobody else's value settles."""
    ledger = record.priority
    return ledger.base is not None and ledger.suspect is None and status(record) not in TERMINAL


def _cause(ledger: PriorityLedger, ended: tuple[Boost, ...]) -> tuple[str, str, bool]:
    """Who asks for the wish and why, and whether it is a guardrail's."""
    if ended:
        return ended[0].by, f"boost {ended[0].end}: {ended[0].reason}", ended[0].kind == "guardrail"
    lowering = demotions(ledger)[:1]
    if lowering:
        return lowering[0].by, lowering[0].reason, True
    return OURSELVES, "an earlier wish had no effect", False


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


def wish_again(
    record: JobRecord, policy: Policy, now: int, *, actor: str, reason: str, paced: bool
) -> JobRecord:
    """The record with the wish that its boosts ask for under this policy."""
    ledger = wish_for(
        record.priority,
        policy.queue(record.queue).bands,
        actor=actor,
        reason=reason,
        now=now,
        life=policy.wish_life,
    )
    if paced and ledger.wish is not None and ledger.version > record.priority.version:
        ledger = ledger.model_copy(update={"wish": ledger.wish.model_copy(update={"paced": True})})
    return with_ledger(record, ledger)


def expire_wish(record: JobRecord, policy: Policy, now: int) -> Decision:
    """The record without a wish whose time ran out. That of a guardrail counts from its release."""
    wish = record.priority.wish
    if wish is None or wish.paced or now <= wish.not_after:
        return Decision(record=record)
    return drop_wish(record, wish, TOO_LATE, policy, now)


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
