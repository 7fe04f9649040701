"""YAML without its traps: what two readers of YAML would read differently is refused, not guessed.

The plain values are those of YAML 1.2's core schema as far as YAML 1.1 agrees; everything is bounded.
"""

from __future__ import annotations

import errno
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceStartEvent,
)

from .problems import BadFile, Loc, Place, Problem

#: A policy is stored in one item of DynamoDB, which ends at 400 KB.
LARGEST = 256 * 1024
DEEPEST = 20
STDIN = Path("-")

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})\.[0-9]{1,18}")
#: What one version of YAML takes for something else than another one does.
_DOUBTFUL = (
    (re.compile(r"yes|on", re.IGNORECASE), "is a boolean to some readers of YAML: write true, or {quoted}"),
    (re.compile(r"no|off", re.IGNORECASE), "is a boolean to some readers of YAML: write false, or {quoted}"),
    (re.compile(r"[-+]?0[0-9_]+"), "is octal to some readers of YAML: write it without the 0, or {quoted}"),
    (
        re.compile(r"[-+]?0[box][0-9a-f_]+", re.IGNORECASE),
        "is not decimal: write the decimal number, or {quoted}",
    ),
    (
        re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?"),
        "is a number to the base 60 to some readers of YAML: write {quoted}",
    ),
    (re.compile(r"[-+]?\.(inf|nan)", re.IGNORECASE), "is no number to calculate with: leave it out"),
    (re.compile(r"[-+]?[1-9][0-9]{18,}"), "is too large a number: write a smaller one, or {quoted}"),
    (
        re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)(e[-+]?[0-9]+)?", re.IGNORECASE),
        "is a number to some readers of YAML only: write it out in digits, 1000 or 0.5, or {quoted}",
    ),
)


class Document(NamedTuple):
    """The value of a text, and where its parts stand: a member at its key and at its value."""

    value: Any
    keys: dict[Loc, Place]
    values: dict[Loc, Place]

    def place(self, loc: Loc, *, key: bool = False) -> Place | None:
        """Where that part stands, or the nearest part around it that is in the text."""
        for length in range(len(loc), -1, -1):
            part = loc[:length]
            found = (self.keys if key and length == len(loc) else self.values).get(part)
            if found is not None:
                return found
        return None


def read_file(file: Path, data: bytes | None = None) -> Document:
    """The document in a file. Raises OSError, and BadFile with everything that is wrong."""
    raw = read_bytes(file) if data is None else data
    try:
        return parse(raw)
    except BadText as error:
        raise BadFile(str(file), error.problems) from error


class BadText(Exception):
    """A text that cannot be read as one plain document."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(problems[0].text)
        self.problems = problems


def parse(raw: bytes) -> Document:
    """Raises BadText. An empty text is an empty mapping."""
    text = decode(raw)
    try:
        events = list(_bounded(yaml.parse(text, Loader=yaml.SafeLoader)))
    except yaml.MarkedYAMLError as error:
        raise BadText(_syntax(error)) from error
    except yaml.reader.ReaderError as error:
        place = place_at(text, error.position)
        raise BadText(
            Problem(place, (), f"the character U+{ord(text[error.position]):04X} is not allowed: remove it")
        ) from error
    return _Builder(events).document()


def decode(raw: bytes) -> str:
    """Text out of UTF-8, with or without a byte order mark. Raises BadText."""
    if len(raw) > LARGEST:
        raise BadText(Problem(None, (), f"larger than {LARGEST // 1024} KB: nobody could read it"))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = place_at(raw[: error.start].decode("utf-8-sig", "replace"), error.start)
        fault = f"byte 0x{raw[error.start]:02X} is not UTF-8: save the file as UTF-8"
        raise BadText(Problem(place, (), fault)) from error


def place_at(text: str, position: int) -> Place:
    """Line and column of a position."""
    before = text[:position]
    return Place(before.count("\n") + 1, len(before) - before.rfind("\n"))


def read_bytes(file: Path, most: int = LARGEST) -> bytes:
    """What is in the file (``-``: comes from stdin), at most one byte more than may be. Raises OSError."""
    if file != STDIN:
        with file.open("rb") as opened:
            return opened.read(most + 1)
    if sys.stdin is None:  # as ``<&-`` leaves it
        raise OSError(errno.EBADF, "stdin is closed")
    return sys.stdin.buffer.read(most + 1)


def _bounded(events: Iterator[Event]) -> Iterator[Event]:
    """The events, until they nest too deeply: the scanner's time grows with the square of the depth."""
    depth = 0
    for event in events:
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth > DEEPEST:
            raise BadText(Problem(_place(event), (), f"nested more than {DEEPEST} deep: write it flatter"))
        yield event


def _place(event: Event) -> Place:
    return _marked(event.start_mark) or Place(1, 1)


def _marked(mark: Any) -> Place | None:
    return None if mark is None else Place(mark.line + 1, mark.column + 1)


