"""The step that waits until it is known what became of the job."""

from sharewarden.domain.decide import decide_read
from sharewarden.domain.preemption.outcome import is_ask_due, outcome_of, pause
from sharewarden.domain.stored import SECOND
from sharewarden.usecases.change import change

from .frame import Care, Taken


def outcome(care: Care) -> Taken:
    """The record tells, by events and by the sweep's Describes; Batch is asked when it should have told.

    Raises Unavailable.
    """
    case, record, now = care.case, care.record, care.now
    if case.outcome is not None:
        return Taken(case)
    found = outcome_of(record, case, now)
    if found is not None:
        return Taken(case.model_copy(update={"outcome": found}))
    if is_ask_due(record, case, now) and _ask(care):
        return Taken(case, wait=SECOND)
    return Taken(case, wait=pause(case, now))


def _ask(care: Care) -> bool:
    """Put on record what Batch says. That it knows no such job is the sweep's to judge."""
    description = care.runtime.batch.describe(care.record.arn)
    if description is None:
        return False
    change(care.runtime, care.record.job, lambda record: decide_read(record, description, care.policy))
    return True
