"""A person raises a job's priority for a while, or takes that back. Both only write wishes."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from pydantic import Field

from sharewarden.domain.audit import AuditFact, Kind, subject_key
from sharewarden.domain.base import Frozen
from sharewarden.domain.boosts import end_due_boosts, hold_until
from sharewarden.domain.decide import Decision, decide_read, with_ledger
from sharewarden.domain.durations import format_duration
from sharewarden.domain.facts import job_fact
from sharewarden.domain.observation import TERMINAL, JobDescription
from sharewarden.domain.policy import Policy
from sharewarden.domain.priority import (
    MOST_LIVE_BOOSTS,
    Boost,
    demotions,
    effective,
    live_boosts,
    revoke,
    wish_for,
    with_boost,
)
from sharewarden.domain.record import JobRecord, status
from sharewarden.domain.rules.base import Mode
from sharewarden.ports import Runtime, Unavailable

from .change import change
from .wake import wake


class Refused(Exception):
    """The request can't be met; the text says why and what would help. Nothing was changed."""


class BumpRequest(Frozen):
    """``id`` names the request: asking twice with the same id is asking once.

    Exactly one of ``by`` (points above the base) and ``to`` (absolute priority) is given; ``lasts`` is in
    milliseconds, None until somebody ends it.
    """

    id: str = Field(min_length=1, max_length=100)
    job: str = Field(min_length=1, max_length=300)
    actor: str = Field(min_length=1, max_length=300)
    reason: str = Field(min_length=1, max_length=500)
    by: int | None = Field(default=None, ge=1, le=9999)
    to: int | None = Field(default=None, ge=0, le=9999)
    lasts: int | None = Field(default=None, ge=1)


class UnbumpRequest(Frozen):
    """Ends every boost that people gave the job."""

    id: str = Field(min_length=1, max_length=100)
    job: str = Field(min_length=1, max_length=300)
    actor: str = Field(min_length=1, max_length=300)
    reason: str = Field(min_length=1, max_length=500)


class Answer(Frozen):
    """What will happen: the priority before and the one asked for; ``held_until`` when the end must wait."""

    job: str
    job_name: str
    mode: Mode
    before: int
    after: int
    held_until: int | None = None
    capped_at: int | None = None
    """The top of the policy's band, where it left room for a part of the points only."""


Request = BumpRequest | UnbumpRequest
Step = Callable[[JobRecord, Policy, int], tuple[Decision, Answer]]


def bump(runtime: Runtime, request: BumpRequest) -> Answer:
    """Raise the job. Raises Refused, or Unavailable when its state could not be read."""
    return _answered(runtime, request.job, partial(_bump, request))


def unbump(runtime: Runtime, request: UnbumpRequest) -> Answer:
    """End the boosts of people. Raises Refused, or Unavailable when the job's state could not be read."""
    return _answered(runtime, request.job, partial(_unbump, request))


def _answered(runtime: Runtime, job: str, step: Step) -> Answer:
    """Read Batch and keep what it said, then commit what ``step`` makes of the record, and wake ``apply``."""
    description = _describe(runtime, job)
    policy, now = runtime.policies.current(), runtime.clock.now()
    change(runtime, description.job, lambda record: decide_read(record, description, policy), new=description)
    answers: list[Answer] = []

    def decide(record: JobRecord) -> Decision:
        decision, answer = step(_steady(record, policy), policy, now)
        answers.append(answer)
        return decision

    decision = change(runtime, description.job, decide, new=description)
    with suppress(Unavailable):  # the wish is committed: the next sweep brings it to ``apply``
        wake(runtime, decision.record)
    return answers[-1]


def _describe(runtime: Runtime, job: str) -> JobDescription:
    description = runtime.batch.describe(job)
    if description is None:
        raise Refused(
            f"Batch knows no job {job}: give the id or the ARN of a job that has not been forgotten"
        )
    if description.queue not in runtime.queues:
        raise Refused(
            f"job {description.name} is in {description.queue}, which Sharewarden does not look after"
        )
    return description


