"""The step that puts on record who is taken to be behind the preemption, and how long that job had waited."""

from sharewarden.domain.attempts import Attempt
from sharewarden.domain.preemption.contenders import look_around, victim_of
from sharewarden.domain.preemption.holding import Stay, stays
from sharewarden.domain.preemption.inference import Inferred
from sharewarden.domain.preemption.preemptor import WINDOW, infer
from sharewarden.domain.preemption.preemptor_fact import preemptor_fact
from sharewarden.domain.record import JobRecord
from sharewarden.domain.share import ShareRecord
from sharewarden.domain.stored import HOUR, MINUTE, SECOND

from .frame import Care, Taken
from .measure import preempted

#: Events of what was dispatched in the window come a little later.
LATE = 30 * SECOND
#: Two sweeps have looked at the shares by then: one of them may have found a limit lowered.
SWEPT = 11 * MINUTE
#: The preemptor is waited for so long to run; to acquire its instances takes minutes.
PATIENCE = 1 * HOUR
PAUSE = 2 * MINUTE


def preemptor(care: Care) -> Taken:
    """First the inference, kept in the case once all that it needs has had its time; then the record, once.

    An exhausted job waits to be resubmitted: there only the window is waited for.
    """
    case, attempt = care.case, preempted(care.record, care.case)
    if case.preemptor_told or attempt is None:
        return Taken(case)
    if attempt.stopped_at is None:
        return _told(care, attempt, _UNSTOPPED, None)
    if case.preemptor is not None:
        return _followed(care, attempt, case.preemptor)
    since = care.now - attempt.stopped_at
    if since < WINDOW + LATE:
        return Taken(case, wait=WINDOW + LATE - since)
    found = _inferred(care, attempt, attempt.stopped_at)
    if found.confidence is None and since < SWEPT and not _is_urgent(care):
        return Taken(case, wait=SWEPT - since)
    return _followed(care, attempt, found)


_UNSTOPPED = Inferred(kind="unknown", why="Batch never told when the attempt stopped")
_UNSIZED = Inferred(kind="unknown", why="the job's share, its instance type or their number is not known")


def _inferred(care: Care, attempt: Attempt, stopped_at: int) -> Inferred:
    """One pass over the open jobs of the queue. Raises Unavailable."""
    queue, runtime = care.record.queue, care.runtime
    victim = victim_of(care.record, attempt, stopped_at, care.case)
    if victim is None:
        return _UNSIZED
    records = runtime.ledger.open_items(JobRecord, queue)
    return infer(victim, look_around(victim, records, runtime.ledger.open_items(ShareRecord, queue)))


def _followed(care: Care, attempt: Attempt, found: Inferred) -> Taken:
    """After a cross-share preemption the owner's wait ends when the preemptor runs: that is waited for."""
    job = None if found.job is None else care.runtime.ledger.load(JobRecord, found.job)
    if job is None:
        return _told(care, attempt, found, None)
    stay = next((one for one in stays(job) if _is_meant(one, found)), None)
    over = found.kind != "cross-share" or (stay is not None and (stay.running_at or stay.until))
    patient = not _is_urgent(care) and care.now - (attempt.stopped_at or 0) < PATIENCE
    if not over and patient:
        return Taken(care.case.model_copy(update={"preemptor": found}), wait=PAUSE)
    return _told(care, attempt, found, (job, stay))


def _is_meant(stay: Stay, found: Inferred) -> bool:
    if found.attempt is not None and stay.attempt is not None:
        return stay.attempt == found.attempt
    return stay.waited_since == found.waited_since


def _is_urgent(care: Care) -> bool:
    return care.case.outcome == "exhausted"


def _told(care: Care, attempt: Attempt, found: Inferred, by: tuple[JobRecord, Stay | None] | None) -> Taken:
    at = care.case.opened_at if attempt.stopped_at is None else attempt.stopped_at
    fact = preemptor_fact(care.record, attempt, found, by, care.policy, at)
    after = care.case.model_copy(update={"preemptor": found, "preemptor_told": True})
    return Taken(after, facts=(fact,))
