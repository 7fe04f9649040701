"""A policy as people keep it: one YAML file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from sharewarden.aws.policies import KEY
from sharewarden.domain.policy import Policy

from sharewarden_tools.template import TEMPLATE

from . import checks
from .problems import BadFile, Found, Problem
from .reading import in_order, read
from .yaml_text import Document, read_file

#: The policy of the three-team pool.
EXAMPLE = TEMPLATE.parent / "examples" / "three-team-pool" / "policy.yaml"


class BadPolicy(Exception):
    """The file is no policy; one line a problem, each says what is wrong, where, and what to write."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


class Checked(NamedTuple):
    """What came of reading a policy: ``policy`` is None if ``problems`` has an error."""

    policy: Policy | None
    problems: tuple[Problem, ...]


def load_policy(path: Path = EXAMPLE) -> Policy:
    """Raises BadPolicy."""
    try:
        checked = check_policy(path)
    except OSError as error:
        raise BadPolicy(f"{path}: {(error.strerror or str(error)).lower()}") from error
    if checked.policy is None:
        raise BadPolicy(*(one.line(str(path)) for one in checked.problems if one.level == "error"))
    return checked.policy


def check_policy(path: Path) -> Checked:
    """Everything that is wrong with the file, and what is probably not meant. Raises OSError."""
    try:
        document = read_file(path)
    except BadFile as error:
        return Checked(None, error.problems)
    return check_document(document)


def check_document(document: Document) -> Checked:
    """The same for what a file held."""
    policy, faults = read(document, Policy)
    clashes = tuple(_problems(document, checks.clashes(document.value), "error"))
    if clashes:
        faults = (*(fault for fault in faults if fault.loc), *clashes)
    wrong = (*faults, *_problems(document, _cross_errors(document, faults), "error"))
    if policy is None or wrong:
        return Checked(None, in_order(wrong))
    return Checked(policy, in_order(_problems(document, checks.warnings(policy), "warning")))


def _cross_errors(document: Document, faults: tuple[Problem, ...]) -> Iterator[Found]:
    """What is wrong between parts that are good by themselves: entries that are not are left aside."""
    broken = {fault.loc[1] for fault in faults if fault.loc[:1] == ("guardrails",) and len(fault.loc) > 1}
    if len(broken) < len({fault.loc[:2] for fault in faults}):
        return
    entries = document.value.get("guardrails") or []
    numbers = [number for number in range(len(entries)) if number not in broken]
    good = document.value | {"guardrails": [entries[number] for number in numbers]}
    yield from checks.errors(Policy.model_validate(good), numbers)


def policy_row(policy: Policy) -> dict[str, Any]:
    """The item of the table State that puts the policy in force."""
    return {**KEY, "doc": {"S": policy.model_dump_json()}}


def _problems(
    document: Document, found: Iterator[Found], level: Literal["error", "warning"]
) -> Iterator[Problem]:
    for one in found:
        yield Problem(document.place(one.loc), one.loc, one.text, level)
