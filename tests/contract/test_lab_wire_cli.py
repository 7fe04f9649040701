"""The AWS CLI, unmodified, against the lab's HTTP server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sharewarden_tools.lab.clock import VirtualClock
from sharewarden_tools.lab.engine import Lab
from sharewarden_tools.lab.server import LabServer

from tests.contract.lab_clients import UNIT, payload

FIRST_BOTOCORE = (1, 42, 72)  # the first one with quota management (boto3 CHANGELOG)


def find_cli() -> str | None:
    """An ``aws`` beside this Python or on PATH whose models know quota shares."""
    beside = Path(sys.executable).with_name("aws")
    for path in (str(beside) if beside.exists() else None, shutil.which("aws")):
        if path and botocore_of(path) >= FIRST_BOTOCORE:
            return path
    return None


def botocore_of(path: str) -> tuple[int, ...]:
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"botocore/(\d+)\.(\d+)\.(\d+)", version)
    return tuple(int(part) for part in found.groups()) if found else (0,)


CLI = find_cli()


class Aws:
    def __init__(self, endpoints: dict[str, str], home: Path) -> None:
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "AWS_ACCESS_KEY_ID": "AKIDCLI",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_MAX_ATTEMPTS": "1",
            **endpoints,
        }

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        assert CLI
        return subprocess.run(
            [CLI, *arguments], capture_output=True, text=True, env=self.environment, timeout=60, check=False
        )

    def __call__(self, *arguments: str) -> Any:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout.strip() else None


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[Aws]:
    if CLI is None:
        message = "no AWS CLI whose botocore knows quota shares (1.42.72 or newer)"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(message)
    clock = VirtualClock(1_780_000_000_000)
    with LabServer(Lab(clock=clock), clock) as server:
        yield Aws(server.environment(), tmp_path)


def test_the_cli_makes_a_pool_submits_and_asks(aws: Aws) -> None:
    limits = f"capacityUnit={UNIT},maxCapacity=1"
    aws(
        "batch",
        "create-service-environment",
        *("--service-environment-name", "pool"),
        *("--service-environment-type", "SAGEMAKER_TRAINING"),
        *("--capacity-limits", limits),
    )
    policy = aws(
        "batch",
        "create-scheduling-policy",
        *("--name", "policy"),
        *("--quota-share-policy", "idleResourceAssignmentStrategy=FIFO"),
    )
    aws(
        "batch",
        "create-job-queue",
        *("--job-queue-name", "queue"),
        *("--job-queue-type", "SAGEMAKER_TRAINING"),
        *("--priority", "1"),
        *("--scheduling-policy-arn", policy["arn"]),
        *("--service-environment-order", "order=1,serviceEnvironment=pool"),
    )
    share = aws(
        "batch",
        "create-quota-share",
        *("--quota-share-name", "nlp"),
        *("--job-queue", "queue"),
        *("--capacity-limits", limits),
        *("--resource-sharing-configuration", "strategy=RESERVE"),
        *("--preemption-configuration", "inSharePreemption=DISABLED"),
        *("--tags", "team=nlp"),
    )
    job = aws(
        "batch",
        "submit-service-job",
        *("--job-name", "first"),
        *("--job-queue", "queue"),
        *("--service-job-type", "SAGEMAKER_TRAINING"),
        *("--quota-share-name", "nlp"),
        *("--service-request-payload", payload()),
    )
    listed = aws("batch", "list-service-jobs", "--job-queue", "queue", "--job-status", "SUBMITTED")
    assert [summary["jobId"] for summary in listed["jobSummaryList"]] == [job["jobId"]]
    tags = aws("batch", "list-tags-for-resource", "--resource-arn", share["quotaShareArn"])
    assert tags == {"tags": {"team": "nlp"}}
    assert aws("sagemaker", "list-training-jobs") == {"TrainingJobSummaries": []}


def test_the_cli_shows_the_labs_errors(aws: Aws) -> None:
    done = aws.run("batch", "describe-service-job", "--job-id", "nope")
    assert done.returncode != 0
    assert "(ClientException) when calling the DescribeServiceJob operation" in done.stderr
    assert "nope" in done.stderr
