"""Audit facts and their natural keys.

A key comes from the fact alone: event ids, the delivery path and the share stay outside, so whoever
finds a fact (react or sweep, early or late) writes the same record, and the second write changes nothing.
"""

from typing import Any, Literal

from pydantic import Field

from .base import Frozen

Kind = Literal[
    "preemption",
    "preemption-measure",
    "preemptor",
    "job-ended",
    "job-timeline",
    "priority-changed",
    "drift",
    "attribution",
    "bump",
    "unbump",
    "boost-ended",
    "wish-dropped",
    "terminated",
    "cap-hit",
    "quota-share-change",
    "policy-changed",
    "finding",
    "finding-cleared",
    "checkpoint-unreadable",
    "checkpoint-pinned",
    "checkpoint-unprotected",
    "checkpoint-restored",
    "checkpoint-unpinned",
    "resume",
    "care-given-up",
    "save-request",
    "resubmitted",
    "resubmit-refused",
    "adoption",
    "gap",
    "unrecognised",
]
#: Who acted where no person, rule or AWS principal is known to have.
BATCH = "batch"


class AuditFact(Frozen):
    """One append-only record. ``at`` is the time of the fact, not of writing it.

    ``mode`` tells an effect (``enforce``) from a plan (``shadow``); facts that AWS reported are ``observed``.
    """

    key: str
    kind: Kind
    at: int
    queue: str | None = None
    share: str | None = None
    team: str | None = None
    job: str | None = None
    job_name: str | None = None
    lineage: str | None = None
    actor: str = BATCH
    mode: Literal["observed", "shadow", "enforce"] = "observed"
    before: str | None = None
    after: str | None = None
    reason: str = ""
    figures: dict[str, Any] = Field(default_factory=dict)
    """Numbers and texts that belong to the fact; durations in seconds, times in epoch milliseconds."""
    inputs: dict[str, Any] = Field(default_factory=dict)
    """What the decision was made from."""
    policy: str | None = None
    """Hash of the policy in force when the fact was recorded."""


class AuditRecord(AuditFact):
    """A fact as the ledger keeps it."""

    recorded_at: int


def attempt_key(kind: Kind, job: str, training_job: str) -> str:
    """Key of a fact about one preempted attempt."""
    return f"{kind}#{job}#{training_job}"


def job_key(kind: Kind, job: str) -> str:
    """Key of a fact that happens once in a job's life."""
    return f"{kind}#{job}"


def version_key(kind: Kind, job: str, version: int) -> str:
    """Key of the outcome of one wish."""
    return f"{kind}#{job}#v{version}"


def rule_actor(label: str) -> str:
    """Who acts when a guardrail of that name does."""
    return f"guardrail:{label}"


def subject_key(kind: Kind, *subject: object) -> str:
    """Key of a fact named by several parts, in their order."""
    return "#".join((kind, *map(str, subject)))
