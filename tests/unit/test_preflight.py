"""What the policy will say of a job, before it is submitted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import sharewarden_tools
from sharewarden.domain.policy import Policy
from sharewarden_tools import preflight
from sharewarden_tools.cli import main
from sharewarden_tools.policy.file import EXAMPLE, BadPolicy, check_document
from sharewarden_tools.policy.yaml_text import parse
from sharewarden_tools.submission import LARGEST_PAYLOAD, BadRequest, Report

JOBS = EXAMPLE.parents[1] / "jobs"
FITS = json.loads((JOBS / "fits.json").read_text())
SHARES = json.loads((JOBS / "shares.json").read_text())
#: More than Python reads as one number.
DIGITS = "1" * 4301


def policy(text: str) -> Policy:
    checked = check_document(parse(text.encode()))
    assert checked.policy is not None, checked.problems
    return checked.policy


def request(**changes: Any) -> dict[str, Any]:
    """The example's request with other members; None leaves one out. ``payload`` changes its payload."""
    payload = FITS["serviceRequestPayload"] | changes.pop("payload", {})
    changed = FITS | {"serviceRequestPayload": payload} | changes
    return {name: value for name, value in changed.items() if value is not None}


def instances(count: int, unit: str = "ml.g5.xlarge") -> dict[str, Any]:
    return {"ResourceConfig": {"InstanceType": unit, "InstanceCount": count, "VolumeSizeInGB": 50}}


def told(report: Report) -> list[tuple[str, str]]:
    return [(follows, label) for follows, label, _ in report.rows()]


