"""What the deployed decision makes of facts that nobody has to have seen: for policy tests and preflight."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from sharewarden.domain.decide import Decision
from sharewarden.domain.guardrails import guard
from sharewarden.domain.marks import Mark, standing
from sharewarden.domain.policy import Policy
from sharewarden.domain.record import JobRecord, Snapshot
from sharewarden.domain.rules.base import Action, Fires, Guardrail, Mode, Scope, Unknown, Verdict
from sharewarden.domain.rules.facts import Facts, ShareChangeFacts, TrainingFacts

from .checks import ACTING

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
    def follows(self) -> str:
        """``notify``, ``terminate (shadow: only recorded)``."""
        less = f", since {self.asked} may not be done here" if self.asked != self.action else ""
        shadow = " (shadow: nothing is done)" if self.mode == "shadow" and self.action in ACTING else ""
        return f"{self.action}{less}{shadow}"


class Outcome(NamedTuple):
    """``undecided``: by an entry's label what is not known; ``held``: the entries that are not broken."""

    findings: tuple[Finding, ...]
    undecided: dict[str, str]
    held: tuple[str, ...]


def try_job(policy: Policy, facts: Facts) -> Outcome:
    """What the guardrails say of a job with these facts, seen for the first time."""
    broken: dict[str, str] = {}
    record = _record(facts)
    decision = guard(
        record,
        policy,
        facts,
        facts.now,
        room=_ROOM,
        failed=lambda entry, error: broken.update({entry.label: f"the rule failed: {error!r}"}),
    )
    findings = tuple(_findings(policy, decision))
    found = {finding.label for finding in findings}
    job = facts.job
    others = [
        entry
        for entry in policy.guardrails
        if entry.scope == "job"
        and entry.label not in found
        and entry.concerns(job.queue, job.share, job.team)
    ]
    words = {entry.label: broken.get(entry.label) or _unknown(entry, entry.decide(facts)) for entry in others}
    return _outcome(findings, words)


def try_change(policy: Policy, facts: ShareChangeFacts) -> Outcome:
    """What they say of a change of a share."""
    team = policy.share(facts.queue, facts.share).team
    entries = [
        entry for entry in _of_scope(policy, "share-change") if entry.concerns(facts.queue, facts.share, team)
    ]
    return _told_only(policy, facts.queue, entries, lambda entry: entry.decide_change(facts))


def try_training(policy: Policy, facts: TrainingFacts) -> Outcome:
    """What they say of a training job that no queue submitted: the entries of every queue are about it."""
    queue = next(iter(policy.queues), "")
    return _told_only(
        policy, queue, _of_scope(policy, "training"), lambda entry: entry.decide_training(facts)
    )


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


def _findings(policy: Policy, decision: Decision) -> Iterator[Finding]:
    entries = {entry.label: entry for entry in policy.guardrails}
    facts = {fact.key: fact for fact in decision.facts}
    for mark in standing(decision.record.marks):
        yield _finding(entries[mark.label], mark, facts[mark.fact].reason, facts[mark.fact].figures)


def _finding(entry: Guardrail, mark: Mark, text: str, figures: dict[str, Any]) -> Finding:
    return Finding(mark.label, entry.rule, mark.mode, mark.action, entry.action, text, figures)


def _of_scope(policy: Policy, scope: Scope) -> list[Guardrail]:
    return [entry for entry in policy.guardrails if entry.scope == scope]


def _told_only(
    policy: Policy, queue: str, entries: list[Guardrail], decide: Callable[[Guardrail], Verdict]
) -> Outcome:
    verdicts = {entry.label: (entry, decide(entry)) for entry in entries}
    findings = tuple(
        Finding(
            label,
            entry.rule,
            entry.mode or policy.queue(queue).mode,
            entry.action,
            entry.action,
            word.text,
            word.figures,
        )
        for label, (entry, word) in verdicts.items()
        if isinstance(word, Fires)
    )
    words = {
        label: _unknown(entry, word)
        for label, (entry, word) in verdicts.items()
        if not isinstance(word, Fires)
    }
    return _outcome(findings, words)


def _unknown(entry: Guardrail, word: Verdict) -> str | None:
    """Why the entry cannot be decided; None when it holds."""
    if not isinstance(word, Unknown):
        return None
    return "it takes a look at the whole queue" if entry.needs_pool else f"{word.what} is not known"


def _outcome(findings: tuple[Finding, ...], words: dict[str, str | None]) -> Outcome:
    undecided = {label: why for label, why in words.items() if why is not None}
    return Outcome(findings, undecided, tuple(label for label, why in words.items() if why is None))
