"""Figures, comparison, table and picture, from outcomes made by hand."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from sharewarden_tools.replay.compare import METRICS, Run, columns, comparison, run_of, short_time, spread
from sharewarden_tools.replay.figures import HOUR, Figures, figures_by_team, figures_of, missed, percentile
from sharewarden_tools.replay.outcome import Attempt, Outcome, Played
from sharewarden_tools.replay.picture import SHOWN, picture
from sharewarden_tools.replay.table import heading, table, team_table
from sharewarden_tools.replay.workload import Job, Share, Sla, Workload

END = 100 * HOUR
GOLD = Sla("gold", start_within=HOUR, restart_within=2 * HOUR)
JOB = Job("one", "a", "ana", 0, 2, 3 * HOUR)
SHARES = (Share("a", 4, in_share=True), Share("b", 4, in_share=False))


def ran(started: int, ended: int | None, *, lost: int = 0, preempted: str | None = None) -> Attempt:
    """In hours; dispatched when it started."""
    end = None if ended is None else ended * HOUR
    trained = (100 if ended is None else ended) - started
    return Attempt(started * HOUR, started * HOUR, end, trained * HOUR, lost * HOUR, preempted)


def one(*attempts: Attempt, job: Job = JOB, ended: int | None = None) -> Played:
    return Played(job, "SUCCEEDED", None if ended is None else ended * HOUR, attempts, END)


def outcome(*jobs: Played, heuristic: str = "random", span: int = 10 * HOUR) -> Outcome:
    workload = Workload("<made> & up", SHARES, tuple(played.job for played in jobs), span, ("nothing",))
    return Outcome(workload, heuristic, "native", jobs, END)


@pytest.mark.parametrize(
    ("values", "percent", "wanted"),
    [
        ([], 50, None),
        ([7], 50, 7),
        ([1, 2], 50, 1),
        ([3, 1, 2], 50, 2),
        (range(1, 101), 95, 95),
        ([1, 2], 99, 2),
    ],
)
def test_percentiles_are_nearest_ranks(values: list[int], percent: int, wanted: int | None) -> None:
    assert percentile(values, percent) == wanted


@pytest.mark.parametrize(
    ("played", "wanted"),
    [
        (one(ran(1, 4), job=replace(JOB, sla=GOLD), ended=4), (False, False, False)),
        (one(ran(2, 4), job=replace(JOB, sla=GOLD), ended=4), (True, False, False)),
        (one(job=replace(JOB, sla=GOLD)), (True, False, False)),
        (one(ran(0, 1), ran(3, 5), job=replace(JOB, sla=GOLD), ended=5), (False, False, False)),
        (one(ran(0, 1), ran(4, 5), job=replace(JOB, sla=GOLD), ended=5), (False, True, False)),
        (one(ran(0, 1), job=replace(JOB, sla=GOLD)), (False, True, False)),
        (one(ran(0, 3), job=replace(JOB, sla=Sla("d", finish_by=3 * HOUR)), ended=3), (False, False, False)),
        (one(ran(0, 4), job=replace(JOB, sla=Sla("d", finish_by=3 * HOUR)), ended=4), (False, False, True)),
        (one(ran(0, None), job=replace(JOB, sla=Sla("d", finish_by=3 * HOUR))), (False, False, True)),
        (one(ran(0, None), job=replace(JOB, sla=Sla("d", finish_by=2 * END))), (False, False, False)),
        (one(ran(50, 60)), (False, False, False)),
    ],
)
def test_which_promises_were_missed(played: Played, wanted: tuple[bool, bool, bool]) -> None:
    assert tuple(missed(played)) == wanted


def test_an_attempt_that_never_ran_does_not_end_the_wait() -> None:
    never = Attempt(HOUR, None, 2 * HOUR, 0, 0, "in-share")
    played = one(ran(0, 1, preempted="in-share"), never, ran(5, 6), ended=6)
    assert (played.waited, played.restart_waits, played.preemptions) == (0, (4 * HOUR,), 2)


def story(heuristic: str = "random", lost: int = 1) -> Outcome:
    return outcome(
        one(ran(2, 4, lost=lost, preempted="in-share"), ran(6, 8), job=replace(JOB, sla=GOLD), ended=8),
        one(ran(1, 20), job=replace(JOB, share="b", gpus=4), ended=20),
        one(job=replace(JOB, gpus=1)),
        heuristic=heuristic,
    )


def test_figures_of_all_and_of_each_team() -> None:
    figures = figures_of(story())
    assert figures == Figures(
        jobs=3,
        unfinished=1,
        sla_jobs=1,
        sla_missed=1,
        missed_start=1,
        missed_restart=0,
        missed_finish=0,
        sla_wait_p50_ms=2 * HOUR,
        sla_wait_p95_ms=2 * HOUR,
        other_wait_p50_ms=HOUR,
        other_wait_p95_ms=END,
        preemptions=1,
        preemptions_p99=1,
        lost_gpu_hours=2.0,
        used=(2 * 4 + 4 * 9) / 80,
    )
    teams = figures_by_team(story())
    assert (teams["a"].jobs, teams["a"].used, teams["a"].lost_gpu_hours) == (2, 8 / 40, 2.0)
    assert (teams["b"].jobs, teams["b"].used, teams["b"].miss_rate) == (1, 36 / 40, None)


def test_nothing_to_count_is_not_zero() -> None:
    figures = figures_of(outcome())
    assert (figures.miss_rate, figures.sla_wait_p95_ms, figures.preemptions_p99, figures.used) == (
        None,
        None,
        None,
        0,
    )


def runs() -> list[Run]:
    return [
        run_of(story(heuristic, lost), seed)
        for seed, lost in ((1, 1), (2, 2), (3, 0))
        for heuristic in ("documented", "random")
    ]


def test_columns_are_controllers_and_heuristics() -> None:
    assert {column: [run.seed for run in group] for column, group in columns(runs()).items()} == {
        ("native", "documented"): [1, 2, 3],
        ("native", "random"): [1, 2, 3],
    }


def test_a_spread_passes_over_seeds_without_the_figure() -> None:
    assert spread([None, 3, 1, 2]) == (2, 1, 3)
    assert spread([None]) == (None, None, None)


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "0 min"), (59 * 60_000, "59 min"), (HOUR, "1.0 h"), (30 * HOUR, "30.0 h"), (60 * HOUR, "2.5 d")],
)
def test_times_are_short(ms: int, text: str) -> None:
    assert short_time(ms) == text


def test_the_heading_says_that_it_is_simulated_and_what_is_assumed() -> None:
    lines = list(heading(story().workload, runs()))
    assert lines[0] == "simulated: <made> & up, on Batch's lab in virtual time"
    assert lines[1] == "  8 GPUs (a 4, b 4); 3 seeds from 1 on; the jobs need 26 % of the pool"
    assert lines[2] == "  [assumed] nothing"
    assert "median (lowest - highest)" in lines[3]
    assert "seed 2;" in list(heading(story().workload, runs()[2:3]))[1]


def test_the_table_has_a_line_a_figure_and_a_column_a_run() -> None:
    lines = list(table(runs()))
    assert lines[1].split() == ["documented", "random"]
    rows = {line[:26].strip(): re.split("  +", line[26:].strip()) for line in lines[2:]}
    assert set(rows) == {metric.label.strip() for metric in METRICS}
    assert rows["lost GPU-hours"] == ["2 (0 - 4)", "2 (0 - 4)"]
    assert rows["jobs that missed their SLA"] == ["100 %", "100 %"]
    assert len({line.rindex("100") for line in lines if "100 %" in line}) == 1


def test_the_other_table_has_each_team_under_each_run() -> None:
    lines = [line.split() for line in team_table(runs())]
    assert [line[:3] for line in lines[1:]] == [
        [team, "native", heuristic] for team in ("a", "b") for heuristic in ("documented", "random")
    ]
    assert lines[3][3] == "-"


def test_json_has_every_run_and_the_spread() -> None:
    made = comparison(runs())
    assert [(run["seed"], run["heuristic"]) for run in made["runs"]][:2] == [(1, "documented"), (1, "random")]
    assert made["runs"][0]["teams"]["a"]["lost_gpu_hours"] == 2.0
    assert made["compared"][1]["figures"]["lost_gpu_hours"] == {"median": 2.0, "lowest": 0.0, "highest": 4.0}


def test_the_picture_is_svg_with_a_part_a_figure_and_a_bar_a_run() -> None:
    svg = "{http://www.w3.org/2000/svg}"
    root = ET.fromstring(picture("<made> & up", runs()))
    assert root.tag == f"{svg}svg"
    words = [text.text for text in root.iter(f"{svg}text")]
    assert words[0] == "simulated: <made> & up"
    assert words.count("native, documented") == words.count("native, random") == len(SHOWN)
    bars = list(root.iter(f"{svg}rect"))[1:]
    assert len(bars) == 2 * len(SHOWN)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for bar in bars:
        assert float(bar.attrib["x"]) + float(bar.attrib["width"]) <= width
        assert float(bar.attrib["y"]) + float(bar.attrib["height"]) <= height


def test_bars_are_as_long_as_their_figures() -> None:
    svg = "{http://www.w3.org/2000/svg}"
    two = [run_of(story("documented", 1), 1), run_of(story("random", 2), 1)]
    root = ET.fromstring(picture("made up", two))
    bars = [float(rect.attrib["width"]) for rect in root.iter(f"{svg}rect")][1:]
    place = 2 * SHOWN.index("lost_gpu_hours")
    assert bars[place + 1] == 2 * bars[place] > 0


def test_a_figure_that_no_run_has_is_a_dash() -> None:
    root = ET.fromstring(picture("made up", [run_of(outcome(), 1)]))
    words = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert words.count("-") == 6
