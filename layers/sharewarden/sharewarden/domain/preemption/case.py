"""A case: what is done about one preempted attempt, from its stop to the proof that the job went on.

The workflow (``statemachines/preemption.asl.yaml``) takes a case through its steps (``usecases/care/``); what
each of them found is kept here, so that a step that comes twice, or after a crash, finds it done.
"""

from collections.abc import Iterator
from typing import ClassVar, Literal

from sharewarden.domain.attempts import Attempt
from sharewarden.domain.checkpoints import Save
from sharewarden.domain.observation import DISPATCHED
from sharewarden.domain.record import JobRecord, steps_of
from sharewarden.domain.stored import HOUR, MINUTE, SECOND, Closing

from .inference import Inferred

#: What became of it. ``requeued``: it waits or runs again; ``exhausted``: its preemption retries ran out;
#: ``cancelled``: somebody terminated it; ``ended``: it came to its own end meanwhile; ``mistaken``: it
#: was not preempted at all; ``unknown``: nobody told.
Outcome = Literal["requeued", "exhausted", "cancelled", "ended", "mistaken", "unknown"]
#: What was found below the job's S3Uri: ``none`` is a whole look that found nothing, ``unknown`` is no look
#: (no URI is ``nowhere``).
Sight = Literal["found", "none", "nowhere", "unknown"]
#: Whether the next attempt went on from the save. Only ``resumed`` says so (design law 8). ``nothing-saved``:
#: there was nothing to go on from; ``never-ran``: no attempt ran after it.
Proof = Literal["resumed", "from-zero", "older", "none-yet", "not-provable", "nothing-saved", "never-ran"]

#: A step that is due may be under way, or be tried again, for so long before anybody looks after it.
LATE = 5 * MINUTE
#: The longest time between two executions of one case: those before it have failed.
LONGEST_LATE = 1 * HOUR


class Case(Closing):
    """One preempted attempt of a service job. The key is the ARN of its training job."""

    item: ClassVar[str] = "CASE"

    attempt: str
    job: str
    opened_at: int
    """When the preemption began, as far as it was told; else when the attempt had stopped."""
    generation: int = 1
    """Of the execution that takes care: a new one begins where one failed, or had run for long."""
    heard_at: int = 0
    """When a step was last taken; 0: none was."""
    next_at: int = 0
    """When the next step is due, as its last one said."""

    save: Save | None = None
    """The newest complete save before the stop."""
    sight: Sight | None = None
    """None: nobody has looked yet."""
    outcome: Outcome | None = None
    pinned: bool = False
    """What there is to pin was pinned, or is on record as unprotected."""
    measured: bool = False
    preemptor: Inferred | None = None
    """Who is taken to be behind it; None: not inferred yet."""
    preemptor_told: bool = False
    next_attempt: str | None = None
    """ARN of the training job that went on, once one runs."""
    unseen_at: int = 0
    """When a whole look last showed no save of that attempt."""
    proof: Proof | None = None
    resubmitted: bool = False
    """An exhausted job: its resubmission was decided on, whichever way."""
    next_job: str | None = None
    """Key of the job that goes on in its place, once it was submitted: that one's first attempt shows
    whether it resumes. None: there is no such job, and nothing to be proved."""

    @property
    def key(self) -> str:
        return self.attempt


def lost_since(case: Case, now: int) -> int | None:
    """Since when nobody seems to take care of an open case, epoch ms; None: somebody does, or may.

    No step waits longer than an hour: a time further ahead is by a clock that was wrong.
    """
    due = max(case.heard_at, case.next_at)
    late = min(LONGEST_LATE, LATE * case.generation)
    return None if case.closed_at is not None or -2 * HOUR <= now - due < late else due


def renewed(case: Case, now: int) -> Case:
    """The case for its next execution."""
    return case.model_copy(update={"generation": case.generation + 1, "next_at": now})


def reopened(case: Case, again: Case) -> Case:
    """A case that was closed as a mistake, for the preemption of that attempt which came after all."""
    return again.model_copy(update={"version": case.version, "generation": case.generation + 1})


def due_cases(record: JobRecord) -> tuple[Case, ...]:
    """A case for each attempt whose preemption has begun, or is known, and that has none yet.

    A preemption on record has had its case: a late "started" opens nothing new. After a mistake only the
    preemption itself does.
    """
    if record.classic:
        return ()
    began = dict(_begun(record))
    return tuple(
        Case(
            attempt=one.training_job,
            job=record.job,
            queue=record.queue,
            opened_at=(None if one.mistaken else began.get(one.training_job))
            or one.stopped_at
            or record.created_at,
        )
        for one in record.attempts
        if not (one.cased or one.audited)
        and (_is_over(one) or (one.training_job in began and not one.mistaken))
    )


def without_mistake(record: JobRecord, case: Case) -> JobRecord:
    """The record whose attempt has no case any more: that was a mistake."""
    update = {"cased": False, "mistaken": True}
    attempts = tuple(
        one.model_copy(update=update) if one.training_job == case.attempt else one for one in record.attempts
    )
    return record.model_copy(update={"attempts": attempts})


def with_cases(record: JobRecord, cases: tuple[Case, ...]) -> JobRecord:
    """The record whose attempts say that they have their case."""
    if not cases:
        return record
    cased = {case.attempt for case in cases}
    attempts = tuple(
        one.model_copy(update={"cased": True}) if one.training_job in cased else one
        for one in record.attempts
    )
    return record.model_copy(update={"attempts": attempts})


def _is_over(attempt: Attempt) -> bool:
    return attempt.preempted and attempt.stopped_at is not None


def _begun(record: JobRecord) -> Iterator[tuple[str, int]]:
    """Attempts whose preemption was told to have begun, and when; the event itself names none (facts 1.3)."""
    for entry in record.timeline:
        if entry.what == "preemption-started" and (attempt := attempt_at(record, entry.at)):
            yield attempt, entry.at


def attempt_at(record: JobRecord, at: int) -> str | None:
    """ARN of the attempt that held capacity at ``at``, by the last step before it, or by Describe.

    None: not known, or the one that is known had stopped by then.
    """
    named = [step.attempt for step in steps_of(record) if step.at <= at and step.attempt]
    read = record.snapshot
    if read is not None and read.attempt and read.status in DISPATCHED:
        named += [read.attempt] if (read.dispatched_at or read.read_at) <= at else []
    stopped = {one.training_job: one.stopped_at for one in record.attempts}
    last = named[-1] if named else None
    over = stopped.get(last) if last else None
    return None if over is not None and over + SECOND <= at else last
