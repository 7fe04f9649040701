"""A policy as people keep it: one YAML file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from sharewarden.aws.policies import KEY
from sharewarden.domain.policy import Policy

from .template import TEMPLATE

#: The policy of the three-team pool.
EXAMPLE = TEMPLATE.parent / "examples" / "three-team-pool" / "policy.yaml"


class BadPolicy(Exception):
    """The file is no policy; the text is one line that says what is wrong and where."""


def load_policy(path: Path = EXAMPLE) -> Policy:
    """Raises BadPolicy."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadPolicy(f"{path}: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadPolicy(f"{path}: not YAML: {_one_line(error)}") from error
    try:
        return Policy.model_validate({} if document is None else document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"])) or "policy"
        raise BadPolicy(f"{path}: {place}: {first['msg']}") from error


def policy_row(policy: Policy) -> dict[str, Any]:
    """The item of the table State that puts the policy in force."""
    return {**KEY, "doc": {"S": policy.model_dump_json()}}


def _one_line(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return str(error).splitlines()[0]
    return f"line {mark.line + 1}, column {mark.column + 1}: {getattr(error, 'problem', '')}"
