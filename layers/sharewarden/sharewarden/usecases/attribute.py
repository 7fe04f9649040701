"""CloudTrail names who did it. It is best effort, so it attributes and never decides."""

from sharewarden.domain.audit import AuditFact, subject_key
from sharewarden.domain.base import in_same_account, last_part
from sharewarden.domain.facts import job_fact
from sharewarden.domain.observation import ApiCallObservation
from sharewarden.domain.other_scopes import Found, guard_change
from sharewarden.domain.record import JobRecord, absorb, new_record
from sharewarden.domain.rules.facts import ShareChangeFacts
from sharewarden.domain.share import FoundChange, ShareRecord, found_at, judged, told_of
from sharewarden.ports import Runtime

from .guarding import FailedRules
from .outside import commit_found

JOB_CALLS = frozenset({"UpdateServiceJob", "TerminateServiceJob", "TerminateServiceJobs"})
SHARE_CALLS = frozenset({"CreateQuotaShare", "UpdateQuotaShare", "DeleteQuotaShare"})


def attribute(runtime: Runtime, seen: ApiCallObservation) -> tuple[AuditFact, ...]:
    """Put on record who made the call. Our own echo and calls about other queues leave nothing."""
    if _is_own(runtime, seen.principal):
        return ()
    if seen.operation in JOB_CALLS:
        return tuple(fact for subject in seen.subjects for fact in _job_call(runtime, seen, subject))
    if seen.operation in SHARE_CALLS:
        return tuple(fact for subject in seen.subjects for fact in _share_call(runtime, seen, subject))
    return ()


def _is_own(runtime: Runtime, principal: str) -> bool:
    """True for a session of our own role in our own account (IAM user guide, reference_identifiers)."""
    accounts = {tuple(queue.split(":")[1:5:3]) for queue in runtime.queues | runtime.classic_queues}
    return runtime.own_role is not None and any(
        principal.startswith(f"arn:{partition}:sts::{account}:assumed-role/{runtime.own_role}/")
        for partition, account in accounts
    )


def _job_call(runtime: Runtime, seen: ApiCallObservation, subject: str) -> tuple[AuditFact, ...]:
    record = _job(runtime, subject)
    if record is None:
        return ()
    fact = job_fact(
        record,
        runtime.policies.current(),
        key=subject_key("attribution", record.job, seen.event_id),
        kind="attribution",
        at=seen.at,
        actor=seen.principal,
        after=None if seen.priority is None else str(seen.priority),
        reason=f"{seen.operation} by somebody else",
        figures={"request": seen.request},
    )
    runtime.ledger.commit([], [fact], runtime.clock.now())
    return (fact,)


def _job(runtime: Runtime, subject: str) -> JobRecord | None:
    """The record of the job that the call names, by ARN or id; made up for the moment if none is kept yet."""
    if subject.startswith("arn:") and not in_same_account(subject, runtime.queues | runtime.classic_queues):
        return None
    stored = runtime.ledger.load(JobRecord, last_part(subject))
    if stored is not None:
        return stored
    description = runtime.batch.describe(subject)
    if description is None or description.queue not in runtime.queues:
        return None
    return runtime.ledger.load(JobRecord, description.job) or absorb(new_record(description), description)


def _share_call(runtime: Runtime, seen: ApiCallObservation, subject: str) -> tuple[AuditFact, ...]:
    queue, _, name = subject.partition("/quota-share/")
    if queue not in runtime.queues or not name:
        return ()
    stored = runtime.ledger.load(ShareRecord, subject) or ShareRecord(arn=subject, queue=queue)
    found = found_at(stored, seen.at)
    fact = _late(seen, queue, name, found) if found else _change(seen, queue, name)
    told = judged(stored, (found,)) if found else told_of(stored, seen.at)
    more = _judged(runtime, seen, queue, name, found)
    commit_found(runtime, [told] if told != stored else [], [fact], more)
    return (fact, *more.facts)


def _judged(
    runtime: Runtime, seen: ApiCallObservation, queue: str, name: str, found: FoundChange | None
) -> Found:
    """What guardrails find in the change, now that it is known who made it."""
    if found is not None and found.judged:
        return Found()
    facts = ShareChangeFacts(
        now=seen.at,
        queue=last_part(queue),
        share=name,
        by=seen.principal,
        operation=seen.operation,
        change=seen.request,
    )
    key = found.key if found else subject_key("quota-share-change", queue, name, seen.event_id)
    return guard_change(key, queue, facts, runtime.policies.current(), FailedRules())


def _change(seen: ApiCallObservation, queue: str, name: str) -> AuditFact:
    return AuditFact(
        key=subject_key("quota-share-change", queue, name, seen.event_id),
        kind="quota-share-change",
        at=seen.at,
        queue=queue,
        share=name,
        actor=seen.principal,
        after=seen.request,
        reason=seen.operation,
    )


def _late(seen: ApiCallObservation, queue: str, name: str, found: FoundChange) -> AuditFact:
    """The sweep had seen the change before CloudTrail told of it: link the two, do not count it twice."""
    return AuditFact(
        key=subject_key("attribution", queue, name, seen.event_id),
        kind="attribution",
        at=seen.at,
        queue=queue,
        share=name,
        actor=seen.principal,
        reason=f"{seen.operation}: the change that {found.key} put on record",
        figures={"request": seen.request, "change": found.key},
    )
