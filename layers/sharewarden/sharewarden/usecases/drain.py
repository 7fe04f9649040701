"""Before Sharewarden is taken away: every boost ends, every job goes back to its base, no act is left open.

The same path as any end of a boost: the boost is marked, a wish is written, ``apply`` carries it out (design
law 3). A hold is kept (law 5), unless a person gives it up. What guardrails have lowered is taken back too,
so none may act any longer: each sweep would lower other jobs meanwhile.
"""

from collections.abc import Iterator
from contextlib import suppress
from functools import reduce

from pydantic import Field

from sharewarden.domain.acts import withdraw_terminations
from sharewarden.domain.audit import AuditFact, subject_key
from sharewarden.domain.base import Frozen, last_part
from sharewarden.domain.boosts import end_due_boosts, hold_until, waits
from sharewarden.domain.decide import Decision, decide_read, joined, with_ledger
from sharewarden.domain.facts import job_fact
from sharewarden.domain.observation import TERMINAL, JobDescription
from sharewarden.domain.policy import Policy
from sharewarden.domain.priority import PriorityLedger, effective, live_boosts, revoke_all, waive
from sharewarden.domain.record import JobRecord, status
from sharewarden.domain.termination import open_terminations, under_way
from sharewarden.ports import Runtime, Unavailable

from .bump import Refused
from .change import change
from .wake import wake


class DrainRequest(Frozen):
    """``at_once`` gives up the holds: a job that a boost has started may then be preempted sooner."""

    id: str = Field(min_length=1, max_length=100)
    actor: str = Field(min_length=1, max_length=300)
    reason: str = Field(min_length=1, max_length=500)
    at_once: bool = False


class Remaining(Frozen):
    """A job that is not back at its base, and ``why``; ``until`` is when its hold runs out, if it has one."""

    job: str
    name: str
    queue: str
    base: int | None
    shown: int | None
    """The priority that Batch was last known to show."""
    why: str
    until: int | None = None


def standing(runtime: Runtime) -> tuple[Remaining, ...]:
    """The jobs that a drain would have to do with. Nothing is changed. Raises Refused, Unavailable."""
    policy, now = runtime.policies.current(), runtime.clock.now()
    _check(runtime, policy)
    seen = (_remaining(record, policy, now) for record in _concerned(runtime))
    return tuple(one for one in seen if one is not None)


def drain(runtime: Runtime, request: DrainRequest) -> tuple[Remaining, ...]:
    """End every boost and ask for every base; the jobs that are not there yet. Call it until there are none.

    Each call finds what was given since the last one. Raises Unavailable when the records or the policy
    could not be read, and Refused while guardrails act; a job that Batch does not tell about is among those
    that remain.
    """
    _check(runtime, runtime.policies.current())
    return tuple(one for record in list(_concerned(runtime)) if (one := _one(runtime, request, record)))


def _check(runtime: Runtime, policy: Policy) -> None:
    acting = {queue: policy.acting(queue) for queue in sorted(runtime.queues)}
    if named := [f"{', '.join(labels)} on {last_part(queue)}" for queue, labels in acting.items() if labels]:
        raise Refused(
            f"guardrails still act: {'; '.join(named)}. First push a policy that has them in shadow mode or "
            "not at all. Leave bumps in enforce mode and nothing paused, or no job could go back to its base"
        )
    if policy.checkpoints.resubmit.mode == "enforce":
        raise Refused(
            "exhausted jobs may still be submitted again: first push checkpoints.resubmit in shadow mode"
        )


def _concerned(runtime: Runtime) -> Iterator[JobRecord]:
    for queue in sorted(runtime.queues):
        for record in runtime.ledger.open_items(JobRecord, queue):
            if status(record) not in TERMINAL and not _at_rest(record):
                yield record


def _at_rest(record: JobRecord) -> bool:
    ledger = record.priority
    under_way = ledger.wish or ledger.sent or open_terminations(record.terminations)
    return not live_boosts(ledger) and not under_way and ledger.confirmed == ledger.base


