"""``sharewarden bump`` and ``unbump``."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

from pydantic import BaseModel, ValidationError
from sharewarden.domain.durations import format_duration, parse_duration
from sharewarden.usecases.bump import Answer, BumpRequest, UnbumpRequest, bump, unbump

from .deployment import Deployment
from .output import OK, BadInput, full_time, print_json, say

Request = TypeVar("Request", bound=BaseModel)


class Raise(NamedTuple):
    """What the caller of ``bump`` asked for, as typed."""

    to: int | None
    by: int | None
    lasts: str | None
    reason: str


def bump_job(deployment: Deployment, job: str, asked: Raise, *, as_json: bool) -> int:
    """Raise the job. Raises BadInput, Refused, Unavailable."""
    if (asked.to is None) == (asked.by is None):
        raise BadInput("give either --to PRIORITY or --by POINTS")
    ms = None if asked.lasts is None else _duration("--for", asked.lasts)
    deployment.announce()
    request = _request(BumpRequest, deployment, job, asked.reason, to=asked.to, by=asked.by, lasts=ms)
    how_long = "until somebody ends it" if ms is None else f"for {format_duration(ms)}"
    return _told(bump(deployment.runtime, request), how_long, as_json=as_json)


def unbump_job(deployment: Deployment, job: str, *, reason: str, as_json: bool) -> int:
    """End the boosts of people. Raises BadInput, Refused, Unavailable."""
    deployment.announce()
    answer = unbump(deployment.runtime, _request(UnbumpRequest, deployment, job, reason))
    held = (
        f"held until {full_time(answer.held_until)}, since the bump started the job"
        if answer.held_until
        else ""
    )
    return _told(answer, held, as_json=as_json)


def _request(kind: type[Request], deployment: Deployment, job: str, reason: str, **rest: Any) -> Request:
    try:
        return kind(
            id=f"cli-{uuid4()}", job=deployment.job(job), actor=deployment.actor, reason=reason, **rest
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        raise BadInput(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def _duration(option: str, text: str) -> int:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise BadInput(f"{option}: {error}") from error


def _told(answer: Answer, how_long: str, *, as_json: bool) -> int:
    if as_json:
        print_json(answer.model_dump())
        return OK
    shadow = "shadow, only recorded: " if answer.mode == "shadow" else ""
    say(f"{answer.job_name}: {shadow}{answer.before} -> {answer.after} {how_long}".rstrip())
    return OK
