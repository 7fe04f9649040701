"""What is wrong with a file that a person wrote: where, which value, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

#: Names and positions from the outside in: ``("guardrails", 2, "limit")``.
Loc = tuple[str | int, ...]


class Place(NamedTuple):
    """A position in a text, counted from 1."""

    line: int
    column: int


class Problem(NamedTuple):
    """``text`` says what is wrong and what to do. A warning leaves the file usable."""

    place: Place | None
    loc: Loc
    text: str
    level: Literal["error", "warning"] = "error"

    def line(self, file: str) -> str:
        """``policy.yaml:12:9: guardrails[2].limit: 0 is too small: write 1 or more``."""
        where = file if self.place is None else f"{file}:{self.place.line}:{self.place.column}"
        warning = "warning: " if self.level == "warning" else ""
        path = f"{path_text(self.loc)}: " if self.loc else ""
        return f"{where}: {warning}{path}{self.text}"

    def as_json(self) -> dict[str, str | int | None]:
        line, column = self.place or (None, None)
        return {
            "level": self.level,
            "line": line,
            "column": column,
            "path": path_text(self.loc),
            "text": self.text,
        }


class Found(NamedTuple):
    """What is wrong, before it is known where that stands in the text."""

    loc: Loc
    text: str


class BadFile(Exception):
    """A file of which nothing can be made; the text has one line a problem."""

    def __init__(self, file: str, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        self.lines = tuple(problem.line(file) for problem in self.problems)
        super().__init__("\n".join(self.lines))


def path_text(loc: Loc) -> str:
    """``guardrails[2].limit``."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)
    return "".join(parts).removeprefix(".")
