"""The bench runs, and what it says without a clock is what the design promises."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sharewarden.domain.rules import CUSTOM, names, rule_class

ROOT = Path(__file__).parents[2]
TITLES = (
    "Cold start of react",
    "Cold start, where the difference goes",
    "AWS calls of react per event",
    "Events per second",
    "Deciding 100 rules",
    "Open jobs",
    "A sweep under 100 rules",
    "Looking for the newest complete checkpoint",
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
        ("preemption started", 3),
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


RULES = """
import json
from bench.rules import rules
print(json.dumps([entry.rule for entry in rules().guardrails]))
"""


def test_the_hundred_rules_are_ninety_built_in_ones_of_every_kind_and_ten_in_cel() -> None:
    decided = Counter(json.loads(python("-c", RULES)))
    assert (decided.total(), decided.pop(CUSTOM)) == (100, 10)
    of_jobs = {name for name in names() if name != CUSTOM and rule_class(name).scope == "job"}
    assert decided.keys() == of_jobs


def test_what_is_compared_decides_rules_and_what_it_is_compared_with_none(
    sections: list[dict[str, Any]],
) -> None:
    rows = named(sections, "Deciding 100 rules")["rows"]
    for none, hundred in zip(rows[::2], rows[1::2], strict=True):
        assert none["deciding ms"] == 0 < hundred["deciding ms"]
        assert none["events"] == hundred["events"] > 0
    assert [row["deciding ms"] > 0 for row in named(sections, "Open jobs")["rows"]] == [True, True]


def test_a_look_at_checkpoints_asks_for_each_page_once_and_for_few_manifests(
    sections: list[dict[str, Any]],
) -> None:
    for row in named(sections, "Looking for the newest")["rows"]:
        ours = row["layout"].startswith("ours")
        assert row["pages"] == row["objects"] / 1000 + (1 if ours else 0)
        assert row["manifests"] == (8 if ours else 0)
        assert row["MiB"] < 3


def named(sections: list[dict[str, Any]], title: str) -> dict[str, Any]:
    (section,) = [section for section in sections if section["title"].startswith(title)]
    return section


def row_of(sections: list[dict[str, Any]], event: str) -> dict[str, Any]:
    (row,) = [row for row in sections[2]["rows"] if row["event"] == event]
    return dict(row)
