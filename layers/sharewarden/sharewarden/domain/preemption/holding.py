"""When a job held capacity, by its record: the steps that events told, and what Batch said last."""

from collections.abc import Iterator
from typing import NamedTuple

from sharewarden.domain.attempts import Attempt
from sharewarden.domain.observation import DISPATCHED
from sharewarden.domain.record import JobRecord, Snapshot, Transition, steps_of
from sharewarden.domain.stored import SECOND


class Stay(NamedTuple):
    """One attempt, from its dispatch until it let its instances go. Times as events tell: whole seconds."""

    attempt: str | None
    """ARN of its training job."""
    waited_since: int
    """The submission, or the requeue before it."""
    since: int
    running_at: int | None = None
    until: int | None = None
    """None: it holds them still, as far as is known."""


def stays(record: JobRecord) -> tuple[Stay, ...]:
    """The times in which the job held capacity, oldest first."""
    stopped = {one.training_job: one.stopped_at for one in record.attempts if one.stopped_at is not None}
    return tuple(_ended(stay, record, stopped) for stay in _with_read(record, list(_told(record))))


def stay_of(record: JobRecord, attempt: str) -> Stay | None:
    """That of one attempt, if anything told of it."""
    return next((stay for stay in stays(record) if stay.attempt == attempt), None)


def followers(record: JobRecord, attempt: str) -> tuple[Attempt, ...]:
    """The attempts that Batch lists with times after the stop of that one; events may have told of none."""
    stop = next((one.stopped_at for one in record.attempts if one.training_job == attempt), None)
    if stop is None:
        return ()
    return tuple(
        one
        for one in record.attempts
        if one.training_job != attempt and (one.started_at or one.stopped_at or 0) + SECOND > stop
    )


def _told(record: JobRecord) -> Iterator[Stay]:
    stay, waited_since = None, record.created_at
    for step in steps_of(record):
        if step.status not in DISPATCHED:
            if stay is not None:
                yield stay._replace(until=step.at)
                stay, waited_since = None, step.at
            continue
        if stay is not None and _is_another(stay, step):
            yield stay._replace(until=step.at)
            stay, waited_since = None, step.at
        stay = stay or Stay(step.attempt, waited_since, step.at)
        stay = stay._replace(attempt=stay.attempt or step.attempt, running_at=_running_at(stay, step))
    if stay is not None:
        yield stay


def _is_another(stay: Stay, step: Transition) -> bool:
    return None not in (stay.attempt, step.attempt) and stay.attempt != step.attempt


def _running_at(stay: Stay, step: Transition) -> int | None:
    return step.at if stay.running_at is None and step.status == "RUNNING" else stay.running_at


def _with_read(record: JobRecord, found: list[Stay]) -> list[Stay]:
    """With the exact times that Batch told of the last one, also where no event did."""
    read = record.snapshot
    if read is None or read.status not in DISPATCHED or read.dispatched_at is None:
        return found
    last = found[-1] if found else None
    if last is not None and last.until is None and last.attempt in (None, read.attempt):
        since = min(last.since, max(read.dispatched_at, last.waited_since))
        found[-1] = last._replace(attempt=read.attempt, since=since, running_at=_read_running(last, read))
    elif last is None or read.dispatched_at + SECOND > (last.until or last.since):
        waited = record.created_at if last is None else last.until or last.since
        found.append(Stay(read.attempt, waited, read.dispatched_at, read.started_at))
    return found


def _read_running(stay: Stay, read: Snapshot) -> int | None:
    """Its event may be lost. A start before the dispatch is that of an earlier attempt."""
    if stay.running_at is not None or read.status != "RUNNING":
        return stay.running_at
    return read.started_at if (read.started_at or 0) >= (read.dispatched_at or 0) else read.read_at


def _ended(stay: Stay, record: JobRecord, stopped: dict[str, int]) -> Stay:
    """Up to its stop, where that is known: the events of the requeue come a little later, or never."""
    known = stopped.get(stay.attempt or "")
    end = record.end.at if record.end is not None else None
    times = [at for at in (known, stay.until, end) if at is not None]
    return stay._replace(until=max(stay.since, min(times))) if times else stay
