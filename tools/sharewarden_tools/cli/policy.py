"""``sharewarden policy check``: policies as files, without a deployment."""

from __future__ import annotations

from pathlib import Path

from sharewarden_tools.policy_file import BadPolicy, load_policy

from .output import OK, BadInput, print_json, say


def check(file: Path, *, as_json: bool) -> int:
    """Raises BadInput."""
    try:
        policy = load_policy(file)
    except BadPolicy as error:
        raise BadInput(str(error)) from error
    if as_json:
        print_json({"hash": policy.hash})
    else:
        say(f"{file}: good, {policy.hash}")
    return OK
