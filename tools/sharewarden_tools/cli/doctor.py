"""``sharewarden doctor``: does the deployment work? Reads only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.text import Text

from sharewarden_tools.operations import checks_access, checks_pool, checks_wiring
from sharewarden_tools.operations.findings import Check, Finding, State, look
from sharewarden_tools.operations.progress import progress
from sharewarden_tools.operations.site import Site

from .output import OK, REFUSED, UNAVAILABLE, console, note, plain, print_json

CHECKS: tuple[Check, ...] = (
    checks_wiring.stack,
    checks_wiring.rules,
    checks_wiring.queue_policy,
    checks_wiring.tables,
    checks_wiring.alarms,
    checks_access.roles,
    checks_access.trail,
    checks_pool.queues,
    checks_pool.shares,
    checks_pool.policy,
    checks_pool.priority_cap,
    checks_pool.sweep,
    checks_pool.events,
    checks_wiring.dead_letters,
    checks_pool.notices,
    checks_pool.checkpoints,
)
_STYLES: dict[State, str] = {"ok": "green", "warning": "yellow", "problem": "bold red", "cannot tell": "dim"}


def doctor(site: Site, *, as_json: bool, checks: Sequence[Check] = CHECKS) -> int:
    """REFUSED when there is a problem, UNAVAILABLE when nothing could be told."""
    note(site.deployment.where)
    with progress() as tell:
        findings = list(look(site, checks, tell))
    if as_json:
        print_json([finding._asdict() for finding in findings])
    else:
        _show(findings)
    counts = Counter(finding.state for finding in findings)
    note(", ".join(f"{counts[state]} {state}" for state in _STYLES if counts[state]))
    if counts["problem"]:
        return REFUSED
    return OK if counts["ok"] + counts["warning"] else UNAVAILABLE


def _show(findings: Sequence[Finding]) -> None:
    out = console()
    for finding in findings:
        state = (f"{finding.state:<12}", _STYLES[finding.state])
        out.print(Text.assemble(state, plain(f"{finding.name:<13} {finding.seen}")))
        if finding.fix:
            out.print(plain(f"{'':<26} -> {finding.fix}"))
