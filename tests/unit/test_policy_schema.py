"""The schema that editors use says what the loader does, wherever one value shows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from sharewarden.domain.rules import CUSTOM, names, rule_class
from sharewarden_tools.cli import main
from sharewarden_tools.policy.file import EXAMPLE, check_document
from sharewarden_tools.policy.schema import policy_schema
from sharewarden_tools.policy.yaml_text import parse

ROOT = Path(__file__).parents[2]
SCHEMA = policy_schema()
VALIDATOR = Draft202012Validator(SCHEMA)
MISTAKES = (ROOT / "tests" / "data" / "policy" / "mistakes.txt").read_text().strip().split("\n\n")[1:]
#: What needs two values to see, and the schema therefore lets pass.
BETWEEN = (
    "knows no",
    "ends below",
    "is called",
    "may reach",
    "warning: ",
    "of the expression",
    "does nothing",
    "no time to climb",
    "is not after",
    "adds nothing",
    "automatic band",
)
#: How long a duration is, a pattern does not say.
LENGTHS = ("write 10m or more", "write more than 0s", "write 999999d at most")
#: What a name is, no pattern says that every editor reads alike.
NAMES = ("do not show", "is no queue's name")
LIMIT = "rule: max-instances-per-job, limit: 4"


def fits(text: str) -> bool:
    return bool(VALIDATOR.is_valid(parse(text.encode()).value))


def loads(text: str) -> bool:
    return check_document(parse(text.encode())).policy is not None


def test_it_is_a_schema_and_the_committed_file_is_this_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    committed = json.loads((ROOT / "docs" / "policy.schema.json").read_text())
    assert committed == SCHEMA, "make it anew: sharewarden policy schema > docs/policy.schema.json"


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["policy", "schema"])
    assert not ended.value.code
    assert json.loads(capsys.readouterr().out) == SCHEMA


def test_the_example_fits_and_names_the_schema() -> None:
    text = EXAMPLE.read_text()
    assert fits(text)
    (line,) = [line for line in text.splitlines() if "yaml-language-server" in line]
    assert (EXAMPLE.parent / line.split("$schema=")[1]).resolve() == ROOT / "docs" / "policy.schema.json"


@pytest.mark.parametrize("block", MISTAKES, ids=[block.split("\n=> ")[1][:60] for block in MISTAKES])
def test_the_schema_refuses_what_the_loader_refuses(block: str) -> None:
    text, told = block.split("\n=> ")
    assert fits(text) == any(words in told for words in (*BETWEEN, *LENGTHS, *NAMES))


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "version: 1",
        "hold: 1h30m",
        "hold: 1h 30m",
        "sla: {gold: {start_within: null, restart_within: 20m}}",
        "sla: {gold: {finish_by: true, ladder: [{at: 50%, boost: 799}, {at: 999%, notify: team}]}}",
        "queues: {m: {shares: {s: {team: null, protected: true}}}}",
        "queues: {m: {mode: enforce, bumps: shadow}}",
        f"guardrails: [{{{LIMIT}}}]",
        f"guardrails: [{{{LIMIT}, mode: enforce, action: terminate, grace: 0s, points: 1, shares: [s]}}]",
        "guardrails: [{name: big, when: job.instances > 4}]",
        "guardrails: [{rule: custom, name: big, when: job.instances > 4, text: is big}]",
        "guardrails: [{rule: queue-blocked, action: notify}]",
        "guardrails: [{rule: gpu-hour-budget, total: 2.5, period: day}]",
    ],
)
def test_both_take_what_is_good(text: str) -> None:
    assert loads(text)
    assert fits(text)


@pytest.mark.parametrize(
    "text",
    [
        "guardrails: [{rule: custom, name: big}]",
        "guardrails: [{name: big}]",
        "guardrails: [{when: job.instances > 4}]",
        "guardrails: [{rule: queue-blocked, action: terminate}]",
        "guardrails: [{rule: gpu-hour-budget, period: year, total: 1}]",
        "guardrails: [{rule: required-tags, tags: team}]",
        f"guardrails: [{{{LIMIT}, points: 0}}]",
        f"guardrails: [{{{LIMIT}, grace: 10}}]",
        f"guardrails: [{{{LIMIT}, grace: soon}}]",
    ],
)
def test_both_refuse_what_is_bad(text: str) -> None:
    assert not loads(text)
    assert not fits(text)


@pytest.mark.parametrize("name", names())
def test_every_rule_is_in_it_with_its_options_and_what_they_mean(name: str) -> None:
    entry = SCHEMA["$defs"][name]
    assert {"$ref": f"#/$defs/{name}"} in SCHEMA["properties"]["guardrails"]["items"]["oneOf"]
    assert entry["properties"].keys() == rule_class(name).model_fields.keys()
    assert entry["description"]
    assert ("rule" in entry["required"]) == (name != CUSTOM)


def test_durations_and_descriptions_are_those_of_people() -> None:
    hold: dict[str, Any] = SCHEMA["properties"]["hold"]
    assert (hold["type"], hold["default"]) == ("string", "30m")
    assert hold["description"].startswith("How long a boost that started a job is kept")
    assert "``" not in json.dumps(SCHEMA)
