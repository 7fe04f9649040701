"""Preflight against a running stack, with its policy and shares; and before every submission of a process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from sharewarden_tools.cli import main
from sharewarden_tools.cli.deployment import LOCAL_FILE
from sharewarden_tools.cli.serve import announced
from sharewarden_tools.lab import VirtualClock
from sharewarden_tools.local.environment import aws_environment
from sharewarden_tools.local.stack import LocalStack, Setup, local_stack
from sharewarden_tools.policy.file import EXAMPLE, load_policy
from sharewarden_tools.stories.three_team import START, create_pool

from examples.preflight_every_submission import Stopped, ask_first

JOBS = EXAMPLE.parents[1] / "jobs"
FITS = json.loads((JOBS / "fits.json").read_text())


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalStack]:
    monkeypatch.chdir(tmp_path)
    LOCAL_FILE.parent.mkdir()
    with local_stack(VirtualClock(START), Setup(seed=5, policy=load_policy())) as running:
        create_pool(running)
        with announced(running.environment("admin"), running.variables, LOCAL_FILE):
            yield running


def run(*args: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(args)
    return int(ended.value.code or 0)


def test_a_deployment_lends_its_policy_and_shares(
    stack: LocalStack, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("preflight", str(JOBS / "fits.json"), "--local") == 0
    assert load_policy().hash in capsys.readouterr().out
    assert run("preflight", str(JOBS / "never-starts.yaml"), "--local") == 1
    assert "at most 2: 1 of its own, 1 that all other shares together can lend" in capsys.readouterr().out


def test_a_queue_that_is_not_the_deployments_is_said(
    stack: LocalStack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "job.json"
    file.write_text(json.dumps(FITS | {"jobQueue": "another"}))
    assert run("preflight", str(file), "--local") == 2
    assert "jobQueue: 'another' is not a queue of local stack: ml-train-qm" in capsys.readouterr().err


def test_every_submission_of_a_process_is_looked_at(
    stack: LocalStack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    payload = FITS["serviceRequestPayload"]
    too_big = payload | {"ResourceConfig": payload["ResourceConfig"] | {"InstanceCount": 8}}
    with aws_environment(stack.environment("ana")):
        ask_first(boto3, str(EXAMPLE))
        batch = boto3.client("batch")
        with pytest.raises(Stopped, match="never starts"):
            batch.submit_service_job(**FITS | {"serviceRequestPayload": json.dumps(too_big)})
        submitted = batch.submit_service_job(**FITS | {"serviceRequestPayload": json.dumps(payload)})
    assert "guardrails hold" in capsys.readouterr().out
    assert stack.client("batch", "admin").describe_service_job(jobId=submitted["jobId"])["status"]
