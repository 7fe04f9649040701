"""Acts that guardrails set off: lower a job's priority while a rule is broken, or terminate the job.

Both are written into the job's record as wishes; only ``apply`` carries them out.
"""

from typing import Literal

from .audit import rule_actor
from .base import Frozen
from .boosts import ended_boosts, is_settled, wish_again
from .decide import Decision, drop_withdrawn, with_ledger
from .facts import boost_ended_fact
from .observation import TERMINAL
from .policy import Policy
from .priority import MOST_LIVE_DEMOTIONS, Boost, PriorityLedger, demotions, end_boosts, with_boost
from .record import JobRecord, status
from .termination import TerminationWish, changed, open_terminations, with_termination

WITHDRAWN = "its rule holds again, or is no longer in force"


class Act(Frozen):
    """What a broken rule asks for. ``id`` names it: beginning the same act twice is beginning it once."""

    id: str
    kind: Literal["lower-priority", "terminate"]
    label: str
    """The guardrail's name."""
    fingerprint: str
    """Of the exact entry."""
    reason: str
    points: int = 0
    """By how much ``lower-priority`` lowers."""
    not_before: int = 0
    """``terminate`` is not done earlier."""


def begin(record: JobRecord, act: Act, policy: Policy, now: int) -> Decision:
    """The record with the act wished for. The same id twice changes nothing, even once the act has ended.

    Neither does an act on a job that has ended or that is of a protected share, nor one for which there is no
    room: it can begin when another has ended.
    """
    protected = policy.share(record.queue, record.share).protected
    if protected or record.classic or status(record) in TERMINAL:
        return Decision(record=record)
    if act.kind == "terminate":
        return Decision(record=_with_termination(record, act, now))
    return Decision(record=_lowered(record, act, policy, now))


def end(record: JobRecord, ids: frozenset[str], policy: Policy, now: int) -> Decision:
    """The record without those acts: their rules hold again, or are no longer in force.

    Unknown ids are ignored. A termination that was sent already is not taken back.
    """
    withdrawn = withdraw_terminations(record, ids, WITHDRAWN, policy, now)
    cleared = _cleared(withdrawn.record, ids, policy, now)
    return Decision(record=cleared.record, facts=withdrawn.facts + cleared.facts)


def doubt(record: JobRecord, act: str, *, unsure: bool) -> JobRecord:
    """The record whose termination waits for the word of its rule, which could not be decided, or no longer.

    A demotion goes on meanwhile: it can be taken back. Unknown ids are ignored.
    """
    known = {"unsure": True} if unsure else {"unsure": False, "situation": situation(record)}
    return record.model_copy(update={"terminations": changed(record.terminations, act, **known)})


def situation(record: JobRecord) -> str:
    """What a rule's word on a job holds for: the next state or attempt of it may well be in order."""
    attempts = record.attempts
    newest = (str(len(attempts)), attempts[-1].training_job) if attempts else ()
    return " ".join((status(record), *newest))


def withdraw_terminations(
    record: JobRecord, ids: frozenset[str], why: str, policy: Policy, now: int
) -> Decision:
    """The record without those terminations; one that was sent goes if it turns out to have had no effect."""
    wishes = record.terminations
    mine = [wish for wish in open_terminations(wishes) if wish.id in ids and wish.withdrawn_at is None]
    for wish in mine:
        wishes = changed(wishes, wish.id, withdrawn_at=now, withdrawn=why)
    return drop_withdrawn(record.model_copy(update={"terminations": wishes}), policy)


def _with_termination(record: JobRecord, act: Act, now: int) -> JobRecord:
    wish = TerminationWish(
        id=act.id,
        label=act.label,
        fingerprint=act.fingerprint,
        reason=act.reason,
        situation=situation(record),
        created_at=now,
        not_before=act.not_before,
    )
    return record.model_copy(update={"terminations": with_termination(record.terminations, wish)})


def _lowered(record: JobRecord, act: Act, policy: Policy, now: int) -> JobRecord:
    if len(demotions(record.priority)) >= MOST_LIVE_DEMOTIONS:
        return record
    by = rule_actor(act.label)
    boost = Boost(id=act.id, kind="guardrail", amount=-act.points, by=by, reason=act.reason, since=now)
    ledger = with_boost(record.priority, boost)
    if ledger == record.priority:
        return record
    lowered = with_ledger(record, ledger)
    if not is_settled(lowered):
        return lowered  # the sweep wishes for it, once a base is known
    return wish_again(lowered, policy, now, actor=by, reason=act.reason, paced=True)


def _cleared(record: JobRecord, ids: frozenset[str], policy: Policy, now: int) -> Decision:
    ledger, ended = _without(record.priority, ids, now)
    cleared = with_ledger(record, ledger)
    if not ended:
        return Decision(record=record)
    if is_settled(cleared):
        return ended_boosts(cleared, ended, policy, now)
    return Decision(record=cleared, facts=tuple(boost_ended_fact(cleared, one, policy) for one in ended))


def _without(
    ledger: PriorityLedger, ids: frozenset[str], now: int
) -> tuple[PriorityLedger, tuple[Boost, ...]]:
    return end_boosts(ledger, ids & {boost.id for boost in demotions(ledger)}, "cleared", now)
