"""``sharewarden policy push`` and ``rollback``: another policy in force, seen before and on record after."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError
from sharewarden.aws.policies import DOES_NOT_LOAD
from sharewarden.domain.base import last_part
from sharewarden.domain.policy import Policy
from sharewarden.domain.policy_version import PolicyVersion
from sharewarden.usecases.bump import Refused
from sharewarden.usecases.push_policy import LONGEST_MESSAGE, Pushed, PushRequest, push, refuse_unfit

from sharewarden_tools.operations.site import Site
from sharewarden_tools.policy.diff import changes, effects
from sharewarden_tools.policy.file import check_document
from sharewarden_tools.policy.problems import BadFile
from sharewarden_tools.policy.yaml_text import STDIN, decode, read_bytes, read_file
from sharewarden_tools.template import load_template

from .confirm import confirmed
from .output import OK, REFUSED, BadInput, full_time, note, print_json, say, unreadable
from .policy_show import find, in_force, store_of


class Asked(NamedTuple):
    """What the caller wants, as typed."""

    message: str = ""
    yes: bool = False
    as_json: bool = False


class Written(NamedTuple):
    """A policy and the YAML that says it."""

    policy: Policy
    text: str


def push_policy(site: Site, file: Path, asked: Asked) -> int:
    """Put the file's policy in force. Raises BadInput, Refused, Unavailable."""
    return _put(site, read_written(file), asked)


def roll_back(site: Site, version: str, asked: Asked) -> int:
    """Put an earlier version in force again, as a new version. Raises BadInput, Refused, Unavailable."""
    found = find(store_of(site), version)
    try:
        policy = found.load()
    except DOES_NOT_LOAD as error:
        raise Refused(
            f"version {found.number} does not load in this version of the command: {error}"
        ) from error
    message = asked.message or f"rollback to version {found.number}"
    return _put(site, Written(policy, found.text), asked._replace(message=message))


def read_written(file: Path) -> Written:
    """The policy in the file; warnings are notes. Raises BadInput with everything that is wrong."""
    try:
        raw = read_bytes(file)
        checked = check_document(read_file(file, raw))
    except BadFile as error:
        raise BadInput(*error.lines) from error
    except OSError as error:
        raise unreadable(file, error) from error
    if file == STDIN and not raw.strip():
        raise BadInput("-: nothing came from stdin; for a policy of defaults, write: version: 1")
    lines = [problem.line(str(file)) for problem in checked.problems]
    if checked.policy is None:
        raise BadInput(*lines)
    note(*lines)
    return Written(checked.policy, decode(raw))


def _put(site: Site, written: Written, asked: Asked) -> int:
    request, cap, store = _request(site, written, asked), highest_priority(site), store_of(site)
    site.deployment.announce()
    refuse_unfit(request, cap)
    seen = store.current()
    if not _same(seen, request):
        note(*_preview(site, seen, request.policy))
        if not confirmed(f"put {request.policy.hash} in force?", yes=asked.yes):
            note("nothing was changed; --yes to push")
            return REFUSED
    return _told(push(store, site.runtime.clock, request, seen, cap), as_json=asked.as_json)


def _request(site: Site, written: Written, asked: Asked) -> PushRequest:
    try:
        return PushRequest(
            policy=written.policy, text=written.text, author=site.deployment.actor, message=asked.message
        )
    except ValidationError as error:
        raise BadInput(f"--message: {len(asked.message)} characters, {LONGEST_MESSAGE} at most") from error


def highest_priority(site: Site) -> int:
    """What IAM lets ``apply`` set: the stack's MaxPriority, or the template's default for the local stack."""
    if site.stack is not None:
        return int(site.parameters["MaxPriority"])
    return int(load_template()["Parameters"]["MaxPriority"]["Default"])


def _same(seen: PolicyVersion | None, request: PushRequest) -> bool:
    return seen is not None and seen.author is not None and seen.hash == request.policy.hash


def _preview(site: Site, seen: PolicyVersion | None, new: Policy) -> Iterator[str]:
    old = in_force(site, seen)
    queues = {last_part(arn) for arn in site.runtime.queues}
    yield f"{old.hash} -> {new.hash}"
    yield from (f"  {change.line()}" for change in changes(old, new))
    yield from effects(old, new, queues) or ("nothing changes for the queues of this stack",)
    yield from _strange(new, queues)


def _strange(policy: Policy, queues: set[str]) -> Iterator[str]:
    """One file may serve several stacks, so another stack's queue is no fault; a slip of the pen is."""
    named = {*policy.queues, *(queue for entry in policy.guardrails for queue in entry.queues)}
    if strange := sorted(named - queues):
        yield f"warning: this stack does not look after {', '.join(strange)} (QueueArns)"


def _told(pushed: Pushed, *, as_json: bool) -> int:
    version = pushed.version
    if as_json:
        print_json(version.model_dump(exclude={"doc", "text"}) | {"new": pushed.new})
    elif pushed.new:
        say(f"version {version.number}, {version.hash}, is in force; the functions read it within a minute")
    else:
        since = f"since {full_time(version.at)}, by {version.author}"
        say(f"version {version.number}, {version.hash}, is in force already, {since}: nothing was changed")
    return OK
