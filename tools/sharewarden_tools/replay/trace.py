"""A trace of jobs as CSV. The columns are described in docs/replay.md; others are passed over."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from sharewarden_tools.policy.problems import BadFile, Place, Problem
from sharewarden_tools.policy.yaml_text import read_bytes

from .numbers import numbers
from .pool import LONGEST_TRAINING_S

LARGEST = 64 * 1024 * 1024  # bytes of a file
MOST_TOLD = 20  # problems in one go
SUBMITTED = {"submitted": 0.0, "submitted_s": 1_000.0, "submitted_ms": 1.0, "submitted_us": 0.001}
REQUIRED = ("team", "gpus", "runtime_s")
OPTIONAL = ("user", "priority", "outcome", "save_every_s", "sla", "finish_within_s", "expected_runtime_s")
COLUMNS = (*SUBMITTED, *REQUIRED, *OPTIONAL)
_SURPLUS = "(surplus)"  # cells beyond the header's
_TEAM = re.compile(r"[A-Za-z0-9_-]{1,128}")


class Row(NamedTuple):
    """One job of a trace; durations and times in ms, None for an empty cell."""

    line: int
    submitted: float
    team: str
    user: str
    gpus: int
    runtime: int
    failed: bool
    priority: int | None
    save_every: int | None
    sla: str | None
    finish_within: int | None
    expected_runtime: int | None


class Trace(NamedTuple):
    """Rows in the order of submission; ``columns`` are those that the file has."""

    rows: tuple[Row, ...]
    columns: frozenset[str]
    left_out: int  # rows without GPUs or without run time


class _Bad(Exception):
    """A cell that cannot be used."""

    def __init__(self, column: str, text: str) -> None:
        super().__init__(text)
        self.column = column
        self.text = text


def read_trace(path: Path, renamed: Mapping[str, str]) -> Trace:
    """The trace of a file; ``renamed`` says what a column is called there: ``{"team": "tenant"}``.

    Raises OSError, and BadFile that names the lines that are wrong.
    """
    try:
        text = read_bytes(path, LARGEST).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _bad_file(path, error.object[: error.start].count(b"\n") + 1, "not UTF-8") from error
    if len(text) > LARGEST:
        raise _bad_file(path, None, f"larger than {LARGEST >> 20} MB: cut it")
    try:
        return _Reading(path, renamed).trace(_Lines(text))
    except csv.Error as error:
        raise _bad_file(path, None, f"not CSV: {error}") from error


class _Lines(Iterator[str]):
    """The lines of a text without comments; ``number`` is that of the latest one."""

    def __init__(self, text: str) -> None:
        self._lines = enumerate(text.splitlines(keepends=True), 1)
        self.number = 0

    def __next__(self) -> str:
        for number, line in self._lines:
            self.number = number
            if line.strip() and not line.startswith("#"):
                return line
        raise StopIteration


class _Reading:
    def __init__(self, path: Path, renamed: Mapping[str, str]) -> None:
        self._path = path
        self._renamed = renamed
        self._problems: list[Problem] = []

    def trace(self, lines: _Lines) -> Trace:
        """Raises BadFile."""
        reader = csv.DictReader(lines, restkey=_SURPLUS, restval="")
        names = self._names(reader.fieldnames or ())
        rows = [row for cells in reader if (row := self._row(names, cells, lines.number))]
        if self._problems:
            more = len(self._problems) - MOST_TOLD
            rest = [Problem(None, (), f"and {more} more")] if more > 0 else []
            raise BadFile(str(self._path), [*self._problems[:MOST_TOLD], *rest])
        used = [row for row in rows if row.gpus and row.runtime]
        if not used:
            raise _bad_file(self._path, None, "no job that uses a GPU")
        used.sort(key=lambda row: (row.submitted, row.line))
        return Trace(tuple(used), frozenset(names), len(rows) - len(used))

    def _names(self, header: Iterable[str]) -> dict[str, str]:
        """What each of our columns is called in this file. Raises BadFile."""
        there = {cell.strip(): cell for cell in header}
        wanted = {column: self._renamed.get(column, column) for column in COLUMNS}
        names = {column: there[name] for column, name in wanted.items() if name in there}
        for column, name in self._renamed.items():
            if column in COLUMNS and name not in there:
                raise _bad_file(
                    self._path, None, f"no column {name!r} (for {column}); there is {_list(there)}"
                )
        if sum(column in names for column in SUBMITTED) != 1:
            text = f"it needs one column of {_list(SUBMITTED)}; there is {_list(there)}"
            raise _bad_file(self._path, None, text)
        for column in REQUIRED:
            if column not in names:
                raise _bad_file(self._path, None, f"no column {column!r}; there is {_list(there)}")
        return names

    def _row(self, names: Mapping[str, str], cells: Mapping[str, str], line: int) -> Row | None:
        """None for a row that has a problem, which is noted."""
        try:
            if _SURPLUS in cells:
                raise _Bad("", "more cells than columns")
            return _row({column: cells[name].strip() for column, name in names.items()}, line)
        except _Bad as bad:
            loc = (self._renamed.get(bad.column, bad.column),) if bad.column else ()
            self._problems.append(Problem(Place(line, 1), loc, bad.text))
            return None


def _row(cells: Mapping[str, str], line: int) -> Row:
    """Raises _Bad."""
    priority = _number(cells, "priority", 0, 9999)
    return Row(
        line=line,
        submitted=_submitted(cells),
        team=_matching(cells, "team", _TEAM.fullmatch, "1 to 128 letters, digits, - and _"),
        user=cells.get("user") or "unknown",
        gpus=_whole(cells, "gpus"),
        runtime=_duration(_needed(cells, "runtime_s"), cells) or 0,
        failed="fail" in cells.get("outcome", "").lower(),
        priority=None if priority is None else round(priority),
        save_every=_duration("save_every_s", cells) or None,
        sla=_matching(cells, "sla", numbers().sla.classes.__contains__, _list(numbers().sla.classes))
        if cells.get("sla")
        else None,
        finish_within=_duration("finish_within_s", cells),
        expected_runtime=_duration("expected_runtime_s", cells),
    )


def _submitted(cells: Mapping[str, str]) -> float:
    column = next(column for column in SUBMITTED if column in cells)
    if SUBMITTED[column]:
        return SUBMITTED[column] * (_number(cells, _needed(cells, column), 0, 1e18) or 0)
    try:
        moment = datetime.fromisoformat(cells[column])
    except ValueError:
        raise _Bad(column, f"{cells[column]!r} is no time: write 2020-09-01T08:00:00Z") from None
    return 1_000 * (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _needed(cells: Mapping[str, str], column: str) -> str:
    if not cells[column]:
        raise _Bad(column, "is empty")
    return column


def _matching(cells: Mapping[str, str], column: str, fits: Callable[[str], object], which: str) -> str:
    if not fits(cells[column]):
        raise _Bad(column, f"{cells[column]!r}: write {which}")
    return cells[column]


def _number(cells: Mapping[str, str], column: str, least: float, most: float) -> float | None:
    """None for an empty cell or a column that is not there."""
    text = cells.get(column)
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        raise _Bad(column, f"{text!r} is no number") from None
    if not least <= value <= most:  # so it is with nan, too
        raise _Bad(column, f"{text} is not between {least:g} and {most:g}")
    return value


def _whole(cells: Mapping[str, str], column: str) -> int:
    value = _number(cells, _needed(cells, column), 0, 1_000_000) or 0
    if value % 1:
        raise _Bad(column, f"{cells[column]} is no whole number: a part of a GPU cannot be asked for")
    return int(value)


def _duration(column: str, cells: Mapping[str, str]) -> int | None:
    """In ms, rounded to the second, in which the lab counts; at least one unless it is zero."""
    seconds = _number(cells, column, 0, LONGEST_TRAINING_S)
    return None if seconds is None else 1_000 * max(math.ceil(min(seconds, 1)), round(seconds))


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)


def _bad_file(path: Path, line: int | None, text: str) -> BadFile:
    return BadFile(str(path), [Problem(None if line is None else Place(line, 1), (), text)])
