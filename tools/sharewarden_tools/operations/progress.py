"""A word about how far something is, for a person who waits."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

#: Seconds between two lines where no terminal can show one that changes.
LINE_EVERY = 10.0

Tell = Callable[[str], None]


@contextmanager
def progress(seconds: Callable[[], float] = time.monotonic) -> Iterator[Tell]:
    """Tell it what goes on: one line that changes on a terminal, else a plain line now and then (stderr)."""
    out = Console(file=sys.stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)
    if not out.is_terminal:
        yield _lines(out, seconds)
        return
    with out.status("") as status:
        yield status.update


def _lines(out: Console, seconds: Callable[[], float]) -> Tell:
    told_at = seconds()

    def tell(text: str) -> None:
        nonlocal told_at
        if seconds() - told_at >= LINE_EVERY:
            told_at = seconds()
            out.print(text)

    return tell
