"""The audit facts of one job, built from its record."""

from typing import Any

from .attempts import Attempt
from .audit import AuditFact, Kind, attempt_key, job_key, subject_key, version_key
from .policy import Policy
from .priority import Boost, Done, Drift, Wish
from .record import JobRecord, Transition
from .rules.base import counted
from .termination import TerminationWish

PREEMPTION_KINDS = ("cross-share", "in-share")
#: Of a classic job: AWS took the instance under it away, as it does with Spot instances.
HOST_RECLAIMED = "host-reclaimed"


def job_fact(record: JobRecord, policy: Policy, *, key: str, kind: Kind, at: int, **rest: Any) -> AuditFact:
    """A fact about the job: who it belongs to is filled in from the record."""
    return AuditFact(
        key=key,
        kind=kind,
        at=at,
        queue=record.queue,
        share=record.share,
        team=team(record, policy),
        job=record.job,
        job_name=record.name,
        lineage=record.tag(policy.tags.lineage),
        policy=policy.hash,
        **rest,
    )


def team(record: JobRecord, policy: Policy) -> str | None:
    """The team of the share wins over the job's own tag."""
    return policy.share(record.queue, record.share).team or record.tag(policy.tags.team)


def preemption_kind(reason: str | None) -> str:
    """``cross-share``, ``in-share``, ``host-reclaimed`` or ``unknown``.

    Of the first two only the first one's text is documented, so match the words.
    """
    text = (reason or "").lower()
    if text.startswith("host ec2"):
        return HOST_RECLAIMED
    return next((kind for kind in PREEMPTION_KINDS if kind in text), "unknown")


def preemption_fact(record: JobRecord, attempt: Attempt, policy: Policy) -> AuditFact:
    """The preemption of ``attempt``, whose stop time is known. What it cost is told by its case."""
    return job_fact(
        record,
        policy,
        key=attempt_key("preemption", record.job, attempt.training_job),
        kind="preemption",
        at=attempt.stopped_at or 0,
        reason=attempt.preemption_reason or "Batch gave no reason",
        figures={
            "kind": preemption_kind(attempt.preemption_reason),
            "attempt": attempt.training_job,
            "started_at": attempt.started_at,
        },
    )


def ended_fact(record: JobRecord, policy: Policy) -> AuditFact:
    """How the job ended. Raises ValueError while it has not."""
    if record.end is None:
        raise ValueError(f"job {record.job} has not ended")
    end = record.end
    return job_fact(
        record,
        policy,
        key=_end_key("job-ended", record),
        kind="job-ended",
        at=end.at,
        after=end.status,
        reason=end.reason or "Batch gave no reason",
        figures={"created_at": record.created_at, "seconds": (end.at - record.created_at) / 1000},
    )


def timeline_fact(record: JobRecord, policy: Policy) -> AuditFact:
    """Everything seen of the job, written once when nothing more is to come. Raises ValueError if it runs."""
    if record.end is None:
        raise ValueError(f"job {record.job} has not ended")
    return job_fact(
        record,
        policy,
        key=_end_key("job-timeline", record),
        kind="job-timeline",
        at=record.end.at,
        after=record.end.status,
        reason=f"{counted(len(record.timeline), 'event')}, {counted(len(record.attempts), 'attempt')}",
        figures={
            "timeline": [_told(entry) for entry in record.timeline],
            "attempts": [
                attempt.model_dump(exclude={"audited", "cased", "mistaken"}) for attempt in record.attempts
            ],
            "preempted": record.preempted_count,
        },
    )


def priority_fact(record: JobRecord, done: Done, policy: Policy) -> AuditFact:
    """A priority that we set and that took effect."""
    sent = done.sent
    return job_fact(
        record,
        policy,
        key=version_key("priority-changed", record.job, sent.version),
        kind="priority-changed",
        at=sent.at,
        actor=sent.actor,
        mode="enforce",
        before=str(sent.before),
        after=str(sent.value),
        reason=sent.reason,
        figures={"version": sent.version, "may_evict": sent.may_evict},
    )


