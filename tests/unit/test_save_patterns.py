"""Patterns of the policy: what they match, which are refused, and that no key takes long."""

import re
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from sharewarden.domain.policy import CheckpointPolicy, Policy
from sharewarden.domain.save_patterns import LONGEST, MOST_PARTS, MOST_WORLD, Match, compiled

SHARDS = "step-{step}/model-{rank}-of-{world}.bin"


@pytest.mark.parametrize(
    ("pattern", "key", "match"),
    [
        (SHARDS, "step-7/model-3-of-8.bin", Match("step-7/model-{rank}-of-8.bin", 7, 0, 3, 8)),
        (SHARDS, "step-007/model-00-of-08.bin", Match("step-007/model-{rank}-of-08.bin", 7, 0, 0, 8)),
        (SHARDS, "step-7/model-8-of-8.bin", Match("step-7/model-{rank}-of-8.bin", 7, 0, 8, 8)),
        (SHARDS, "step-7/model-9-of-8.bin", None),
        (SHARDS, "step-7/model-0-of-0.bin", None),
        (SHARDS, f"step-7/model-0-of-{MOST_WORLD + 1}.bin", None),
        (SHARDS, "step-7/model-3-of-8xbin", None),
        (SHARDS, "step-/model-3-of-8.bin", None),
        (SHARDS, "step-\u0667/model-3-of-8.bin", None),
        (SHARDS, "a/step-7/model-3-of-8.bin", None),
        (SHARDS, "step-7/model-3-of-8.bin\n", None),
        ("*.bin", "a b.bin", Match("a b.bin", None, 0, 0, 1)),
        ("*.bin", "a/b.bin", None),
        ("*.bin", ".bin", None),
        ("(a|b)+.bin", "(a|b)+.bin", Match("(a|b)+.bin", None, 0, 0, 1)),
        ("{step}.a + {step}.b", "9.b", Match("9.a + 9.b", 9, 1, 0, 1)),
        ("{step}/{step}", "9/9", Match("9/9", 9, 0, 0, 1)),
        ("{step}/{step}", "9/8", None),
    ],
)
def test_what_a_pattern_makes_of_a_key(pattern: str, key: str, match: Match | None) -> None:
    assert compiled(pattern).match(key) == match


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("", "at least 1 character"),
        ("a" * (LONGEST + 1), f"at most {LONGEST} characters"),
        ("/a", "no path below"),
        ("a/", "no path below"),
        ("a//b", "no path below"),
        ("../a", "no path below"),
        ("a/./b", "no path below"),
        (" a", "spaces around it"),
        ("a\tb", "cannot be seen"),
        ("a +  + b", "no path below"),
        ("a  + b", "spaces around it"),
        ("{epoch}.pt", "has a brace"),
        ("{step.pt", "has a brace"),
        ("{{step}}.pt", "has a brace"),
        ("**.pt", "more than one \\*"),
        ("a*b*c", "more than one \\*"),
        ("{step}{rank}-of-{world}", "no digit between"),
        ("1{step}", "no digit between"),
        ("{step}0", "no digit between"),
        ("*{step}", "no digit between"),
        ("{step}*", "no digit between"),
        ("model-{rank}.bin", "alone"),
        ("model-of-{world}.bin", "alone"),
        ("*/{rank}-of-{world}.bin", "needs {step} as well"),
        ("*.a + *.b", "joins parts by"),
        ("{step}.a + b", "every part has"),
        (" + ".join("a" * (MOST_PARTS + 1)), f"{MOST_PARTS} at most"),
    ],
)
def test_what_could_be_read_in_two_ways_is_refused_when_the_policy_is_loaded(pattern: str, says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        CheckpointPolicy(patterns=(pattern,))


def test_a_policy_has_so_many_and_they_are_part_of_its_hash() -> None:
    with pytest.raises(ValidationError, match="20"):
        CheckpointPolicy(patterns=("a",) * 21)
    given_one = Policy.model_validate({"checkpoints": {"patterns": [SHARDS]}})
    assert given_one.checkpoints.patterns == (SHARDS,)
    assert given_one.hash != Policy().hash == Policy(checkpoints=CheckpointPolicy()).hash


def test_the_documented_policies_load() -> None:
    text = (Path(__file__).parents[2] / "docs" / "checkpoints.md").read_text()
    examples = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    loaded = [Policy.model_validate(yaml.safe_load(example)).checkpoints for example in examples]
    assert sorted(len(one.patterns) for one in loaded)[-1] == 3
    assert [len(one.resubmit.roles) for one in loaded if one.resubmit.mode == "enforce"] == [2]


PIECES = st.sampled_from(
    ["a", "-", "*", "{step}", "{rank}", "{world}", "/", ".", "0", " + ", "{", "(", "+", "\\"]
)


def compiles(pattern: str) -> bool:
    try:
        compiled(pattern)
    except ValueError:
        return False
    return True


@given(st.lists(PIECES, min_size=1, max_size=30).map("".join), st.integers(1, 999), st.integers(0, 9))
def test_every_pattern_that_loads_matches_what_it_says(pattern: str, step: int, rank: int) -> None:
    if not compiles(pattern):
        return
    filled = pattern.replace("{step}", str(step)).replace("{rank}", str(rank)).replace("{world}", "9")
    for number, key in enumerate(filled.replace("*", "x").split(" + ")):
        found = compiled(pattern).match(key)
        assert found is not None
        assert found.part <= number
        assert found.step == (step if "{step}" in pattern else None)


@given(st.lists(PIECES, min_size=1, max_size=60).map("".join), st.sampled_from("a-01/."))
def test_no_key_takes_long(pattern: str, filler: str) -> None:
    if not compiles(pattern):
        return
    began = time.process_time()
    compiled(pattern).match(filler * 1024)
    compiled(pattern).match((pattern.replace("*", filler * 200) + filler)[:1024])
    assert time.process_time() - began < 0.5


def test_the_worst_pattern_is_quick_too() -> None:
    pattern = compiled("/".join(["*-{step}-a"] * 25))
    assert len(pattern.text) <= LONGEST
    began = time.process_time()
    for key in ("1-" * 512, ("1-1-a-1-1-" * 4 + "/") * 25, "/".join(["1-1-1-1-1-a"] * 24 + ["1-1-b"])):
        assert pattern.match(key) is None
    assert time.process_time() - began < 0.5
