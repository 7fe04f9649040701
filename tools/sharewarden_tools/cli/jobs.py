"""``sharewarden bump`` and ``unbump``."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

from pydantic import BaseModel
from sharewarden.domain.durations import format_duration, parse_duration
from sharewarden.domain.stored import DAY, MINUTE
from sharewarden.usecases.bump import Answer, BumpRequest, UnbumpRequest, bump, unbump

from .deployment import Deployment
from .output import OK, BadInput, full_time, note, print_json, say

Request = TypeVar("Request", bound=BaseModel)

#: As BumpRequest and UnbumpRequest have it.
LONGEST_JOB, LONGEST_REASON = 300, 500
LONGEST_BUMP = 365 * DAY
#: The schedule of the sweep in template.yaml.
SWEEP_EVERY = 5 * MINUTE


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
    ms = None if asked.lasts is None else _how_long(asked.lasts)
    _check_reason(asked.reason)
    deployment.announce()
    request = _request(BumpRequest, deployment, job, asked.reason, to=asked.to, by=asked.by, lasts=ms)
    how_long = "until somebody ends it" if ms is None else f"for {format_duration(ms)}"
    told = _told(bump(deployment.runtime, request), how_long, as_json=as_json)
    if warning := _warning(ms):
        note(warning)
    return told


def _warning(lasts: int | None) -> str | None:
    """What a person may not expect of how long a bump lasts."""
    if lasts is None:
        return "warning: without --for it lasts until the job ends or somebody says `sharewarden unbump`"
    if lasts < SWEEP_EVERY:
        return f"warning: the sweep ends bumps, every {format_duration(SWEEP_EVERY)}: it may last that long"
    return None


def unbump_job(deployment: Deployment, job: str, *, reason: str, as_json: bool) -> int:
    """End the boosts of people. Raises BadInput, Refused, Unavailable."""
    _check_reason(reason)
    deployment.announce()
    answer = unbump(deployment.runtime, _request(UnbumpRequest, deployment, job, reason))
    held = (
        f"held until {full_time(answer.held_until)}, since the bump started the job"
        if answer.held_until
        else ""
    )
    return _told(answer, held, as_json=as_json)


def _request(kind: type[Request], deployment: Deployment, job: str, reason: str, **rest: Any) -> Request:
    if not 1 <= len(job) <= LONGEST_JOB:
        raise BadInput(f"JOB: 1 to {LONGEST_JOB} characters")
    return kind(id=f"cli-{uuid4()}", job=deployment.job(job), actor=deployment.actor, reason=reason, **rest)


def _check_reason(reason: str) -> None:
    if not reason.strip():
        raise BadInput("--reason: say why; it goes on record")
    if len(reason) > LONGEST_REASON:
        raise BadInput(f"--reason: {len(reason)} characters, {LONGEST_REASON} at most")


def _how_long(text: str) -> int:
    try:
        ms = parse_duration(text)
    except ValueError as error:
        raise BadInput(f"--for: {error}") from error
    if not 0 < ms <= LONGEST_BUMP:
        raise BadInput(
            f"--for: {text!r} is not between 1s and {LONGEST_BUMP // DAY}d; leave it out for no end"
        )
    return ms


def _told(answer: Answer, how_long: str, *, as_json: bool) -> int:
    if as_json:
        print_json(answer.model_dump())
        return OK
    shadow = "shadow, only recorded: " if answer.mode == "shadow" else ""
    say(f"{answer.job_name}: {shadow}{answer.before} -> {answer.after} {how_long}".rstrip())
    if answer.capped_at is not None:
        note(f"more was asked for, but a bump may reach {answer.capped_at} at most (the policy's band)")
    return OK
