"""Can a bump help? The queue's pool, as Batch lists it and the records tell, and the answer for one job."""

from collections.abc import Iterator

from sharewarden.domain.facts import team
from sharewarden.domain.helping.answer import Answer
from sharewarden.domain.helping.can_help import can_help
from sharewarden.domain.helping.view import JobView, PoolView, ShareView
from sharewarden.domain.known import running_since, runtime_of, waiting_since
from sharewarden.domain.observation import DISPATCHED, TERMINAL, JobSummary, ShareDescription
from sharewarden.domain.policy import Policy
from sharewarden.domain.record import JobRecord, dispatched_since, running_attempt
from sharewarden.domain.rules.base import counted
from sharewarden.domain.saves import saved_since
from sharewarden.domain.stored import SECOND
from sharewarden.domain.sweeping import lags
from sharewarden.domain.termination import open_terminations
from sharewarden.ports import Runtime, Unavailable

from .look import Listing, list_active


def ask(runtime: Runtime, record: JobRecord, priority: int | None = None) -> Answer:
    """Whether a bump to that priority, or to the highest that one may reach, helps. Raises Unavailable."""
    highest = runtime.policies.current().queue(record.queue).bands.human.highest
    asked = highest if priority is None else priority
    return can_help(view(runtime, record.queue), record.job, asked, runtime.clock.now())


def view(runtime: Runtime, queue: str) -> PoolView:
    """The queue as it is now; what could not be read of it is in its ``gaps``. Raises Unavailable."""
    policy, listing = runtime.policies.current(), Listing()
    shares = runtime.batch.shares(queue)
    records = {record.job: record for record in runtime.ledger.open_items(JobRecord, queue)}
    list_active(runtime, queue, listing)
    rows = listing.rows.values()
    gaps = [f"{counted(shares.odd, 'quota share')} could not be read"] if shares.odd else []
    gaps += [] if listing.whole else [f"{counted(listing.odd, 'job')} could not be read"]
    missed = (record for record in records.values() if record.end is None and record.job not in listing.rows)
    return PoolView(
        queue=queue,
        shares=tuple(_share(share, queue, policy) for share in shares.shares),
        jobs=tuple(_job(row, records.get(row.job), policy, runtime.clock.now()) for row in rows),
        environment=_environment(runtime, queue),
        gaps=(*gaps, *_between_states(runtime, missed)),
    )


def _environment(runtime: Runtime, queue: str) -> dict[str, int] | None:
    """Not everybody may ask; without an answer it is not known."""
    try:
        return runtime.batch.environment(queue)
    except Unavailable:
        return None


def _between_states(runtime: Runtime, missed: Iterator[JobRecord]) -> Iterator[str]:
    """Jobs that go on, but were in none of the states that were listed one after the other."""
    for record in missed:
        read = None if record.classic else runtime.batch.describe(record.arn)
        if read is not None and read.status not in TERMINAL:
            yield f"{record.name} changed its state while the jobs were listed"


def _share(share: ShareDescription, queue: str, policy: Policy) -> ShareView:
    rules = policy.share(queue, share.name)
    return ShareView(
        name=share.name,
        limits=dict(share.limits),
        strategy=share.strategy,
        borrow_limit=share.borrow_limit,
        in_share_preemption=share.in_share_preemption,
        enabled=share.enabled,
        min_runtime=rules.min_runtime,
        protected=rules.protected,
    )


def _job(row: JobSummary, record: JobRecord | None, policy: Policy, now: int) -> JobView:
    bare = JobView(
        job=row.job,
        name=row.name,
        share=row.share,
        status=row.status,
        unit=None,
        instances=None,
        priority=None,
        created_at=row.created_at,
        queued_at=row.created_at,
    )
    if record is None:
        return bare
    times = _times(row, record, policy, now)
    update: dict[str, object] = {
        "unit": record.instance_type,
        "instances": record.instance_count,
        "priority": _priority(record),
        "team": team(record, policy),
        "sla": record.tag(policy.tags.sla),
    }
    return bare.model_copy(update=update | times)


def _priority(record: JobRecord) -> int | None:
    """As Batch shows it; not known while a value of ours is under way."""
    ledger = record.priority
    if ledger.sent is not None:
        return None
    return ledger.confirmed if ledger.suspect is None else ledger.suspect.value


def _times(row: JobSummary, record: JobRecord, policy: Policy, now: int) -> dict[str, object]:
    """What the record tells of the state that Batch lists; of a newer one than its own it knows no times."""
    behind = lags(record, row, whole=True)
    if row.status not in DISPATCHED:
        return {"queued_at": now if behind else waiting_since(record) or row.created_at}
    if behind:
        return {}
    dispatched, running = dispatched_since(record), running_since(record)
    expected = runtime_of(record.tag(policy.tags.expected_runtime))
    return {
        "dispatched_at": dispatched,
        "started_at": running,
        "saved_at": _saved_at(record, dispatched),
        "expected_end": None if running is None or expected is None else running + expected * SECOND,
        "stopping": _stops(record, dispatched or 0),
    }


def _saved_at(record: JobRecord, dispatched: int | None) -> int | None:
    known = dispatched is not None and saved_since(record.saves, dispatched, running_attempt(record))
    return record.saves.newest_at if known else None


def _stops(record: JobRecord, dispatched: int) -> bool:
    """Its preemption was told of since, or a termination of ours is under way."""
    told = (entry.at for entry in record.timeline if entry.what == "preemption-started")
    ended = any(wish.sent_at is not None for wish in open_terminations(record.terminations))
    return ended or any(at + SECOND > dispatched for at in told)
