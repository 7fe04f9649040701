"""One event in: fold it into the record, decide, commit record and audit facts together."""

from collections.abc import Sequence
from dataclasses import dataclass

from sharewarden.domain.audit import AuditFact, subject_key
from sharewarden.domain.base import in_same_account
from sharewarden.domain.decide import Decision, decide, decide_read
from sharewarden.domain.foreign import ForeignJob
from sharewarden.domain.observation import (
    ApiCallObservation,
    JobDescription,
    JobObservation,
    Observation,
    TrainingObservation,
    Unrecognised,
)
from sharewarden.domain.record import JobRecord, doubtful, ended_without_details, fold, new_record
from sharewarden.domain.stored import Stored
from sharewarden.domain.training import TrainingRecord, fold_training
from sharewarden.domain.untraced import UntracedJob, remember
from sharewarden.ports import Conflict, Runtime, Unavailable

from .attribute import attribute
from .change import ATTEMPTS
from .untraced import begin


@dataclass(frozen=True)
class Reaction:
    """What one event led to.

    ``outcome`` is ``tracked``, ``unchanged``, ``foreign``, ``untraced``, ``attributed`` or ``unrecognised``.
    """

    outcome: str
    record: JobRecord | None = None
    facts: tuple[AuditFact, ...] = ()


def react(runtime: Runtime, seen: Observation) -> Reaction:
    """Take one observation in. Raises Unavailable when it must be tried again later."""
    for _ in range(ATTEMPTS):
        try:
            return _react(runtime, seen)
        except Conflict:
            continue
    raise Unavailable(f"{ATTEMPTS} commits in a row met another writer")


def first_sight(runtime: Runtime, arn: str) -> JobDescription | None:
    """Describe a job that has no record; None when it is not in a queue of ours, or unknown to Batch.

    Tags, share and payload are in no event, so each job costs one Describe, then none unless in doubt.
    """
    description = runtime.batch.describe(arn)
    if description is None or description.queue in runtime.queues:
        return description
    now = runtime.clock.now()
    known = runtime.ledger.load(ForeignJob, description.job) or ForeignJob(job=description.job, seen_at=now)
    runtime.ledger.commit([known.model_copy(update={"seen_at": now})], [], now)
    return None


def _react(runtime: Runtime, seen: Observation) -> Reaction:
    if isinstance(seen, JobObservation):
        return _job(runtime, seen)
    if isinstance(seen, TrainingObservation):
        return _training(runtime, seen)
    if isinstance(seen, ApiCallObservation):
        return Reaction("attributed", facts=attribute(runtime, seen))
    return _unrecognised(runtime, seen)


def _job(runtime: Runtime, seen: JobObservation) -> Reaction:
    watched = runtime.classic_queues if seen.classic else runtime.queues
    if not in_same_account(seen.arn, watched) or (seen.queue is not None and seen.queue not in watched):
        return Reaction("foreign")
    record = runtime.ledger.load(JobRecord, seen.job)
    if record is None:
        return _new_job(runtime, seen)
    folded = fold(record, seen)
    if folded == record:
        return Reaction("unchanged", record)
    if folded.classic or not (doubtful(folded) or ended_without_details(folded, seen)):
        return _commit(runtime, decide(folded, runtime.policies.current()))
    return _commit(runtime, _decide_read(runtime, folded, runtime.batch.describe(folded.arn)))


def _new_job(runtime: Runtime, seen: JobObservation) -> Reaction:
    if seen.classic:
        return _commit(runtime, decide(fold(new_record(seen), seen), runtime.policies.current()))
    if _is_foreign(runtime, seen):
        return Reaction("foreign")
    description = first_sight(runtime, seen.arn)
    if description is None and seen.queue is None:
        return _untraceable(runtime, seen)
    record, beside = begin(runtime, seen if description is None else description)
    return _commit(runtime, _decide_read(runtime, fold(record, seen), description), beside)


def _is_foreign(runtime: Runtime, seen: JobObservation) -> bool:
    """True when the job was found in a queue of others lately, and the event does not say otherwise."""
    if seen.queue is not None:
        return False
    known = runtime.ledger.load(ForeignJob, seen.job)
    return known is not None and runtime.clock.now() < (known.expires_at or 0)


def _decide_read(runtime: Runtime, record: JobRecord, description: JobDescription | None) -> Decision:
    policy = runtime.policies.current()
    return decide(record, policy) if description is None else decide_read(record, description, policy)


def _commit(runtime: Runtime, decision: Decision, beside: Sequence[Stored] = ()) -> Reaction:
    runtime.ledger.commit([decision.record, *beside], decision.facts, runtime.clock.now())
    return Reaction("tracked", decision.record, decision.facts)


def _untraceable(runtime: Runtime, seen: JobObservation) -> Reaction:
    """A preemption event that names neither queue nor a job of ours: foreign, or gone before we looked."""
    if _is_foreign(runtime, seen):
        return Reaction("foreign")
    now = runtime.clock.now()
    waiting = runtime.ledger.load(UntracedJob, seen.job) or UntracedJob(job=seen.job)
    remembered = remember(waiting, seen, now)
    if remembered != waiting:
        runtime.ledger.commit([remembered], [], now)
    return Reaction("untraced")


def _training(runtime: Runtime, seen: TrainingObservation) -> Reaction:
    stored = runtime.ledger.load(TrainingRecord, seen.training_job)
    record = stored or TrainingRecord(training_job=seen.training_job)
    folded = fold_training(record, seen)
    if folded == record:
        return Reaction("unchanged")
    runtime.ledger.commit([folded], [], runtime.clock.now())
    return Reaction("tracked")


def _unrecognised(runtime: Runtime, seen: Unrecognised) -> Reaction:
    """Counted by the caller, on record once per type: a new kind of event is news, not a fault."""
    fact = AuditFact(
        key=subject_key("unrecognised", seen.source, seen.detail_type),
        kind="unrecognised",
        at=seen.at,
        reason=f"{seen.source} sent {seen.detail_type!r}, which this version does not know",
    )
    runtime.ledger.commit([], [fact], runtime.clock.now())
    return Reaction("unrecognised", facts=(fact,))
