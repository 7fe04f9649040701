"""Guardrails on what is no job of a queue (scopes ``share-change`` and ``training``).

Changed quota shares, and training jobs that were started around the queues. Nothing is remembered of them:
the natural key of what happened makes a finding one. Nothing is done, either.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from .audit import AuditFact, rule_actor, subject_key
from .base import last_part
from .findings import inputs_of, notice_of
from .guardrails import Failed, decided
from .notice import Notice
from .policy import Policy
from .rules.base import Fires, Guardrail, Scope, Verdict
from .rules.facts import ShareChangeFacts, TrainingFacts


class Found(NamedTuple):
    """What guardrails found, to be committed together."""

    facts: tuple[AuditFact, ...] = ()
    notices: tuple[Notice, ...] = ()


def has_scope(policy: Policy, scope: Scope) -> bool:
    """Whether the policy has an entry of that scope."""
    return any(entry.scope == scope for entry in policy.guardrails)


def guard_change(change: str, queue: str, facts: ShareChangeFacts, policy: Policy, failed: Failed) -> Found:
    """What the policy finds in a change of a share of the queue (its ARN).

    ``change`` is the natural key of the change, ``facts.now`` its time.
    """
    team = policy.share(queue, facts.share).team
    blank = AuditFact(
        key="",
        kind="finding",
        at=facts.now,
        queue=queue,
        share=facts.share,
        team=team,
        inputs={"change": inputs_of(facts)},
    )
    place = (facts.queue, facts.share, team)
    entries = [one for one in _of(policy, "share-change") if one.concerns(*place)]
    findings = [
        (entry, fires.model_copy(update={"subject": f"{fires.subject}{change}"}), blank)
        for entry, fires in _firing(entries, lambda entry: entry.decide_change(facts), failed)
    ]
    return _found(findings, f"{facts.queue}/{facts.share}", policy)


def guard_training(
    facts: TrainingFacts, types: Mapping[str, frozenset[str]], policy: Policy, failed: Failed
) -> Found:
    """What the policy finds in a training job that came through no queue.

    ``types``: the instance types of each queue, by its ARN. An entry finds one thing at most: under the first
    of the queues that it is about and whose types make it fire.
    """
    findings: dict[str, Finding] = {}
    for queue in sorted(types):
        seen = facts.model_copy(update={"pool_types": types[queue]})
        inputs = {"training": inputs_of(seen)}
        blank = AuditFact(
            key="", kind="finding", at=facts.now, queue=queue, job_name=facts.name, inputs=inputs
        )
        place = (last_part(queue), None, None)
        entries = [one for one in _of(policy, "training") if one.concerns(*place)]
        for entry, fires in _firing(entries, partial(_training_verdict, seen), failed):
            findings.setdefault(entry.label, (entry, fires, blank))
    return _found(findings.values(), facts.name, policy)


Finding = tuple[Guardrail, Fires, AuditFact]
"""Who found what, and the fact of it, still without the words."""


def _of(policy: Policy, scope: Scope) -> Iterator[Guardrail]:
    return (entry for entry in policy.guardrails if entry.scope == scope)


def _training_verdict(facts: TrainingFacts, entry: Guardrail) -> Verdict:
    return entry.decide_training(facts)


def _firing(
    entries: Iterable[Guardrail], ask: Callable[[Guardrail], Verdict], failed: Failed
) -> Iterator[tuple[Guardrail, Fires]]:
    for entry in entries:
        verdict = decided(entry, ask, failed)
        if isinstance(verdict, Fires):
            yield entry, verdict


def _found(findings: Iterable[Finding], about: str, policy: Policy) -> Found:
    """The facts, and the notices of those that people are told of."""
    facts: list[AuditFact] = []
    notices: list[Notice] = []
    for entry, fires, blank in findings:
        fact = _filled(blank, entry, fires, about, policy)
        facts.append(fact)
        if entry.action != "record":
            notices.append(notice_of(fact, f"{entry.label}: {about}", fires.text))
    return Found(tuple(facts), tuple(notices))


def _filled(blank: AuditFact, entry: Guardrail, fires: Fires, about: str, policy: Policy) -> AuditFact:
    named = {"rule": entry.rule, "label": entry.label, "action": entry.action, "subject": fires.subject}
    return blank.model_copy(
        update={
            "key": subject_key("finding", about, entry.label, entry.fingerprint, fires.subject),
            "actor": rule_actor(entry.label),
            "mode": policy.mode(entry, blank.queue or ""),
            "reason": fires.text,
            "figures": fires.figures | named,
            "policy": policy.hash,
        }
    )
