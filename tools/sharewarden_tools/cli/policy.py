"""``sharewarden policy check``: policies as files, without a deployment."""

from __future__ import annotations

from pathlib import Path

from sharewarden_tools.policy_file import Checked, check_policy

from .output import OK, REFUSED, BadInput, note, print_json, say


def check(file: Path, *, as_json: bool) -> int:
    """Say what is wrong with the policy. Raises BadInput when there is no such file."""
    checked = _checked(file)
    if as_json:
        print_json(_as_json(file, checked))
    else:
        _told(file, checked)
    return REFUSED if checked.policy is None else OK


def _checked(file: Path) -> Checked:
    try:
        return check_policy(file)
    except OSError as error:
        raise BadInput(f"{file}: {(error.strerror or str(error)).lower()}") from error


def _told(file: Path, checked: Checked) -> None:
    note(*(problem.line(str(file)) for problem in checked.problems))
    if checked.policy is None:
        note(f"{file}: {_count(checked, 'error')}")
        return
    policy = checked.policy
    warned = f", {_count(checked, 'warning')}" if checked.problems else ""
    paused = ", paused" if policy.paused else ""
    say(f"{file}: good{paused}, {len(policy.guardrails)} guardrails, policy {policy.hash}{warned}")


def _count(checked: Checked, level: str) -> str:
    number = sum(problem.level == level for problem in checked.problems)
    return f"{number} {level}" if number == 1 else f"{number} {level}s"


def _as_json(file: Path, checked: Checked) -> dict[str, object]:
    return {
        "file": str(file),
        "good": checked.policy is not None,
        "hash": checked.policy.hash if checked.policy else None,
        "problems": [problem.as_json() for problem in checked.problems],
    }
