"""What commands print, and how they end."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.text import Text
from sharewarden.domain.audit import AuditRecord

from sharewarden_tools.stories.timeline import ASSUMED, Line, Tone

OK, REFUSED, BAD_INPUT, UNAVAILABLE = 0, 1, 2, 3

_STYLES: dict[Tone, str] = {"scene": "bold", "act": "cyan", "good": "green", "bad": "red", "plain": ""}


class BadInput(Exception):
    """What the user gave cannot be used; the first line says what is wrong and where, others may list."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


def unreadable(file: object, error: OSError) -> BadInput:
    """What to raise for a file that cannot be opened or read."""
    return BadInput(f"{file}: {(error.strerror or str(error)).lower()}")


def plain(text: str) -> str:
    """The text on one line and without power over a terminal: a line feed becomes ``\\n``, escape ``\\x1b``.

    Names and reasons are other people's words; a line of ours must stay one line, and theirs.
    """
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


def console() -> Console:
    """The terminal, or plain text when piped; rich honours NO_COLOR."""
    return Console(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """Machine output, on stdout: exact values, with what a terminal would obey in JSON's own escapes."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    print("".join(sign if sign.isprintable() or sign == "\n" else json.dumps(sign)[1:-1] for sign in text))


def say(*lines: str) -> None:
    """Lines for people, on stdout."""
    for line in lines:
        print(plain(line))


def note(*lines: str) -> None:
    """Lines to the person at the terminal, on stderr."""
    for line in lines:
        print(plain(line), file=sys.stderr)


def clock_time(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%H:%M:%S}"


def full_time(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


def timeline_text(line: Line) -> Text:
    """``08:23:03  background-2    RUNNING -> preempted ...``; a scene is a heading."""
    if line.tone == "scene":
        return Text(f"\n{plain(line.what)}", style=_STYLES[line.tone])
    who, what = plain(line.who), plain(line.what)
    return Text.assemble((f"{clock_time(line.at)}  {who:<14}", ""), (what, _STYLES[line.tone]))


def record_line(fact: AuditRecord, when: str, assumed: Collection[str] = ()) -> str:
    """One audit record on one line; a reason among ``assumed`` is marked, since AWS does not document it."""
    who = fact.actor.rpartition(":")[2]
    mark = f" {ASSUMED}" if fact.reason in assumed else ""
    return plain(f"{when}  {fact.kind:<18}  {fact.job_name or '-':<14}  {who:<11}  {_told(fact)}{mark}")


def _told(fact: AuditRecord) -> str:
    if fact.kind == "preemption":
        return f"{fact.figures['kind']}: {fact.reason}"
    if fact.kind == "quota-share-change":
        return fact.reason
    return " ".join(part for part in (_change(fact), fact.reason) if part)


def _change(fact: AuditRecord) -> str:
    change = " -> ".join(value for value in (fact.before, fact.after) if value)
    mode = " (shadow)" if fact.mode == "shadow" else ""
    return f"{change}{mode}:" if change else ""
