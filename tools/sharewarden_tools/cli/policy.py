"""``sharewarden policy check``, ``test`` and ``schema``: policies as files, without a deployment."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from sharewarden_tools.policy.cases import CaseFile
from sharewarden_tools.policy.file import BadPolicy, Checked, check_policy, load_policy
from sharewarden_tools.policy.problems import BadFile, Problem
from sharewarden_tools.policy.reading import read
from sharewarden_tools.policy.running import Result, misnamed, run_cases
from sharewarden_tools.policy.schema import policy_schema
from sharewarden_tools.policy.yaml_text import STDIN, Document, read_file
from sharewarden_tools.submission import BadRequest

from .output import OK, REFUSED, BadInput, note, print_json, say, unreadable


def check(file: Path, *, as_json: bool) -> int:
    """Say what is wrong with the policy. Raises BadInput when there is no such file."""
    try:
        checked = check_policy(file)
    except OSError as error:
        raise unreadable(file, error) from error
    if as_json:
        print_json(_check_json(file, checked))
    else:
        _told(file, checked)
    return REFUSED if checked.policy is None else OK


def schema() -> int:
    """Print the JSON Schema."""
    print_json(policy_schema())
    return OK


def test(file: Path, cases: Path | None, *, as_json: bool) -> int:
    """Run the cases beside the policy, or others. Raises BadInput."""
    if cases is None and file == STDIN:
        raise BadInput("--cases: give the file of the cases, since the policy comes from stdin")
    tried = _tried(file, cases or file.with_suffix(".tests.yaml"))
    failed = sum(bool(result.differences) for result in tried.results)
    if as_json:
        print_json(_test_json(tried))
    else:
        say(*(line for result in tried.results for line in _result_lines(tried, result)))
        say(f"{len(tried.results) - failed} of {len(tried.results)} cases pass, policy {tried.hash}")
    return REFUSED if failed else OK


class _Tried(NamedTuple):
    hash: str
    cases: Path
    document: Document
    results: tuple[Result, ...]


def _tried(file: Path, cases: Path) -> _Tried:
    try:
        policy, document = load_policy(file), read_file(cases)
        given, problems = read(document, CaseFile)
        if given is None:
            raise BadFile(str(cases), problems)
        if wrong := tuple(misnamed(policy, given, document)):
            raise BadFile(str(cases), wrong)
        return _Tried(policy.hash, cases, document, run_cases(policy, given))
    except (BadPolicy, BadFile) as error:
        raise BadInput(*error.lines) from error
    except BadRequest as error:
        raise BadInput(*(f"{cases}: {line}" for line in error.lines)) from error
    except OSError as error:
        raise unreadable(error.filename, error) from error


def _result_lines(tried: _Tried, result: Result) -> list[str]:
    if not result.differences:
        return [f"  ok    {result.name}"]
    place = tried.document.place(result.loc)
    where = f"{tried.cases}:{place.line}" if place else str(tried.cases)
    return [f"  FAIL  {result.name} ({where})", *(f"          {line}" for line in result.differences)]


def _test_json(tried: _Tried) -> dict[str, object]:
    return {"policy": tried.hash, "cases": [_case_json(result) for result in tried.results]}


def _case_json(result: Result) -> dict[str, object]:
    return {
        "name": result.name,
        "passed": not result.differences,
        "differences": result.differences,
        "findings": [finding._asdict() for finding in result.outcome.findings],
        "undecided": result.outcome.undecided,
        "held": result.outcome.held,
    }


def _told(file: Path, checked: Checked) -> None:
    note(*(problem.line(str(file)) for problem in checked.problems))
    if checked.policy is None:
        note(f"{file}: {_count(checked.problems, 'error')}")
        return
    policy = checked.policy
    warned = f", {_count(checked.problems, 'warning')}" if checked.problems else ""
    paused = ", paused" if policy.paused else ""
    say(f"{file}: good{paused}, {len(policy.guardrails)} guardrails, policy {policy.hash}{warned}")


def _count(problems: tuple[Problem, ...], level: str) -> str:
    number = sum(problem.level == level for problem in problems)
    return f"{number} {level}" if number == 1 else f"{number} {level}s"


def _check_json(file: Path, checked: Checked) -> dict[str, object]:
    return {
        "file": str(file),
        "good": checked.policy is not None,
        "hash": checked.policy.hash if checked.policy else None,
        "problems": [problem.as_json() for problem in checked.problems],
    }
