"""The step that has an exhausted job submitted again, if the policy wants that: ``apply`` does it (law 3)."""

from sharewarden.domain.base import last_part
from sharewarden.domain.resubmitting import plan
from sharewarden.domain.stored import MINUTE

from .frame import Care, Taken

#: The sweep gives the wish to ``apply``, every five minutes.
PAUSE = 5 * MINUTE


def resubmit(care: Care) -> Taken:
    """One decision for a job, on record whichever way; done once the wish that it led to has ended.

    The job that goes on is then the case's ``next_job``; None: there is none.
    """
    case, wish = care.case, care.record.resubmission
    if case.outcome != "exhausted":
        return Taken(case)
    if not case.resubmitted:
        return _decided(care)
    if wish is None or wish.attempt != case.attempt:
        return Taken(case)
    if wish.end is None:
        return Taken(case, wait=PAUSE)
    made = None if wish.next_job is None else last_part(wish.next_job)
    return Taken(case.model_copy(update={"next_job": made}))


def _decided(care: Care) -> Taken:
    case = care.case.model_copy(update={"resubmitted": True})
    decision = plan(care.record, case.attempt, case.save, care.policy, care.now)
    waits = decision.record.resubmission is not None
    return Taken(
        case,
        record=decision.record,
        facts=decision.facts,
        notices=decision.notices,
        wait=PAUSE if waits else None,
    )