def test_the_examples(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--policy", str(EXAMPLE), "--shares", str(JOBS / "shares.json")]
    assert run("preflight", str(JOBS / "fits.json"), *options) == 0
    good = capsys.readouterr().out
    assert "background-night-run in ml-train-qm, share background, under policy" in good
    assert "not decided: gpu-hour-budget: " in good
    assert "guardrails hold" in good
    assert run("preflight", str(JOBS / "never-starts.yaml"), *options) == 1
    bad = capsys.readouterr().out
    assert "notify, and it never starts: cannot-fit: too-big asks for 8 ml.g5.xlarge" in bad
    for label in ("checkpoint-required", "bounded-retries", "sla-not-granted"):
        assert f" {label}: too-big " in bad


@pytest.mark.parametrize(
    ("entry", "job", "rows", "blocks"),
    [
        ("rule: max-instances-per-job, limit: 1", {"payload": instances(1)}, [], False),
        ("rule: max-instances-per-job, limit: 1", {"payload": instances(2)}, [("record", "max-")], False),
        (
            "rule: max-instances-per-job, limit: 1, action: terminate",
            {"payload": instances(2)},
            [("terminate (shadow: nothing is done)", "max-")],
            False,
        ),
        (
            "rule: max-instances-per-job, limit: 1, action: terminate, mode: enforce",
            {"payload": instances(2)},
            [("terminate", "max-")],
            True,
        ),
        (
            "rule: max-instances-per-job, limit: 1, action: terminate, mode: enforce",
            {"payload": instances(2), "quotaShareName": "urgent"},
            [("notify, since terminate may not be done here", "max-")],
            False,
        ),
        ("rule: max-instances-per-job, limit: 1, shares: [urgent]", {"payload": instances(2)}, [], False),
        (
            "rule: max-instances-per-job, limit: 1",
            {"payload": {"ResourceConfig": None}},
            [("not decided", "max-")],
            False,
        ),
        ("rule: max-queued-jobs-per-team, limit: 1", {}, [("not decided", "max-")], False),
        ("rule: required-tags, tags: [cost-centre]", {}, [("record", "required-tags")], False),
        ("rule: required-tags, tags: [user]", {}, [], False),
        ("rule: required-tags, tags: [user]", {"tags": None}, [("record", "required-tags")], False),
        ("rule: bounded-retries, limit: 10", {}, [], False),
        (
            "rule: bounded-retries, limit: 10",
            {"preemptionConfiguration": None},
            [("record", "bounded-retries")],
            False,
        ),
        ("rule: priority-ceiling, highest: 99", {}, [("record", "priority-ceiling")], False),
        ("rule: priority-ceiling, highest: 100", {}, [], False),
        ("name: odd, when: job.status == 'RUNNABLE' && job.waiting == 0", {}, [("record", "odd")], False),
    ],
)
def test_what_would_follow(
    entry: str, job: dict[str, Any], rows: list[tuple[str, str]], blocks: bool
) -> None:
    text = f"""
queues: {{ml-train-qm: {{shares: {{background: {{team: research}}, urgent: {{protected: true}}}}}}}}
guardrails: [{{{entry}}}]
"""
    report = preflight(request(**job), policy(text))
    found = told(report)
    assert [follows for follows, _ in found] == [follows for follows, _ in rows]
    assert all(label.startswith(start) for (_, label), (_, start) in zip(found, rows, strict=True))
    assert report.blocks == blocks


@pytest.mark.parametrize(
    ("job", "says"),
    [
        (
            {"payload": instances(4)},
            "Job requires borrowing that exceeds all configured borrowable capacity.",
        ),
        ({"payload": instances(2), "quotaShareName": "urgent"}, "exceed quota share capacity limits."),
        ({"payload": instances(1, "ml.p5.48xlarge")}, "has no capacity limit for it"),
        ({"quotaShareName": "backgroud"}, "which the queue has not: did you mean 'background'?"),
        ({"quotaShareName": None}, "names no quota share"),
        ({"payload": {"HyperParameters": {"x": "y" * LARGEST_PAYLOAD}}}, f"Batch takes {LARGEST_PAYLOAD}"),
    ],
)
def test_what_never_starts_needs_no_rule(job: dict[str, Any], says: str) -> None:
    report = preflight(request(**job), shares=SHARES)
    ((follows, _, text),) = report.rows()
    assert follows == "never starts"
    assert says in text
    assert report.blocks


def test_what_never_starts_is_told_once() -> None:
    report = preflight(request(payload=instances(9)), policy("guardrails: [{rule: cannot-fit}]"), SHARES)
    assert told(report) == [("record, and it never starts", "cannot-fit")]
    assert report.blocks


def test_a_disabled_share_takes_no_jobs() -> None:
    rows = [row | {"state": "DISABLED"} for row in SHARES["quotaShares"]]
    ((_, _, text),) = preflight(FITS, shares={"quotaShares": rows}).rows()
    assert "is disabled and takes no new jobs" in text


def test_without_shares_what_depends_on_them_is_not_decided() -> None:
    report = preflight(request(payload=instances(9)), policy("guardrails: [{rule: cannot-fit}]"))
    assert told(report) == [("not decided", "cannot-fit")]
    assert not report.blocks


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ({}, 'Missing required parameter in input: "jobName"'),
        (request(schedulingPriority="100"), "Invalid type for parameter schedulingPriority"),
        (request(prority=100), 'Unknown parameter in input: "prority"'),
        (request(serviceRequestPayload="{"), "serviceRequestPayload: not JSON: line 1, column 2"),
        (request(serviceRequestPayload="[]"), "serviceRequestPayload: not an object"),
        (request(serviceRequestPayload="[" * 200_000), "serviceRequestPayload: nested too deeply"),
        (request(serviceRequestPayload=f'{{"a": {DIGITS}}}'), "serviceRequestPayload: not JSON: Exceeds"),
        (request(serviceRequestPayload='{"a": NaN}'), "serviceRequestPayload: not JSON: NaN is no number"),
        (request(serviceRequestPayload={"a": float("inf")}), "serviceRequestPayload: cannot be written"),
        (request(serviceRequestPayload={"a": date(2026, 1, 1)}), "serviceRequestPayload: cannot be written"),
        (request(serviceRequestPayload='{"a": "\ud800"}'), "SubmitServiceJob: half a character"),
        (request(jobName="\ud800"), "SubmitServiceJob: half a character"),
    ],
)
def test_what_is_no_request_is_refused(broken: Mapping[str, Any], says: str) -> None:
    with pytest.raises(BadRequest) as raised:
        preflight(broken)
    assert says in str(raised.value)


