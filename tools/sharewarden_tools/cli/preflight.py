"""``sharewarden preflight``: what the policy will say of a job before it is submitted."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, NamedTuple

from sharewarden.domain.base import last_part
from sharewarden.domain.observation import ShareDescription
from sharewarden.domain.policy import Policy

from sharewarden_tools.policy.file import BadPolicy, load_policy
from sharewarden_tools.policy.problems import BadFile
from sharewarden_tools.policy.yaml_text import BadText, decode, parse, read_bytes
from sharewarden_tools.submission import BadRequest, check_submission, read_shares

from .deployment import Deployment, open_deployment
from .output import OK, REFUSED, BadInput, print_json, say, unreadable


class Sources(NamedTuple):
    """Where policy and shares come from, as typed."""

    policy: Path | None
    shares: Path | None
    stack: str | None
    local: bool


def preflight(file: Path, sources: Sources, *, as_json: bool) -> int:
    """Say what would be found of the job in ``file``. Raises BadInput, Unavailable."""
    request = _mapping(file)
    try:
        policy, shares = _known(sources, request)
        report = check_submission(request, policy, shares, round(time.time() * 1000))
    except BadRequest as error:
        raise BadInput(*(f"{file}: {line}" for line in error.lines)) from error
    if as_json:
        print_json(report.as_json())
    else:
        say(*report.lines())
    return REFUSED if report.blocks else OK


def _known(sources: Sources, request: dict[str, Any]) -> tuple[Policy, tuple[ShareDescription, ...] | None]:
    shares = None if sources.shares is None else _shares(sources.shares)
    if sources.policy is not None:
        if sources.stack is not None or sources.local:
            raise BadInput("give a policy, or the deployment that has one: --policy, --stack or --local")
        return _policy(sources.policy), shares
    if sources.stack is None and not sources.local:
        raise BadInput("give --policy FILE, --stack NAME or --local")
    deployment = open_deployment(sources.stack, local=sources.local)
    return deployment.runtime.policies.current(), shares or _deployed_shares(deployment, request)


def _deployed_shares(deployment: Deployment, request: dict[str, Any]) -> tuple[ShareDescription, ...]:
    name = last_part(str(request.get("jobQueue", "")))
    queues = {last_part(arn): arn for arn in deployment.runtime.queues}
    if name not in queues:
        raise BadInput(f"jobQueue: {name!r} is not a queue of {deployment.name}: {', '.join(sorted(queues))}")
    found = deployment.runtime.batch.shares(queues[name])
    return found.shares


def _policy(file: Path) -> Policy:
    try:
        return load_policy(file)
    except BadPolicy as error:
        raise BadInput(*error.lines) from error


def _shares(file: Path) -> tuple[ShareDescription, ...]:
    try:
        return read_shares(_mapping(file))
    except BadRequest as error:
        raise BadInput(*(f"{file}: {line}" for line in error.lines)) from error


def _mapping(file: Path) -> dict[str, Any]:
    """The object in a JSON or YAML file. Raises BadInput."""
    try:
        value = _value(file, read_bytes(file))
    except OSError as error:
        raise unreadable(file, error) from error
    except BadText as error:
        raise BadInput(*BadFile(str(file), error.problems).lines) from error
    if not isinstance(value, dict):
        raise BadInput(f"{file}: not an object with members")
    return value


def _value(file: Path, raw: bytes) -> Any:
    text = decode(raw)
    if file.suffix != ".json" and not text.lstrip().startswith("{"):
        return parse(raw).value
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise BadInput(f"{file}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from error
    except RecursionError as error:
        raise BadInput(f"{file}: nested too deeply to be read") from error
    except ValueError as error:  # Python reads no whole number of more than 4300 digits
        raise BadInput(f"{file}: a number in it has too many digits: write a smaller one") from error