def _one(runtime: Runtime, request: DrainRequest, record: JobRecord) -> Remaining | None:
    policy, now = runtime.policies.current(), runtime.clock.now()
    try:
        description = runtime.batch.describe(record.arn)
        if description is None:
            return _told(record, "Batch knows no such job any more; the sweep will let it go")
        decision = change(runtime, record.job, lambda found: _step(found, description, request, policy, now))
    except Unavailable as error:
        return _told(record, f"AWS could not be asked: {error}")
    except ValueError as error:  # one broken record does not keep the others raised
        return _told(record, f"a fault of Sharewarden's, for a person: {error}")
    with suppress(Unavailable):  # the wish is committed: the next call, or a sweep, brings it to ``apply``
        wake(runtime, decision.record, again=request.id)
    return _remaining(decision.record, policy, now)


def _step(
    record: JobRecord, description: JobDescription, request: DrainRequest, policy: Policy, now: int
) -> Decision:
    read = decide_read(record, description, policy)
    if status(read.record) in TERMINAL:
        return read
    withdrawn = _withdrawn(read.record, request, policy, now)
    revoked = _revoked(withdrawn.record, request, policy, now)
    return reduce(joined, (read, withdrawn, revoked, end_due_boosts(revoked.record, policy, now)))


def _withdrawn(record: JobRecord, request: DrainRequest, policy: Policy, now: int) -> Decision:
    acts = frozenset(wish.id for wish in open_terminations(record.terminations))
    why = f"withdrawn by {request.actor}: {request.reason}"
    return withdraw_terminations(record, acts, why, policy, now)


def _revoked(record: JobRecord, request: DrainRequest, policy: Policy, now: int) -> Decision:
    """The record with its boosts taken back, and the fact of it if there was anything to take back."""
    before = record.priority
    act = f"{request.id}#{record.job}#{record.version}"
    ledger = revoke_all(before, act, now)
    if request.at_once:
        ledger = waive(ledger, act)
    if ledger == before:
        return Decision(record=record)
    after = with_ledger(record, ledger)
    return Decision(record=after, facts=(_fact(after, act, request, policy, now),))


def _fact(record: JobRecord, act: str, request: DrainRequest, policy: Policy, now: int) -> AuditFact:
    ledger, bands = record.priority, policy.queue(record.queue).bands
    before = None if ledger.base is None else str(effective(ledger, bands))
    return job_fact(
        record,
        policy,
        key=subject_key("unbump", act),
        kind="unbump",
        at=now,
        actor=request.actor,
        mode="enforce",
        before=before,
        after=None if ledger.base is None else str(ledger.base),
        reason=request.reason,
        figures={"held_until": _held_until(record, policy, now), "hold_waived": request.at_once},
    )


def _held_until(record: JobRecord, policy: Policy, now: int) -> int | None:
    """Until when a hold keeps the job's priority up; None when none does."""
    holds = [hold_until(record, boost, policy) or 0 for boost in record.priority.boosts]
    latest = max(holds, default=0)
    return latest if latest > now else None


def _remaining(record: JobRecord, policy: Policy, now: int) -> Remaining | None:
    if status(record) in TERMINAL or _at_rest(record):
        return None
    until = _held_until(record, policy, now)
    return _told(record, _why(record, policy, held=until is not None), until)


_WAITS = {
    "paused": "the policy is paused, so apply changes nothing: take that back first",
    "shadow": "bumps of this queue are in shadow mode, so apply changes nothing: enforce them first",
}


def _why(record: JobRecord, policy: Policy, *, held: bool) -> str:
    ledger = record.priority
    if ledger.suspect is not None:
        return f"somebody else just set {ledger.suspect.value}: it becomes the base when it has settled"
    if reason := waits(record, policy):
        return _WAITS[reason]
    if held:
        return "held: a boost has started the job, and lowering it now would make it a likelier victim"
    if under_way(record.terminations) is not None:
        return "was to be terminated, and Batch has not shown that yet"
    return _under_way(ledger)


def _under_way(ledger: PriorityLedger) -> str:
    if ledger.sent is not None:
        return f"{ledger.sent.value} was sent; Batch has not shown it yet"
    if ledger.wish is not None:
        return "waits for apply"
    return "AWS refused to set it; asked again within the hour" if ledger.refusal else "is boosted"


def _told(record: JobRecord, why: str, until: int | None = None) -> Remaining:
    ledger = record.priority
    return Remaining(
        job=record.job,
        name=record.name,
        queue=record.queue,
        base=ledger.base,
        shown=ledger.confirmed,
        why=why,
        until=until,
    )
