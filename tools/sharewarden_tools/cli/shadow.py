"""``sharewarden shadow report``: what guardrails would have done, and what they ask for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

from sharewarden.domain.audit import AuditRecord
from sharewarden.domain.base import NO_TEAM
from sharewarden.domain.rules.base import ACTING
from sharewarden.ports import Runtime

from .audit import parse_since
from .audit_reading import Wanted, queues_of, read_audit
from .deployment import Deployment
from .output import OK, full_time, note, print_json, say

KINDS = frozenset({"finding", "finding-cleared"})


class Asked(NamedTuple):
    """What the caller wants, as typed."""

    since: str
    queue: str | None = None
    share: str | None = None


class Row(NamedTuple):
    """One finding, and when its rule held again (None: not so far)."""

    finding: AuditRecord
    over_at: int | None


class Group(NamedTuple):
    """What one guardrail found, where the same would be asked for (``shadow``) or is (``enforce``)."""

    label: str
    action: str
    mode: str
    rows: tuple[Row, ...]


def report(deployment: Deployment, asked: Asked, *, as_json: bool) -> int:
    """Print the findings since then by guardrail, action and mode. Raises BadInput, Unavailable."""
    runtime = deployment.runtime
    now = runtime.clock.now()
    since = parse_since(asked.since, now)
    queues = queues_of(runtime, asked.queue)
    facts = read_audit(runtime, queues, Wanted(KINDS, since, now, asked.share))
    groups = grouped(facts)
    if as_json:
        print_json([_as_json(group) for group in groups])
        return OK
    note(f"{deployment.where}; guardrails since {full_time(since)}")
    say(*(line for group in groups for line in _lines(group)))
    if not groups:
        note(_nothing(runtime, queues))
    return OK


def grouped(facts: Iterable[AuditRecord]) -> tuple[Group, ...]:
    """By guardrail; what is only planned before what is asked for; each finding once, oldest first."""
    known = {fact.key: fact for fact in facts}
    over = {fact.figures.get("finding"): fact.at for fact in known.values() if fact.kind == "finding-cleared"}
    rows = [Row(fact, over.get(fact.key)) for fact in known.values() if fact.kind == "finding"]
    ordered = sorted(rows, key=lambda row: (*_group(row), row.finding.at, row.finding.key))
    return tuple(
        Group(label, action, "enforce" if enforced else "shadow", tuple(found))
        for (enforced, label, action), found in groupby(ordered, _group)
    )


def _group(row: Row) -> tuple[bool, str, str]:
    fact = row.finding
    label, action = (str(fact.figures.get(name, "unknown")) for name in ("label", "action"))
    return fact.mode == "enforce", label, action


def _nothing(runtime: Runtime, queues: Iterable[str]) -> str:
    policy = runtime.policies.current()
    names = [entry.label for entry in policy.guardrails if any(entry.covers(queue) for queue in queues)]
    if not names:
        return f"no findings, and the policy in force ({policy.hash}) has no guardrail for these queues"
    return f"no findings; the policy in force ({policy.hash}) has {', '.join(names)}"


def _lines(group: Group) -> Iterator[str]:
    times = "once" if len(group.rows) == 1 else f"{len(group.rows)} times"
    yield f"{group.label}: found {times}, {_consequence(group)}"
    for row in group.rows:
        fact = row.finding
        over = "" if row.over_at is None else f" (until {full_time(row.over_at)})"
        who = f"{fact.job_name or '-'}  {fact.job or '-'}  {fact.team or NO_TEAM}"
        yield f"  {full_time(fact.at)}  {who}  {fact.reason}{over}"


def _consequence(group: Group) -> str:
    """A finding in enforce mode asks for an act; that it was done is another fact."""
    if group.action not in ACTING:
        return f"{group.action} ({group.mode})"
    if group.mode == "shadow":
        return f"{group.action} would have been asked for (shadow)"
    return f"{group.action} asked for (enforce); the audit of a job says what was done"


def _as_json(group: Group) -> dict[str, Any]:
    return {
        "label": group.label,
        "action": group.action,
        "mode": group.mode,
        "number": len(group.rows),
        "findings": [_row_json(row) for row in group.rows],
    }


def _row_json(row: Row) -> dict[str, Any]:
    fact = row.finding
    return {
        "key": fact.key,
        "at": fact.at,
        "until": row.over_at,
        "job": fact.job,
        "job_name": fact.job_name,
        "team": fact.team,
        "queue": fact.queue,
        "share": fact.share,
        "text": fact.reason,
        "policy": fact.policy,
    }
