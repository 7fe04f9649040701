"""A job that runs on borrowed capacity is preempted three times in a day, and the audit tells what it cost.

Three jobs live through it at once: one that saves with the training helper, one whose script saves by itself
in folders of Hugging Face, and one that has no checkpoints at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from sharewarden.domain.audit import AuditRecord, Kind
from sharewarden.domain.notice import Notice
from sharewarden.domain.preemption.case import Case
from sharewarden.domain.record import JobRecord
from sharewarden.domain.stored import DAY, HOUR, MINUTE, SECOND
from sharewarden_tools.lab import VirtualClock
from sharewarden_tools.local.stack import QUEUE, LocalStack, Setup, local_stack, queue_arn
from sharewarden_tools.stories.three_team import INSTANCE, START, Share, create_pool, submit

BUCKET = "three-team-checkpoints"
INTERVAL = 20 * MINUTE
#: When the owner comes, after the start of the story, and how long it stays each time.
OWNER_COMES, STAYS = (2 * HOUR + 4 * MINUTE, 5 * HOUR + 7 * MINUTE, 8 * HOUR + 2 * MINUTE), 40 * MINUTE
NIGHT = 11 * HOUR
HELPED, ALONE, BARE = "background-helped", "background-alone", "background-bare"
#: The owner is as large as all that borrow from it, so each time all three are preempted.
POOL = (Share("background", "LEND_AND_BORROW"), Share("medium", "LEND_AND_BORROW", instances=3))


@pytest.fixture(scope="module")
def stack() -> Iterator[LocalStack]:
    """The day, lived through."""
    with local_stack(VirtualClock(START), Setup(seed=3)) as running:
        create_pool(running, POOL)
        submit(running, "background-first", 2 * DAY)
        running.run_until(START + MINUTE)
        submit(running, HELPED, 2 * DAY, INTERVAL)
        script(running, ALONE, checkpoints=True)
        script(running, BARE, checkpoints=False)
        live_through(running)
        yield running


def script(stack: LocalStack, name: str, *, checkpoints: bool) -> None:
    """A job of which the lab knows no saves: what it writes, ``saves_alone`` writes for it."""
    payload = {
        "TrainingJobName": name,
        "RoleArn": "arn:aws:iam::123456789012:role/Training",
        "ResourceConfig": {"InstanceType": INSTANCE, "InstanceCount": 1, "VolumeSizeInGB": 50},
        "OutputDataConfig": {"S3OutputPath": "s3://three-team-output/models"},
        "StoppingCondition": {"MaxRuntimeInSeconds": 2 * 86_400},
        "HyperParameters": {
            "sharewarden-lab-runtime-seconds": str(2 * DAY // SECOND),
            "sharewarden-lab-checkpoint-seconds": str(4 * DAY // SECOND),
        },
    }
    if checkpoints:
        payload["CheckpointConfig"] = {"S3Uri": f"s3://{BUCKET}/{name}"}
    stack.client("batch", "ana").submit_service_job(
        jobName=name,
        jobQueue=QUEUE,
        quotaShareName="background",
        schedulingPriority=100,
        serviceJobType="SAGEMAKER_TRAINING",
        serviceRequestPayload=json.dumps(payload),
    )


def live_through(stack: LocalStack) -> None:
    """A day of turns of one interval. The script goes on where it was, the last time from zero."""
    step, turns = 0, NIGHT // INTERVAL
    comes = {START + at // INTERVAL * INTERVAL: at % INTERVAL for at in OWNER_COMES}
    for turn in range(1, turns):
        at = START + turn * INTERVAL
        stack.run_until(at)
        if runs(stack, ALONE):
            begins_anew = preemptions(stack, ALONE) == len(OWNER_COMES) and step > 1_000
            step = 100 if begins_anew else step + 400
            saves_alone(stack, step)
        if at in comes:
            stack.run_until(at + comes[at])
            for one in range(3):
                submit(stack, f"medium-{turn}-{one}", STAYS)


def saves_alone(stack: LocalStack, step: int) -> None:
    s3 = stack.client("s3", "ana")
    for name in ("model.safetensors", "trainer_state.json"):
        s3.put_object(Bucket=BUCKET, Key=f"{ALONE}/checkpoint-{step}/{name}", Body=b"1")


def record(stack: LocalStack, name: str) -> JobRecord:
    found = [one for one in stack.runtime.ledger.open_items(JobRecord, queue_arn(QUEUE)) if one.name == name]
    assert len(found) == 1, name
    return found[0]


def runs(stack: LocalStack, name: str) -> bool:
    one = record(stack, name)
    description = stack.runtime.batch.describe(one.arn)
    return description is not None and description.status == "RUNNING"


def preemptions(stack: LocalStack, name: str) -> int:
    return sum(attempt.preempted for attempt in record(stack, name).attempts)


def facts(stack: LocalStack, name: str, kind: Kind) -> list[AuditRecord]:
    found = stack.runtime.audit.by_job(record(stack, name).job, 0)
    return [fact for fact in found if fact.kind == kind]


def figures(stack: LocalStack, name: str, kind: Kind, figure: str) -> list[Any]:
    return [fact.figures[figure] for fact in facts(stack, name, kind)]


@pytest.mark.parametrize("name", [HELPED, ALONE, BARE])
def test_each_preemption_has_its_records_once(stack: LocalStack, name: str) -> None:
    for kind in ("preemption", "preemption-measure", "preemptor", "resume"):
        attempts = figures(stack, name, kind, "attempt")  # type: ignore[arg-type]
        assert len(attempts) == len(set(attempts)) == len(OWNER_COMES), kind


def test_with_the_helper_no_more_than_an_interval_is_lost_each_time(stack: LocalStack) -> None:
    lost = figures(stack, HELPED, "preemption-measure", "lost_seconds")
    assert all(0 < one <= INTERVAL // SECOND for one in lost), lost
    assert figures(stack, HELPED, "preemption-measure", "basis") == ["save"] * 3


def test_with_the_helper_it_is_proved_that_it_went_on(stack: LocalStack) -> None:
    told = facts(stack, HELPED, "resume")
    assert [fact.after for fact in told] == ["resumed"] * 3
    for fact in told:
        assert fact.figures["resumed_from"] == fact.figures["saved_step"] < fact.figures["step"]
        assert STAYS // SECOND <= fact.figures["pause_seconds"] < STAYS // SECOND + 30 * 60


def test_the_owner_is_named_with_its_wait(stack: LocalStack) -> None:
    for name in (HELPED, ALONE, BARE):
        for fact in facts(stack, name, "preemptor"):
            assert (fact.figures["kind"], fact.figures["preemptor_share"]) == ("cross-share", "medium")
            assert 0 < fact.figures["waited_seconds"] < 15 * 60


def test_without_the_helper_the_steps_tell(stack: LocalStack) -> None:
    assert figures(stack, ALONE, "preemption-measure", "basis") == ["save"] * 3
    told = facts(stack, ALONE, "resume")
    assert [fact.after for fact in told] == ["resumed", "resumed", "older"]
    assert told[-1].figures["step"] < told[-1].figures["saved_step"]
    notice = stack.runtime.ledger.load(Notice, told[-1].key)
    assert notice is not None
    assert notice.severity == "alarm"


def test_without_checkpoints_all_is_lost_and_nothing_claimed(stack: LocalStack) -> None:
    assert figures(stack, BARE, "preemption-measure", "basis") == ["no-checkpoints"] * 3
    for fact in facts(stack, BARE, "preemption-measure"):
        assert fact.figures["lost_seconds"] == fact.figures["seconds"] > HOUR // SECOND
    assert [fact.after for fact in facts(stack, BARE, "resume")] == ["nothing-saved"] * 3


def test_every_case_is_closed(stack: LocalStack) -> None:
    assert list(stack.runtime.ledger.open_items(Case, queue_arn(QUEUE))) == []
    assert stack.buried() == []
