"""Durations as people write them: ``90s``, ``30m``, ``4h``, ``2d``, ``1h30m``."""

import re
from typing import Annotated

from pydantic import BeforeValidator

_UNITS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_WHOLE = re.compile(r"([0-9]{1,6}[smhd])+")
_PART = re.compile(r"([0-9]{1,6})([smhd])")
#: A time so far from today can still be written.
LONGEST = 999_999 * _UNITS["d"]


def parse_duration(text: str) -> int:
    """Milliseconds in ``text``. Raises ValueError for anything but numbers with the units s, m, h, d."""
    compact = text.replace(" ", "").lower()
    if not _WHOLE.fullmatch(compact):
        raise ValueError(f"{text!r} is not a duration: write for example 90s, 30m, 4h or 1h30m")
    ms = sum(int(number) * _UNITS[unit] for number, unit in _PART.findall(compact))
    if ms > LONGEST:
        raise ValueError(f"{text[:20]!r} is too long: write 999999d at most, or for example 30d")
    return ms


def format_duration(ms: int) -> str:
    """``ms`` in the two largest units that matter: 4 h 10 min."""
    seconds = abs(ms) // 1000
    parts = [
        (seconds // 86400, "d"),
        (seconds // 3600 % 24, "h"),
        (seconds // 60 % 60, "min"),
        (seconds % 60, "s"),
    ]
    shown = [f"{amount} {unit}" for amount, unit in parts if amount][:2]
    return " ".join(shown) or "0 s"


def whole_seconds(ms: int | None) -> int | None:
    """Whole seconds, as rules read durations; None, which is not known, stays None."""
    return None if ms is None else ms // 1000


def _to_ms(value: object) -> object:
    return parse_duration(value) if isinstance(value, str) else value


Duration = Annotated[int, BeforeValidator(_to_ms)]
"""Milliseconds; a policy may write them as text."""
