"""YAML that two readers would read differently is refused with its place; everything is bounded."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sharewarden_tools.policy.problems import BadFile
from sharewarden_tools.policy.yaml_text import DEEPEST, LARGEST, BadText, parse, read_file


def faults(text: str | bytes) -> list[tuple[tuple[int, int] | None, str]]:
    with pytest.raises(BadText) as raised:
        parse(text if isinstance(text, bytes) else text.encode())
    return [(problem.place and tuple(problem.place), problem.text) for problem in raised.value.problems]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", {}),
        ("# nothing yet\n", {}),
        ("---\n", {}),
        ("~", {}),
        ("a: [1, -3, 0, 2.5, true, False, null, ~]", {"a": [1, -3, 0, 2.5, True, False, None, None]}),
        ("a:", {"a": None}),
        ("a: 2026-11-30T08:00:00Z", {"a": "2026-11-30T08:00:00Z"}),
        (
            "a: [0-799, ml.g5.xlarge, 192.168.1.1, 1.2.3, y, n]",
            {"a": ["0-799", "ml.g5.xlarge", "192.168.1.1", "1.2.3", "y", "n"]},
        ),
        ("a: ['no', \"0777\", '12:30', \"*\", '1e3']", {"a": ["no", "0777", "12:30", "*", "1e3"]}),
        ("a: |\n  no\n", {"a": "no\n"}),
        ('"no": 1\n"1": 2', {"no": 1, "1": 2}),
        (
            "arn: arn:aws:batch:us-east-1:123456789012:job-queue/ml",
            {"arn": "arn:aws:batch:us-east-1:123456789012:job-queue/ml"},
        ),
        ("\ufeffa: 1\r\nb: 2\r\n", {"a": 1, "b": 2}),
        ('{"a": "\\/", "b": [1]}', {"a": "/", "b": [1]}),
    ],
)
def test_plain_values(text: str, value: Any) -> None:
    assert parse(text.encode()).value == value


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("a: 1\nb: 2\na: 3", (3, 1), "given twice, first in line 1"),
        ("a: {b: 1, b: 1}", (1, 11), "given twice"),
        ("a: no", (1, 4), 'no is a boolean to some readers of YAML: write false, or "no" for text'),
        ("a: [Yes]", (1, 5), 'write true, or "Yes"'),
        ("a: on", (1, 4), "boolean"),
        ("a: OFF", (1, 4), "boolean"),
        ("teams:\n  no: 1", (2, 3), 'no as a key is not text to every reader of YAML: write "no"'),
        ("1: a", (1, 1), 'write "1"'),
        ("true: a", (1, 1), 'write "true"'),
        ("~: a", (1, 1), 'write "~"'),
        ("a: 0777", (1, 4), "octal"),
        ("a: 0o17", (1, 4), "not decimal"),
        ("a: 0xff", (1, 4), "not decimal"),
        ("a: 0b11", (1, 4), "not decimal"),
        ("a: 12:30:00", (1, 4), "base 60"),
        ("a: 1:30", (1, 4), "base 60"),
        ("a: .inf", (1, 4), "no number to calculate with"),
        ("a: -.INF", (1, 4), "no number to calculate with"),
        ("a: .NaN", (1, 4), "no number to calculate with"),
        ("a: 1e3", (1, 4), "some readers"),
        ("a: 1_000", (1, 4), "some readers"),
        ("a: .5", (1, 4), "some readers"),
        ("a: 1" + 30 * "0", (1, 4), "too large a number"),
        ("a: &x 1", (1, 4), "&x is an anchor"),
        ("&x a: 1", (1, 1), "&x is an anchor"),
        ("a: *x", (1, 4), '*x is an alias: write its value out, or "*x" if it is text'),
        ("<<: {a: 1}", (1, 1), "merging (<<)"),
        (
            "a: !!python/object/apply:os.system [ls]",
            (1, 4),
            "the tag tag:yaml.org,2002:python/object/apply:os.system",
        ),
        ("a: !!str 1", (1, 4), "the tag"),
        ("a: ! 1", (1, 4), "the tag"),
        ("a: 1\n---\nb: 1", (2, 1), "a second document"),
        ("? [a]\n: 1", (1, 3), "a key is text"),
        ("a:\n\t- b", (2, 1), "indent with spaces, not with tabs"),
        ("a: [", (1, 5), "not YAML"),
        ("a: b: c", (1, 5), "not YAML: mapping values are not allowed here"),
        ("a: @b", (1, 4), "not YAML"),
        ("a: \x00", (1, 4), "the character U+0000 is not allowed"),
        ("a\nb: \x1b", (2, 4), "U+001B"),
        ('a: "\\ud83d"', (1, 4), "lone surrogate"),
        ("[" * (DEEPEST + 1), (1, DEEPEST + 1), "nested more than"),
        ("[" * 100_000, (1, DEEPEST + 1), "nested more than"),
        ("- " * 100_000, (1, 2 * DEEPEST + 1), "nested more than"),
        (b"a: 1\nb: \xff", (2, 4), "byte 0xFF is not UTF-8"),
        ("a: 1".encode("utf-16"), (1, 1), "not UTF-8"),
        (b"#" * (LARGEST + 1), None, "larger than 256 KB"),
    ],
)
def test_a_trap_is_refused_with_its_place(
    text: str | bytes, place: tuple[int, int] | None, says: str
) -> None:
    ((at, told),) = faults(text)
    assert at == place
    assert says in told


def test_every_trap_is_told_at_once() -> None:
    found = faults("a: no\nb: &x [0777]\na: *x\nno: 1\n---\nc: 2")
    assert [at for at, _ in found] == [(5, 1), (1, 4), (2, 4), (2, 8), (3, 1), (3, 4), (4, 1)]


def test_what_is_nested_as_deep_as_allowed_is_read() -> None:
    assert parse(b"[" * DEEPEST + b"]" * DEEPEST).value


def test_the_places_of_keys_and_values() -> None:
    document = parse(b"a:\n  b: [x, y]\n")
    assert document.place(("a", "b", 1)) == (2, 10)
    assert document.place(("a", "b")) == (2, 6)
    assert document.place(("a", "b"), key=True) == (2, 3)
    assert document.place(("a", "gone")) == (2, 3)
    assert document.place(("a", "gone", "deeper"), key=True) == (2, 3)
    assert document.place(()) == (1, 1)


def test_a_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text("a: no\nb: on")
    with pytest.raises(BadFile) as raised:
        read_file(file)
    assert raised.value.lines[0].startswith(f"{file}:1:4: a: no is a boolean")
    assert str(raised.value) == "\n".join(raised.value.lines)
    assert len(raised.value.lines) == 2


SIGNS = st.sampled_from([*"-:?[]{}&*!|>%@#,'\"\n \tab01.<~", "no", "---", "<<", "!!", ": ", "\n  "])


@given(st.lists(SIGNS, max_size=40).map("".join) | st.binary(max_size=30))
@settings(max_examples=400, deadline=None)
def test_whatever_a_text_holds_it_is_read_or_refused(text: str | bytes) -> None:
    with suppress(BadText):
        document = parse(text if isinstance(text, bytes) else text.encode())
        assert set(document.keys) <= set(document.values)
