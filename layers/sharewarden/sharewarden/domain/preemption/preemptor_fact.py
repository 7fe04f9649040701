"""The audit record of who is taken to be behind a preemption."""

from typing import Any

from sharewarden.domain.attempts import Attempt
from sharewarden.domain.audit import AuditFact, attempt_key
from sharewarden.domain.durations import format_duration
from sharewarden.domain.facts import job_fact, team
from sharewarden.domain.policy import Policy
from sharewarden.domain.record import JobRecord
from sharewarden.domain.stored import SECOND

from .holding import Stay
from .inference import Inferred


def preemptor_fact(
    record: JobRecord,
    attempt: Attempt,
    found: Inferred,
    by: tuple[JobRecord, Stay | None] | None,
    policy: Policy,
    at: int,
) -> AuditFact:
    """``by``: the record of the job that was inferred, and its time on the instances; ``at``: of the stop."""
    figures: dict[str, Any] = {
        "kind": found.kind,
        "attempt": attempt.training_job,
        "confidence": found.confidence,
        "evidence": found.figures,
    }
    figures |= _of_nobody() if by is None else _of(*by, found, policy)
    return job_fact(
        record,
        policy,
        key=attempt_key("preemptor", record.job, attempt.training_job),
        kind="preemptor",
        at=at,
        reason=_text(found, by, figures["waited_seconds"]),
        figures=figures,
    )


_FIGURES = (
    *("preemptor", "preemptor_name", "preemptor_share", "preemptor_team", "preemptor_attempt"),
    *("waited_since", "running_at", "waited_seconds", "bump"),
)


def _of_nobody() -> dict[str, Any]:
    return dict.fromkeys(_FIGURES)


def _of(job: JobRecord, stay: Stay | None, found: Inferred, policy: Policy) -> dict[str, Any]:
    """``waited_seconds``: from the submission, or the requeue, to RUNNING."""
    running_at = None if stay is None else stay.running_at
    known = running_at is not None and found.waited_since is not None
    waited = max(0, (running_at or 0) - (found.waited_since or 0)) if known else None
    return {
        "preemptor": job.job,
        "preemptor_name": job.name,
        "preemptor_share": job.share,
        "preemptor_team": team(job, policy),
        "preemptor_attempt": found.attempt or (stay.attempt if stay else None),
        "waited_since": found.waited_since,
        "running_at": running_at,
        "waited_seconds": None if waited is None else waited / SECOND,
        "bump": found.figures.get("bump"),
    }


def _text(found: Inferred, by: tuple[JobRecord, Stay | None] | None, waited: float | None) -> str:
    sure = "" if found.confidence is None else f" (confidence {found.confidence})"
    if by is None:
        return f"{found.kind}{sure}: {found.why}"
    job, _ = by
    parts = [f"{found.kind} by {job.name} of share {job.share}{sure}: {found.why}"]
    if waited is not None:
        parts.append(f"it had waited {format_duration(int(waited * SECOND))} until it ran")
    if bump := found.figures.get("bump"):
        parts.append(f"{bump['by']} had raised it by {bump['amount']:+d}")
    return "; ".join(parts)
