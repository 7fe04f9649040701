"""``sharewarden demo``: the three-team story, live."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.text import Text
from sharewarden.domain.audit import AuditRecord
from sharewarden.domain.durations import format_duration

from sharewarden_tools.lab import Options, VirtualClock
from sharewarden_tools.local.stack import Setup, local_stack
from sharewarden_tools.policy.file import load_policy
from sharewarden_tools.stories.three_team import SHARES, START, Check, ThreeTeams
from sharewarden_tools.stories.timeline import Line

from .output import OK, REFUSED, clock_time, console, full_time, print_json, record_line, timeline_text

#: Reasons that the lab had to make up.
ASSUMED_REASONS = frozenset({Options().in_share_reason})


@dataclass(frozen=True)
class Played:
    """A story that came to its end; ``trails`` are the audit records by share."""

    checks: list[Check]
    trails: dict[str, list[AuditRecord]]
    ended_at: int


def demo(seed: int, *, as_json: bool) -> int:
    """Play the story; OK only if everything came out as documented."""
    return _demo_json(seed) if as_json else _demo_live(seed)


def play(seed: int, show: Callable[[Line], None]) -> Played:
    """The story from beginning to end, its lines told to ``show`` as they happen."""
    with local_stack(VirtualClock(START), Setup(seed=seed, policy=load_policy())) as stack:
        story = ThreeTeams(stack, show)
        checks = list(story.tell())
        trails = {share.name: story.trail(share.name) for share in SHARES}
        return Played(checks, trails, stack.now())


def _demo_json(seed: int) -> int:
    lines: list[Line] = []
    played = play(seed, lines.append)
    holds = all(check.holds for check in played.checks)
    print_json(
        {
            "seed": seed,
            "holds": holds,
            "timeline": [{"time": full_time(line.at), "who": line.who, "what": line.what} for line in lines],
            "audit": {share: [fact.model_dump() for fact in facts] for share, facts in played.trails.items()},
            "checks": [_check_row(check) for check in played.checks],
        }
    )
    return OK if holds else REFUSED


def _check_row(check: Check) -> dict[str, Any]:
    return {**asdict(check), "holds": check.holds}


def _demo_live(seed: int) -> int:
    out, started = console(), time.monotonic()
    out.print(f"Three teams share three instances (simulated; seed {seed}). Times are UTC, in the story.")
    with out.status("starting the local stack") if out.is_terminal else nullcontext() as status:

        def show(line: Line) -> None:
            out.print(timeline_text(line))
            if status:
                status.update(f"{clock_time(line.at)} in the story")

        played = play(seed, show)
    _print_trails(out, played)
    return _print_checks(out, played, time.monotonic() - started)


def _print_trails(out: Console, played: Played) -> None:
    for share, facts in played.trails.items():
        out.print(Text(f"\naudit trail of {share}, read back from DynamoDB", style="bold"))
        for fact in facts:
            out.print(record_line(fact, clock_time(fact.at), ASSUMED_REASONS))


def _print_checks(out: Console, played: Played, seconds: float) -> int:
    out.print(Text("\nas documented?", style="bold"))
    for check in played.checks:
        out.print(Text(f"  ok    {check.name}", style="green") if check.holds else _failure(check))
    holding = sum(check.holds for check in played.checks)
    told = format_duration(played.ended_at - START)
    out.print(f"\n{holding} of {len(played.checks)} checks hold; {told} of story in {seconds:.0f} s")
    return OK if holding == len(played.checks) else REFUSED


def _failure(check: Check) -> Text:
    text = f"  FAIL  {check.name}\n        expected {check.expected!r}\n        seen     {check.seen!r}"
    return Text(text, style="bold red")
