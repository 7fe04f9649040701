"""The commands against a running local stack: called in virtual time, and as processes in wall time."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from botocore.parsers import ResponseParserError
from sharewarden.domain.stored import HOUR, MINUTE
from sharewarden.usecases.bump import Refused, UnbumpRequest
from sharewarden_tools.cli.audit import list_audit
from sharewarden_tools.cli.deployment import LOCAL_FILE, Deployment
from sharewarden_tools.cli.jobs import LONGEST_JOB, LONGEST_REASON, SWEEP_EVERY, Raise, bump_job, unbump_job
from sharewarden_tools.cli.output import BadInput
from sharewarden_tools.cli.serve import LOG_FILE, announced, refuse_a_second
from sharewarden_tools.lab import VirtualClock
from sharewarden_tools.local.environment import aws_environment
from sharewarden_tools.local.stack import ACCOUNT, QUEUE, REGION, LocalStack, Setup, local_stack, queue_arn
from sharewarden_tools.local.wiring import read_wiring
from sharewarden_tools.policy.file import load_policy
from sharewarden_tools.stories.three_team import START, create_pool, submit
from sharewarden_tools.template import TEMPLATE

COMMAND = [sys.executable, "-c", "from sharewarden_tools.cli import main; main()"]


@pytest.fixture
def stack() -> Iterator[LocalStack]:
    with local_stack(VirtualClock(START), Setup(seed=5, policy=load_policy())) as running:
        create_pool(running)
        submit(running, "background-1", 3 * HOUR)
        running.run_until(START + 10 * MINUTE)
        yield running


def as_ana(stack: LocalStack) -> Deployment:
    return Deployment("local stack", ACCOUNT, REGION, "ana", stack.runtime, stack.client("batch", "ana"))


def priority(stack: LocalStack) -> int:
    batch = stack.client("batch", "ana")
    job = as_ana(stack).job("background-1")
    return int(batch.describe_service_job(jobId=job)["schedulingPriority"])


def test_bump_unbump_and_the_audit_of_both(stack: LocalStack, capsys: pytest.CaptureFixture[str]) -> None:
    ana = as_ana(stack)
    assert bump_job(ana, "background-1", Raise(850, None, "4h", "deadline"), as_json=False) == 0
    out, err = capsys.readouterr()
    assert out == "background-1: 100 -> 850 for 4 h\n"
    who = f"local stack, account {ACCOUNT}, {REGION}, as ana"
    assert err == f"{who}; ml-train-qm: bumps enforce, acting guardrails: none\n"
    stack.run_until(stack.now() + MINUTE)
    assert priority(stack) == 850

    assert unbump_job(ana, "background-1", reason="done", as_json=True) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["before"], answer["after"]) == (850, 100)
    stack.run_until(stack.now() + MINUTE)
    assert priority(stack) == 100

    assert list_audit(ana, share=None, job="background-1", since="1h", as_json=True) == 0
    facts = [fact for fact in json.loads(capsys.readouterr().out) if fact["kind"] != "finding"]
    at_first, later = (
        {fact["kind"] for fact in facts if fact["at"] == at} for at in sorted({fact["at"] for fact in facts})
    )
    assert at_first == {"bump", "priority-changed"}
    assert later == {"unbump", "boost-ended", "priority-changed"}
    assert list_audit(ana, share="background", job=None, since="1h", as_json=False) == 0
    assert "2026-09-14T08:10:00Z  bump                background-1    ana          100 -> 850: deadline" in (
        capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("lasts", "warning"),
    [
        (None, "warning: without --for it lasts until the job ends or somebody says `sharewarden unbump`\n"),
        ("5s", "warning: the sweep ends bumps, every 5 min: it may last that long\n"),
    ],
)
def test_how_long_a_bump_lasts_is_no_surprise(
    stack: LocalStack, lasts: str | None, warning: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bump_job(as_ana(stack), "background-1", Raise(850, None, lasts, "x"), as_json=True) == 0
    out, err = capsys.readouterr()
    assert err.endswith(warning)
    assert json.loads(out)["after"] == 850


@pytest.mark.parametrize("job", ["", "x" * 301])
def test_a_job_of_no_usable_length_is_bad_input(stack: LocalStack, job: str) -> None:
    with pytest.raises(BadInput, match="JOB: 1 to 300 characters"):
        unbump_job(as_ana(stack), job, reason="why", as_json=False)


def test_the_limits_are_those_of_the_request_and_the_template() -> None:
    fields = UnbumpRequest.model_json_schema()["properties"]
    assert (fields["job"]["maxLength"], fields["reason"]["maxLength"]) == (LONGEST_JOB, LONGEST_REASON)
    assert {f.every_ms for f in read_wiring([queue_arn(QUEUE)]).functions if f.every_ms} == {SWEEP_EVERY}


def test_what_is_refused_changes_nothing(stack: LocalStack) -> None:
    with pytest.raises(Refused, match="a bump raises"):
        bump_job(as_ana(stack), "background-1", Raise(50, None, None, "lower"), as_json=False)
    with pytest.raises(Refused, match="nobody has bumped"):
        unbump_job(as_ana(stack), "background-1", reason="why", as_json=False)
    stack.run_until(stack.now() + MINUTE)
    assert priority(stack) == 100


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (Raise(None, None, None, "x"), "give either --to"),
        (Raise(1, 1, None, "x"), "give either --to"),
        (Raise(850, None, "soon", "x"), "--for: 'soon' is not a duration"),
        (Raise(850, None, "0h", "x"), "--for: '0h' is not between 1s and 365d; leave it out for no end"),
        (Raise(850, None, "9999d", "x"), "--for: '9999d' is not between"),
        (Raise(850, None, None, ""), "--reason: say why; it goes on record"),
        (Raise(850, None, None, " "), "--reason: say why"),
        (Raise(850, None, None, "x" * 501), "--reason: 501 characters, 500 at most"),
    ],
)
def test_bad_input_is_said_before_anything_happens(stack: LocalStack, asked: Raise, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        bump_job(as_ana(stack), "background-1", asked, as_json=False)


# --- the real process -------------------------------------------------------------------------------------


def start(where: Path, *args: str, stdin: int | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *args],
        cwd=where,
        env=environment(),
        text=True,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def environment() -> dict[str, str]:
    paths = [str(TEMPLATE.parent / part) for part in ("layers/sharewarden", "tools")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def run(where: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *args], cwd=where, env=environment(), text=True, capture_output=True, check=False
    )


def exports(server: subprocess.Popen[str], names: int) -> dict[str, str]:
    """The variables that a server prints when it is ready."""
    assert server.stdout is not None
    lines = [server.stdout.readline().strip() for _ in range(names)]
    return dict(line.removeprefix("export ").split("=", 1) for line in lines)


def test_local_serve_is_found_by_the_commands_and_stops_cleanly(tmp_path: Path) -> None:
    server = start(tmp_path, "local", "serve", "--story")
    try:
        address = exports(server, 9)["AWS_ENDPOINT_URL_BATCH"]
        second = run(tmp_path, "local", "serve")
        (tmp_path / "other").mkdir()
        taken = run(tmp_path / "other", "local", "serve", "--port", address.rpartition(":")[2])
        bumped = run(tmp_path, "bump", "background-3", "--to", "850", "--reason", "now", "--local", "--json")
        listed = run(tmp_path, "audit", "list", "--job", "background-3", "--local")
    finally:
        server.send_signal(signal.SIGTERM)
        _, log = server.communicate(timeout=30)
    assert server.returncode == 0
    assert "Traceback" not in log
    assert re.search(r"^\d\d:\d\d:\d\d  background-1  SUBMITTED -> RUNNABLE$", log, re.MULTILINE)
    assert "{" not in log  # what the functions log goes to the file
    assert '"tracked":' in (tmp_path / LOG_FILE).read_text()
    assert (second.returncode, second.stderr.count("\n")) == (2, 1)
    assert f"a local stack runs in this folder already, at {address}" in second.stderr
    assert not (tmp_path / LOCAL_FILE).exists()
    assert (taken.returncode, taken.stderr.count("\n")) == (2, 1)
    assert "is in use; choose another port" in taken.stderr
    assert json.loads(bumped.stdout)["after"] == 850
    assert "bump                background-3" in listed.stdout


def test_a_file_left_over_stops_nobody(tmp_path: Path) -> None:
    file = tmp_path / "local.json"
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        environment = {"AWS_ENDPOINT_URL_BATCH": f"http://127.0.0.1:{port}"}
        file.write_text(json.dumps({"environment": environment}))
        with pytest.raises(BadInput, match="runs in this folder already"):
            refuse_a_second(file)
    refuse_a_second(file)
    for broken in ("{", "[]", "{}"):
        file.write_text(broken)
        refuse_a_second(file)


def test_only_the_own_file_is_removed(tmp_path: Path) -> None:
    file = tmp_path / "local.json"
    with announced({}, {}, file):
        assert file.exists()
    assert not file.exists()
    with announced({}, {}, file):
        file.write_text("another's")
    assert file.read_text() == "another's"


def test_a_folder_that_cannot_be_written_gets_one_line(tmp_path: Path) -> None:
    (tmp_path / ".sharewarden").write_text("a file where a folder should be")
    ended = run(tmp_path, "local", "serve")
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    assert ended.stderr.startswith(".sharewarden/local.log: ")


def test_lab_serve_prints_all_that_an_sdk_needs_and_stops_cleanly(tmp_path: Path) -> None:
    server = start(tmp_path, "lab", "serve", "--quick")
    variables = exports(server, 7)
    with aws_environment(variables):
        assert boto3.client("batch").describe_job_queues()["jobQueues"] == []
        with pytest.raises(ResponseParserError, match="no Batch operation"):  # and AWS was not asked
            boto3.client("sts").get_caller_identity()
    server.send_signal(signal.SIGINT)
    _, log = server.communicate(timeout=30)
    assert (server.returncode, log) == (0, "")
