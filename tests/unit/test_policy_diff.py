"""What one policy changes of another, by path and in words."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from sharewarden.domain.policy import Policy
from sharewarden_tools.policy.diff import as_yaml, changes, effects
from sharewarden_tools.policy.file import load_policy

LIMIT = {"rule": "max-instances-per-job", "limit": 4}
STRICT = {**LIMIT, "mode": "enforce", "action": "terminate"}


def policy(**members: Any) -> Policy:
    return Policy.model_validate(members)


def queue(**members: Any) -> dict[str, Any]:
    return {"q": members}


CHANGES: list[tuple[str, Policy, Policy, list[str]]] = [
    ("nothing", policy(), policy(), []),
    ("a default spelled out", policy(), policy(hold="30m", paused=False, blast_radius={"acts": 50}), []),
    ("a switch", policy(), policy(paused=True), ["~ paused: false -> true"]),
    ("a duration", policy(hold="90m"), policy(hold="2d"), ["~ hold: 1h30m -> 2d"]),
    ("a member of a group", policy(), policy(blast_radius={"acts": 9}), ["~ blast_radius.acts: 50 -> 9"]),
    (
        "a queue that comes",
        policy(),
        policy(queues=queue(bumps="enforce", shares={"s": {"min_runtime": "1h"}})),
        ["+ queues.q: {bumps: enforce, shares: {s: {min_runtime: 1h}}}"],
    ),
    ("a queue of defaults that goes", policy(queues=queue()), policy(), ["- queues.q: {}"]),
    (
        "inside a queue",
        policy(queues=queue(shares={"a": {"team": "t"}, "b": {}})),
        policy(queues=queue(mode="enforce", shares={"a": {"min_runtime": 0}, "c": {"protected": True}})),
        [
            "~ queues.q.mode: shadow -> enforce",
            "~ queues.q.shares.a.team: t -> null",
            "~ queues.q.shares.a.min_runtime: 10m -> 0s",
            "- queues.q.shares.b: {}",
            "+ queues.q.shares.c: {protected: true}",
        ],
    ),
    (
        "a list",
        policy(teams={"t": {"owners": ["U1"]}}),
        policy(teams={"t": {"owners": ["U1", "U2"]}}),
        ["~ teams.t.owners: [U1] -> [U1, U2]"],
    ),
    (
        "a duration that may be missing",
        policy(sla={"gold": {}}),
        policy(sla={"gold": {"start_within": "30m"}}),
        ["~ sla.gold.start_within: null -> 30m"],
    ),
    (
        "an entry that changes, by its label",
        policy(guardrails=[{**LIMIT, "name": "n"}]),
        policy(guardrails=[LIMIT, {**STRICT, "name": "n", "grace": "1h", "limit": 5}]),
        [
            "~ guardrails.n.action: record -> terminate",
            "~ guardrails.n.mode: null -> enforce",
            "~ guardrails.n.grace: 10m -> 1h",
            "~ guardrails.n.limit: 4 -> 5",
            "+ guardrails.max-instances-per-job: {rule: max-instances-per-job, limit: 4}",
        ],
    ),
    (
        "another rule under the same label",
        policy(guardrails=[{**LIMIT, "name": "n"}]),
        policy(guardrails=[{"rule": "required-tags", "tags": ["team"], "name": "n"}]),
        [
            "~ guardrails.n: {rule: max-instances-per-job, name: n, limit: 4} -> "
            "{rule: required-tags, name: n, tags: [team]}"
        ],
    ),
    (
        "only the order",
        policy(guardrails=[LIMIT, {**LIMIT, "name": "n"}]),
        policy(guardrails=[{**LIMIT, "name": "n"}, LIMIT]),
        ["~ guardrails: in another order -> in this order"],
    ),
]


@pytest.mark.parametrize(
    ("old", "new", "lines"), [case[1:] for case in CHANGES], ids=[case[0] for case in CHANGES]
)
def test_changes_by_path(old: Policy, new: Policy, lines: list[str]) -> None:
    assert [change.line() for change in changes(old, new)] == lines
    assert bool(changes(new, old)) == bool(lines)


ACTS = queue(mode="enforce")
EFFECTS: list[tuple[str, Policy, Policy, list[str]]] = [
    ("nothing", policy(), policy(hold="1h"), []),
    ("the kill switch", policy(), policy(paused=True), ["everything stops: paused, nothing acts"]),
    ("it stays", policy(paused=True), policy(paused=True, hold=0), ["stays paused: nothing acts"]),
    ("it ends", policy(paused=True), policy(), ["no longer paused: acts go on, overdue restores first"]),
    ("bumps", policy(), policy(queues=queue(bumps="enforce")), ["q: bumps take effect from now on"]),
    (
        "no bumps",
        policy(queues=queue(bumps="enforce")),
        policy(),
        ["q: bumps are only recorded (shadow) from now on"],
    ),
    (
        "in shadow",
        policy(),
        policy(guardrails=[LIMIT]),
        ["guardrail comes: max-instances-per-job (record, in shadow)"],
    ),
    (
        "enforced by its own mode",
        policy(),
        policy(guardrails=[STRICT]),
        [
            "becomes enforced: max-instances-per-job in q, r (terminate)",
            "guardrail comes: max-instances-per-job (terminate)",
        ],
    ),
    (
        "enforced by its queue's mode",
        policy(guardrails=[LIMIT]),
        policy(queues=ACTS, guardrails=[LIMIT]),
        ["becomes enforced: max-instances-per-job in q (record)"],
    ),
    (
        "its own mode wins",
        policy(guardrails=[{**LIMIT, "mode": "shadow"}]),
        policy(queues=ACTS, guardrails=[{**LIMIT, "mode": "shadow"}]),
        [],
    ),
    (
        "of one queue",
        policy(guardrails=[STRICT]),
        policy(guardrails=[{**STRICT, "queues": ["r"]}]),
        [
            "is no longer enforced: max-instances-per-job in q",
            "guardrail changes: max-instances-per-job; what it found stays on record, it decides anew",
        ],
    ),
    (
        "gone",
        policy(guardrails=[STRICT]),
        policy(),
        [
            "is no longer enforced: max-instances-per-job in q, r",
            "guardrail goes: max-instances-per-job",
        ],
    ),
    ("of another stack", policy(), policy(queues={"elsewhere": {"bumps": "enforce"}}), []),
    (
        "protection",
        policy(queues=queue(shares={"a": {"protected": True}, "b": {}})),
        policy(queues=queue(shares={"b": {"protected": True}})),
        ["q: share b is protected from acts", "q: share a is NO LONGER protected"],
    ),
]


@pytest.mark.parametrize(
    ("old", "new", "lines"), [case[1:] for case in EFFECTS], ids=[case[0] for case in EFFECTS]
)
def test_effects_in_words(old: Policy, new: Policy, lines: list[str]) -> None:
    assert list(effects(old, new, {"r", "q"})) == lines


def test_written_anew_it_is_the_same_policy() -> None:
    """What was put by hand has no text of its own."""
    full = policy(
        hold="45m",
        queues=queue(bumps="enforce", shares={"ü": {"min_runtime": "1h", "protected": True}}),
        guardrails=[{**STRICT, "grace": "90s", "shares": ["ü"]}],
        sla={"gold": {"start_within": "2d"}},
    )
    for each in (full, policy(), load_policy()):
        assert Policy.model_validate(yaml.safe_load(as_yaml(each))) == each
    assert "grace: 1m30s" in as_yaml(full)