def _syntax(error: yaml.MarkedYAMLError) -> Problem:
    place = _marked(error.problem_mark or error.context_mark)
    what = " ".join(filter(None, (error.context, error.problem)))
    advice = ": indent with spaces, not with tabs" if r"'\t'" in what else ""
    return Problem(place, (), f"not YAML: {what}{advice}")


class _Builder:
    """Makes the value out of the parser's events, and keeps on after what is wrong to tell all of it."""

    def __init__(self, events: list[Event]) -> None:
        self._events = iter(events)
        self._keys: dict[Loc, Place] = {}
        self._values: dict[Loc, Place] = {}
        self._problems: list[Problem] = []
        starts = [event for event in events if isinstance(event, DocumentStartEvent)]
        self._empty = not starts
        for second in starts[1:]:
            self._complain(second, (), "a second document begins: one file is one document, remove the ---")

    def document(self) -> Document:
        value = {} if self._empty else self._first()
        if self._problems:
            raise BadText(*self._problems)
        return Document({} if value is None else value, self._keys, self._values)

    def _first(self) -> Any:
        for event in self._events:
            if isinstance(event, NodeEvent):
                return self._node(event, ())
        return None

    def _node(self, event: Event, loc: Loc) -> Any:
        self._values[loc] = _place(event)
        self._check_node(event, loc)
        if isinstance(event, MappingStartEvent):
            return self._mapping(loc)
        if isinstance(event, SequenceStartEvent):
            return self._sequence(loc)
        return self._scalar(event, loc) if isinstance(event, ScalarEvent) else None

    def _check_node(self, event: Event, loc: Loc) -> None:
        if isinstance(event, AliasEvent):
            quoted = f'or "*{event.anchor}" if it is text'
            self._complain(event, loc, f"*{event.anchor} is an alias: write its value out, {quoted}")
        elif isinstance(event, NodeEvent) and event.anchor is not None:
            quoted = f'or put it in quotes if "&{event.anchor}" is text'
            self._complain(event, loc, f"&{event.anchor} is an anchor: remove it, {quoted}")
        tag = getattr(event, "tag", None)
        if tag is not None:
            self._complain(event, loc, f"the tag {tag} is not allowed: remove it, or put the text in quotes")

    def _mapping(self, loc: Loc) -> dict[str, Any]:
        members: dict[str, Any] = {}
        for event in self._events:
            if isinstance(event, CollectionEndEvent):
                break
            name = self._key(event, loc)
            inner = (*loc, name)
            if inner in self._keys:
                first = self._keys[inner].line
                self._complain(event, inner, f"given twice, first in line {first}: keep one of the two")
            self._keys[inner] = _place(event)
            members[name] = self._node(next(self._events), inner)
        return members

    def _key(self, event: Event, loc: Loc) -> str:
        if not isinstance(event, ScalarEvent):
            self._complain(event, loc, "a key is text, not a list, a mapping or an alias")
            self._node(event, (*loc, "?"))
            return "?"
        inner = (*loc, event.value)
        self._check_node(event, inner)
        if event.implicit[0] and event.value == "<<":
            self._complain(event, loc, "merging (<<) is not allowed: write the members out")
        elif event.implicit[0] and (_doubt(event.value) or not isinstance(_plain(event.value), str)):
            self._complain(
                event,
                inner,
                f"{event.value or 'nothing'} as a key is not text to every reader "
                f'of YAML: write "{event.value}"',
            )
        self._check_text(event, inner)
        return event.value

    def _sequence(self, loc: Loc) -> list[Any]:
        items: list[Any] = []
        for event in self._events:
            if isinstance(event, CollectionEndEvent):
                break
            items.append(self._node(event, (*loc, len(items))))
        return items

    def _scalar(self, event: ScalarEvent, loc: Loc) -> Any:
        """A plain scalar may be more than text."""
        self._check_text(event, loc)
        if not event.implicit[0]:
            return event.value
        doubt = _doubt(event.value)
        if doubt is not None:
            advice = doubt.format(quoted=f'"{event.value}" for text')
            self._complain(event, loc, f"{event.value} {advice}")
            return None
        return _plain(event.value)

    def _check_text(self, event: ScalarEvent, loc: Loc) -> None:
        if any("\ud800" <= sign <= "\udfff" for sign in event.value):
            self._complain(event, loc, "half a character (a lone surrogate): write the whole one")

    def _complain(self, event: Event, loc: Loc, text: str) -> None:
        self._problems.append(Problem(_place(event), loc, text))


def _doubt(text: str) -> str | None:
    """Why it is not clear what a plain scalar is."""
    if _INT.fullmatch(text) or _FLOAT.fullmatch(text):
        return None
    return next((advice for sign, advice in _DOUBTFUL if sign.fullmatch(text)), None)


def _plain(text: str) -> Any:
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text
