"""The first step: what is known of the job's checkpoints without asking anybody."""

from sharewarden.domain.preemption.before_stop import saved_before_next

from .frame import Care, Taken


def note(care: Care) -> Taken:
    """The case with the newest save that the freshness watch has seen, if the attempt may have left it."""
    case, record = care.case, care.record
    if record.checkpoint_uri is None:
        return Taken(case.model_copy(update={"sight": "nowhere"}))
    save = record.saves.newest
    if case.save is not None or save is None or not saved_before_next(record, case.attempt)(save):
        return Taken(case)
    return Taken(case.model_copy(update={"save": save}))
