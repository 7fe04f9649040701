"""The three-team story on the deployed template, in seconds: submitted by boto3, and by the SageMaker SDK."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from sharewarden.domain.record import status
from sharewarden_tools.emulator.deployed import STACK, Deployed
from sharewarden_tools.emulator.process import ROOT
from sharewarden_tools.stories.three_team import BASE, BUMPED_TO

from tests.e2e.deployed.kit import COMMAND, SECOND, Pool, run, until

TRAINS = {"background": 14, "medium": 4, "urgent": 20}


def test_the_three_teams(pool: Pool, ana: Mapping[str, str]) -> None:
    for name in ("background-1", "background-2", "background-3", "urgent-1"):
        pool.submit(name, TRAINS[name.partition("-")[0]] * SECOND)
    pool.wait_for("RUNNING", "background-1", "background-2", "urgent-1")
    pool.wait_for("RUNNABLE", "background-3")

    pool.submit("medium-1", TRAINS["medium"] * SECOND)
    pool.wait_for("RUNNING", "medium-1")
    pool.wait_for("RUNNABLE", "background-2")

    asked = ("bump", "background-3", "--to", str(BUMPED_TO), "--for", "1h", "--reason", "deadline")
    bumped = run([*COMMAND, *asked, "--stack", STACK], ana)
    assert (bumped.returncode, bumped.stdout) == (0, "background-3: 100 -> 850 for 1 h\n"), bumped.stderr
    pool.wait_for("RUNNING", "background-3")
    assert pool.describe("background-3")["schedulingPriority"] == BUMPED_TO

    pool.wait_for("SUCCEEDED", *pool.jobs)
    for name in pool.jobs:
        pool.wait_for_facts(name, "job-ended")
    assert pool.sweep()["behind"] == 0
    for name in pool.jobs:
        assert_as_batch_says(pool, name)
    assert kinds_of_preemption(pool) == {"background-1": ["in-share"], "background-2": ["cross-share"]}
    assert [(fact.before, fact.after) for fact in pool.facts("background-3", "priority-changed")] == [
        (str(BASE), str(BUMPED_TO))
    ]
    assert {fact.kind for fact in pool.facts("urgent-1")} - {"job-timeline"} == {"job-ended"}
    assert [fact.actor for fact in pool.facts("background-3", "bump")] == [
        "arn:aws:iam::123456789012:user/ana"
    ]


def assert_as_batch_says(pool: Pool, name: str) -> None:
    """Record and audit of an ended job hold what the lab knows of it, once."""
    truth, record = pool.describe(name), pool.record(name)
    assert record is not None
    summary = truth.get("preemptionSummary", {"preemptedAttemptCount": 0, "recentPreemptedAttempts": []})
    assert (status(record), record.preempted_count) == (truth["status"], summary["preemptedAttemptCount"])
    assert [(f.after, f.at) for f in pool.facts(name, "job-ended")] == [(truth["status"], truth["stoppedAt"])]
    stopped = sorted(attempt["stoppedAt"] for attempt in summary["recentPreemptedAttempts"])
    assert sorted(fact.at for fact in pool.facts(name, "preemption")) == stopped
    assert pool.facts(name, "gap", "drift", "unrecognised") == []


def kinds_of_preemption(pool: Pool) -> dict[str, list[Any]]:
    found = {name: [fact.figures["kind"] for fact in pool.facts(name, "preemption")] for name in pool.jobs}
    return {name: kinds for name, kinds in found.items() if kinds}


@pytest.fixture(scope="module")
def ana(stack: Deployed) -> Mapping[str, str]:
    """Somebody who may ask for bumps."""
    return stack.user("ana", "AdminPolicyArn")


def sagemaker_python() -> Path:
    return ROOT / os.environ.get("SAGEMAKER_VENV", ".venvs/sagemaker") / "bin" / "python"


@pytest.mark.skipif(not sagemaker_python().exists(), reason="`make e2e` installs the SageMaker SDK")
def test_jobs_of_the_unmodified_sagemaker_sdk(stack: Deployed, pool: Pool) -> None:
    def submit(name: str, seconds: int) -> None:
        example = [str(sagemaker_python()), str(ROOT / "examples" / "submit_with_sagemaker_sdk.py"), name]
        share, runtime = name.partition("-")[0], f"sharewarden-lab-runtime-seconds={seconds}"
        submitted = run([*example, "--share", share, "--hyperparameter", runtime], stack.environment("test"))
        assert submitted.returncode == 0, submitted.stderr
        pool.jobs[name] = submitted.stdout.strip().rpartition("/")[2]

    submit("background-sdk-1", 30)
    submit("background-sdk-2", 30)
    pool.wait_for("RUNNING", "background-sdk-1", "background-sdk-2")
    submit("medium-sdk-1", 2)
    pool.wait_for("SUCCEEDED", "medium-sdk-1")
    until(lambda: kinds_of_preemption(pool), lambda seen: seen == {"background-sdk-2": ["cross-share"]})
    until(lambda: pool.ended("medium-sdk-1"))
    record = pool.record("medium-sdk-1")
    assert record is not None
    assert (record.share, record.instance_type, record.checkpoint_uri) == (
        "medium",
        "ml.g5.xlarge",
        "s3://three-team-checkpoints/medium-sdk-1",
    )
