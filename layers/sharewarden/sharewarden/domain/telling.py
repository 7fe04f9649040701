"""The words of a message: one notice, or several alike that came together."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from .base import NO_TEAM, Frozen, last_part, shortened
from .notice import Notice
from .stored import SECOND

#: Version of the webhook's document; it rises when a member changes its meaning or goes.
SCHEMA = 1
#: A message lists so many notices, each in so many bytes at most: it stays far below the 256 KB of SNS.
LISTED = 20
LONGEST_TITLE, LONGEST_TEXT, LONGEST_NAME = 200, 1000, 300
#: A subject has fewer than 100 characters of ASCII on one line (SNS API reference, Publish).
LONGEST_SUBJECT = 99


class Message(Frozen):
    """What goes out on a channel. ``id`` is the same each time that the first of its notices is tried."""

    id: str
    subject: str
    text: str
    """For people: plain text of a few lines."""
    attributes: dict[str, str]
    """For filters: kind, severity, mode and, where they are known, team and share."""
    document: dict[str, Any]
    """For machines (docs/operations.md, "Telling people")."""


def compose(notices: Sequence[Notice]) -> Message:
    """One message for notices that are alike (``Notice.alike``), at least one; the first is named."""
    first = notices[0]
    return Message(
        id=first.fact,
        subject=_subject(first, len(notices)),
        text=_text(notices),
        attributes=_attributes(first),
        document=_document(notices),
    )


def _subject(first: Notice, count: int) -> str:
    shadow = " (shadow)" if first.mode == "shadow" else ""
    what = _line(first.title, LONGEST_TITLE)
    more = f" and {count - 1} more" if count > 1 else ""
    head = f"Sharewarden {first.severity}{shadow}: "
    room = LONGEST_SUBJECT - len(head) - len(more)
    return head + what.encode("ascii", "replace").decode()[:room] + more


def _text(notices: Sequence[Notice]) -> str:
    first = notices[0]
    rows = [f"{name}: {value}" for name, value in _common(first).items()]
    told = ["\n".join(_lines(notice)) for notice in notices[:LISTED]]
    return "\n\n".join([*told, *_folded(notices), "\n".join(rows)]) + "\n"


def _lines(notice: Notice) -> list[str]:
    job = f"job: {_line(notice.job_name or '(no name)', LONGEST_NAME)} ({notice.job})" if notice.job else None
    lines = [
        _line(notice.title, LONGEST_TITLE),
        _line(notice.text, LONGEST_TEXT),
        job,
        f"time: {_time(notice.at)}",
        f"record: {_line(notice.fact, LONGEST_NAME)}",
    ]
    return [line for line in lines if line]


def _folded(notices: Sequence[Notice]) -> list[str]:
    """What says how many are not listed, and where they are."""
    more = len(notices) - LISTED
    if more <= 0:
        return []
    share, since = notices[0].share, _time(min(notice.at for notice in notices))
    listed = f"sharewarden audit list --share {_line(share, LONGEST_NAME)} --since {since}" if share else None
    return [f"and {more} more of this kind: {listed or 'the audit'}"]


def _common(first: Notice) -> dict[str, str]:
    """What the notices of one message share, by the name that people read."""
    shadow = "shadow (nothing was done)"
    named = {
        "kind": first.kind,
        "severity": first.severity,
        "team": first.team or NO_TEAM,
        "share": first.share,
        "queue": last_part(first.queue),
        "mode": shadow if first.mode == "shadow" else first.mode,
        "policy": first.policy,
    }
    return {name: _line(value, LONGEST_NAME) for name, value in named.items() if value}


def _attributes(first: Notice) -> dict[str, str]:
    names = ("kind", "severity", "mode", "team", "share")
    found = {name: getattr(first, name) for name in names}
    return {name: _line(value, LONGEST_NAME) for name, value in found.items() if value}


def _document(notices: Sequence[Notice]) -> dict[str, Any]:
    first = notices[0]
    return {
        "version": SCHEMA,
        "id": first.fact,
        "kind": first.kind,
        "severity": first.severity,
        "mode": first.mode,
        "queue": first.queue,
        "share": _named(first.share),
        "team": _named(first.team),
        "policy": first.policy,
        "count": len(notices),
        "notices": [_entry(notice) for notice in notices[:LISTED]],
    }


def _entry(notice: Notice) -> dict[str, Any]:
    return {
        "record": notice.fact,
        "title": _line(notice.title, LONGEST_TITLE),
        "text": _line(notice.text, LONGEST_TEXT),
        "job": notice.job,
        "job_name": _named(notice.job_name),
        "at": _time(notice.at),
    }


def _named(text: str | None) -> str | None:
    return None if text is None else _line(text, LONGEST_NAME)


def _line(text: str, most: int) -> str:
    """Other people's words on one line of ours, without what a terminal or a mail reader would obey."""
    kept = shortened(text, most) or ""
    return "".join(sign if sign.isprintable() else " " for sign in kept)


def _time(ms: int) -> str:
    """RFC 3339."""
    return f"{datetime.fromtimestamp(ms / SECOND, UTC):%Y-%m-%dT%H:%M:%SZ}"
