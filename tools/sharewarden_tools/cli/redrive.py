"""``sharewarden redrive``: what lies in the dead-letter queues, and back with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby
from typing import Any, NamedTuple

from sharewarden.domain.durations import format_duration

from sharewarden_tools.operations.letters import Letter
from sharewarden_tools.operations.progress import progress
from sharewarden_tools.operations.redrive import Discarding, Letters, Outcome, discard, send_back
from sharewarden_tools.operations.site import Site

from .confirm import confirmed
from .output import OK, REFUSED, BadInput, full_time, note, print_json, say


class Asked(NamedTuple):
    """What the caller wants. ``discard`` is why the letters may go for good."""

    only: str | None = None
    discard: str | None = None
    show: bool = False
    yes: bool = False


def redrive(site: Site, asked: Asked, *, as_json: bool) -> int:
    """Show the dead letters; send them again, or delete them. Raises BadInput, Unavailable.

    REFUSED when some of what was chosen could not be sent, since it would only come back.
    """
    if asked.discard is not None and not asked.discard.strip():
        raise BadInput("--discard: say why they may be lost; it goes on record")
    site.deployment.announce()
    letters = Letters(site)
    with progress() as tell:
        found = letters.take(tell)
    chosen = [letter for letter in found if (asked.only or "").lower() in letter.reason.lower()]
    if not as_json:
        _show(chosen, site.runtime.clock.now(), bodies=asked.show)
    try:
        outcome = _act(site, letters, chosen, asked) if chosen else Outcome()
    finally:
        letters.release(found)
    waiting = letters.waiting()
    if as_json:
        rows = [_row(letter, body=asked.show) for letter in chosen]
        print_json({"letters": rows, **asdict(outcome), "waiting": waiting})
    told = ", ".join(f"{count} {what}" for what, count in asdict(outcome).items() if count)
    note(f"{told or 'nothing changed'}; about {waiting} dead letters lie there now")
    return REFUSED if outcome.kept else OK


def _act(site: Site, letters: Letters, chosen: list[Letter], asked: Asked) -> Outcome:
    verb = "delete" if asked.discard else "send again"
    if not confirmed(f"{verb} {len(chosen)}?", yes=asked.yes):
        note(f"nothing was changed; --yes to {verb} {len(chosen)}")
        return Outcome()
    with progress() as tell:
        if asked.discard is None:
            return send_back(letters, chosen, tell)
        why = Discarding(site.runtime, site.deployment.actor, asked.discard)
        return discard(letters, chosen, why, tell)


def _show(chosen: list[Letter], now: int, *, bodies: bool) -> None:
    say(*_lines(chosen, now))
    for letter in chosen if bodies else ():
        say("", f"{letter.id}  {full_time(letter.sent_at)}  {letter.origin}", *letter.shown().split("\n"))


def _lines(chosen: list[Letter], now: int) -> Iterator[str]:
    """One line for each queue, origin and reason."""
    for (queue, origin, reason, again), group in groupby(sorted(chosen, key=_kind), key=_kind):
        alike = list(group)
        age = format_duration(max(0, now - min(letter.sent_at for letter in alike)))
        yield f"{queue:<18} {len(alike):>5}  oldest {age} ago  from {origin}: {reason}"
        if again:
            yield f"{'':<24}  would fail again, so it is not sent: {again}"


def _kind(letter: Letter) -> tuple[str, str, str, str]:
    return letter.queue, letter.origin, letter.reason, letter.fault or ""


def _row(letter: Letter, *, body: bool) -> dict[str, Any]:
    row = {
        "id": letter.id,
        "queue": letter.queue,
        "from": letter.origin,
        "reason": letter.reason,
        "goes_to": letter.home,
        "sent_at": letter.sent_at,
        "fails_again": letter.fault,
    }
    return row | {"body": letter.shown()} if body else row
