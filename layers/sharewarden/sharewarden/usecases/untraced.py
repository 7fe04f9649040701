"""The sweep's look at the jobs that nobody could place."""

from collections.abc import Iterator

from sharewarden.domain.sweeping import SETTLE
from sharewarden.domain.untraced import NOWHERE, UntracedJob, untraceable_fact
from sharewarden.ports import Conflict, Runtime


def untraced_for_long(runtime: Runtime, now: int) -> Iterator[UntracedJob]:
    """The jobs of which no event has come for ``SETTLE``. Raises Unavailable."""
    for waiting in runtime.ledger.open_items(UntracedJob, NOWHERE):
        if now - waiting.heard_at >= SETTLE:
            yield waiting


def give_up_untraced(runtime: Runtime, waiting: UntracedJob, now: int) -> None:
    """One gap for a job that nobody will place any more. Raises Unavailable."""
    closed = waiting.model_copy(update={"closed_at": now})
    try:
        runtime.ledger.commit([closed], [untraceable_fact(waiting)], now)
    except Conflict:
        return  # an event came in at this moment
