"""What follows from a job's record: the audit facts that are due, once each, and nothing else.

``decide`` is called on every path (react, apply, sweep), so that a fact is found whoever sees it first.
"""

from collections.abc import Callable

from .audit import AuditFact
from .base import Frozen
from .facts import (
    boost_ended_fact,
    drift_facts,
    ended_fact,
    preemption_fact,
    priority_fact,
    reopened_fact,
    terminated_fact,
    termination_dropped_fact,
)
from .notice import Notice
from .observation import JobDescription
from .policy import Policy
from .preemption.case import Case, due_cases, with_cases
from .priority import Done, Drift, PriorityLedger, end_boosts, live_boosts, read
from .record import JobRecord, absorb, settle_end
from .termination import (
    Terminations,
    TerminationWish,
    changed,
    end_open,
    read_terminations,
    settle_terminations,
    withdrawn_terminations,
)

#: One commit holds a hundred actions, and a sweep decides twice before it: of a case and a fact each, these
#: leave room for the rest. What is left over is due again at the next look.
PREEMPTIONS_AT_ONCE = 12


class Decision(Frozen):
    """The record to keep, and what belongs to it: all is committed together, or nothing."""

    record: JobRecord
    facts: tuple[AuditFact, ...] = ()
    notices: tuple[Notice, ...] = ()
    cases: tuple[Case, ...] = ()
    """Those that the record opens."""


def joined(first: Decision, second: Decision) -> Decision:
    """Two decisions on one job, the second one on the record of the first."""
    return Decision(
        record=second.record,
        facts=first.facts + second.facts,
        notices=first.notices + second.notices,
        cases=first.cases + second.cases,
    )


def decide(record: JobRecord, policy: Policy) -> Decision:
    """The record with every fact that has become due marked as audited, and those facts.

    Where the end's details were in doubt, Batch was asked before: now the best that is known counts.
    """
    decision = Decision(record=settle_end(record))
    for step in _STEPS:
        decision = joined(decision, step(decision.record, policy))
    return decision


def decide_read(record: JobRecord, description: JobDescription, policy: Policy) -> Decision:
    """``decide`` after a Describe: what it says of the priority is settled first."""
    before, record = record, absorb(record, description)
    opened = (reopened_fact(record, before, policy, description.read_at),) * (
        record.reopened - before.reopened
    )
    done = _terminated(record, read_terminations(record.terminations, description), policy)
    decision = _decide_priority(done.record, description, policy)
    return decision.model_copy(update={"facts": opened + done.facts + decision.facts})


def _decide_priority(record: JobRecord, description: JobDescription, policy: Policy) -> Decision:
    if description.priority is None:
        return decide(record, policy)
    ledger, found = read(record.priority, description.priority, description.read_at, policy.drift_settle)
    settled = with_ledger(record, ledger)
    if isinstance(found, Drift):
        settled = settled.model_copy(update={"drifted": True})
    facts = ledger_facts(settled, found, policy)
    decision = decide(settled, policy)
    return decision.model_copy(update={"facts": facts + decision.facts})


def ledger_facts(record: JobRecord, found: Done | Drift | None, policy: Policy) -> tuple[AuditFact, ...]:
    """The facts of what a read of the priority showed."""
    if isinstance(found, Done):
        return (priority_fact(record, found, policy),)
    if isinstance(found, Drift):
        return drift_facts(record, found, policy)
    return ()


def with_ledger(record: JobRecord, ledger: PriorityLedger) -> JobRecord:
    """The record with another priority ledger."""
    return record.model_copy(update={"priority": ledger})


def let_go(record: JobRecord, policy: Policy, at: int) -> Decision:
    """A job that ended, or that Batch has forgotten, needs no boost, no wish and no termination."""
    live = frozenset(boost.id for boost in live_boosts(record.priority))
    ledger, ended = end_boosts(record.priority, live, "job-ended", at)
    record = with_ledger(record, ledger.model_copy(update={"wish": None}))
    record = record.model_copy(update={"terminations": end_open(record.terminations, "job-ended", at)})
    return Decision(record=record, facts=tuple(boost_ended_fact(record, boost, policy) for boost in ended))


def drop_withdrawn(record: JobRecord, policy: Policy) -> Decision:
    """The record without the terminations that are not wanted any more, as far as none is under way."""
    wishes, facts = record.terminations, []
    for wish in withdrawn_terminations(wishes):
        at = wish.withdrawn_at or 0
        wishes = changed(wishes, wish.id, end="withdrawn", ended_at=at)
        facts.append(termination_dropped_fact(record, wish, wish.withdrawn, policy, at))
    return Decision(record=record.model_copy(update={"terminations": wishes}), facts=tuple(facts))


def _cases(record: JobRecord, _policy: Policy) -> Decision:
    """Before the preemptions: none goes on record without its case."""
    cases = due_cases(record)[:PREEMPTIONS_AT_ONCE]
    return Decision(record=with_cases(record, cases), cases=cases)


def _preemptions(record: JobRecord, policy: Policy) -> Decision:
    """A preemption is on record once its stop time is known, with its case or after it."""
    due = [
        one
        for one in record.attempts
        if one.preempted and one.stopped_at is not None and not one.audited and (one.cased or record.classic)
    ][:PREEMPTIONS_AT_ONCE]
    if not due:
        return Decision(record=record)
    facts = tuple(preemption_fact(record, attempt, policy) for attempt in due)
    attempts = tuple(
        attempt.model_copy(update={"audited": True}) if attempt in due else attempt
        for attempt in record.attempts
    )
    update = {"attempts": attempts, "preemptions_told": record.preemptions_told + len(due)}
    return Decision(record=record.model_copy(update=update), facts=facts)


def _end(record: JobRecord, policy: Policy) -> Decision:
    if record.end is None or record.end_audited:
        return Decision(record=record)
    fact = ended_fact(record, policy)
    return Decision(record=record.model_copy(update={"end_audited": True}), facts=(fact,))


def _termination_of_ended(record: JobRecord, policy: Policy) -> Decision:
    if record.end is None:
        return Decision(record=record)
    settled = settle_terminations(record.terminations, record.end.reason, record.end.at)
    return _terminated(record, settled, policy)


def _terminated(
    record: JobRecord, settled: tuple[Terminations, TerminationWish | None], policy: Policy
) -> Decision:
    wishes, done = settled
    facts = () if done is None else (terminated_fact(record, done, policy),)
    return Decision(record=record.model_copy(update={"terminations": wishes}), facts=facts)


def _boosts_of_ended(record: JobRecord, policy: Policy) -> Decision:
    return Decision(record=record) if record.end is None else let_go(record, policy, record.end.at)


_STEPS: tuple[Callable[[JobRecord, Policy], Decision], ...] = (
    _cases,
    _preemptions,
    _termination_of_ended,
    drop_withdrawn,
    _end,
    _boosts_of_ended,
)
