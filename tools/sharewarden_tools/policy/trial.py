"""What the deployed decision makes of facts that nobody has to have seen: for policy tests and preflight."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sharewarden.domain.audit import AuditFact
from sharewarden.domain.guardrails import decided, guard
from sharewarden.domain.marks import standing
from sharewarden.domain.other_scopes import Found, guard_change, guard_training
from sharewarden.domain.policy import Policy
from sharewarden.domain.record import JobRecord, Snapshot
from sharewarden.domain.rules.base import ACTING, Action, Guardrail, Mode, Scope, Unknown, Verdict
from sharewarden.domain.rules.facts import Facts, ShareChangeFacts, TrainingFacts

#: No commit has to hold what a trial finds.
_ROOM = 100_000


class Finding(NamedTuple):
    """A rule that is broken. ``asked`` is the entry's action, ``action`` the one that would follow here."""

    label: str
    rule: str
    mode: Mode
    action: Action
    asked: Action
    text: str
    figures: dict[str, Any]

    @property
    def acts(self) -> bool:
        """Whether a job would be changed."""
        return self.mode == "enforce" and self.action in ACTING

    @property
    def less(self) -> str:
        """``, since terminate may not be done here``; empty where what is asked for follows."""
        return f", since {self.asked} may not be done here" if self.asked != self.action else ""

    @property
    def follows(self) -> str:
        """``notify``, ``terminate (shadow: only recorded)``."""
        shadow = " (shadow: nothing is done)" if self.mode == "shadow" and self.action in ACTING else ""
        return f"{self.action}{self.less}{shadow}"


class Outcome(NamedTuple):
    """``undecided``: by an entry's label what is not known; ``held``: the entries that are not broken."""

    findings: tuple[Finding, ...]
    undecided: dict[str, str]
    held: tuple[str, ...]


def try_job(policy: Policy, facts: Facts) -> Outcome:
    """What the guardrails say of a job with these facts, seen for the first time."""
    failures = Failures()
    decision = guard(_record(facts), policy, facts, facts.now, room=_ROOM, failed=failures)
    job = facts.job
    entries = [
        entry
        for entry in policy.guardrails
        if entry.scope == "job" and entry.concerns(job.queue, job.share, job.team)
    ]
    found = {fact.key: fact for fact in decision.facts}
    facts_of = {mark.label: found[mark.fact] for mark in standing(decision.record.marks)}
    return _outcome(entries, facts_of, lambda entry: entry.decide(facts), failures)


def try_change(policy: Policy, facts: ShareChangeFacts) -> Outcome:
    """What they say of a change of a share."""
    failures = Failures()
    found = guard_change("the change", facts.queue, facts, policy, failures)
    place = (facts.queue, facts.share, policy.share(facts.queue, facts.share).team)
    entries = [entry for entry in _of_scope(policy, "share-change") if entry.concerns(*place)]
    return _outcome(entries, _by_label(found), lambda entry: entry.decide_change(facts), failures)


def try_training(policy: Policy, facts: TrainingFacts) -> Outcome:
    """What they say of a training job that no queue submitted, if every queue's types are those given."""
    failures = Failures()
    types = dict.fromkeys(policy.queues or ("",), facts.pool_types)
    found = guard_training(facts, types, policy, failures)
    entries = _of_scope(policy, "training")
    return _outcome(entries, _by_label(found), lambda entry: entry.decide_training(facts), failures)


class Failures(dict[str, str]):
    """Entries whose rule raised, and what."""

    def __call__(self, entry: Guardrail, error: Exception) -> None:
        self[entry.label] = f"the rule failed: {error!r}"


def _record(facts: Facts) -> JobRecord:
    job = facts.job
    return JobRecord(
        job=job.id,
        arn=job.id,
        name=job.name,
        queue=job.queue,
        created_at=facts.now,
        share=job.share,
        tags=tuple(sorted((job.tags or {}).items())),
        snapshot=Snapshot(read_at=facts.now, status=job.status),
    )


def _of_scope(policy: Policy, scope: Scope) -> list[Guardrail]:
    return [entry for entry in policy.guardrails if entry.scope == scope]


def _by_label(found: Found) -> dict[str, AuditFact]:
    return {fact.figures["label"]: fact for fact in found.facts}


def _outcome(
    entries: list[Guardrail],
    found: Mapping[str, AuditFact],
    ask: Callable[[Guardrail], Verdict],
    failures: Failures,
) -> Outcome:
    """The findings on record; of the other entries, whether they hold or cannot be decided."""
    findings = [_finding(entry, found[entry.label]) for entry in entries if entry.label in found]
    others = [entry for entry in entries if entry.label not in found]
    unknown = {
        entry.label: failures.get(entry.label) or _why(entry, word)
        for entry in others
        if isinstance(word := decided(entry, ask, failures), Unknown)
    }
    held = tuple(entry.label for entry in others if entry.label not in unknown)
    return Outcome(tuple(findings), unknown, held)


def _finding(entry: Guardrail, fact: AuditFact) -> Finding:
    return Finding(
        label=entry.label,
        rule=entry.rule,
        mode="enforce" if fact.mode == "enforce" else "shadow",
        action=fact.figures["action"],
        asked=entry.action,
        text=fact.reason,
        figures=fact.figures,
    )


def _why(entry: Guardrail, word: Unknown) -> str:
    told = f"{word.what} is not known"
    return f"it takes a look at the whole queue: {told}" if entry.needs_pool else told
