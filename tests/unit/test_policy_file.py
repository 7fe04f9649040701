"""A policy as people write it: each fault with place, path, value and what to write; all of them at once."""

from __future__ import annotations

import errno
import io
import json
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from sharewarden.domain.policy import Policy, SharePolicy
from sharewarden_tools.cli import main
from sharewarden_tools.cli.output import BadInput
from sharewarden_tools.cli.policy_push import read_written
from sharewarden_tools.policy.file import (
    EXAMPLE,
    BadPolicy,
    Checked,
    check_document,
    check_policy,
    load_policy,
)
from sharewarden_tools.policy.reading import read
from sharewarden_tools.policy.yaml_text import STDIN, Document, parse

DATA = Path(__file__).parents[1] / "data"
QUEUE = "arn:aws:batch:us-east-1:123456789012:job-queue/ml-train-qm"
#: A policy, and after ``=>`` what is told of it; an empty line ends the two.
MISTAKES = [
    block.split("\n=> ") for block in (DATA / "policy" / "mistakes.txt").read_text().strip().split("\n\n")[1:]
]
LIMIT = "rule: max-instances-per-job"


def checked(text: str) -> Checked:
    return check_document(parse(text.encode()))


def lines(text: str) -> list[str]:
    return [problem.line("p") for problem in checked(text).problems]


def test_the_example_lets_people_bump_and_nothing_act_by_itself() -> None:
    rules = load_policy().queue(QUEUE)
    assert (rules.mode, rules.bumps) == ("shadow", "enforce")
    assert rules.shares.keys() == {"background", "medium", "urgent"}
    assert check_policy(EXAMPLE).problems == ()


def test_an_empty_file_is_the_safe_default(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("# nothing yet\n")
    assert load_policy(file) == Policy()
    with pytest.raises(BadPolicy, match="no such file"):
        load_policy(tmp_path / "none.yaml")


@pytest.mark.parametrize(("text", "line"), MISTAKES)
def test_a_mistake_gets_place_path_value_and_fix(text: str, line: str) -> None:
    assert lines(text) == [f"p:{line}"]
    assert (checked(text).policy is None) == (": warning: " not in line)


@pytest.mark.parametrize(
    "text",
    [
        f"guardrails: [{{{LIMIT}, limit: 4, queues: [any], shares: [any], teams: [any]}}]",
        "queues: {m: {shares: {s: {team: of-a-tag}}}}",
    ],
)
def test_a_policy_that_names_none_of_a_kind_is_about_all_of_them(text: str) -> None:
    assert lines(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "sla: {gold: {restart_within: 1h, ladder: [{at: 50%, boost: 799}]}}",
        """
queues:
  low: {bands: {automatic: {lowest: 0, highest: 9}}}
  high: {bands: {automatic: {lowest: 0, highest: 90}}}
sla: {gold: {finish_by: true, ladder: [{at: 1%, notify: team}, {at: 2%, boost: 90}]}}
""",
    ],
)
def test_a_ladder_may_climb_to_the_top_of_the_highest_band(text: str) -> None:
    assert lines(text) == []


def test_every_mistake_is_told_at_once_in_the_order_of_the_file() -> None:
    text = f"""
pasued: true
queues: {{m: {{shares: {{background: {{}}}}}}}}
guardrails:
- {{{LIMIT}, limit: 0}}
- {{{LIMIT}, limit: 4, shares: [bakground], name: second}}
- {{{LIMIT}, limit: 5, name: second}}
- {{rule: gone}}
"""
    told = ["pasued", "guardrails[0].limit", "guardrails[2]", "guardrails[3]"]
    assert [line.split(": ")[1] for line in lines(text)] == told
    # names are looked up once the parts that they may be in are good
    told = ["guardrails[0].limit", "guardrails[1].shares[0]", "guardrails[2]", "guardrails[3]"]
    assert [line.split(": ")[1] for line in lines(text.replace("pasued: true", ""))] == told


def test_load_policy_tells_every_line(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("pasued: true\nhold: soon\n")
    with pytest.raises(BadPolicy) as raised:
        load_policy(file)
    assert [line.split(": ")[1] for line in raised.value.lines] == ["pasued", "hold"]
    assert str(raised.value).startswith(f"{file}:1:1: pasued")


def run(*args: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(args)
    return int(ended.value.code or 0)


def test_check_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("policy", "check", str(EXAMPLE)) == 0
    assert load_policy().hash in capsys.readouterr().out
    file = tmp_path / "policy.yaml"
    file.write_text("pasued: true\nhold: soon\n")
    assert run("policy", "check", str(file)) == 1
    assert f"{file}: 2 errors" in capsys.readouterr().err
    assert run("policy", "check", str(file), "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert not told["good"]
    assert [(one["line"], one["column"], one["path"]) for one in told["problems"]] == [
        (1, 1, "pasued"),
        (2, 7, "hold"),
    ]
    assert run("policy", "check", str(tmp_path / "none.yaml")) == 2


def test_warnings_leave_a_policy_good(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("paused: true\n")
    assert run("policy", "check", str(file)) == 0
    told = capsys.readouterr()
    assert "good, paused" in told.out
    assert "1 warning" in told.out
    assert "warning: paused" in told.err


def test_a_policy_may_come_from_stdin(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"pasued: true")))
    assert run("policy", "check", "-") == 1
    assert capsys.readouterr().err.startswith("-:1:1: pasued: ")


@pytest.mark.parametrize("args", [("policy", "check"), ("react",), ("preflight", "--policy", str(EXAMPLE))])
def test_a_closed_stdin_is_bad_input(
    args: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert run(*args, "-") == 2
    assert capsys.readouterr().err == "-: stdin is closed\n"


@pytest.mark.parametrize("data", [b"", b" \n"])
def test_what_is_pushed_from_stdin_is_not_nothing(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe whose beginning failed would put the defaults in force."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    with pytest.raises(BadInput, match="nothing came from stdin"):
        read_written(STDIN)


class Full(io.StringIO):
    def write(self, _: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdout", Full())
    assert run("policy", "check", str(EXAMPLE)) == 1
    assert capsys.readouterr().err == "stdout: no space left on device\n"


class Rare(BaseModel):
    """What no policy has yet: a type with words of pydantic's own, and a union."""

    day: date | None = None
    either: int | list[str] = 1


def test_what_pydantic_says_itself_is_told_with_the_value() -> None:
    _, problems = read(parse(b"day: soon\neither: {a: 1}"), Rare)
    assert [problem.line("p").split(": ", 1)[0] for problem in problems] == ["p:1:6", "p:2:9"]
    assert problems[0].text.startswith("'soon': input should be a valid date")
    assert problems[1].text == "{'a': 1} is not a whole number: write a whole number"


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
KEYS = st.sampled_from([*Policy.model_fields, *SharePolicy.model_fields, "rule", "limit", "when", "x"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, VALUES, max_size=6))
@settings(max_examples=300, deadline=None)
def test_whatever_a_document_holds_it_loads_or_is_told_why(value: dict[str, object]) -> None:
    policy, problems = check_document(Document(value, {}, {}))
    assert (policy is None) == any(problem.level == "error" for problem in problems)
