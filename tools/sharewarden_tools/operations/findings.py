"""What a look at a deployment found: one line each, with what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

from sharewarden.ports import Unavailable

from .progress import Tell
from .site import NotHere, Site

State = Literal["ok", "warning", "problem", "cannot tell"]


class Finding(NamedTuple):
    """``seen`` is what is so, ``fix`` what to do about it; nothing where all is well."""

    name: str
    state: State
    seen: str
    fix: str = ""


Seen = tuple[State, str] | tuple[State, str, str]
Check = Callable[[Site], Iterator[Seen]]
"""Reads only. Its findings carry its name; NotHere and Unavailable mean that it cannot tell."""


def look(site: Site, checks: Iterable[Check], tell: Tell) -> Iterator[Finding]:
    """What each check finds, in order."""
    for check in checks:
        name = check.__name__.replace("_", " ")
        tell(f"looking at {name}")
        yield from _found(site, name, check)


def _found(site: Site, name: str, check: Check) -> Iterator[Finding]:
    try:
        for seen in check(site):
            yield Finding(name, *seen)
    except NotHere as error:
        yield Finding(name, "cannot tell", str(error))
    except Unavailable as error:
        yield Finding(name, "cannot tell", f"AWS could not be asked: {error}", "docs/operations.md, doctor")
