"""Whether a job went on from what it had saved before its preemption (design law 8).

A job that runs again proves nothing: the evidence is what its next attempt saves. The training helper writes
down the step that it went on from; of other layouts the steps in their names tell, as far as they are seen
soon enough.
"""

from typing import Any

from sharewarden.domain.audit import AuditFact, attempt_key, subject_key
from sharewarden.domain.base import Frozen, last_part
from sharewarden.domain.checkpoints import Save
from sharewarden.domain.durations import format_duration
from sharewarden.domain.facts import job_fact
from sharewarden.domain.findings import notice_of
from sharewarden.domain.notice import Notice, Severity
from sharewarden.domain.policy import Policy
from sharewarden.domain.record import JobRecord
from sharewarden.domain.saves import SKEW, usual_interval
from sharewarden.domain.stored import DAY, HOUR, MINUTE, SECOND

from .case import Case, Proof
from .holding import Stay

#: So many of its usual intervals may pass without a save ...
INTERVALS = 3
#: ... and never less than this: a restart loads its checkpoint first.
SHORTEST_WAIT = 1 * HOUR
#: After this nobody looks any longer whether the next attempt saves.
LONGEST_WAIT = 3 * DAY
#: What is saved at the end of an attempt is copied to S3 a little later, also while the next one begins.
COPIED = 2 * MINUTE

_SEVERITY: dict[Proof, Severity] = {
    "from-zero": "alarm",
    "older": "alarm",
    "none-yet": "alarm",
    "not-provable": "warning",
}


class Resume(Frozen):
    """What is known of the going on; ``save`` is the evidence."""

    proof: Proof
    save: Save | None = None
    why: str = ""


def saved_in(stay: Stay, save: Save) -> bool:
    """Whether the save was made by the attempt that held capacity then, or may have been."""
    if save.training_job is not None and stay.attempt is not None:
        return save.training_job == last_part(stay.attempt)
    since = stay.since if stay.running_at is None else stay.running_at
    return since + COPIED <= save.saved_at <= (stay.until or save.saved_at) + SKEW


def prove(before: Save, found: Save, unseen_at: int, pace: int) -> Resume | None:
    """What a save of the next attempt says of where it went on; None: nothing yet.

    ``unseen_at``: when a look had last shown no save of that attempt; ``pace``: the usual time between two
    saves. Without a word of the helper's, a save that came so soon after is the first one, and a training
    that began anew cannot have passed the old step by then.
    """
    if before.step is None or found.step is None:
        return Resume(proof="not-provable", save=found, why="what it saves does not tell steps")
    if found.layout == "manifest":
        return _by_its_word(before.step, found, found.step)
    if found.step == before.step:
        return None  # may be the same set, copied again
    if found.step < before.step:
        return Resume(proof="older", save=found)
    if found.saved_at - unseen_at > 2 * pace:
        return Resume(proof="not-provable", save=found, why="its first save was not seen in time")
    return Resume(proof="resumed", save=found)


def _by_its_word(before: int, found: Save, step: int) -> Resume | None:
    if found.resumed_from is None:
        if step > before:  # other writers of the format may leave the word out
            return Resume(proof="not-provable", save=found, why="it does not say where it went on")
        return Resume(proof="from-zero", save=found)
    if step < found.resumed_from:
        return Resume(proof="not-provable", save=found, why="its step is below the one that it names")
    proof: Proof = "older" if found.resumed_from < before else "resumed"
    return Resume(proof=proof, save=found)


def patience(record: JobRecord) -> int:
    """How long the next attempt may run without a save before people are told, in milliseconds."""
    return max(SHORTEST_WAIT, INTERVALS * (usual_interval(record.saves) or 0))


def unproved(case: Case, stay: Stay, record: JobRecord, now: int) -> Resume | None:
    """What is said of a next attempt whose saves show nothing; None: it still has time.

    ``record``: of the job that runs, whose usual interval counts.
    """
    ran_for = now - (stay.since if stay.running_at is None else stay.running_at)
    if stay.until is not None or record.closed_at is not None:
        early = stay.until is not None and now - stay.until < COPIED
        return None if early else Resume(proof="not-provable", why="its next attempt ended without a proof")
    if ran_for >= LONGEST_WAIT:
        why = f"its next attempt showed nothing in {format_duration(LONGEST_WAIT)}"
        return Resume(proof="not-provable", why=why)
    if case.proof is None and ran_for >= patience(record):
        return Resume(proof="none-yet", why=f"it runs for {format_duration(ran_for // SECOND * SECOND)}")
    return None


