"""Traces as CSV: what is read, what is refused and where, and what is assumed beside them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sharewarden_tools.policy.problems import BadFile
from sharewarden_tools.replay.trace import COLUMNS, MOST_TOLD, Trace, read_trace
from sharewarden_tools.replay.trace_workload import BadPool, Pool, trace_workload
from sharewarden_tools.replay.workload import Job, Workload

HEADER = "submitted_s,team,gpus,runtime_s"
MADE_UP = Path(__file__).parents[1] / "data" / "replay" / "made-up.csv"
MEASURE = Pool({}, 0.8)


def written(tmp_path: Path, text: str | bytes) -> Path:
    file = tmp_path / "jobs.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def read(tmp_path: Path, text: str | bytes, **renamed: str) -> Trace:
    return read_trace(written(tmp_path, text), renamed)


def problems(tmp_path: Path, text: str | bytes, **renamed: str) -> list[str]:
    with pytest.raises(BadFile) as refused:
        read(tmp_path, text, **renamed)
    return [line.replace(f"{tmp_path}/", "") for line in refused.value.lines]


def workload(tmp_path: Path, text: str, pool: Pool = MEASURE, seed: int = 1) -> Workload:
    return trace_workload("jobs.csv", read(tmp_path, text), seed, pool)


def only_job(tmp_path: Path, header: str, cells: str) -> Job:
    (job,) = workload(tmp_path, f"{HEADER},{header}\n0,a,1,60,{cells}\n").jobs
    return job


def test_fifty_jobs_are_read_in_order() -> None:
    trace = read_trace(MADE_UP, {})
    assert len(trace.rows) == 50
    assert [row.submitted for row in trace.rows] == sorted(row.submitted for row in trace.rows)
    first = trace.rows[0]
    assert (first.line, first.team, first.gpus, first.runtime) == (3, "speech", 8, 690_000)
    assert (first.submitted, first.priority, first.save_every) == (400_000, 300, 600_000)
    assert "note" not in trace.columns


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("submitted_s", "5835"),
        ("submitted_ms", "5835000"),
        ("submitted_us", "5835000000"),
        ("submitted", "1970-01-01T01:37:15"),
        ("submitted", "1970-01-01 03:37:15+02:00"),
    ],
)
def test_units_of_time(tmp_path: Path, column: str, cell: str) -> None:
    trace = read(tmp_path, f"{column},team,gpus,runtime_s\n{cell},a,1,60\n")
    assert trace.rows[0].submitted == 5_835_000


def test_columns_may_have_other_names_and_comments_are_passed_over(tmp_path: Path) -> None:
    text = "# of a cluster\n\nid,tenant,num,when,took,state\n7,x,2,9,1.4,NODE_FAIL\n\n8,x,2,9,.2,DONE\n"
    names = {"team": "tenant", "gpus": "num", "submitted_us": "when", "runtime_s": "took", "outcome": "state"}
    trace = read_trace(written(tmp_path, text), names)
    assert [(row.line, row.team, row.gpus, row.runtime) for row in trace.rows] == [
        (4, "x", 2, 1_000),
        (6, "x", 2, 1_000),
    ]
    assert [row.failed for row in trace.rows] == [True, False]


def test_times_count_from_the_first_submission(tmp_path: Path) -> None:
    played = workload(tmp_path, f"{HEADER}\n9000,a,1,60\n1000,a,1,60\n")
    assert [job.submitted_at for job in played.jobs] == [0, 8_000_000]
    assert played.span == 3 * 3_600_000


def test_rows_that_use_no_gpu_are_left_out_and_told(tmp_path: Path) -> None:
    played = workload(tmp_path, f"{HEADER}\n0,a,0,60\n1,a,1,0\n2,a,1,60\n")
    assert [job.name for job in played.jobs] == ["job-4"]
    assert "2 rows without GPUs or run time are left out" in played.assumed


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("x,a,1,60", "submitted_s: 'x' is no number"),
        ("-1,a,1,60", "submitted_s: -1 is not between 0 and 1e+18"),
        ("nan,a,1,60", "submitted_s: nan is not between 0 and 1e+18"),
        (",a,1,60", "submitted_s: is empty"),
        ("0,,1,60", "team: '': write 1 to 128 letters, digits, - and _"),
        ("0,a b,1,60", "team: 'a b': write 1 to 128 letters, digits, - and _"),
        ("0,a,1.5,60", "gpus: 1.5 is no whole number: a part of a GPU cannot be asked for"),
        ("0,a,many,60", "gpus: 'many' is no number"),
        ("0,a,1", "runtime_s: is empty"),
        ("0,a,1,-60", "runtime_s: -60 is not between 0 and 2.4192e+06"),
        ("0,a,1,9e6", "runtime_s: 9e6 is not between 0 and 2.4192e+06"),
        ("0,a,1,60,5", "more cells than columns"),
    ],
)
def test_a_bad_row_is_told_with_its_line(tmp_path: Path, row: str, told: str) -> None:
    text = f"# two lines\n\n{HEADER}\n0,a,1,60\n{row}\n"
    assert problems(tmp_path, text) == [f"jobs.csv:5:1: {told}"]


@pytest.mark.parametrize(
    ("header", "cell", "told"),
    [
        ("priority", "10000", "priority: 10000 is not between 0 and 9999"),
        ("sla", "iron", "sla: 'iron': write gold, silver, deadline"),
        ("save_every_s", "often", "save_every_s: 'often' is no number"),
    ],
)
def test_a_bad_cell_of_an_optional_column(tmp_path: Path, header: str, cell: str, told: str) -> None:
    assert problems(tmp_path, f"{HEADER},{header}\n0,a,1,60,{cell}\n") == [f"jobs.csv:2:1: {told}"]


def test_a_bad_cell_is_told_by_the_name_that_the_file_has(tmp_path: Path) -> None:
    text = "when,team,gpus,runtime_s\n2020-13-01,a,1,60\n"
    assert problems(tmp_path, text, submitted="when") == [
        "jobs.csv:2:1: when: '2020-13-01' is no time: write 2020-09-01T08:00:00Z"
    ]


def test_every_bad_row_is_told_but_not_thousands(tmp_path: Path) -> None:
    told = problems(tmp_path, f"{HEADER}\n" + "0,a,1,x\n" * (MOST_TOLD + 7))
    assert len(told) == MOST_TOLD + 1
    assert told[1].startswith("jobs.csv:3:1:")
    assert told[-1] == "jobs.csv: and 7 more"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "it needs one column of submitted, submitted_s, submitted_ms, submitted_us; there is "),
        ("team,gpus,runtime_s\na,1,60\n", "it needs one column of submitted, submitted_s"),
        ("submitted_s,submitted_ms,team,gpus,runtime_s\n", "it needs one column of submitted, submitted_s"),
        ("submitted_s,team,gpus\n0,a,1\n", "no column 'runtime_s'; there is submitted_s, team, gpus"),
        (f"{HEADER}\n", "no job that uses a GPU"),
        (b"\xff\xfe", "not UTF-8"),
        (f'{HEADER}\n0,a,1,"6"0\x00\n', "jobs.csv"),
    ],
)
def test_a_file_that_is_no_trace(tmp_path: Path, text: str | bytes, told: str) -> None:
    assert told in problems(tmp_path, text)[0]


def test_a_renamed_column_has_to_be_there(tmp_path: Path) -> None:
    told = problems(tmp_path, f"{HEADER}\n0,a,1,60\n", team="tenant")
    assert told == ["jobs.csv: no column 'tenant' (for team); there is submitted_s, team, gpus, runtime_s"]


# What is assumed.


def test_a_pool_made_to_measure_has_the_load_and_room_for_the_largest(tmp_path: Path) -> None:
    rows = [f"{3600 * hour},{team},{gpus},3600" for hour in range(101) for team, gpus in (("a", 8), ("b", 2))]
    played = workload(tmp_path, "\n".join([HEADER, *rows]))
    assert {share.name: share.gpus for share in played.shares} == {"a": 11, "b": 3}
    assert played.offered == pytest.approx(0.8, abs=0.1)
    single = workload(tmp_path, f"{HEADER}\n0,a,1,60\n36000,b,32,60\n")
    assert {share.name: share.gpus for share in single.shares} == {"a": 1, "b": 31}


def test_a_given_pool_is_taken_as_it_is(tmp_path: Path) -> None:
    played = workload(tmp_path, f"{HEADER}\n0,a,4,60\n", Pool({"a": 3, "b": 2}, 0.8))
    assert {share.name: share.gpus for share in played.shares} == {"a": 3, "b": 2}


@pytest.mark.parametrize(
    ("shares", "told"),
    [
        ({"a": 3}, "line 3: team 'b' has no GPUs in the pool"),
        ({"a": 3, "b": 4}, "line 3: 8 GPUs, the pool has 7"),
    ],
)
def test_a_pool_that_does_not_suit(tmp_path: Path, shares: dict[str, int], told: str) -> None:
    with pytest.raises(BadPool, match=told):
        workload(tmp_path, f"{HEADER}\n0,a,1,60\n0,b,8,60\n", Pool(shares, 0.8))


def test_a_queue_has_twenty_shares(tmp_path: Path) -> None:
    rows = [f"0,team-{number},1,60" for number in range(21)]
    with pytest.raises(BadPool, match="21 teams"):
        workload(tmp_path, "\n".join([HEADER, *rows]))


def test_what_the_trace_says_is_taken(tmp_path: Path) -> None:
    job = only_job(
        tmp_path,
        "priority,save_every_s,sla,finish_within_s,expected_runtime_s,outcome,user",
        "7,90,gold,500,80,FAILED,ana",
    )
    assert (job.priority, job.save_every, job.user, job.fails_after) == (7, 90_000, "ana", 60_000)
    assert job.sla is not None
    assert (job.sla.name, job.sla.start_within, job.sla.finish_by) == ("gold", 1_800_000, 500_000)
    assert job.sla.expected_runtime == 80_000


def test_an_empty_cell_says_something_too(tmp_path: Path) -> None:
    job = only_job(tmp_path, "priority,save_every_s,sla,user", ",,,")
    assert (job.priority, job.save_every, job.sla, job.user) == (0, None, None, "unknown")


def test_a_deadline_alone_is_an_sla(tmp_path: Path) -> None:
    sla = only_job(tmp_path, "finish_within_s", "500").sla
    assert sla is not None
    assert (sla.name, sla.start_within, sla.finish_by) == ("deadline", None, 500_000)


def test_what_it_does_not_say_is_assumed_by_seed_and_told(tmp_path: Path) -> None:
    text = "\n".join([HEADER, *(f"{number},a,1,600" for number in range(2_000))])
    played = workload(tmp_path, text)
    names = [job.sla.name if job.sla else None for job in played.jobs]
    assert {name: names.count(name) / 2_000 for name in ("gold", "silver", "deadline")} == pytest.approx(
        {"gold": 0.1, "silver": 0.2, "deadline": 0.1}, abs=0.03
    )
    assert sum(job.priority == 300 for job in played.jobs) / 2_000 == pytest.approx(0.1, abs=0.03)
    assert {job.save_every for job in played.jobs} == {3_600_000}
    assert played == workload(tmp_path, text)
    assert played.jobs != workload(tmp_path, text, seed=2).jobs
    assert sum("SLA" in text or "priority" in text or "saves" in text for text in played.assumed) == 3


def test_what_it_says_is_not_told_as_assumed() -> None:
    played = trace_workload(
        "made-up.csv", read_trace(MADE_UP, {}), 1, Pool({"speech": 8, "vision": 8, "robotics": 4}, 1)
    )
    assert len(played.assumed) == 3


def test_large_jobs_load_longer(tmp_path: Path) -> None:
    played = workload(tmp_path, f"{HEADER}\n0,a,8,60\n0,a,9,60\n")
    assert [job.load for job in played.jobs] == [40_000, 60_000]


def test_the_document_names_every_column_and_no_other() -> None:
    document = (Path(__file__).parents[2] / "docs" / "replay.md").read_text()
    rows = document.partition("| column | content |")[2].partition("\n\n")[0].splitlines()[2:]
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert named == sorted(COLUMNS, key=named.index)
    assert len(named) == len(COLUMNS)
