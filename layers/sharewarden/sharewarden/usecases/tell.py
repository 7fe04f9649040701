"""Notices are committed with the facts that they tell; after that ``notify`` is asked to deliver them."""

from collections.abc import Iterable
from contextlib import suppress

from sharewarden.domain.notice import Notice
from sharewarden.ports import Runtime, Unavailable


def unrecorded(runtime: Runtime, notices: Iterable[Notice]) -> list[Notice]:
    """Those that are not on record yet: what many jobs show is told once. Raises Unavailable."""
    return [notice for notice in notices if runtime.ledger.load(Notice, notice.key) is None]


def send(runtime: Runtime, notices: Iterable[Notice]) -> None:
    """Ask for their delivery. They are committed: what is lost here, a sweep brings back."""
    for notice in notices:
        with suppress(Unavailable):
            runtime.notices.send(notice.key)
