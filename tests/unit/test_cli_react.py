"""`sharewarden react FILE`: every sample event, and every way in which a file can be broken."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sharewarden_tools.cli import main
from sharewarden_tools.template import TEMPLATE

EVENTS = TEMPLATE.parent / "events"
DATA = TEMPLATE.parent / "tests" / "data"
SAMPLES = sorted([*EVENTS.glob("*.json"), *(DATA / "events").glob("*.json")])
RUNNING = EVENTS / "batch_service_job_state_change__running.json"
PREEMPTED = EVENTS / "batch_service_job_preemption_completed__runnable.json"
DESCRIBED = TEMPLATE.parent / "examples" / "describe_service_job.json"


def run(*args: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["react", *map(str, args)])
    return int(str(ended.value.code))


def event(**detail: Any) -> dict[str, Any]:
    sample = json.loads(RUNNING.read_text())
    return sample | {"detail": sample["detail"] | detail}


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: f"{path.parent.parent.name}-{path.stem}")
def test_every_sample_event_goes_through_the_handler(
    sample: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(sample) == 0
    out, err = capsys.readouterr()
    assert "outcome" in out
    assert err == ""


def test_a_describe_says_whose_job_was_preempted(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(PREEMPTED, "--describe", DESCRIBED, "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["outcome"] == "tracked"
    assert (shown["record"]["name"], shown["record"]["share"]) == ("vision-pretrain-r7", "team-vision")
    assert [fact["kind"] for fact in shown["facts"]] == ["preemption"]
    assert shown["notes"] == []


def test_a_pipe_is_read(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(RUNNING.read_bytes())))
    assert run("-", "--json") == 0
    assert json.loads(capsys.readouterr().out)["file"] == "-"


def test_a_byte_order_mark_is_no_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "event.json"
    file.write_bytes(b"\xef\xbb\xbf" + RUNNING.read_bytes())
    assert run(file) == 0


def test_without_a_describe_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(RUNNING) == 0
    out = capsys.readouterr().out
    assert "without --describe, Batch says here that it knows no such job" in out
    assert "the job queue that the event names counts as ours" in out


Broken = Callable[[Path], Any]


def text(content: str) -> Broken:
    return lambda file: file.write_text(content)


BROKEN: dict[str, tuple[Broken, str]] = {
    "missing": (lambda file: None, "no such file or directory"),
    "directory": (lambda file: file.mkdir(), "is a directory"),
    "empty": (text(""), "not JSON: line 1, column 1"),
    "not json": (text('{\n  "id": oops}'), "not JSON: line 2, column 9"),
    "binary": (lambda file: file.write_bytes(b"\x80\x04\x95"), "not text: byte 0 is not UTF-8"),
    "huge": (lambda file: file.write_bytes(b" " * 1_048_577), "larger than 1048576 bytes"),
    "deep": (text("[" * 100_000), "nested too deeply"),
    "digits": (text("1" * 4301), "a number in it has too many digits"),
    "list": (text("[]"), "event: a list is not an object"),
    "number": (text("7"), "event: "),
    "no time": (text(json.dumps({"source": "aws.batch", "detail-type": "x", "detail": {}})), "time: missing"),
    "status": (text(json.dumps(event(status=7))), "detail.status: "),
    "attempts": (text(json.dumps(event(attempts="none"))), "detail.attempts: "),
    "attempt": (text(json.dumps(event(latestAttempt="none"))), "detail.latestAttempt: "),
}


@pytest.mark.parametrize(("breaking", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_gets_one_line(
    breaking: Broken, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "event.json"
    breaking(file)
    assert run(file) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith(f"{file}: {message}")


BROKEN_ANSWERS: dict[str, tuple[Broken, str]] = {
    "missing": (lambda file: None, "no such file or directory"),
    "list": (text("[]"), "not an answer of DescribeServiceJob, which is an object"),
    "empty": (text("{}"), "not an answer of DescribeServiceJob: jobArn: missing"),
    "no status": (
        text(json.dumps({**json.loads(DESCRIBED.read_text()), "status": "SLEEPING"})),
        "not an answer of DescribeServiceJob: status: ",
    ),
    "wrong type": (
        text(json.dumps({**json.loads(DESCRIBED.read_text()), "attempts": 7})),
        "not an answer of DescribeServiceJob: ",
    ),
    "number for a text": (text('{"jobArn": 7}'), "not an answer of DescribeServiceJob: "),
}


@pytest.mark.parametrize(("breaking", "message"), BROKEN_ANSWERS.values(), ids=BROKEN_ANSWERS)
def test_a_broken_answer_gets_one_line(
    breaking: Broken, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "answer.json"
    breaking(file)
    assert run(PREEMPTED, "--describe", file) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"{file}: {message}")


def test_an_answer_about_another_job_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = json.loads(DESCRIBED.read_text())
    file = tmp_path / "answer.json"
    file.write_text(json.dumps(answer | {"jobArn": "arn:aws:batch:us-east-1:123456789012:service-job/other"}))
    assert run(PREEMPTED, "--describe", file) == 2
    assert "--describe is about job other" in capsys.readouterr().err