def resume_facts(
    record: JobRecord, case: Case, stay: Stay | None, found: Resume, policy: Policy, now: int
) -> tuple[AuditFact, tuple[Notice, ...]]:
    """The record of it, and what people are told. "None yet" is told beside what comes in the end."""
    early = found.proof == "none-yet"
    key = subject_key("resume", case.job, case.attempt, found.proof) if early else None
    fact = job_fact(
        record,
        policy,
        key=key or attempt_key("resume", case.job, case.attempt),
        kind="resume",
        at=_time_of(stay, found, now),
        actor="sharewarden",
        after=found.proof,
        reason=_text(case, found),
        figures=_figures(record, case, stay, found),
    )
    severity = _SEVERITY.get(found.proof)
    if severity is None or (found.proof == "not-provable" and found.save is None):
        return fact, ()  # that it saved nothing, or that S3 refuses, is no fault of how it saves
    title = f"{record.name} was preempted: {_TITLES[found.proof]}"
    return fact, (notice_of(fact, title, f"{fact.reason}. {_HELP[found.proof]}", severity),)


_TITLES: dict[Proof, str] = {
    "from-zero": "it began again from zero",
    "older": "it went on from an older checkpoint",
    "none-yet": "it runs again and has saved nothing",
    "not-provable": "whether it went on from its checkpoint is not known",
}
_HELP: dict[Proof, str] = {
    "from-zero": "Is its checkpoint gone? sharewarden checkpoints restore. Else its script does not load it",
    "older": "Is the newer one gone? sharewarden checkpoints restore. Else its script loads the wrong one",
    "none-yet": "It may be loading, or training without saving; what it does would be lost again",
    "not-provable": "The training helper writes down where it goes on (docs/checkpoint-format.md)",
}


def _time_of(stay: Stay | None, found: Resume, now: int) -> int:
    if found.save is not None:
        return min(now, found.save.saved_at)
    if found.proof == "none-yet" or stay is None:
        return now
    return stay.until or now


def _figures(record: JobRecord, case: Case, stay: Stay | None, found: Resume) -> dict[str, Any]:
    stop = next((one.stopped_at for one in record.attempts if one.training_job == case.attempt), None)
    ran_at = None if stay is None else stay.running_at
    known = stop is not None and ran_at is not None
    return {
        "attempt": case.attempt,
        "next_attempt": None if stay is None else stay.attempt,
        "next_job": case.next_job,
        "proof": found.proof,
        "saved_step": case.save.step if case.save else None,
        "resumed_from": found.save.resumed_from if found.save else None,
        "step": found.save.step if found.save else None,
        "save": found.save.name if found.save else None,
        "pause_seconds": max(0, (ran_at or 0) - (stop or 0)) / SECOND if known else None,
    }


def _text(case: Case, found: Resume) -> str:
    before = "?" if case.save is None or case.save.step is None else case.save.step
    after = "?" if found.save is None or found.save.step is None else found.save.step
    texts: dict[Proof, str] = {
        "resumed": f"it went on from step {before}: its next attempt saved step {after}",
        "from-zero": f"it had saved step {before} and began again from zero{_from(found.save)}",
        "older": f"it had saved step {before} and went on from an older one{_from(found.save)}",
        "none-yet": f"it had saved step {before}, and its next attempt has saved nothing: {found.why}",
        "not-provable": f"whether it went on from step {before} is not known: {found.why}",
        "nothing-saved": "there was nothing to go on from",
        "never-ran": "it did not run again",
    }
    return texts[found.proof]


def _from(save: Save | None) -> str:
    if save is None:
        return ""
    at = f" (step {save.resumed_from})" if save.resumed_from is not None else ""
    return f"{at}: it saved step {save.step}"
