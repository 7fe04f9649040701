"""docs/policy.md is held to the code: each example loads, fires, says that text and reads those facts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel
from sharewarden.domain.expressions import expression
from sharewarden.domain.policy import Policy
from sharewarden.domain.rules import CUSTOM, names
from sharewarden.domain.rules.base import Guardrail
from sharewarden.domain.rules.facts import Facts, ShareChangeFacts, TrainingFacts

from tests.unit.rules.kit import fires, word
from tests.unit.rules.test_rules import ONLY_TOLD, TABLES

TEXT = Path("docs/policy.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^#### (\S+)\n(.*?)(?=^#{2,4} |\Z)", TEXT, re.MULTILINE | re.DOTALL))
SCOPES: dict[str, type[BaseModel]] = {"change": ShareChangeFacts, "training": TrainingFacts}


def of_a_job() -> Iterator[tuple[str, type[BaseModel]]]:
    """The parts of the facts about a job, and what they are."""
    for name, field in Facts.model_fields.items():
        shapes = (field.annotation, *get_args(field.annotation))
        yield from ((name, one) for one in shapes if isinstance(one, type) and issubclass(one, BaseModel))


ROOTS = dict(of_a_job())
FACTS = {"now"} | {
    f"{root}.{name}"
    for root, model in (ROOTS | SCOPES).items()
    for name in model.model_fields
    if name != "now"
}


def blocks(rule: str) -> list[Any]:
    return [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", SECTIONS[rule], re.DOTALL)]


def told(rule: str) -> str:
    return " ".join(line.removeprefix("> ") for line in SECTIONS[rule].splitlines() if line.startswith("> "))


def read(rule: str) -> set[str]:
    (found,) = re.findall(r"^Reads (.*?)\.\n(?:\n|\Z)", SECTIONS[rule] + "\n", re.MULTILINE | re.DOTALL)
    return set(re.findall(r"`([^`]+)`", found))


def test_each_rule_has_a_section() -> None:
    assert sorted(SECTIONS) == list(names())


@pytest.mark.parametrize("rule", names())
def test_the_example_loads_and_fires_with_that_text(rule: str) -> None:
    policy, given = blocks(rule)
    (entry,) = Policy.model_validate(policy).guardrails
    assert entry.rule == rule
    assert fires(word(entry, given)).text == told(rule)


@pytest.mark.parametrize("rule", names())
def test_the_facts_that_it_reads(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [(Policy.model_validate(blocks(rule)[0]).guardrails[0], blocks(rule)[1])]
    if rule != CUSTOM:  # which reads what its expression says
        cases += [
            (type(cases[0][0]).model_validate({"rule": rule} | c.options), c.given) for c in TABLES[rule]
        ]
    assert {fact for entry, given in cases for fact in observed(entry, given, monkeypatch)} == read(rule)


def observed(entry: Guardrail, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The facts that a decision asks for, by watching it."""
    asked: set[str] = set()
    scopes = {name: model for name, model in SCOPES.items() if name in given}
    with monkeypatch.context() as patch:
        for root, model in (scopes or ROOTS | {"": Facts}).items():
            patch.setattr(model, "__getattribute__", watcher(root, asked))
        word(entry, given)
    return asked & FACTS


def watcher(root: str, asked: set[str]) -> Callable[[object, str], Any]:
    def get(self: object, name: str) -> Any:
        asked.add(f"{root}.{name}" if root else name)
        return object.__getattribute__(self, name)

    return get


def test_every_fact_is_in_the_table() -> None:
    table = TEXT.partition("### Facts\n")[2].partition("\n### ")[0]
    assert set(re.findall(r"^\| `([^`]+)` ", table, re.MULTILINE)) == FACTS


def test_the_rules_that_are_only_told_are_named() -> None:
    (line,) = re.findall(r"^(`queue-blocked`.*?) have nothing", TEXT, re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"`([^`]+)`", line)) == ONLY_TOLD


@pytest.mark.parametrize("when", re.findall(r"```cel\n(.*?)```", TEXT, re.DOTALL)[0].splitlines())
def test_the_expressions_load(when: str) -> None:
    assert expression(when).reads
