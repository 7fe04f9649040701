"""What no single value shows: names that a policy does not know, and rules that cannot do what they say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sharewarden.domain.base import last_part
from sharewarden.domain.hints import hint
from sharewarden.domain.policy import Policy, QueuePolicy
from sharewarden.domain.rules.base import ACTING, Guardrail

from .ladders import ladder_errors, sla_warnings
from .problems import Found


def clashes(document: Any) -> Iterator[Found]:
    """Entries of one name, as written: the model can only say that there are two."""
    seen: dict[str, int] = {}
    entries = document.get("guardrails") if isinstance(document, dict) else None
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        label = _label(entry)
        if label in seen:
            first = f"guardrails[{seen[label]}]"
            yield Found(
                ("guardrails", index),
                f"{first} is called {label!r} too: give one of them a `name` of its own",
            )
        elif label is not None:
            seen[label] = index


def errors(policy: Policy, numbers: Sequence[int]) -> Iterator[Found]:
    """What makes the policy mean something else than it says; ``numbers`` are those of its entries."""
    yield from _queues_by_arn(policy)
    yield from _unknown_teams(policy)
    yield from _bands_upside_down(policy)
    yield from ladder_errors(policy)
    for index, entry in zip(numbers, policy.guardrails, strict=True):
        for found in _entry_errors(policy, entry):
            yield Found(("guardrails", index, *found.loc), found.text)


def warnings(policy: Policy) -> Iterator[Found]:
    """What works as written, and is probably not meant."""
    yield from _loose_limits(policy)
    yield from sla_warnings(policy)
    yield from _short_runtimes(policy)
    yield from _resubmission(policy)
    for index, entry in enumerate(policy.guardrails):
        for found in _entry_warnings(policy, entry):
            yield Found(("guardrails", index, *found.loc), found.text)


def _label(entry: Any) -> str | None:
    if not isinstance(entry, Mapping):
        return None
    label = entry.get("name") or entry.get("rule") or ("custom" if "when" in entry else None)
    return label if isinstance(label, str) else None


def _queues_by_arn(policy: Policy) -> Iterator[Found]:
    for name in policy.queues:
        if (alone := last_part(name)) != name:
            yield Found(
                ("queues", name), f"{name!r} is no queue's name: write {alone!r}, without what is before it"
            )


def _unknown_teams(policy: Policy) -> Iterator[Found]:
    for name, team in policy.teams.items():
        for index, sla in enumerate(team.sla):
            if sla not in policy.sla:
                yield Found(("teams", name, "sla", index), _unknown("SLA class", sla, policy.sla))
    for queue, rules in policy.queues.items():
        for name, share in rules.shares.items():
            if share.team is not None and policy.teams and share.team not in policy.teams:
                text = _unknown("team", share.team, policy.teams)
                yield Found(("queues", queue, "shares", name, "team"), text)


def _bands_upside_down(policy: Policy) -> Iterator[Found]:
    for queue, rules in policy.queues.items():
        automatic, human = rules.bands.automatic.highest, rules.bands.human.highest
        if automatic > human:
            yield Found(
                ("queues", queue, "bands"),
                f"automatic boosts may reach {automatic} and people only {human}: nobody could overrule them",
            )


def _entry_errors(policy: Policy, entry: Guardrail) -> Iterator[Found]:
    queues = _queues(policy, entry)
    shares = {name for rules in queues.values() for name in rules.shares}
    yield from _unknown_names("queue", entry.queues, policy.queues)
    yield from _unknown_names("share", entry.shares, shares)
    yield from _unknown_names("team", entry.teams, policy.teams)


def _unknown_names(kind: str, named: tuple[str, ...], known: Any) -> Iterator[Found]:
    """A policy that names none of a kind is about all of them, so nothing is unknown to it."""
    for index, name in enumerate(named if known else ()):
        if name not in known:
            yield Found((f"{kind}s", index), _unknown(kind, name, known))


def _unknown(kind: str, name: str, known: Any) -> str:
    return f"the policy knows no {kind} {name!r}: {hint(name, known)}"


def _queues(policy: Policy, entry: Guardrail) -> dict[str, QueuePolicy]:
    return {name: rules for name, rules in policy.queues.items() if name in (entry.queues or policy.queues)}


def _loose_limits(policy: Policy) -> Iterator[Found]:
    if policy.paused:
        yield Found(("paused",), "nothing is done while this is true: jobs are only recorded")
    if policy.blast_radius.percent == 100:
        yield Found(("blast_radius", "percent"), "one sweep may act on every open job, up to `acts`")


def _short_runtimes(policy: Policy) -> Iterator[Found]:
    for queue, rules in policy.queues.items():
        automatic, human = rules.bands.automatic, rules.bands.human
        if automatic.highest >= human.lowest:
            text = f"automatic boosts (up to {automatic.highest}) reach into those of people"
            yield Found(("queues", queue, "bands"), f"{text} (from {human.lowest})")
        for name, share in rules.shares.items():
            if share.min_runtime == 0:
                text = "a job that a boost started may lose it at once, before it did any work"
                yield Found(("queues", queue, "shares", name, "min_runtime"), text)


def _resubmission(policy: Policy) -> Iterator[Found]:
    rules = policy.checkpoints.resubmit
    if rules.mode == "enforce" and not rules.roles:
        text = "no job is submitted again: list the execution roles that such a job may have (roles)"
        yield Found(("checkpoints", "resubmit", "mode"), text)
    for index, role in enumerate(rules.roles):
        if not role.strip("*"):
            text = "every execution role: what the stack may pass (ResubmitRoleArns) is then the only bound"
            yield Found(("checkpoints", "resubmit", "roles", index), text)


def _entry_warnings(policy: Policy, entry: Guardrail) -> Iterator[Found]:
    if entry.action not in ACTING:
        return
    if _only_protected(policy, entry):
        yield Found(("shares",), f"all of them are protected: {entry.action} becomes notify")
    if entry.action == "terminate" and entry.grace == 0:
        yield Found(("grace",), "jobs are terminated without any time to put it right")


def _only_protected(policy: Policy, entry: Guardrail) -> bool:
    named = [
        share
        for rules in _queues(policy, entry).values()
        for name, share in rules.shares.items()
        if name in entry.shares
    ]
    return bool(named) and all(share.protected for share in named)
