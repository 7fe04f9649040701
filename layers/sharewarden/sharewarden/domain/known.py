"""What rules may know, from what is on record. Nothing here asks anybody: what is not known stays None."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import takewhile

from .accelerators import gpus_of
from .attempts import Attempt
from .base import Frozen, last_part
from .durations import parse_duration, whole_seconds
from .facts import team
from .observation import DISPATCHED, TERMINAL, ShareDescription, Status
from .policy import Policy
from .record import JobRecord, Transition, last_step, running_attempt, status, steps_of
from .rules.facts import Facts, JobFacts, ShareFacts, SlaFacts, UnitFacts
from .saves import age_at_look, usual_interval
from .stored import MINUTE, SECOND

#: Tags may be set a little later than the job is submitted. That one is absent is believed once Batch has
#: said so of a job of this age, or a job would be punished for what is still to come.
TAGS_SETTLE = 10 * MINUTE
#: Batch requeues without end.
ENDLESS = -1

#: RFC 3339, section 5.6: a time without an offset names no moment.
_RFC_3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)",
    re.ASCII,
)


class KnownShares(Frozen):
    """The shares of a queue as they were last seen; ``whole``: these are all of them."""

    shares: tuple[ShareDescription, ...] = ()
    whole: bool = False

    def named(self, name: str | None) -> ShareDescription | None:
        return next((share for share in self.shares if share.name == name), None)


def facts_of(record: JobRecord, shares: KnownShares, policy: Policy, now: int) -> Facts:
    """``job_facts`` of a job of the queue that has these shares."""
    others = shares.shares if shares.whole else None
    return job_facts(record, shares.named(record.share), policy, now, others)


def job_facts(
    record: JobRecord,
    share: ShareDescription | None,
    policy: Policy,
    now: int,
    others: Iterable[ShareDescription] | None = None,
) -> Facts:
    """What the record, its share and the policy say of one job.

    ``others``: every share of the queue (the own one may be among them); None when not all are known. What
    only a look at the whole queue shows is None (``domain.pool`` adds it).
    """
    job = _job(record, policy, now)
    return Facts(
        now=now,
        job=job,
        share=None if share is None else share_facts(share, record.queue, policy, others),
        sla=sla_facts(job, policy),
    )


def share_facts(
    share: ShareDescription, queue: str, policy: Policy, others: Iterable[ShareDescription] | None
) -> ShareFacts:
    """The share as it was last seen, and what the policy says of it."""
    rules = policy.share(queue, share.name)
    lenders = None if others is None else [one for one in others if _lends(one) and one.name != share.name]
    return ShareFacts(
        name=share.name,
        strategy=share.strategy,
        borrow_limit=share.borrow_limit,
        in_share_preemption=share.in_share_preemption,
        protected=rules.protected,
        min_runtime=rules.min_runtime // SECOND,
        units={unit: UnitFacts(limit=limit, others=_lent(lenders, unit)) for unit, limit in share.limits},
    )


def sla_facts(job: JobFacts, policy: Policy) -> SlaFacts | None:
    """The class that the job asks for, if the policy has it."""
    known = policy.sla.get(job.sla or "")
    if job.sla is None or known is None:
        return None
    granted = policy.teams[job.team].sla if job.team in policy.teams else ()
    return SlaFacts(
        name=job.sla,
        granted=None if job.team is None else job.sla in granted,
        start_within=whole_seconds(known.start_within),
        restart_within=whole_seconds(known.restart_within),
    )


def odd_tags(tags: Mapping[str, str], policy: Policy, created_at: int) -> dict[str, str]:
    """The tags that Sharewarden reads and that say nothing it understands: name and what is wrong."""
    names = policy.tags
    found = {}
    if names.deadline in tags and (why := _odd_deadline(tags[names.deadline], created_at)):
        found[names.deadline] = why
    if names.expected_runtime in tags and runtime_of(tags[names.expected_runtime]) is None:
        found[names.expected_runtime] = "is not a duration: write for example 90s, 30m, 4h or 1h30m"
    if names.sla in tags and tags[names.sla] not in policy.sla:
        classes = ", ".join(sorted(policy.sla)) or "none"
        found[names.sla] = f"is no SLA class of the policy, which has {classes}"
    return found


def deadline_ahead(text: str | None, created_at: int) -> int | None:
    """The moment that a deadline tag names, if it was still to come when the job was submitted; else None."""
    moment = deadline_of(text)
    return None if moment is None or moment < created_at else moment


def deadline_of(text: str | None) -> int | None:
    """The moment that a deadline tag names; None when it names none."""
    if text is None or not _RFC_3339.fullmatch(text):
        return None
    try:
        return round(datetime.fromisoformat(text.upper()).timestamp() * SECOND)
    except (ValueError, OverflowError):
        return None


def runtime_of(text: str | None) -> int | None:
    """The whole seconds, at least one, that an expected-runtime tag names; None when it names none."""
    try:
        return None if text is None else parse_duration(text) // SECOND or None
    except ValueError:
        return None


def _odd_deadline(text: str, created_at: int) -> str | None:
    if deadline_of(text) is None:
        return "is not a time with an offset, such as 2026-10-01T18:00:00+02:00 (RFC 3339)"
    if deadline_ahead(text, created_at) is None:
        return "was over when the job was submitted"
    return None


def _job(record: JobRecord, policy: Policy, now: int) -> JobFacts:
    tags, names, state = dict(record.tags), policy.tags, status(record)
    running = _since(running_since(record), now)
    return JobFacts(
        id=record.job,
        name=record.name,
        queue=last_part(record.queue),
        share=record.share,
        team=team(record, policy),
        tag_team=tags.get(names.team),
        user=tags.get(names.user),
        project=tags.get(names.project),
        sla=tags.get(names.sla),
        deadline=deadline_ahead(tags.get(names.deadline), record.created_at),
        expected_runtime=runtime_of(tags.get(names.expected_runtime)),
        lineage=tags.get(names.lineage),
        tags=tags if _tags_are_settled(record) else None,
        odd_tags=odd_tags(tags, policy, record.created_at),
        status=state,
        waiting=_since(waiting_since(record), now),
        in_status=_since(in_status_since(record), now),
        running=running,
        trained=sum(map(_ran, record.attempts)) // SECOND + (running or 0),
        priority=record.priority.confirmed,
        base=record.priority.base,
        drifted=record.drifted,
        instance_type=record.instance_type,
        instances=record.instance_count,
        gpus=gpus_of(record.instance_type, record.instance_count),
        preemptions=max(record.preempted_count, sum(one.preempted for one in record.attempts)),
        preemption_retries=_retries(record),
        max_runtime=whole_seconds(record.max_runtime),
        checkpoint_uri=record.checkpoint_uri,
        role=record.role,
        blocked=_blocked(record),
        checkpoint_age=whole_seconds(_checkpoint_age(record)),
        save_interval=whole_seconds(usual_interval(record.saves)),
    )


def waiting_since(record: JobRecord) -> int | None:
    """Since when the job waits for capacity: its submission, or the requeue; None while it does not.

    An event of the requeue may be lost: then the end of the attempt before it counts.
    """
    if status(record) in DISPATCHED | TERMINAL:
        return None
    steps = steps_of(record)
    queued = list(takewhile(lambda step: step.status not in DISPATCHED, reversed(steps)))
    requeued = [queued[-1].at] if queued and len(queued) < len(steps) else []
    stopped = [one.stopped_at for one in record.attempts if one.stopped_at is not None]
    return max((record.created_at, *requeued, *stopped))


def in_status_since(record: JobRecord) -> int | None:
    """Since when the job is in its state; None where no event told of it and Batch does not say."""
    state = status(record)
    if told := _told(record, state):
        return told[-1].at
    if state == "SCHEDULED" and record.snapshot is not None:
        return record.snapshot.dispatched_at
    return running_since(record) if state == "RUNNING" else waiting_since(record)


def running_since(record: JobRecord) -> int | None:
    """Since when the running attempt runs; None while none does, or where nobody told.

    Batch's ``startedAt`` counts if it is not from before the last dispatch, as that of an older attempt is.
    """
    if status(record) != "RUNNING":
        return None
    if told := _told(record, "RUNNING"):
        return told[-1].at
    read = record.snapshot
    if read is None or read.started_at is None or read.started_at < (read.dispatched_at or 0):
        return None
    return read.started_at


def _checkpoint_age(record: JobRecord) -> int | None:
    since = running_since(record)
    return None if since is None else age_at_look(record.saves, since, running_attempt(record))


def _told(record: JobRecord, state: Status) -> list[Transition]:
    """The newest steps that say this state, of one attempt, newest first."""
    steps = steps_of(record)
    attempts = {None, steps[-1].attempt if steps else None}
    return list(takewhile(lambda step: step.status == state and step.attempt in attempts, reversed(steps)))


def _blocked(record: JobRecord) -> str | None:
    """Batch's newest words for why the front of the queue does not move, while the job is still there."""
    told = next((entry for entry in reversed(record.timeline) if entry.what == "queue-blocked"), None)
    if told is None or status(record) != "RUNNABLE":
        return None
    last = last_step(record)
    moved_since = last is not None and last.at > told.at
    return None if moved_since else told.reason


def _tags_are_settled(record: JobRecord) -> bool:
    read = record.snapshot
    return read is not None and read.read_at >= record.created_at + TAGS_SETTLE


def _retries(record: JobRecord) -> int | None:
    """None until Batch was asked: it names no number when there is no limit."""
    if record.snapshot is None:
        return None
    return ENDLESS if record.preemption_retries is None else record.preemption_retries


def _ran(attempt: Attempt) -> int:
    if attempt.started_at is None or attempt.stopped_at is None:
        return 0
    return max(0, attempt.stopped_at - attempt.started_at)


def _lends(share: ShareDescription) -> bool:
    return share.enabled and share.strategy != "RESERVE"


def _lent(lenders: list[ShareDescription] | None, unit: str) -> int | None:
    return None if lenders is None else sum(dict(lender.limits).get(unit, 0) for lender in lenders)


def _since(then: int | None, now: int) -> int | None:
    return None if then is None else whole_seconds(max(0, now - then))
