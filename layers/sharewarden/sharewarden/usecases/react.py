"""One event in: fold it into the record, decide, commit record and audit facts together."""

from collections.abc import Sequence
from dataclasses import dataclass

from sharewarden.domain.audit import AuditFact, subject_key
from sharewarden.domain.base import in_same_account
from sharewarden.domain.decide import decide, decide_read
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
from .change import ATTEMPTS, commit
from .guarding import FailedRules, guarded
from .outside import found_outside, is_of_batch
from .send_looks import begin_watch
from .untraced import begin


@dataclass(frozen=True)
class Reaction:
    """What one event led to.

    ``outcome`` is ``tracked``, ``unchanged``, ``foreign``, ``untraced``, ``attributed`` or ``unrecognised``.
    """

    outcome: str
    record: JobRecord | None = None
    facts: tuple[AuditFact, ...] = ()
    failed_rules: int = 0
    """Guardrails that raised instead of deciding."""


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
        return _decided(runtime, folded, None)
    return _decided(runtime, folded, runtime.batch.describe(folded.arn))


def _new_job(runtime: Runtime, seen: JobObservation) -> Reaction:
    if seen.classic:
        return _decided(runtime, fold(new_record(seen), seen), None)
    if _is_foreign(runtime, seen):
        return Reaction("foreign")
    description = first_sight(runtime, seen.arn)
    if description is None and seen.queue is None:
        return _untraceable(runtime, seen)
    record, beside = begin(runtime, seen if description is None else description)
    return _decided(runtime, fold(record, seen), description, beside)


def _is_foreign(runtime: Runtime, seen: JobObservation) -> bool:
    """True when the job was found in a queue of others lately, and the event does not say otherwise."""
    if seen.queue is not None:
        return False
    known = runtime.ledger.load(ForeignJob, seen.job)
    return known is not None and runtime.clock.now() < (known.expires_at or 0)


def _decided(
    runtime: Runtime, record: JobRecord, description: JobDescription | None, beside: Sequence[Stored] = ()
) -> Reaction:
    """Decide under one policy, from the facts to the guardrails, and commit all of it."""
    policy, failed = runtime.policies.current(), FailedRules()
    first = decide(record, policy) if description is None else decide_read(record, description, policy)
    decision = guarded(runtime, first, policy, failed)
    commit(runtime, decision, beside)
    begin_watch(runtime, decision.record)
    return Reaction("tracked", decision.record, decision.facts, len(failed.labels))


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
    if not is_of_batch(seen.training_job):
        return Reaction("foreign", facts=found_outside(runtime, seen))
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