def _steady(record: JobRecord, policy: Policy) -> JobRecord:
    """The record, if its priority is a number that we may build on."""
    ledger = record.priority
    if status(record) in TERMINAL:
        raise Refused(f"job {record.name} has ended ({status(record)})")
    if ledger.base is None:
        raise Refused(f"job {record.name}: Batch does not tell its priority")
    if ledger.suspect is not None:
        raise Refused(
            f"somebody else just set the priority of {record.name} to {ledger.suspect.value}: "
            f"ask again in {format_duration(policy.drift_settle)}, when it has settled"
        )
    return record


def _bump(request: BumpRequest, record: JobRecord, policy: Policy, now: int) -> tuple[Decision, Answer]:
    """What is on record is what has effect: points that the band does not leave room for are not given."""
    ledger, rules = record.priority, policy.queue(record.queue)
    before = effective(ledger, rules.bands)
    if any(boost.id == request.id for boost in ledger.boosts):
        return Decision(record=record), _answer(record, rules.bumps, before, before)
    if len(live_boosts(ledger)) - len(demotions(ledger)) >= MOST_LIVE_BOOSTS:
        raise Refused(f"{record.name} has {MOST_LIVE_BOOSTS} bumps already: take them back first (unbump)")
    base, highest = ledger.base or 0, rules.bands.human.highest
    asked = _points(record, request, base)
    if base >= highest:
        raise Refused(f"{record.name} stays at its base {base}: a bump may reach {highest} at most")
    amount = min(asked, highest - base)
    boost = Boost(
        id=request.id,
        kind="human",
        amount=amount,
        by=request.actor,
        reason=request.reason,
        since=now,
        until=None if request.lasts is None else now + request.lasts,
    )
    raised = with_boost(ledger, boost)
    after = effective(raised, rules.bands)
    if after == before:
        raise Refused(
            f"{record.name} stays at {before}, which an earlier bump gave it: points count from the base "
            f"{base} and do not add up, so ask for more than {before - base:+d}"
        )
    answer = _answer(record, rules.bumps, before, after, capped_at=highest if amount < asked else None)
    fact = _act_fact(record, "bump", request, policy, now, answer)
    if rules.bumps == "shadow":
        return Decision(record=record, facts=(fact,)), answer
    wished = wish_for(
        raised, rules.bands, actor=request.actor, reason=request.reason, now=now, life=policy.wish_life
    )
    return Decision(record=with_ledger(record, wished), facts=(fact,)), answer


def _points(record: JobRecord, request: BumpRequest, base: int) -> int:
    if (request.by is None) == (request.to is None):
        raise Refused("give either the points to add or the priority to reach")
    points = request.by if request.by is not None else (request.to or 0) - base
    if points <= 0:
        raise Refused(f"a bump raises: the base of {record.name} is {base}, {points:+d} would not raise it")
    return points


def _unbump(request: UnbumpRequest, record: JobRecord, policy: Policy, now: int) -> tuple[Decision, Answer]:
    """A boost that started the job is held (design law 5): it ends when the hold has run out."""
    rules = policy.queue(record.queue)
    before = effective(record.priority, rules.bands)
    if any(boost.revoked == request.id for boost in record.priority.boosts):
        return Decision(record=record), _answer(record, "enforce", before, before)
    mine = [boost for boost in live_boosts(record.priority) if boost.kind == "human"]
    if not mine:
        raise Refused(f"nobody has bumped {record.name}")
    decision = end_due_boosts(with_ledger(record, revoke(record.priority, request.id, now)), policy, now)
    holds = [hold_until(record, boost, policy) or now for boost in mine]
    held_until = max(holds) if max(holds) > now else None
    answer = _answer(
        record, "enforce", before, effective(decision.record.priority, rules.bands), held_until=held_until
    )
    fact = _act_fact(record, "unbump", request, policy, now, answer)
    return Decision(record=decision.record, facts=(fact, *decision.facts)), answer


def _answer(record: JobRecord, mode: Mode, before: int, after: int, **more: int | None) -> Answer:
    return Answer(job=record.job, job_name=record.name, mode=mode, before=before, after=after, **more)


def _act_fact(
    record: JobRecord, kind: Kind, request: Request, policy: Policy, now: int, answer: Answer
) -> AuditFact:
    return job_fact(
        record,
        policy,
        key=subject_key(kind, record.job, answer.mode, request.id),
        kind=kind,
        at=now,
        actor=request.actor,
        mode=answer.mode,
        before=str(answer.before),
        after=str(answer.after),
        reason=request.reason,
        figures={"held_until": answer.held_until},
    )
