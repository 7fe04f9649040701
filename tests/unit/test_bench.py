"""The bench runs, and what it says without a clock is what the design promises."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TITLES = (
    "Cold start of react",
    "Cold start, where the difference goes",
    "AWS calls of react per event",
    "Events per second",
    "Lab scheduler",
)


TABLE = """
from bench.section import Section
rows = [{"path": "short", "n": 7, "ms": 1234.5}, {"path": "much longer", "n": 10, "ms": 0.5}]
print(Section("Title", "what", "nothing", rows).text())
"""


def python(*arguments: str) -> str:
    """What a process of its own prints: importing the bench changes the environment."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = (sys.executable, *arguments)
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def sections() -> list[dict[str, Any]]:
    return list(json.loads(python("-m", "bench", "--quick", "--json")))


def test_a_section_as_text() -> None:
    assert python("-c", TABLE).splitlines() == [
        "Title",
        "  measures   what",
        "  simulated  nothing",
        "",
        "  path          n    ms",
        "  short         7  1234",
        "  much longer  10  0.50",
        "",
    ]


def test_every_section_says_what_it_measures_and_what_is_simulated(sections: list[dict[str, Any]]) -> None:
    assert len(sections) == len(TITLES)
    for section, title in zip(sections, TITLES, strict=True):
        assert section["title"].startswith(title)
        assert section["measures"]
        assert section["simulated"]
        assert all(row.keys() == section["rows"][0].keys() for row in section["rows"])


@pytest.mark.parametrize(
    ("event", "most"),
    [
        ("known job, next state change", 2),
        ("the same event once more", 1),
        ("preemption started", 2),
        ("preemption completed", 2),
        ("job ended", 2),
        ("training job of SageMaker, next event", 2),
        ("job of another queue, by name", 0),
    ],
)
def test_a_steady_event_costs_two_calls_and_no_describe(
    sections: list[dict[str, Any]], event: str, most: int
) -> None:
    row = row_of(sections, event)
    assert row["most"] <= most
    assert "Describe" not in row["mostly"]


@pytest.mark.parametrize(
    "event",
    ["first sight of a job", "requeued after a preemption", "preemption of an unknown job, first event"],
)
def test_what_an_event_cannot_tell_costs_one_describe(sections: list[dict[str, Any]], event: str) -> None:
    assert row_of(sections, event)["mostly"].count("DescribeServiceJob") == 1


def row_of(sections: list[dict[str, Any]], event: str) -> dict[str, Any]:
    (row,) = [row for row in sections[2]["rows"] if row["event"] == event]
    return dict(row)
