"""``sharewarden drain``: every job back at its base, before Sharewarden is taken away."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple
from uuid import uuid4

from pydantic import ValidationError
from sharewarden.domain.durations import format_duration, parse_duration
from sharewarden.ports import Unavailable
from sharewarden.usecases.drain import DrainRequest, Remaining, standing
from sharewarden.usecases.drain import drain as drain_once

from sharewarden_tools.operations.progress import progress
from sharewarden_tools.operations.site import Site

from .confirm import confirmed
from .output import OK, REFUSED, BadInput, full_time, note, print_json, say

#: Between two looks, in seconds: apply takes some, and each look asks Batch about every job that remains.
LOOKS_EVERY = 5.0
RISK = (
    "--now: jobs that a boost has started are lowered while they run, "
    "which makes them likelier victims of the next preemption"
)
#: What a deleted stack leaves behind, by output (DeletionPolicy: Retain in the template).
KEPT = ("StateTable", "AuditTable")


class Asked(NamedTuple):
    """What the caller wants, as typed."""

    reason: str
    now: bool = False
    timeout: str = "1h"
    yes: bool = False


def drain(site: Site, asked: Asked, *, as_json: bool, pause: Callable[[float], None] = time.sleep) -> int:
    """OK once nothing remains; REFUSED when something still does. Raises BadInput, Unavailable."""
    request, limit = _request(site, asked), _limit(asked.timeout)
    site.deployment.announce()
    remaining = standing(site.runtime)
    if remaining:
        note(*map(_line, remaining))
        if asked.now:
            note(RISK)
        if confirmed(f"end the boosts of {len(remaining)} jobs?", yes=asked.yes):
            remaining = _until_done(site, request, limit, pause)
        else:
            note("nothing was changed; --yes to end them")
    return _told(site, remaining, as_json=as_json)


def _request(site: Site, asked: Asked) -> DrainRequest:
    try:
        return DrainRequest(
            id=f"drain-{uuid4()}", actor=site.deployment.actor, reason=asked.reason, at_once=asked.now
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        raise BadInput(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def _limit(text: str) -> int:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise BadInput(f"--timeout: {error}") from error


def _until_done(
    site: Site, request: DrainRequest, limit: int, pause: Callable[[float], None]
) -> tuple[Remaining, ...]:
    """What remains at last; once AWS did answer, a look that failed is only a look later."""
    clock = site.runtime.clock
    give_up = clock.now() + limit
    remaining = drain_once(site.runtime, request)
    with progress() as tell:
        while remaining and clock.now() < give_up:
            left = format_duration(give_up - clock.now())
            tell(f"{len(remaining)} jobs remain, {left} left; {remaining[0].name}: {remaining[0].why}")
            pause(LOOKS_EVERY)
            with suppress(Unavailable):
                remaining = drain_once(site.runtime, request)
    return remaining


def _told(site: Site, remaining: tuple[Remaining, ...], *, as_json: bool) -> int:
    if as_json:
        print_json({"remaining": [one.model_dump() for one in remaining], "kept": _kept(site)})
    elif remaining:
        say("not at their base:", *map(_line, remaining))
    else:
        say("every job is at its base", *_next(site))
    return REFUSED if remaining else OK


def _line(one: Remaining) -> str:
    until = f", until {full_time(one.until)}" if one.until else ""
    return f"  {one.name}  {one.shown} -> {one.base}  {one.why}{until}"


def _next(site: Site) -> list[str]:
    """What there is to do now, and what that leaves behind."""
    if site.stack is None:
        return ["stop `sharewarden local serve`; it keeps nothing"]
    kept = [f"it keeps the table {table} ({name})" for name, table in _kept(site).items()]
    return [f"now: sam delete --stack-name {site.stack['StackName']}", *kept]


def _kept(site: Site) -> dict[str, str]:
    return {} if site.stack is None else {name: site.outputs[name] for name in KEPT}
