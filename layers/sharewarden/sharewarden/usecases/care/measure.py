"""The step that puts on record what the preemption cost."""

from sharewarden.domain.attempts import Attempt
from sharewarden.domain.booking import started_at
from sharewarden.domain.preemption.case import Case
from sharewarden.domain.preemption.holding import stay_of
from sharewarden.domain.preemption.loss import loss_of, measure_fact
from sharewarden.domain.record import JobRecord
from sharewarden.domain.stored import HOUR, MINUTE

from .frame import Care, Taken

#: Batch tells of a stop seconds after it. What was not told so long after the beginning is not known.
PATIENCE = 1 * HOUR
PAUSE = 1 * MINUTE


def measure(care: Care) -> Taken:
    """One measure, once the attempt has stopped; none of an attempt that was not preempted."""
    case, record = care.case, care.record
    attempt = preempted(record, case)
    if case.measured or (attempt is None and _is_settled(care)):
        return Taken(case)
    if attempt is None or (attempt.stopped_at is None and not _is_settled(care)):
        return Taken(case, wait=PAUSE)
    stay = stay_of(record, attempt.training_job)
    dispatched_at = None if stay is None else stay.since
    trained = attempt.model_copy(update={"started_at": started_at(record, attempt)})
    loss = loss_of(trained, case.save, case.sight, dispatched_at)
    at = case.opened_at if attempt.stopped_at is None else attempt.stopped_at
    fact = measure_fact(record, attempt, loss, case.save, care.policy, at)
    return Taken(case.model_copy(update={"measured": True}), facts=(fact,))


def preempted(record: JobRecord, case: Case) -> Attempt | None:
    """The attempt of the case, if Batch has said that it was preempted."""
    return next((one for one in record.attempts if one.training_job == case.attempt and one.preempted), None)


def _is_settled(care: Care) -> bool:
    """Nothing more will be told."""
    mistaken = care.case.outcome == "mistaken"
    return mistaken or care.record.end is not None or care.now - care.case.opened_at >= PATIENCE
