"""The audit facts and notices of what guardrails find."""

from typing import Any

from .audit import AuditFact, rule_actor, subject_key
from .base import NO_TEAM
from .durations import format_duration
from .facts import job_fact
from .marks import Mark
from .notice import Notice, Severity
from .policy import Policy
from .record import JobRecord
from .rules.base import Fires, Guardrail
from .rules.facts import Facts

_SPARED = (
    "the share is protected, the job has ended or was there before Sharewarden looked, or the rule spares it"
)


def finding_key(record: JobRecord, mark: Mark, facts: Facts) -> str:
    """``finding#<job, or team>#<label>#<fingerprint>#<subject>``.

    Found again after it had held, a job's finding has its number behind the subject. A team's has not: many
    jobs show the same one.
    """
    if mark.about == "team":
        return subject_key("finding", facts.job.team or NO_TEAM, mark.label, mark.fingerprint, mark.subject)
    subject = f"{mark.subject}~{mark.count}" if mark.count > 1 else mark.subject
    return subject_key("finding", record.job, mark.label, mark.fingerprint, subject)


def finding_fact(
    record: JobRecord, mark: Mark, entry: Guardrail, verdict: Fires, policy: Policy, facts: Facts
) -> AuditFact:
    """A rule is broken. ``figures`` has the rule's own, and what follows or would follow."""
    return job_fact(
        record,
        policy,
        key=mark.fact,
        kind="finding",
        at=mark.since,
        actor=rule_actor(mark.label),
        mode=mark.mode,
        reason=verdict.text,
        figures=verdict.figures | _named(mark, entry),
        inputs=inputs_of(facts),
    )


def cleared_fact(record: JobRecord, mark: Mark, why: str, policy: Policy, now: int) -> AuditFact:
    """A finding is over."""
    return job_fact(
        record,
        policy,
        key=f"finding-cleared{mark.fact.removeprefix('finding')}",
        kind="finding-cleared",
        at=now,
        actor=rule_actor(mark.label),
        mode=mark.mode,
        reason=why,
        figures={"label": mark.label, "action": mark.action, "since": mark.since, "finding": mark.fact},
    )


def finding_notice(fact: AuditFact, mark: Mark, entry: Guardrail) -> Notice:
    """What people are told of a finding about a job."""
    text = "; ".join(filter(None, (fact.reason, _consequence(mark, entry))))
    severity: Severity = "alarm" if mark.action == "terminate" else "warning"
    return notice_of(fact, f"{mark.label}: {fact.job_name}", text, severity)


def notice_of(fact: AuditFact, title: str, text: str, severity: Severity = "warning") -> Notice:
    """The notice that tells a fact."""
    return Notice(
        fact=fact.key,
        kind=fact.kind,
        at=fact.at,
        severity=severity,
        title=title,
        text=text,
        queue=fact.queue or "",
        share=fact.share,
        team=fact.team,
        job=fact.job,
        job_name=fact.job_name,
        policy=fact.policy,
        mode=fact.mode,
    )


def inputs_of(facts: Any) -> dict[str, Any]:
    """The facts as the audit keeps them: without what is not known."""
    kept: dict[str, Any] = facts.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    return kept


def _named(mark: Mark, entry: Guardrail) -> dict[str, Any]:
    named = {
        "rule": entry.rule,
        "label": mark.label,
        "action": mark.action,
        "subject": mark.subject,
        "count": mark.count,
    }
    return named if entry.action == mark.action else named | {"asked": entry.action}


def _consequence(mark: Mark, entry: Guardrail) -> str:
    if entry.action != mark.action:
        return f"{entry.action} is not done: {_SPARED}"
    would = "would go" if mark.mode == "shadow" else "goes"
    if mark.action == "lower-priority":
        return f"its priority {would} down by {entry.points} until the rule holds again"
    if mark.action == "terminate":
        would = "would be" if mark.mode == "shadow" else "is"
        grace = format_duration(entry.grace)
        return f"it {would} terminated after {grace} at the earliest, by a sweep, unless the rule holds again"
    return ""
