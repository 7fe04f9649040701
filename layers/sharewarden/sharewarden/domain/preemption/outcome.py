"""What became of a job after one of its attempts was preempted, or was said to be (pure rule).

Batch requeues a preempted job unless its preemption retries are used up (Batch user guide, preemption). With
which event and reason it tells of the latter is not documented: the counts and the end of the job do.
"""

from sharewarden.domain.attempts import Attempt
from sharewarden.domain.observation import SETTLE, TERMINAL, Status
from sharewarden.domain.record import JobRecord, running_attempt, status
from sharewarden.domain.stored import DAY, HOUR, MINUTE, SECOND

from .case import Case, Outcome, attempt_at
from .holding import Stay, followers, stays

#: An attempt stops within two minutes (SageMaker API, StopTrainingJob), and its events come a little later.
GRACE = 3 * MINUTE
#: An attempt that runs so long after its preemption was said to begin was not preempted.
WENT_ON = 1 * HOUR
#: After this nobody will tell: uploads after a stop may hang (sagemaker-python-sdk issue 3062), events come
#: within a day.
BOUND = DAY + SETTLE
#: Between two looks at the record, and between two Describes.
SHORTEST_PAUSE = 30 * SECOND
LONGEST_PAUSE = 1 * HOUR
_QUEUED: frozenset[Status] = frozenset({"SUBMITTED", "PENDING", "RUNNABLE"})


def outcome_of(record: JobRecord, case: Case, now: int) -> Outcome | None:
    """What became of it; None: it is too early to tell."""
    attempt = _attempt(record, case)
    if attempt is not None and attempt.preempted and attempt.stopped_at is not None:
        return _of_preempted(record, attempt, case, now)
    if record.end is not None:
        return _of_ended(record, case, now)
    if _is_mistaken(record, case, now):
        return "mistaken"
    return _of_silence(record, case, now)


def pause(case: Case, now: int) -> int:
    """How long to wait until the record is looked at again: longer the longer nothing was told."""
    return max(SHORTEST_PAUSE, min(LONGEST_PAUSE, (now - case.opened_at) // 4))


def is_ask_due(record: JobRecord, case: Case, now: int) -> bool:
    """Whether Batch is to be asked: no event told for long, or none tells why it ended."""
    if record.end is not None:
        return not _is_read_ended(record)
    read_at = record.snapshot.read_at if record.snapshot is not None else 0
    asked = max(read_at, case.opened_at)
    return now - asked >= max(GRACE, pause(case, now))


def next_stay(record: JobRecord, attempt: str) -> Stay | None:
    """When the job ran again after that attempt: the first later attempt that got as far as running."""
    return next((stay for stay in _later(record, attempt) if stay.running_at is not None), None)


def _of_preempted(record: JobRecord, attempt: Attempt, case: Case, now: int) -> Outcome | None:
    """That it was preempted does not say that it goes on: its end may be told a little later."""
    if any(_later(record, attempt.training_job)):
        return "requeued"
    if record.end is not None:
        return _of_its_end(record) or _of_silence(record, case, now)
    if _waits_again(record, attempt.stopped_at or 0):
        return "requeued"
    return _of_silence(record, case, now)


def _of_its_end(record: JobRecord) -> Outcome | None:
    """No event tells of a termination: that nobody terminated it has to be read."""
    if record.end is not None and record.end.status == "SUCCEEDED":
        return "ended"
    if _was_cancelled(record):
        return "cancelled"
    if not _is_used_up(record):
        return "ended"
    return "exhausted" if _is_read_ended(record) else None


def _is_read_ended(record: JobRecord) -> bool:
    return record.snapshot is not None and record.snapshot.status in TERMINAL


def _is_used_up(record: JobRecord) -> bool:
    """The job's limit of preemptions is passed; a negative one is none."""
    retries = record.preemption_retries
    return retries is not None and 0 <= retries < record.preempted_count


def _waits_again(record: JobRecord, stopped_at: int) -> bool:
    """It was put back into the queue after the stop.

    Of a job that has no retry left only Batch is believed, some time after: it may be on its way to its end.
    """
    read, used_up = record.snapshot, _is_used_up(record)
    since = stopped_at + (GRACE if used_up else 0)
    if read is not None and read.status in _QUEUED and read.read_at >= since:
        return True
    told = any(one.status in _QUEUED and one.at + SECOND > stopped_at for one in record.timeline)
    return told and not used_up and status(record) not in TERMINAL


def _of_silence(record: JobRecord, case: Case, now: int) -> Outcome | None:
    return "unknown" if now - case.opened_at >= BOUND or record.closed_at is not None else None


def _of_ended(record: JobRecord, case: Case, now: int) -> Outcome | None:
    """A job that ended, whose attempt nobody called preempted: that may still be on its way."""
    end = record.end
    if end is None or now - max(end.at, case.opened_at) < SETTLE:
        return None
    if _is_other(record, case) or any(_later(record, case.attempt)):
        return "mistaken"
    return "cancelled" if _was_cancelled(record) else "ended"


def _is_mistaken(record: JobRecord, case: Case, now: int) -> bool:
    """The event that opened the case meant another attempt, or this one went on."""
    if now - case.opened_at < SETTLE:
        return False
    if _is_other(record, case):
        return True
    read = record.snapshot
    went_on = read is not None and read.status == "RUNNING" and read.attempt == case.attempt
    runs = status(record) == "RUNNING" and running_attempt(record) == case.attempt
    return went_on and runs and read is not None and read.read_at - case.opened_at >= WENT_ON


def _is_other(record: JobRecord, case: Case) -> bool:
    """By what is known now, another attempt held capacity then, or was the one that was preempted."""
    named = attempt_at(record, case.opened_at)
    stopped = (one for one in record.attempts if one.preempted and one.training_job != case.attempt)
    meant = any(0 <= (one.stopped_at or 0) - case.opened_at + SECOND <= GRACE for one in stopped)
    return meant or named not in (None, case.attempt)


def _was_cancelled(record: JobRecord) -> bool:
    """Somebody's termination was accepted, ours or another one."""
    read = record.snapshot
    ours = any(wish.end == "done" for wish in record.terminations)
    return ours or (read is not None and read.terminated)


def _attempt(record: JobRecord, case: Case) -> Attempt | None:
    return next((one for one in record.attempts if one.training_job == case.attempt), None)


def _later(record: JobRecord, attempt: str) -> tuple[Stay, ...]:
    """The times in which later attempts held capacity, as events told, else as Batch lists them."""
    stop = next((one.stopped_at for one in record.attempts if one.training_job == attempt), None)
    if stop is None:
        return ()
    told = [
        stay for stay in stays(record) if stay.attempt not in (None, attempt) and stay.since + SECOND > stop
    ]
    known = {stay.attempt for stay in told}
    listed = [_listed(one, stop) for one in followers(record, attempt) if one.training_job not in known]
    return tuple(sorted((*told, *listed), key=_since))


def _listed(attempt: Attempt, stop: int) -> Stay:
    since = attempt.started_at or attempt.stopped_at or stop
    return Stay(attempt.training_job, stop, since, attempt.started_at, attempt.stopped_at)


def _since(stay: Stay) -> int:
    return stay.since
