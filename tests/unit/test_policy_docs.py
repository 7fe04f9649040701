"""What docs/policy.md says of files: examples load, cases pass, the messages are the command's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sharewarden_tools import preflight
from sharewarden_tools.policy.cases import CaseFile
from sharewarden_tools.policy.file import EXAMPLE, check_document
from sharewarden_tools.policy.reading import read
from sharewarden_tools.policy.running import misnamed, run_cases
from sharewarden_tools.policy.yaml_text import BadText, parse

DOCS = Path(__file__).parents[2] / "docs"
FRONT, RULES = (DOCS / "policy.md").read_text().split("\n## Rules\n")
YAML = re.findall(r"```yaml\n(.*?)```", FRONT, re.DOTALL)
POLICIES = [text for text in YAML if not text.startswith("cases:")]
TRAPS = re.findall(r"^\| (`.*?) \| (?:a |octal|the first|anchors)", FRONT, re.MULTILINE)


@pytest.mark.parametrize("text", POLICIES)
def test_each_policy_loads_without_a_word(text: str) -> None:
    assert check_document(parse(text.encode())).problems == ()


def test_each_example_of_a_rule_is_one_that_policy_check_takes() -> None:
    texts = [text for text in re.findall(r"```yaml\n(.*?)```", RULES, re.DOTALL) if "guardrails:" in text]
    assert len(texts) > 20
    for text in texts:
        assert check_document(parse(text.encode())).policy is not None, text


def test_the_cases_pass_under_the_policy_above() -> None:
    (text,) = [text for text in YAML if text.startswith("cases:")]
    policy, document = check_document(parse(POLICIES[0].encode())).policy, parse(text.encode())
    cases, problems = read(document, CaseFile)
    assert policy is not None
    assert cases is not None, problems
    assert not [*misnamed(policy, cases, document)]
    results = run_cases(policy, cases)
    assert len(results) == 4
    assert [(result.name, result.differences) for result in results if result.differences] == []


def test_every_trap_in_the_table_is_refused() -> None:
    written = [sign for cell in TRAPS for sign in re.findall(r"`([^`]+)`", cell)]
    assert len(written) > 12
    for sign in written:
        is_key = sign.endswith(":") or sign == "<<"
        with pytest.raises(BadText):
            parse((f"{sign.rstrip(':')}: 1" if is_key else f"x: {sign.removeprefix('team: ')}").encode())


def test_the_messages_are_those_of_the_command() -> None:
    (block,) = re.findall(r"```\n(policy\.yaml:14.*?)```", FRONT, re.DOTALL)
    text = """
queues:
  ml-train-qm:
    shares:
      background:
        protcted: true
"""
    more = """
guardrails:
- {rule: max-instances-per-job, limit: 0}
- {rule: bounded-retries, limit: 1, shares: [bakground]}
"""
    told = [one.line("x") for one in check_document(parse(text.encode())).problems]
    good = text.replace("protcted", "protected")
    told += [one.line("x") for one in check_document(parse((good + more).encode())).problems]
    assert [line.split(": ", 1)[1] for line in told] == [
        line.split(": ", 1)[1] for line in block.splitlines()[:-1]
    ]


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", FRONT, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.yaml").write_text(POLICIES[0])
    names: dict[str, object] = {}
    exec(code, names)  # the document's own code
    labels = [finding.label for finding in names["report"].outcome.findings]  # type: ignore[attr-defined]
    assert labels == ["max-instances-per-job"]


def test_what_preflight_shows_is_what_it_says() -> None:
    jobs = EXAMPLE.parents[1] / "jobs"
    request = parse((jobs / "never-starts.yaml").read_bytes()).value
    shares = parse((jobs / "shares.json").read_bytes()).value
    told = [*preflight(request, EXAMPLE, shares).lines()]
    (block,) = re.findall(r"```\n\$ sharewarden preflight [^\n]*\n(.*?)```", FRONT, re.DOTALL)
    for line in block.splitlines():
        start = line.removesuffix("...").split(", under policy ")[0]
        assert any(one.startswith(start) for one in told), line


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)#]+)\)", FRONT))
def test_what_it_points_to_is_there(target: str) -> None:
    assert (DOCS / target).exists()
