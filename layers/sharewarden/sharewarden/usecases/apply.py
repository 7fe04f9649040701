"""The one hand: nothing else in Sharewarden changes a job in Batch (design law 3).

Read policy and wish, Describe, remember the value as ours, send it, record what happened. Each step may be
the last one before a crash: the next delivery starts over, and a value that Batch already shows is only
recorded, never sent twice.
"""

from contextlib import suppress
from typing import Literal

from sharewarden.domain.boosts import TOO_LATE, drop_wish, lowering_waits, refused_wish, wish_again
from sharewarden.domain.decide import Decision, decide_read, ledger_facts, with_ledger
from sharewarden.domain.observation import TERMINAL, JobDescription
from sharewarden.domain.policy import Policy
from sharewarden.domain.priority import Wish, confirm, intend, withdraw
from sharewarden.domain.record import JobRecord
from sharewarden.ports import Denied, Runtime, Unavailable

from .change import change
from .wake import wake

#: A value is sent on the word of an answer no older than this: "just before" in design law 2.
FRESH = 5_000

Outcome = Literal[
    "done",
    "superseded",
    "paused",
    "shadow",
    "expired",
    "missing",
    "foreign",
    "settled",
    "drifting",
    "held",
    "refused",
]
Verdict = Outcome | Literal["send", "busy"]


def apply(runtime: Runtime, job: str, version: int) -> Outcome:
    """Carry out version ``version`` of the job's wish, if it is still wanted.

    ``paused``, ``shadow``, ``missing``, ``drifting``, ``held``, and the first ``refused`` leave the wish open
    for the next sweep. Raises Unavailable when Batch or the ledger could not be asked, or when a value sent
    just before may still arrive: nothing was sent, or what was sent is remembered as ours.
    """
    record = runtime.ledger.load(JobRecord, job)
    wish = record.priority.wish if record else None
    if record is None or wish is None or wish.version != version:
        return "superseded"
    policy = runtime.policies.current()
    if waits := policy.waits(record.queue):
        return waits
    description = runtime.batch.describe(record.arn)
    if description is None:
        return "missing"
    if description.queue not in runtime.queues:
        return _drop_foreign(runtime, description, wish, policy)
    return _act(runtime, description, wish, policy)


def _act(runtime: Runtime, description: JobDescription, wish: Wish, policy: Policy) -> Outcome:
    verdicts: list[Verdict] = []

    def judge(record: JobRecord) -> Decision:
        decision, verdict = _judge(record, description, wish, policy, runtime.clock.now())
        verdicts.append(verdict)
        return decision

    judged = change(runtime, description.job, judge)
    verdict = verdicts[-1]
    if verdict == "busy":
        raise Unavailable(f"job {description.job}: what Batch shows may still change")
    if verdict == "send":
        return _send(runtime, description, wish, policy)
    if verdict == "superseded":
        with suppress(Unavailable):  # the wish is committed: the next sweep brings it back
            wake(runtime, judged.record)
    return verdict


def _send(runtime: Runtime, description: JobDescription, wish: Wish, policy: Policy) -> Outcome:
    job = description.job
    if runtime.clock.now() - description.read_at > FRESH:
        change(runtime, job, lambda record: _withdraw(record, wish))
        raise Unavailable(f"job {job}: what Batch said grew old before the value could be sent")
    try:
        runtime.batch.set_priority(description.arn, wish.value)
    except Denied as error:
        why = str(error)
        change(
            runtime, job, lambda record: refused_wish(record, wish.version, why, policy, runtime.clock.now())
        )
        return "refused"
    change(runtime, job, lambda record: _confirm(record, wish, policy, runtime.clock.now()))
    return "done"


def _withdraw(record: JobRecord, wish: Wish) -> Decision:
    return Decision(record=with_ledger(record, withdraw(record.priority, wish.version)))


def _judge(
    record: JobRecord, description: JobDescription, wish: Wish, policy: Policy, now: int
) -> tuple[Decision, Verdict]:
    """What the Describe showed, and what that makes of the wish."""
    decision = decide_read(record, description, policy)
    ledger = decision.record.priority
    if ledger.wish is None or ledger.wish.version != wish.version or description.status in TERMINAL:
        return decision, "settled"
    if description.priority is None or ledger.suspect is not None:
        return decision, "drifting"
    if ledger.sent is not None or description.priority != ledger.confirmed:  # the latter by another clock
        return decision, "busy"
    return _judge_settled(decision, wish, policy, now)


def _judge_settled(decision: Decision, wish: Wish, policy: Policy, now: int) -> tuple[Decision, Verdict]:
    """If the wish still stands under this policy and may be done, its value is remembered as ours."""
    wanted = wish_again(decision.record, policy, now, actor=wish.actor, reason=wish.reason)
    if wanted != decision.record:  # the policy has changed since
        return Decision(record=wanted, facts=decision.facts), "superseded"
    if lowering_waits(decision.record, wish, policy, now):
        return decision, "held"
    if now > wish.not_after:
        dropped = drop_wish(decision.record, wish, TOO_LATE, policy, now)
        return Decision(record=dropped.record, facts=decision.facts + dropped.facts), "expired"
    marked = with_ledger(decision.record, intend(decision.record.priority, now))
    return Decision(record=marked, facts=decision.facts), "send"


def _confirm(record: JobRecord, wish: Wish, policy: Policy, now: int) -> Decision:
    """Unless another reader has seen it first."""
    sent = record.priority.sent
    if sent is None or sent.version != wish.version:
        return Decision(record=record)
    ledger, done = confirm(record.priority, now)
    return Decision(record=with_ledger(record, ledger), facts=ledger_facts(record, done, policy))


def _drop_foreign(runtime: Runtime, description: JobDescription, wish: Wish, policy: Policy) -> Outcome:
    why, now = f"the job is in {description.queue}, which is not ours", runtime.clock.now()
    change(runtime, description.job, lambda record: drop_wish(record, wish, why, policy, now))
    return "foreign"
