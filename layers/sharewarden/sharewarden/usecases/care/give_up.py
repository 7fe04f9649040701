"""The end of a case that nobody could take care of: people are told, and nothing is done."""

from sharewarden.domain.audit import AuditFact, attempt_key
from sharewarden.domain.base import last_part
from sharewarden.domain.facts import job_fact
from sharewarden.domain.findings import notice_of

from .frame import Care, Taken


def give_up(care: Care) -> Taken:
    """The case closed with an alarm that says what is not known. Nothing is done about the job (law 2)."""
    fact = _fact(care)
    title = f"no care of a preemption of {care.record.name}"
    text = f"{fact.reason}. Sharewarden does nothing about it; look at the job and at the state machine's log"
    return Taken(
        care.case.model_copy(update={"closed_at": care.now, "outcome": care.case.outcome or "unknown"}),
        facts=(fact,),
        notices=(notice_of(fact, title, text, "alarm"),),
    )


def _fact(care: Care) -> AuditFact:
    case = care.case
    return job_fact(
        care.record,
        care.policy,
        key=attempt_key("care-given-up", case.job, case.attempt),
        kind="care-given-up",
        at=care.now,
        actor="sharewarden",
        reason=f"the preemption of attempt {last_part(case.attempt)}: {_why(care)}",
        figures={
            "attempt": case.attempt,
            "opened_at": case.opened_at,
            "outcome": case.outcome,
            "measured": case.measured,
            "pinned": case.pinned,
            "proof": case.proof,
        },
    )


def _why(care: Care) -> str:
    if care.case.outcome in (None, "unknown"):
        return "nobody told what became of the job"
    return f"a step failed for good after the job was found {care.case.outcome}"
