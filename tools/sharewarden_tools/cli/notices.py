"""``sharewarden notices list``: what people were not told of, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sharewarden.domain.notice import Notice, settled_under
from sharewarden.ports import Runtime

from .deployment import Deployment
from .output import OK, full_time, note, print_json, say


def list_notices(deployment: Deployment, *, told: bool, as_json: bool) -> int:
    """Print the notices that nobody was told of, oldest first; with ``told`` all. Raises Unavailable."""
    found = sorted(_found(deployment.runtime, told=told), key=lambda notice: (notice.at, notice.key))
    if as_json:
        print_json([_row(notice) for notice in found])
        return OK
    if not found:
        note("no notices" if told else "no notice waits, failed or is unsure")
    for notice in found:
        say(*_lines(notice))
    return OK


def _found(runtime: Runtime, *, told: bool) -> Iterator[Notice]:
    for queue in sorted(runtime.queues | runtime.classic_queues):
        yield from runtime.ledger.open_items(Notice, queue)
        yield from runtime.ledger.open_items(Notice, settled_under(queue, told=False))
        if told:
            yield from runtime.ledger.open_items(Notice, settled_under(queue, told=True))


def _lines(notice: Notice) -> Iterator[str]:
    what = f"{notice.title}{' (shadow)' if notice.mode == 'shadow' else ''}: {notice.text}"
    yield f"{full_time(notice.at)}  {notice.state:<7}  {notice.severity:<7}  {what}"
    for one in notice.deliveries:
        why = f": {one.why}" if one.why else ""
        tries = f", {one.tries} tries" if one.tries > 1 else ""
        yield f"{'':<22}{one.channel} {one.state}{tries}{why}"


def _row(notice: Notice) -> dict[str, Any]:
    return {"state": notice.state, **notice.model_dump(exclude={"version"})}