@pytest.mark.parametrize("shares", [{}, {"quotaShares": [{}]}, {"quotaShares": 5}])
def test_what_are_no_shares_is_refused(shares: Mapping[str, Any]) -> None:
    with pytest.raises(BadRequest, match="quotaShares"):
        preflight(FITS, shares=shares)


def test_a_notebook_shows_a_table_and_other_peoples_words_as_text(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("paused: true\nguardrails: [{name: <b>, when: job.instances >= 1, text: <script>}]")
    report = preflight(request(jobName="j"), str(file), SHARES)
    page = report._repr_html_()
    assert "<td style=text-align:left>&lt;b&gt;</td><td style=text-align:left>&lt;script&gt;</td>" in page
    assert "<script" not in page
    assert "paused" in page
    assert str(report).splitlines()[1] == "  record: <b>: j <script>"
    with pytest.raises(BadPolicy):
        preflight(FITS, tmp_path / "none.yaml")


def test_the_package_has_no_more_than_it_says() -> None:
    with pytest.raises(AttributeError, match="no attribute 'postflight'"):
        sharewarden_tools.postflight  # noqa: B018


def run(*args: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(args)
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.json", '{"jobName": ', ":1:13: not JSON: Expecting value"),
        ("a.json", "jobName: x", ":1:1: not JSON"),
        ("a", ' {"jobName": ', ":1:14: not JSON"),
        ("a.yaml", "jobName: no", ":1:10: jobName: no is a boolean to some readers of YAML"),
        ("a.yaml", "- 1", ": not an object with members"),
        ("a.json", "[" * 200_000, ": nested too deeply"),
        ("a.json", DIGITS, ": a number in it has too many digits"),
        ("a.json", '{"jobName": "\\ud800", "jobQueue": "q"}', ": SubmitServiceJob: "),
        ("a.json", "\udcff", ":1:1: byte 0xFF is not UTF-8"),
        ("a.yaml", "jobName: x", ': SubmitServiceJob: Missing required parameter in input: "jobQueue"'),
    ],
)
def test_a_bad_file_is_code_2_with_its_place(
    name: str, content: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / name
    file.write_bytes(content.encode(errors="surrogateescape"))
    assert run("preflight", str(file), "--policy", str(EXAMPLE)) == 2
    assert capsys.readouterr().err.startswith(f"{file}{says}")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "give --policy FILE, --stack NAME or --local"),
        (["--policy", "none.yaml"], "none.yaml: no such file"),
        (["--policy", str(EXAMPLE), "--local"], "--policy, --stack or --local"),
        (
            ["--policy", str(EXAMPLE), "--shares", str(JOBS / "fits.json")],
            "fits.json: not an answer of ListQuo",
        ),
        (["--policy", str(EXAMPLE), "--shares", "none.json"], "none.json: no such file"),
    ],
)
def test_what_it_needs_is_said(options: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("preflight", str(JOBS / "fits.json"), *options) == 2
    assert says in capsys.readouterr().err


def test_a_file_without_an_end_is_not_read_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("preflight", "/dev/zero", "--policy", str(EXAMPLE)) == 2
    assert "/dev/zero: larger than 256 KB" in capsys.readouterr().err


def test_json_has_the_figures(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--policy", str(EXAMPLE), "--shares", str(JOBS / "shares.json"), "--json"]
    assert run("preflight", str(JOBS / "never-starts.yaml"), *options) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["blocks"]
    (fit,) = [one for one in answer["findings"] if one["rule"] == "cannot-fit"]
    assert (fit["figures"]["asked"], fit["figures"]["most"]) == (8, 2)
