"""The one hand: nothing else in Sharewarden changes a job in Batch (design law 3).

Read policy and wish, Describe, remember the value as ours, send it, record what happened. Each step may be
the last one before a crash: the next delivery starts over, and a value that Batch already shows is only
recorded, never sent twice.
"""

from typing import Literal

from sharewarden.domain.boosts import drop_wish
from sharewarden.domain.decide import Decision, decide_read, ledger_facts, with_ledger
from sharewarden.domain.observation import JobDescription
from sharewarden.domain.policy import Policy
from sharewarden.domain.priority import Wish, confirm, intend
from sharewarden.domain.record import JobRecord
from sharewarden.ports import Runtime

from .change import change

Outcome = Literal[
    "done", "superseded", "paused", "shadow", "expired", "missing", "foreign", "settled", "drifting"
]


def apply(runtime: Runtime, job: str, version: int) -> Outcome:
    """Carry out version ``version`` of the job's wish, if it is still wanted.

    ``paused``, ``shadow``, ``missing`` and ``drifting`` leave the wish open: the sweep brings it back.
    Raises Unavailable when Batch or the ledger could not be asked: nothing was sent, or what was sent is
    remembered as ours.
    """
    record = runtime.ledger.load(JobRecord, job)
    wish = record.priority.wish if record else None
    if record is None or wish is None or wish.version != version:
        return "superseded"
    policy = runtime.policies.current()
    if waits := _waits(policy, record.queue):
        return waits
    if runtime.clock.now() > wish.not_after:
        return _drop(runtime, job, wish, "expired", "its time ran out before it could be done")
    description = runtime.batch.describe(record.arn)
    if description is None:
        return "missing"
    if description.queue not in runtime.queues:
        return _drop(runtime, job, wish, "foreign", f"the job is in {description.queue}, which is not ours")
    return _act(runtime, description, wish, policy)


def _waits(policy: Policy, queue: str) -> Outcome | None:
    if policy.paused:
        return "paused"
    return "shadow" if policy.queue(queue).bumps == "shadow" else None


def _act(runtime: Runtime, description: JobDescription, wish: Wish, policy: Policy) -> Outcome:
    before = description.priority
    intended = change(runtime, description.job, lambda record: _intend(record, description, wish, policy))
    ledger = intended.record.priority
    if ledger.wish is None or ledger.wish.version != wish.version:
        return "settled"
    if before is None or ledger.suspect is not None:
        return "drifting"
    runtime.batch.set_priority(description.arn, wish.value)
    change(runtime, description.job, lambda record: _confirm(record, wish, policy))
    return "done"


def _intend(record: JobRecord, description: JobDescription, wish: Wish, policy: Policy) -> Decision:
    """What the Describe showed, and, if the wish still stands, its value remembered as ours."""
    decision = decide_read(record, description, policy)
    ledger = decision.record.priority
    still = ledger.wish is not None and ledger.wish.version == wish.version
    if not still or ledger.suspect is not None or description.priority is None:
        return decision
    marked = intend(ledger, description.priority, description.read_at)
    return Decision(record=with_ledger(decision.record, marked), facts=decision.facts)


def _confirm(record: JobRecord, wish: Wish, policy: Policy) -> Decision:
    ledger, done = confirm(record.priority, wish.value)
    return Decision(record=with_ledger(record, ledger), facts=ledger_facts(record, done, policy))


def _drop(runtime: Runtime, job: str, wish: Wish, outcome: Outcome, why: str) -> Outcome:
    policy, now = runtime.policies.current(), runtime.clock.now()
    change(runtime, job, lambda record: drop_wish(record, wish, why, policy, now))
    return outcome
