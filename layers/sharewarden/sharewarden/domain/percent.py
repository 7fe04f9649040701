"""Percentages as people write them: ``50%``."""

import re
from typing import Annotated

from pydantic import BeforeValidator, Field

_WHOLE = re.compile(r"[1-9][0-9]{0,2}%")


def percent_of(text: str) -> int:
    """The number in ``50%``."""
    return int(text.removesuffix("%"))


def _with_sign(value: object) -> object:
    """Raises ValueError for anything but a whole percentage from 1% to 999%."""
    if isinstance(value, int) and not isinstance(value, bool):
        raise ValueError(f"{value} has no unit: write {value}%")
    if not isinstance(value, str) or not _WHOLE.fullmatch(value):
        raise ValueError(f"{value!r} is not a percentage from 1% to 999%: write for example 50%")
    return value


Percent = Annotated[str, Field(pattern=f"^{_WHOLE.pattern}$"), BeforeValidator(_with_sign)]
"""A whole percentage with its sign, kept as it is written."""
