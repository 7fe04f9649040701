"""A preempted job's checkpoint is deleted from S3, copied back by one command, and loaded by a training."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sharewarden.domain.preemption.case import Case
from sharewarden.domain.record import JobRecord
from sharewarden.domain.stored import HOUR, MINUTE, SECOND
from sharewarden_checkpoint import Saver
from sharewarden_tools.cli.checkpoints import list_checkpoints
from sharewarden_tools.cli.deployment import Deployment
from sharewarden_tools.cli.pins import Asked, list_pins, restore_checkpoint
from sharewarden_tools.lab import VirtualClock
from sharewarden_tools.local.stack import ACCOUNT, REGION, LocalStack, Setup, local_stack
from sharewarden_tools.stories.three_team import START, create_pool, submit

BUCKET, JOB = "three-team-checkpoints", "background-2"
#: medium took its instance back ten minutes ago, and keeps it for twenty more.
PREEMPTED = START + 50 * MINUTE


@pytest.fixture(scope="module")
def stack() -> Iterator[LocalStack]:
    """background-2 ran on borrowed capacity, with a bucket that keeps versions, until medium took it back."""
    with local_stack(VirtualClock(START), Setup(seed=5)) as running:
        s3 = running.client("s3", "admin")
        s3.create_bucket(Bucket=BUCKET)
        s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
        create_pool(running)
        submit(running, "background-1", HOUR)
        running.run_until(START + MINUTE)
        submit(running, JOB, HOUR)
        running.run_until(START + 40 * MINUTE)
        submit(running, "medium-1", 30 * MINUTE)
        running.run_until(PREEMPTED)
        yield running


def preempted(stack: LocalStack) -> str:
    """ARN of the attempt that was preempted; its case was opened by the event."""
    job = Deployment("", "", "", "", stack.runtime, stack.client("batch", "ana")).job(JOB)
    record = stack.runtime.ledger.load(JobRecord, job.rpartition("/")[2])
    assert record is not None
    (attempt,) = [one.training_job for one in record.attempts if one.preempted]
    assert stack.runtime.ledger.load(Case, attempt) is not None
    return attempt


def deployment(stack: LocalStack) -> Deployment:
    return Deployment("local stack", ACCOUNT, REGION, "ana", stack.runtime, stack.client("batch", "ana"))


def objects(stack: LocalStack) -> dict[str, bytes]:
    """What SageMaker would copy to the instances of the next attempt, by its path there."""
    s3, prefix = stack.client("s3", "ana"), f"{JOB}/"
    rows = s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", [])
    return {
        row["Key"].removeprefix(prefix): s3.get_object(Bucket=BUCKET, Key=row["Key"])["Body"].read()
        for row in rows
    }


def step_that_a_training_loads(stack: LocalStack, folder: Path) -> int | None:
    for name, body in objects(stack).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(body)
    found = Saver(folder).latest()
    return found.step if found else None


def newest(stack: LocalStack, capsys: pytest.CaptureFixture[str]) -> Any:
    capsys.readouterr()
    assert list_checkpoints(deployment(stack), JOB, as_json=True) == 0
    return json.loads(capsys.readouterr().out)["newest"]


def lose_everything(stack: LocalStack, names: Iterable[str]) -> None:
    """Overwritten, then deleted, as SageMaker repeats it. moto cannot order what came in one instant."""
    s3 = stack.client("s3", "sagemaker")
    for name in names:
        if name.endswith("weights.bin"):
            s3.put_object(Bucket=BUCKET, Key=f"{JOB}/{name}", Body=b"other")
    stack.run_until(stack.now() + SECOND)
    for name in names:
        s3.delete_object(Bucket=BUCKET, Key=f"{JOB}/{name}")
    stack.run_until(stack.now() + SECOND)


def test_a_deleted_set_comes_back_byte_by_byte_and_the_job_goes_on_from_it(
    stack: LocalStack, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    before, was = objects(stack), newest(stack, capsys)
    assert list_pins(deployment(stack), JOB, as_json=True) == 0
    (pinned,) = json.loads(capsys.readouterr().out)
    assert (pinned["save"]["name"], pinned["attempts"]) == (was["name"], [preempted(stack)])

    lose_everything(stack, before)
    assert (objects(stack), newest(stack, capsys)) == ({}, None)

    assert restore_checkpoint(deployment(stack), JOB, Asked(), as_json=False) == 0
    shown = capsys.readouterr()
    assert f"local stack, account {ACCOUNT}, {REGION}, as ana" in shown.err
    assert f"bucket {BUCKET}: 2 of 2 files" in shown.err
    assert f"step {was['step']}: 2 files are back" in shown.out
    assert objects(stack) == {name: body for name, body in before.items() if name.startswith(was["name"])}
    again = newest(stack, capsys)
    assert (again["name"], again["step"], again["size"]) == (was["name"], was["step"], was["size"])
    assert step_that_a_training_loads(stack, tmp_path) == was["step"]

    stack.run_until(START + 3 * HOUR)
    batch: Any = stack.client("batch", "ana")
    job = batch.describe_service_job(jobId=deployment(stack).job(JOB))
    assert job["status"] == "SUCCEEDED"
    (second,) = [one for one in job["attempts"] if one["serviceResourceId"]["value"] != preempted(stack)]
    left = HOUR - was["step"] * 1000
    assert second["stoppedAt"] - second["startedAt"] == pytest.approx(left, abs=MINUTE)
    the_restore_is_on_record_with_the_person(stack)


def the_restore_is_on_record_with_the_person(stack: LocalStack) -> None:
    found = list(stack.runtime.audit.by_share(queue_of(stack), "background", START, stack.now()))
    (fact,) = [one for one in found if one.kind == "checkpoint-restored"]
    assert (fact.actor, fact.mode, fact.job_name, fact.figures["files"]) == ("ana", "enforce", JOB, 2)
    assert [one.figures["attempt"] for one in found if one.kind == "checkpoint-pinned"] == [preempted(stack)]


def queue_of(stack: LocalStack) -> str:
    (queue,) = stack.runtime.queues
    return queue
