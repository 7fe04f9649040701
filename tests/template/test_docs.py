"""The operator's documents name what exists: alarms, commands, tests, checks, a policy item that loads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sharewarden_tools.cli.app import app
from sharewarden_tools.cli.doctor import CHECKS
from sharewarden_tools.policy.file import load_policy
from sharewarden_tools.template import load_template, tables

ROOT = Path(__file__).parents[2]
TEMPLATE = load_template()
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
FIRST_HOUR = (ROOT / "docs" / "first-hour.md").read_text()
THREATS = (ROOT / "docs" / "threat-model.md").read_text()
ALARMS = {name for name, item in TEMPLATE["Resources"].items() if item["Type"] == "AWS::CloudWatch::Alarm"}


def runbook(document: str) -> list[str]:
    return re.findall(r"^### (\w+Alarm)$", document, re.MULTILINE)


def test_every_alarm_has_its_entry_in_the_runbook_and_no_entry_is_of_an_alarm_that_is_gone() -> None:
    entries = runbook(OPERATIONS)
    assert sorted(entries) == sorted(ALARMS)
    assert set(re.findall(r"\b(\w+Alarm)\b", OPERATIONS + FIRST_HOUR + THREATS)) <= ALARMS


def test_an_entry_says_something() -> None:
    parts = re.split(r"^### \w+Alarm$", OPERATIONS, flags=re.MULTILINE)[1:]
    assert min(len(part.split("\n## ")[0].strip()) for part in parts) > 30


def test_the_number_of_alarms_that_cost_is_right() -> None:
    assert f"{len(ALARMS)} alarms" in OPERATIONS


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda path: path.stem
)
def test_every_command_exists(path: Path) -> None:
    document = path.read_text()
    known = {
        command.name or command.callback.__name__ for command in app.registered_commands if command.callback
    }
    known |= {group.name or "" for group in app.registered_groups}
    groups = {group.name: group.typer_instance for group in app.registered_groups}
    for command, second in re.findall(r"(?:`|bin/)sharewarden(?:\n| )([a-z][a-z-]*)(?: ([a-z]+))?", document):
        assert command in known
        group = groups.get(command)
        if second and group is not None:
            assert second in {each.name for each in group.registered_commands}


def test_every_check_of_doctor_is_explained() -> None:
    rows = [line.split("|")[1] for line in OPERATIONS.splitlines() if line.startswith("| ")]
    explained = {name.strip() for row in rows for name in row.split(",")}
    assert {check.__name__.replace("_", " ") for check in CHECKS} <= explained


def test_every_threat_names_tests_that_exist() -> None:
    sections = re.split(r"^### ", THREATS, flags=re.MULTILINE)[1:]
    assert len(sections) >= 12
    for section in sections:
        named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", section)
        assert named, section.splitlines()[0]
        for file, test in named:
            assert f"def {test}(" in (ROOT / file).read_text(), f"{file}::{test}"


def test_other_documents_name_tests_and_files_that_exist() -> None:
    for file, test in re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", OPERATIONS + FIRST_HOUR):
        assert f"def {test}(" in (ROOT / file).read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", OPERATIONS + FIRST_HOUR + THREATS):
        assert (ROOT / "docs" / target).exists(), target


def test_outputs_that_the_documents_name_exist() -> None:
    for name in ("AuditTable", "StateTable", "AuditStreamArn"):
        assert name in TEMPLATE["Outputs"]
    assert "by_actor" in {
        index["IndexName"] for table in tables(TEMPLATE) for index in table["GlobalSecondaryIndexes"]
    }


def test_the_first_policy_is_one_and_changes_nothing(tmp_path: Path) -> None:
    (yaml,) = re.findall(r"```yaml\n(.*?)```", FIRST_HOUR, re.DOTALL)
    (tmp_path / "policy.yaml").write_text(yaml)
    policy = load_policy(tmp_path / "policy.yaml")
    (rules,) = policy.queues.values()
    assert (rules.mode, rules.bumps) == ("shadow", "shadow")
    assert {entry.mode for entry in policy.guardrails} == {None}