def drift_facts(record: JobRecord, drift: Drift, policy: Policy) -> tuple[AuditFact, ...]:
    """A priority that somebody else set, and the boosts that it superseded.

    ``unknown`` is the version of a value of ours that was under way: whether it took effect, nobody can tell.
    """
    fact = job_fact(
        record,
        policy,
        key=subject_key("drift", record.job, drift.value, drift.first_seen),
        kind="drift",
        at=drift.first_seen,
        actor="unknown",
        before=str(drift.before),
        after=str(drift.value),
        reason="somebody else set the priority: it is the base now",
        figures={
            "superseded": [boost.id for boost in drift.ended],
            "unknown": None if drift.unknown is None else drift.unknown.version,
        },
    )
    return (fact, *(boost_ended_fact(record, boost, policy) for boost in drift.ended))


def boost_ended_fact(record: JobRecord, boost: Boost, policy: Policy) -> AuditFact:
    """The end of a boost: every boost has one (design law 5)."""
    return job_fact(
        record,
        policy,
        key=subject_key("boost-ended", record.job, boost.id),
        kind="boost-ended",
        at=boost.ended_at or 0,
        actor=boost.by,
        mode="enforce",
        before=f"{boost.amount:+d}",
        reason=f"{boost.end}: {boost.reason}",
        figures={"boost": boost.id, "since": boost.since, "until": boost.until},
    )


def wish_dropped_fact(record: JobRecord, wish: Wish, why: str, policy: Policy, now: int) -> AuditFact:
    """A wish that died without effect."""
    return job_fact(
        record,
        policy,
        key=version_key("wish-dropped", record.job, wish.version),
        kind="wish-dropped",
        at=now,
        actor=wish.actor,
        mode="enforce",
        after=str(wish.value),
        reason=why,
        figures={"version": wish.version},
    )


def terminated_fact(record: JobRecord, wish: TerminationWish, policy: Policy) -> AuditFact:
    """Batch has accepted our request, or shows its reason on the job. Raises ValueError before it was sent.

    How the job ended is told by its own record: it may still come to its end by itself in that second.
    """
    if wish.sent_at is None:
        raise ValueError(f"job {record.job}: {wish.id} was not sent")
    return job_fact(
        record,
        policy,
        key=subject_key("terminated", record.job, wish.id),
        kind="terminated",
        at=wish.sent_at,
        actor=wish.actor,
        mode="enforce",
        before=wish.found,
        after="termination accepted",
        reason=wish.text,
        figures={"act": wish.id, "asked_at": wish.created_at, "not_before": wish.not_before},
    )


def termination_dropped_fact(
    record: JobRecord, wish: TerminationWish, why: str, policy: Policy, now: int
) -> AuditFact:
    """A termination that will not be done."""
    return job_fact(
        record,
        policy,
        key=subject_key("wish-dropped", record.job, wish.id),
        kind="wish-dropped",
        at=now,
        actor=wish.actor,
        mode="enforce",
        after="terminated",
        reason=why,
        figures={"act": wish.id},
    )


def gap_fact(record: JobRecord, policy: Policy, *, subject: str, at: int, reason: str) -> AuditFact:
    """Something is known to have happened to the job, but left no details."""
    return job_fact(
        record, policy, key=subject_key("gap", record.job, subject), kind="gap", at=at, reason=reason
    )


def reopened_fact(record: JobRecord, before: JobRecord, policy: Policy, at: int) -> AuditFact:
    """The job goes on: what the audit says of its end, or of its being gone, does not hold."""
    taken = "gone" if before.end is None else f"ended ({before.end.status})"
    reason = f"Batch shows the job as active: it was taken for {taken}, and the record of that is wrong"
    return gap_fact(record, policy, subject=f"reopened-{record.reopened}", at=at, reason=reason)


def _end_key(kind: Kind, record: JobRecord) -> str:
    """A job ends once; one that was wrongly taken for ended once more."""
    return subject_key(kind, record.job, record.reopened) if record.reopened else job_key(kind, record.job)


def _told(entry: Transition) -> dict[str, Any]:
    return entry.model_dump(exclude_none=True)
