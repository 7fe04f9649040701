"""The step that waits until the job runs again, and for the evidence that it went on from its checkpoint."""

from sharewarden.domain.checkpoints import Save
from sharewarden.domain.preemption.case import Case
from sharewarden.domain.preemption.holding import Stay, stays
from sharewarden.domain.preemption.outcome import next_stay, pause
from sharewarden.domain.preemption.resuming import (
    LONGEST_WAIT,
    Resume,
    prove,
    resume_facts,
    saved_in,
    unproved,
)
from sharewarden.domain.record import JobRecord
from sharewarden.domain.saves import SHORTEST, UNKNOWN, usual_interval
from sharewarden.domain.stored import MINUTE, SECOND
from sharewarden.ports import Denied, Unavailable
from sharewarden.usecases.checkpoints import Looked, newest

from .frame import Care, Taken
from .neighbours import may_be_of

#: Between two looks at most: a first save that is seen late proves nothing where only names tell steps.
LONGEST = 15 * MINUTE


def resumed(care: Care) -> Taken:
    """Done once there is a proof, or none will come; what is known is on record then. Once at most each."""
    case = care.case
    if case.proof not in (None, "none-yet") or (case.outcome == "exhausted" and case.next_job is None):
        return Taken(case)
    runs = care.record if case.next_job is None else care.runtime.ledger.load(JobRecord, case.next_job)
    if runs is None:
        return _unseen(care)
    stay = next_stay(runs, case.attempt) if case.next_job is None else _first(runs)
    if stay is None:
        over = runs.end is not None or runs.closed_at is not None
        return _said(care, None, _not_seen(runs)) if over else Taken(case, wait=_pause(care))
    return _looked(care._replace(case=case.model_copy(update={"next_attempt": stay.attempt})), runs, stay)


def _not_seen(runs: JobRecord) -> Resume:
    """That it never ran is known only of a job that ended otherwise than well: events may be lost."""
    if runs.end is not None and runs.end.status != "SUCCEEDED":
        return Resume(proof="never-ran")
    return Resume(proof="not-provable", why="nobody told when its next attempt ran")


def _unseen(care: Care) -> Taken:
    """The job in its place has no record yet: the next sweep takes it in."""
    if care.now - care.case.opened_at < LONGEST_WAIT:
        return Taken(care.case, wait=_pause(care))
    return _said(care, None, Resume(proof="not-provable", why="the job in its place was never seen"))


def _first(record: JobRecord) -> Stay | None:
    return next((stay for stay in stays(record) if stay.running_at is not None), None)


def _looked(care: Care, runs: JobRecord, stay: Stay) -> Taken:
    case, uri = care.case, runs.checkpoint_uri
    if case.save is None or uri is None:
        return _said(care, stay, _nothing(case))
    try:
        found = _look(care, uri, stay)
    except Unavailable as error:
        late = care.now - (stay.running_at or stay.since) >= LONGEST_WAIT
        known = Resume(proof="not-provable", why=str(error))
        return _said(care, stay, known) if late else Taken(case, wait=UNKNOWN)
    except Denied as error:
        return _said(care, stay, Resume(proof="not-provable", why=str(error)))
    return _judged(care, runs, stay, case.save, found)


def _look(care: Care, uri: str, stay: Stay) -> Looked:
    """At what that attempt saved; S3 tells whole seconds."""
    patterns, since = care.policy.checkpoints.patterns, (stay.running_at or stay.since) - SECOND
    return newest(care.runtime, uri, patterns, care.now, lambda save: saved_in(stay, save), since)


def _nothing(case: Case) -> Resume:
    if case.sight == "unknown" or case.sight is None:
        return Resume(proof="not-provable", why="what it had saved could not be read")
    return Resume(proof="nothing-saved")


def _judged(care: Care, runs: JobRecord, stay: Stay, before: Save, looked: Looked) -> Taken:
    case, interval = care.case, usual_interval(runs.saves)
    proof = None
    other = looked.save and may_be_of(care.runtime, runs, looked.save, stay.since)
    if other:
        proof = Resume(proof="not-provable", save=looked.save, why=f"job {other} saves to the same place")
    elif looked.save is not None:
        unseen_at = max(case.unseen_at, stay.running_at or stay.since)
        proof = prove(before, looked.save, unseen_at, max(LONGEST, interval or 0))
    elif not looked.partial:
        case = case.model_copy(update={"unseen_at": care.now})
    proof = proof or unproved(case, stay, runs, care.now)
    if proof is None:
        return Taken(case, wait=min(LONGEST, max(SHORTEST, (interval or UNKNOWN) // 2)))
    return _said(care._replace(case=case), stay, proof)


def _said(care: Care, stay: Stay | None, found: Resume) -> Taken:
    fact, notices = resume_facts(care.record, care.case, stay, found, care.policy, care.now)
    after = care.case.model_copy(update={"proof": found.proof})
    again = LONGEST if found.proof == "none-yet" else None
    return Taken(after, facts=(fact,), notices=notices, wait=again)


def _pause(care: Care) -> int:
    return min(LONGEST, pause(care.case, care.now))
