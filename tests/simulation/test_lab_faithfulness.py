"""docs/faithfulness.md names tests that exist and every assumed option."""

from __future__ import annotations

import re
from pathlib import Path

from sharewarden_tools.lab import options

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "faithfulness.md").read_text()
FILES = {
    "b": "tests/contract/test_lab_boto3_*.py",
    "o": "tests/contract/test_lab_operations_limits.py",
    "r": "tests/simulation/test_lab_scheduler_rules.py",
    "w": "tests/simulation/test_lab_scheduler_laws.py",
    "s": "tests/simulation/test_lab_story.py",
    "l": "tests/simulation/test_lab_life.py",
    "e": "tests/simulation/test_lab_events.py",
}


def test_every_named_test_exists() -> None:
    code = {key: "".join(path.read_text() for path in ROOT.glob(name)) for key, name in FILES.items()}
    named = re.findall(r"`(\w):(test_\w+)`", DOCUMENT)
    assert len(named) > 80
    assert [name for key, name in named if f"def {name}(" not in code[key]] == []


def test_every_row_names_a_test() -> None:
    rows = [line for line in DOCUMENT.splitlines() if line.startswith("| ") and "Behaviour" not in line]
    assert [row for row in rows if not re.search(r"`\w:test_", row)] == []


def test_every_assumed_option_is_listed() -> None:
    source = Path(options.__file__).read_text()
    beside = re.findall(r"    (\w+): .*# \[assumed\]", source)
    below = re.findall(r"\n    # \[assumed\].*\n    (\w+):", source)
    assert len(beside) + len(below) > 15
    assert [name for name in (*beside, *below) if f"`{name}`" not in DOCUMENT] == []
