"""Which looks of the freshness watch are sent, and when: for whoever sends one and does not look itself.

A cold start of ``react`` pays for what this imports, so nothing here reads S3 (``watch``).
"""

from collections.abc import Iterable
from contextlib import suppress

from sharewarden.domain.record import JobRecord
from sharewarden.domain.saves import LATE, SHORTEST
from sharewarden.domain.stored import MINUTE
from sharewarden.domain.watching import is_watched, look_due
from sharewarden.ports import Runtime, Unavailable

#: The longest that a message can be delayed (SQS API reference, SendMessage, DelaySeconds).
LONGEST_DELAY = 15 * MINUTE
#: Looks of one sweep that are sent again at most, the most overdue first.
MOST_SENT = 500


def begin_watch(runtime: Runtime, record: JobRecord) -> None:
    """Send a look that is due. The record is committed: what is lost here, the sweep brings back."""
    if is_watched(record, runtime.checkpoint_buckets) and look_due(record) <= runtime.clock.now():
        _send(runtime, record.job, SHORTEST)


def overdue(runtime: Runtime, record: JobRecord, now: int) -> int | None:
    """Since when a look is due that nobody seems to have taken up; None: there is none."""
    due = look_due(record)
    return due if due + LATE <= now and is_watched(record, runtime.checkpoint_buckets) else None


def send_overdue(runtime: Runtime, found: Iterable[tuple[int, str]]) -> int:
    """Send a look for jobs given with the time since when it is due. Returns how many. Raises Unavailable."""
    jobs = [job for _, job in sorted(found)[:MOST_SENT]]
    for job in jobs:
        runtime.looks.send(job, 0)
    return len(jobs)


def send_next(runtime: Runtime, record: JobRecord) -> None:
    """Send the next look of a job, or leave it to the sweep: a message cannot wait longer than so."""
    delay = max(0, look_due(record) - runtime.clock.now())
    if delay <= LONGEST_DELAY and is_watched(record, runtime.checkpoint_buckets):
        _send(runtime, record.job, delay)


def _send(runtime: Runtime, job: str, delay: int) -> None:
    with suppress(Unavailable):
        runtime.looks.send(job, delay)
