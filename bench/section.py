"""One group of figures: what it measures, what in it is simulated, and a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap

WIDTH = 110
Value = str | int | float


@dataclass(frozen=True)
class Section:
    """``rows`` have the same columns in the same order; a column of numbers names its unit."""

    title: str
    measures: str
    simulated: str
    rows: Sequence[Mapping[str, Value]]

    def text(self) -> str:
        notes = (*_note("measures", self.measures), *_note("simulated", self.simulated))
        return "\n".join((self.title, *notes, "", *_table(self.rows), ""))


def _note(name: str, text: str) -> list[str]:
    return wrap(text, WIDTH, initial_indent=f"  {name:<11}", subsequent_indent=" " * 13)


def _table(rows: Sequence[Mapping[str, Value]]) -> list[str]:
    cells = [list(rows[0]), *([_shown(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    numeric = [not isinstance(value, str) for value in rows[0].values()]
    return [_line(line, widths, numeric) for line in cells]


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    columns = zip(cells, widths, numeric, strict=True)
    return ("  " + "  ".join(c.rjust(w) if right else c.ljust(w) for c, w, right in columns)).rstrip()


def _shown(value: Value) -> str:
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 100 else f"{value:.2f}"
    return str(value)
