"""What a function's import loads, in a process of its own: a cold start pays for all of it."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache

import pytest
from sharewarden_tools.template import TEMPLATE

ROOT = TEMPLATE.parent
LOADED = "import sys, functions.{}.app; print(*sys.modules)"

#: The use case behind each function. What the sweep brings back of lost notices is a part of ``notify``.
ENTRIES = {"react": "react", "apply": "apply", "notify": "notify", "sweep": "sweep", "watch": "watch"}
BESIDE = {"sweep": {"notify"}}

#: Of some size, and nothing that an event needs.
NOT_FOR_AN_EVENT = [
    *(f"usecases.{name}" for name in ("bump", "checkpoints", "look", "push_policy", "release", "shares")),
    *(f"usecases.{name}" for name in ("set_priority", "tend", "terminate", "walk")),
    *(f"domain.{name}" for name in ("layouts", "listing", "manifests", "sweeping")),
    "aws.policy_store",
    "domain.rules.custom",
]


@cache
def loaded(function: str) -> frozenset[str]:
    """Names of the package's modules, without its own name."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "layers" / "sharewarden")))}
    command = [sys.executable, "-c", LOADED.format(function)]
    names = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True).stdout
    return frozenset(name.removeprefix("sharewarden.") for name in names.split())


@pytest.mark.parametrize("function", ENTRIES)
def test_a_function_loads_its_own_use_case_and_no_other_function_s(function: str) -> None:
    found = {entry for entry in ENTRIES.values() if f"usecases.{entry}" in loaded(function)}
    assert found == {ENTRIES[function]} | BESIDE.get(function, set())


@pytest.mark.parametrize("module", NOT_FOR_AN_EVENT)
def test_react_does_not_load_what_no_event_needs(module: str) -> None:
    assert (ROOT / "layers/sharewarden/sharewarden" / f"{module.replace('.', '/')}.py").exists()
    assert module not in loaded("react")
