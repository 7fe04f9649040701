"""Events of a job that Batch does not know and whose queue no event has named yet.

They are kept until an event names the queue, or until none is to be expected: whether a preemption is told
of as such or as a gap must not depend on which event came first.
"""

from typing import ClassVar

from .audit import AuditFact, subject_key
from .observation import JobObservation
from .stored import KEEP_AFTER_END, Stored

#: More events than this say nothing more about a job that nobody can place.
KEPT_EVENTS = 50
#: The name under which the sweep finds them: they have no queue.
NOWHERE = "nowhere"


class UntracedJob(Stored):
    """``heard_at`` is when the last of the events came in; ``closed_at`` when nothing more was to be done."""

    item: ClassVar[str] = "UNTRACED"

    job: str
    events: tuple[JobObservation, ...] = ()
    heard_at: int = 0
    closed_at: int | None = None

    @property
    def key(self) -> str:
        return self.job

    @property
    def expires_at(self) -> int | None:
        return None if self.closed_at is None else self.closed_at + KEEP_AFTER_END

    @property
    def open_queue(self) -> str | None:
        return NOWHERE if self.closed_at is None else None


def remember(waiting: UntracedJob, seen: JobObservation, now: int) -> UntracedJob:
    """With one more event; the same one twice changes nothing."""
    if seen in waiting.events:
        return waiting
    events = sorted((*waiting.events, seen), key=lambda one: (one.at, one.what, one.model_dump_json()))
    update = {"events": tuple(events[:KEPT_EVENTS]), "heard_at": now, "closed_at": None}
    return waiting.model_copy(update=update)


def untraceable_fact(waiting: UntracedJob) -> AuditFact:
    """Something happened to a job, somewhere."""
    told = ", ".join(sorted({seen.what for seen in waiting.events}))
    return AuditFact(
        key=subject_key("gap", waiting.job, "untraceable"),
        kind="gap",
        at=waiting.events[0].at,
        job=waiting.job,
        reason=f"{told} of a job that Batch no longer knows: its queue, share and team are lost",
    )
