"""Checks of requests that several operations share. All raise ClientException, as Batch does."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from typing import TypeVar

from .errors import client_error
from .world import Json

T = TypeVar("T")
NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
STATES = ("ENABLED", "DISABLED")
MAX_TAGS = 50
MAX_LIMITS = 5  # capacity limits per share and per environment (service_limits.html)


def require(params: Json, *names: str) -> None:
    for name in names:
        if params.get(name) in (None, "", []):
            raise client_error(f"Error executing request, Exception : {name} is required.")


def name(value: str, what: str) -> str:
    """Up to 128 letters, digits, hyphens, underscores."""
    if not NAME.fullmatch(value):
        raise client_error(
            f"{what} should match valid pattern: 1 to 128 letters (uppercase and lowercase), numbers, "
            "hyphens and underscores are allowed."
        )
    return value


def one_of(value: str, allowed: Iterable[str], what: str) -> str:
    choices = tuple(allowed)
    if value not in choices:
        raise client_error(f"{what} must be one of {', '.join(choices)}.")
    return value


def within(value: int, low: int, high: int, what: str) -> int:
    if not low <= value <= high:
        raise client_error(f"{what} must be an integer between {low} and {high}.")
    return value


def state(params: Json, default: str = "ENABLED") -> str:
    return one_of(params.get("state") or default, STATES, "state")


def tags(value: dict[str, str] | None) -> dict[str, str]:
    found = dict(value or {})
    if len(found) > MAX_TAGS:
        raise client_error(f"A resource can have at most {MAX_TAGS} tags.")
    return found


def capacity_limits(limits: list[Json]) -> list[Json]:
    """Capacity units are instance types in a quota-managed environment, each named once, five at most."""
    if not limits:
        raise client_error("capacityLimits is required.")
    if len(limits) > MAX_LIMITS:
        raise client_error(f"At most {MAX_LIMITS} capacity limits are allowed.")
    for limit in limits:
        require(limit, "maxCapacity", "capacityUnit")
        within(limit["maxCapacity"], 0, 2**31 - 1, "maxCapacity")
        if not limit["capacityUnit"].startswith("ml."):
            raise client_error("capacityUnit must be an instance type with quota management.")
    if len({limit["capacityUnit"] for limit in limits}) < len(limits):
        raise client_error("Each capacityUnit may appear once in capacityLimits.")
    return [dict(limit) for limit in limits]


def page(items: Iterable[tuple[int, T]], params: Json) -> tuple[list[T], str | None]:
    """One page of items that come with ascending positions, and the token of the next one.

    The token names the last position shown, so a page stays right when items come and go.
    """
    size = within(params.get("maxResults", 100), 1, 100, "maxResults")
    after = _position(params.get("nextToken"))
    rest = [(position, item) for position, item in items if after is None or position > after]
    shown = rest[:size]
    token = _token(shown[-1][0]) if len(rest) > size else None
    return [item for _, item in shown], token


def _token(position: int) -> str:
    return base64.urlsafe_b64encode(f"after {position}".encode()).decode()


def _position(token: str | None) -> int | None:
    if not token:
        return None
    try:
        return int(base64.urlsafe_b64decode(token).decode().removeprefix("after "))
    except ValueError:
        raise client_error("nextToken is not valid.") from None
