"""The instance time of a job, attempt by attempt, as a function of its record alone.

A closed record expires after a month, so when it is closed its attempts are *booked*: copied into one item
for each UTC day that they touch. Booking again replaces the attempts that the record still knows.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import ClassVar

from .attempts import Attempt
from .base import Frozen, last_part
from .borrowing import Stint
from .observation import DISPATCHED
from .policy import Policy
from .record import JobRecord
from .stored import DAY, Stored

#: How long booked days are kept: thirteen months.
KEPT = 397 * DAY
#: Batch's clock or ours may be wrong by so much: what is said to stop later is booked up to here.
AHEAD = DAY


class Span(Frozen):
    """One attempt, whole: also where it began before the day or went on after it."""

    attempt: str
    started_at: int
    stopped_at: int


class UsageDay(Stored):
    """What one closed job trained on one UTC day (counted from the epoch).

    One item for each job, not for each share: nobody else writes it, and none grows with the number of jobs.
    """

    item: ClassVar[str] = "USAGE"

    job: str
    queue: str
    day: int
    share: str = ""
    tag_team: str = ""
    unit: str = ""
    instances: int = 0
    spans: tuple[Span, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.job}#{self.day}"

    @property
    def expires_at(self) -> int:
        return (self.day + 1) * DAY + KEPT

    @property
    def open_queue(self) -> str | None:
        """Found by queue and day, unless nothing is in it any more."""
        return day_key(self.queue, self.day) if self.spans else None

    def stints(self) -> Iterator[Stint]:
        """Its attempts."""
        for span in self.spans:
            yield Stint(
                started_at=span.started_at,
                job=self.job,
                attempt=span.attempt,
                stopped_at=span.stopped_at,
                share=self.share,
                unit=self.unit,
                instances=self.instances,
                tag_team=self.tag_team,
            )


def day_key(queue: str, day: int) -> str:
    """Where the booked items of one queue and day are found."""
    return f"{queue}#{day}"


def stints(record: JobRecord, policy: Policy, now: int) -> tuple[Stint, ...]:
    """The attempts that are known to have run; for one that runs, up to ``now``."""
    empty = _empty_day(record, policy, 0)
    return tuple(empty.model_copy(update={"spans": _spans(record, now)}).stints())


def booking(record: JobRecord, policy: Policy, closed_at: int) -> tuple[UsageDay, ...]:
    """What to book of a closed record; a day that was booked and has nothing any more is empty."""
    spans: dict[int, list[Span]] = defaultdict(list, {day: [] for day in record.booked_days})
    for span in _spans(record, closed_at):
        first = max(span.started_at, closed_at - KEPT) // DAY
        for day in range(first, (min(span.stopped_at, closed_at + AHEAD) - 1) // DAY + 1):
            spans[day].append(span)
    return tuple(
        _empty_day(record, policy, day).model_copy(update={"spans": tuple(found)})
        for day, found in sorted(spans.items())
    )


def rebooked(stored: UsageDay | None, booked: UsageDay, record: JobRecord) -> UsageDay:
    """The item to store: attempts that the record has forgotten since they were booked stay."""
    if stored is None:
        return booked
    known = {last_part(attempt.training_job) for attempt in record.attempts}
    kept = [span for span in stored.spans if span.attempt not in known]
    spans = sorted((*kept, *booked.spans), key=lambda span: (span.started_at, span.attempt))
    return booked.model_copy(update={"spans": tuple(spans), "version": stored.version})


def _empty_day(record: JobRecord, policy: Policy, day: int) -> UsageDay:
    return UsageDay(
        job=record.job,
        queue=record.queue,
        day=day,
        share=record.share or "",
        tag_team=record.tag(policy.tags.team) or "",
        unit=record.instance_type or "",
        instances=max(0, record.instance_count or 0),
    )


def _spans(record: JobRecord, now: int) -> tuple[Span, ...]:
    started = [(at, one) for one in record.attempts if (at := started_at(record, one)) is not None]
    found = [
        Span(
            attempt=last_part(one.training_job),
            started_at=at,
            stopped_at=one.stopped_at or min((*_ends(record, at), *(b for b, _ in started if b > at), now)),
        )
        for at, one in started
    ]
    real = (span for span in found if span.stopped_at > span.started_at)
    return tuple(sorted(real, key=lambda span: (span.started_at, span.attempt)))


def started_at(record: JobRecord, attempt: Attempt) -> int | None:
    """When the attempt began to train; None: it did not, or nobody told.

    Batch lists an attempt with its times when it has stopped; until then its state tells.
    """
    if attempt.started_at is not None:
        return attempt.started_at
    told = (
        entry.at
        for entry in record.timeline
        if entry.status == "RUNNING" and entry.attempt == attempt.training_job
    )
    return next(told, None) or _read_start(record, attempt)


def _read_start(record: JobRecord, attempt: Attempt) -> int | None:
    """What Describe says of the job, unless that is the start of an attempt that has stopped already."""
    read = record.snapshot
    if read is None or read.status != "RUNNING" or read.attempt != attempt.training_job:
        return None
    stopped = max((one.stopped_at or 0 for one in record.attempts), default=0)
    return read.started_at if (read.started_at or 0) >= stopped else None


def _ends(record: JobRecord, started_at: int) -> Iterator[int]:
    """When an attempt was over at the latest, if nobody told when it stopped."""
    for entry in record.timeline:
        if entry.what == "status" and entry.status not in DISPATCHED and entry.at > started_at:
            yield entry.at
    if record.end is not None:
        yield record.end.at
    if record.missing_since is not None:
        yield record.missing_since
