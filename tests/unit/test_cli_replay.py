"""``sharewarden replay``, as people call it."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from sharewarden_tools.cli import main

MADE_UP = Path(__file__).parents[1] / "data" / "replay" / "made-up.csv"
SMALL = ("--load", "0.05")


def run(*args: str | Path) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["replay", *map(str, args)])
    return int(str(ended.value.code))


def test_a_week_is_told_as_simulated_with_every_heuristic(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("week", *SMALL) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("simulated: synthetic week")
    assert sum("[assumed]" in line for line in out) == 5
    assert ["documented", "random", "adversarial"] in [line.split() for line in out]
    assert any(line.startswith("lost GPU-hours") for line in out)
    assert any(line.startswith("foundation  native adversarial") for line in out)


def test_the_same_seed_prints_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for seed in ("3", "3", "4"):
        run("week", *SMALL, "--seed", seed, "--heuristic", "random")
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] != printed[2]


def test_json_for_seeds_and_one_heuristic(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run("week", *SMALL, "--stormy", "--seed", "5", "--seeds", "2", "--heuristic", "adversarial", "--json")
        == 0
    )
    told = json.loads(capsys.readouterr().out)
    assert (told["simulated"], told["workload"]) == (True, "synthetic week, stormy")
    assert [(one["seed"], one["heuristic"]) for one in told["runs"]] == [
        (5, "adversarial"),
        (6, "adversarial"),
    ]
    assert told["shares"]["foundation"] == 24
    assert told["runs"][0]["figures"]["unfinished"] == 0


def test_a_trace_with_a_pool_and_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    svg = tmp_path / "made-up.svg"
    pool = ("--pool", "speech=8", "--pool", "vision=8", "--pool", "robotics=4")
    assert run("trace", MADE_UP, *pool, "--heuristic", "documented", "--svg", svg) == 0
    out, told = capsys.readouterr()
    assert out.startswith("simulated: made-up.csv")
    assert "20 GPUs (speech 8, vision 8, robotics 4)" in out
    assert str(svg) in told
    assert ET.fromstring(svg.read_text()).tag.endswith("svg")


def test_a_trace_with_columns_of_other_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "log.csv"
    file.write_text("at,vc,num,took\n0,a,1,60\n60,b,2,60\n")
    names = [
        f"{ours}={theirs}"
        for ours, theirs in (("submitted_s", "at"), ("team", "vc"), ("gpus", "num"), ("runtime_s", "took"))
    ]
    assert run("trace", file, *(part for name in names for part in ("--column", name))) == 0
    assert "(a 1, b 1)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--pool", "speech"), "--pool: 'speech' is no pair: write for example --pool vision=16"),
        (("--pool", "speech=many"), "--pool: speech=many: write a number of GPUs, such as speech=16"),
        (("--pool", "speech=64"), "team 'vision' has no GPUs in the pool"),
        (("--pool", "speech=64", "--load", "1"), "--load is for a pool that is made to measure"),
        (("--column", "teams=vc"), "--column: no column is called 'teams'; there is submitted, "),
        (("--column", "team=vc"), "no column 'vc' (for team)"),
    ],
)
def test_options_that_cannot_be(
    options: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("trace", MADE_UP, *options) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert told in err


def test_a_bad_file_is_told_with_its_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "jobs.csv"
    file.write_text("submitted_s,team,gpus,runtime_s\n0,a,1,60\n0,a,x,60\n0,a,1,y\n")
    assert run("trace", file) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"{file}:3:1: gpus: 'x' is no number", f"{file}:4:1: runtime_s: 'y' is no number"]


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("trace", tmp_path / "none.csv") == 2
    assert "none.csv: no such file" in capsys.readouterr().err


def test_a_picture_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("week", *SMALL, "--heuristic", "random", "--svg", tmp_path / "none" / "week.svg") != 0
    assert "week.svg: no such file" in capsys.readouterr().err


def test_progress_names_seed_and_heuristic(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sharewarden_tools.operations.progress.LINE_EVERY", 0.0)
    run("week", *SMALL, "--heuristic", "random")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("seed 1, random, day 1: ")
    assert "jobs submitted, 0 not ended" in lines[-1]
