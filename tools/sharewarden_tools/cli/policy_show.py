"""``sharewarden policy show``, ``diff`` and ``history``: what is in force, and what was."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

from sharewarden.aws.policies import DOES_NOT_LOAD
from sharewarden.aws.policy_store import DynamoPolicyStore
from sharewarden.domain.base import last_part
from sharewarden.domain.policy import Policy
from sharewarden.domain.policy_version import PolicyEntry, PolicyVersion
from sharewarden.ports import PolicyStore

from sharewarden_tools.operations.site import Site
from sharewarden_tools.policy.diff import as_yaml, changes, effects

from .output import OK, BadInput, full_time, note, print_json, say

#: The shortest beginning of a hash that is taken for one.
SHORTEST = 4


def store_of(site: Site) -> DynamoPolicyStore:
    """The versions of the policy of that deployment."""
    variables = site.variables
    return DynamoPolicyStore(site.client("dynamodb"), variables["STATE_TABLE"], variables["AUDIT_TABLE"])


def in_force(site: Site, stored: PolicyVersion | None) -> Policy:
    """The policy that the functions go by. Raises Unavailable."""
    if stored is None:
        return Policy()
    try:
        return stored.load()
    except DOES_NOT_LOAD:
        return site.runtime.policies.current()  # which says so, and finds the last good one


def find(store: PolicyStore, wanted: str | None) -> PolicyVersion:
    """A version by its number or the beginning of its hash; None: the one in force. Raises BadInput."""
    current = store.current()
    if current is None:
        raise BadInput("no policy was ever pushed: the safe defaults are in force, everything in shadow")
    number = current.number if wanted is None else _number(store, wanted)
    return store.version(number) or current  # what was put by hand is kept nowhere else


def _number(store: PolicyStore, wanted: str) -> int:
    entries = list(store.history())
    exact = [entry for entry in entries if wanted == str(entry.number)]
    begins = [entry for entry in entries if len(wanted) >= SHORTEST and entry.hash.startswith(wanted)]
    found = exact or begins
    if not found:
        raise BadInput(f"{wanted}: no version has that number or hash; see sharewarden policy history")
    if len({entry.hash for entry in found}) > 1:
        raise BadInput(f"{wanted}: more than one hash begins with it:", *map(_line, found))
    return found[0].number


def show(site: Site, wanted: str | None, *, as_json: bool) -> int:
    """Print one version. Raises BadInput, Unavailable."""
    store = store_of(site)
    version, current = find(store, wanted), store.current()
    holds = current is not None and current.number == version.number
    if as_json:
        print_json(version.model_dump() | {"in_force": holds, "policy": _parsed(version.doc)})
        return OK
    say(f"# {_line(version).strip()}{', in force' if holds else ''}")
    say(*_text(version).splitlines())
    return OK


def diff(site: Site, written: Policy, *, as_json: bool) -> int:
    """Print what a policy would change of the one in force. Raises BadInput, Unavailable."""
    old = in_force(site, store_of(site).current())
    queues = {last_part(arn) for arn in site.runtime.queues}
    found, brings = changes(old, written), effects(old, written, queues)
    if as_json:
        rows = [change._asdict() for change in found]
        print_json({"before": old.hash, "after": written.hash, "changes": rows, "effects": brings})
        return OK
    note(f"{site.deployment.where}; {old.hash} -> {written.hash}")
    say(*(change.line() for change in found), *brings)
    if not found:
        note("it is in force already: no difference")
    return OK


def history(site: Site, most: int, *, as_json: bool) -> int:
    """Print who pushed what, newest first. Raises Unavailable."""
    store = store_of(site)
    entries, current = list(islice(store.history(), most)), store.current()
    number = None if current is None else current.number
    if as_json:
        print_json([entry.model_dump() | {"in_force": entry.number == number} for entry in entries])
        return OK
    if not entries:
        note("no policy was ever pushed: the safe defaults are in force, everything in shadow")
    say(*(f"{'*' if entry.number == number else ' '} {_line(entry)}" for entry in entries))
    return OK


def _parsed(doc: str) -> Any:
    """None for what is no JSON: somebody put it by hand."""
    try:
        return json.loads(doc)
    except (ValueError, RecursionError):
        return None


def _line(entry: PolicyEntry) -> str:
    if entry.author is None:
        return f"{entry.number:>4}  {entry.hash}  put into the table by hand"
    return f"{entry.number:>4}  {entry.hash}  {full_time(entry.at)}  {entry.author}  {entry.message}".rstrip()


def _text(version: PolicyVersion) -> str:
    """The YAML as written; what has none is written anew, or shown as JSON if this code cannot read it."""
    if version.text:
        return version.text
    try:
        return as_yaml(version.load())
    except DOES_NOT_LOAD:
        return version.doc
