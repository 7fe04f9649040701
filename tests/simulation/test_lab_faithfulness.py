"""docs/faithfulness.md names tests that exist, drive the lab by boto3, and cover every assumed option."""

from __future__ import annotations

import re
from pathlib import Path

from sharewarden_tools.lab import options

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "faithfulness.md").read_text()
DRIVEN_BY_BOTO3 = {
    "b": "tests/contract/test_lab_boto3_*.py",
    "o": "tests/contract/test_lab_operations_limits.py",
    "s": "tests/simulation/test_lab_story.py",
    "l": "tests/simulation/test_lab_life*.py",
    "e": "tests/simulation/test_lab_events.py",
}
BESIDE = {
    "r": "tests/simulation/test_lab_scheduler_rules.py",
    "w": "tests/simulation/test_lab_scheduler_laws.py",
}
#: The local AWS that the template is deployed into.
DEPLOYED = {"d": "tests/e2e/deployed/test_*.py"}


def code_of(pattern: str) -> str:
    return "".join(path.read_text() for path in ROOT.glob(pattern))


def test_every_named_test_exists() -> None:
    code = {key: code_of(pattern) for key, pattern in (DRIVEN_BY_BOTO3 | BESIDE | DEPLOYED).items()}
    named = re.findall(r"`(\w):(test_\w+)`", DOCUMENT)
    assert len(named) > 100
    assert [name for key, name in named if f"def {name}(" not in code[key]] == []


def test_every_row_names_a_test_that_is_driven_by_boto3() -> None:
    rows = [line for line in DOCUMENT.splitlines() if line.startswith("| ") and "Behaviour" not in line]
    driven = re.compile(f"`[{''.join(DRIVEN_BY_BOTO3 | DEPLOYED)}]:test_")
    assert len(rows) > 70
    assert [row for row in rows if not driven.search(row)] == []


def test_those_tests_reach_the_lab_through_a_boto3_client_alone() -> None:
    """Their kits hold the clients; the lab's operations, called past them, would prove less."""
    for pattern in (*DRIVEN_BY_BOTO3.values(), "tests/simulation/lab_kit.py"):
        code = code_of(pattern)
        assert re.search(r"from tests\.\w+\.lab_(kit|clients) import", code), pattern
        assert "lab.operations[" not in code, pattern


def test_every_assumed_option_is_listed() -> None:
    source = Path(options.__file__).read_text()
    beside = re.findall(r"    (\w+): .*# \[assumed\]", source)
    below = re.findall(r"\n    # \[assumed\].*\n    (\w+):", source)
    assert len(beside) + len(below) > 15
    assert [name for name in (*beside, *below) if f"`{name}`" not in DOCUMENT] == []
