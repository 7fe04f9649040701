"""The life of single jobs: retries, stops, checkpoints, and what the options change."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError
from sharewarden.usecases.checkpoints import newest
from sharewarden_tools.lab import MemoryObjects
from sharewarden_tools.lab.checkpoints import newest_step, requested

from tests.simulation.lab_kit import QUEUE, START, UNTIL_RUNNING, Kit, payload, share
from tests.simulation.world import world

FOLDER = "s3://ckpt/train/"
COMPLETED = "Batch Service Job Preemption Completed"
STOPPED_AFTER = 21  # seconds of Stopping, and Batch's own delay


def saving(**settings: Any) -> dict[str, Any]:
    return {**payload(**settings), "CheckpointConfig": {"S3Uri": FOLDER}}


def preempt(kit: Kit, victim: str, name: str = "s") -> str:
    """Push the job out by one of higher priority; returns that one."""
    priority = kit.describe(victim)["schedulingPriority"]
    other = kit.submit(name, priority + 1)
    kit.pass_time(2)
    return other


def trained(kit: Kit, job: str) -> float:
    """Seconds from the start of the latest attempt's training to its end, upload included."""
    training = kit.training(job)
    return float((training["TrainingEndTime"] - training["TrainingStartTime"]).total_seconds())


def test_a_preempted_job_starts_again_from_its_newest_complete_checkpoint() -> None:
    kit = Kit(share("s", in_share=True), environment=1)
    job = kit.running("s", request=saving(runtime_seconds=1_000, checkpoint_seconds=60))
    kit.pass_time(200)
    preempt(kit, job)
    assert newest_step(kit.lab.objects, FOLDER) == 180
    kit.pass_time(2_000)
    assert trained(kit, job) == 1_000 - 180 + 5
    assert kit.status(job) == "SUCCEEDED"


def test_without_a_checkpoint_folder_it_starts_from_zero() -> None:
    kit = Kit(share("s", in_share=True), environment=1)
    job = kit.running("s", request=payload(runtime_seconds=1_000))
    kit.pass_time(900)
    preempt(kit, job)
    kit.finish()
    assert trained(kit, job) == 1_005


def test_a_manifest_names_step_time_and_files() -> None:
    kit = Kit(share("s"), environment=1)
    kit.running("s", request=saving(checkpoint_seconds=60))
    kit.pass_time(61)
    (name,) = [name for name in kit.lab.objects.list(FOLDER) if name.endswith("/_SAVED.json")]
    folder = name.removesuffix("_SAVED.json")
    assert folder == f"{FOLDER}step-000000000060-{START + 81_000:x}/"
    manifest = json.loads(kit.lab.objects.get(name))
    assert (manifest["step"], manifest["saved_at"]) == (60, START + 81_000)
    assert manifest["files"] == {"weights.bin": 7}
    assert len(kit.lab.objects.get(folder + "weights.bin")) == 7


def test_the_sets_of_the_lab_are_of_the_format_that_is_looked_for() -> None:
    kit = Kit(share("s"), environment=1)
    job = kit.running("s", request=saving(checkpoint_seconds=60))
    kit.pass_time(150)
    made = world()
    for name in kit.lab.objects.list(FOLDER):
        made.runtime.checkpoints.put(FOLDER, name.removeprefix(FOLDER), kit.lab.objects.get(name))
    looked = newest(made.runtime, FOLDER, (), kit.clock.now())
    assert looked.save is not None
    assert (looked.save.step, looked.partial, len(looked.sets)) == (120, False, 2)
    assert looked.save.training_job == kit.training_name(job)


def asks(kit: Kit, job: str, name: str = "r-1", deadline: int = 10**15) -> None:
    told = {"format": 1, "request_id": name, "asked_at": 1, "deadline": deadline}
    request = f"{FOLDER}.sharewarden/requests/{kit.training_name(job)}.json"
    kit.lab.objects.put(request, json.dumps(told).encode())


def acknowledgements(kit: Kit, job: str) -> dict[str, Any]:
    folder = f"{FOLDER}.sharewarden/acks/{kit.training_name(job)}/"
    names = kit.lab.objects.list(folder)
    return {name.removeprefix(folder): json.loads(kit.lab.objects.get(name)) for name in names}


def test_a_job_with_the_helper_saves_when_it_is_asked() -> None:
    kit = Kit(share("s"), environment=1)
    told = saving(runtime_seconds=2_000, checkpoint_seconds=600, save_request_seconds=15)
    job = kit.running("s", request=told)
    kit.pass_time(100)
    asks(kit, job)
    kit.pass_time(620)  # and once only
    (ack,) = acknowledgements(kit, job).values()
    assert (ack["format"], ack["request_id"]) == (1, "r-1")
    assert 100 <= ack["step"] <= 116
    assert f"{FOLDER}{ack['set']}/_SAVED.json" in kit.lab.objects.list(FOLDER)
    steps = [name for name in kit.lab.objects.list(FOLDER) if name.endswith("/_SAVED.json")]
    assert len(steps) == 2  # that one, and the next of its own 600 seconds later
    asks(kit, job, "r-2")
    kit.pass_time(15)
    assert sorted(acknowledgements(kit, job)) == ["r-1.json", "r-2.json"]
    kit.finish()
    assert trained(kit, job) == 2_005


@pytest.mark.parametrize(
    ("settings", "deadline"), [({}, 10**15), ({"save_request_seconds": 15}, START)], ids=["none", "too late"]
)
def test_without_the_helper_or_in_time_nothing_is_saved_on_request(
    settings: dict[str, int], deadline: int
) -> None:
    kit = Kit(share("s"), environment=1)
    job = kit.running("s", request=saving(runtime_seconds=2_000, checkpoint_seconds=600, **settings))
    asks(kit, job, deadline=deadline)
    kit.pass_time(100)
    assert acknowledgements(kit, job) == {}
    assert newest_step(kit.lab.objects, FOLDER) == 0


@pytest.mark.parametrize("body", [b"no", b"{}", b"[]", b'{"request_id": "r", "deadline": "x"}'])
def test_what_is_no_request_asks_for_nothing(body: bytes) -> None:
    objects = MemoryObjects()
    objects.put(f"{FOLDER}.sharewarden/requests/job.json", body)
    assert requested(objects, FOLDER, "job") is None


@pytest.mark.parametrize("body", [b"not json", b"{}", b"[]", b'{"step": "x"}'])
def test_a_broken_manifest_is_no_checkpoint(body: bytes) -> None:
    objects = MemoryObjects()
    objects.put(f"{FOLDER}step-00000060/_SAVED.json", body)
    assert newest_step(objects, FOLDER) == 0


@pytest.mark.parametrize(("saves", "step"), [(True, 90), (False, 0)])
def test_saving_on_sigterm(saves: bool, step: int) -> None:
    kit = Kit(share("s", in_share=True), environment=1, saves_on_sigterm=saves)
    job = kit.running("s", request=saving(runtime_seconds=1_000, checkpoint_seconds=600))
    kit.pass_time(89)  # training began a second before `running` returned, and the demander takes a second
    preempt(kit, job)
    assert newest_step(kit.lab.objects, FOLDER) == pytest.approx(step, abs=1)


@pytest.mark.parametrize(("retries", "states"), [(0, ["FAILED"]), (1, ["RUNNABLE", "FAILED"])])
@pytest.mark.parametrize("sends", [True, False])
def test_preemption_retries(retries: int, states: list[str], *, sends: bool) -> None:
    kit = Kit(share("s", in_share=True), environment=1, exhausted_sends_completed=sends)
    limit = {"preemptionRetriesBeforeTermination": retries}
    job = kit.running("s", request=payload(runtime_seconds=500), preemptionConfiguration=limit)
    for _ in states:
        preempt(kit, job)
        kit.pass_time(700)
    assert kit.describe(job)["preemptionSummary"]["preemptedAttemptCount"] == retries + 1
    told = [detail["status"] for detail in kit.sent(COMPLETED, job)]
    assert told == (states if sends else states[:-1])


def test_unset_preemption_retries_never_run_out_and_the_window_slides() -> None:
    kit = Kit(share("s", in_share=True), environment=1, preemption_window=2)
    job = kit.running("s", request=payload(runtime_seconds=5_000))
    for _ in range(4):
        preempt(kit, job)
        kit.pass_time(900)
    summary = kit.describe(job)["preemptionSummary"]
    stops = [attempt["stoppedAt"] for attempt in summary["recentPreemptedAttempts"]]
    assert (summary["preemptedAttemptCount"], len(stops)) == (4, 2)
    assert stops == sorted(stops)
    assert kit.status(job) == "RUNNING"


@pytest.mark.parametrize(("counts", "state"), [(True, "FAILED"), (False, "RUNNABLE")])
def test_preemption_and_retry_attempts(counts: bool, state: str) -> None:
    kit = Kit(share("s", in_share=True), environment=1, preemption_uses_attempts=counts)
    job = kit.running("s")
    preempt(kit, job)
    kit.pass_time(STOPPED_AFTER)
    assert kit.status(job) == state


@pytest.mark.parametrize(("shown", "count"), [(True, 1), (False, 0)])
def test_preempted_attempts_among_attempts(shown: bool, count: int) -> None:
    kit = Kit(share("s", in_share=True), environment=1, preempted_in_attempts=shown)
    job = kit.running("s")
    preempt(kit, job)
    kit.pass_time(STOPPED_AFTER)
    assert len(kit.describe(job)["attempts"]) == count


@pytest.mark.parametrize("state_after", [2, 12, 30])
def test_victims_are_scheduled_starting_or_running(state_after: int) -> None:
    kit = Kit(share("s", in_share=True), environment=1)
    job = kit.submit("s")
    kit.pass_time(state_after)
    status = kit.status(job)
    preempt(kit, job)
    assert kit.sent("Batch Service Job Preemption Started", job)[0]["status"] == status
    kit.pass_time(STOPPED_AFTER)
    attempt = kit.describe(job)["preemptionSummary"]["recentPreemptedAttempts"][0]
    assert ("startedAt" in attempt) == (status == "RUNNING")


@pytest.mark.parametrize(("keeps", "first"), [(True, "victim"), (False, "waiting")])
def test_the_place_of_a_requeued_job(keeps: bool, first: str) -> None:
    kit = Kit(share("s", in_share=True), environment=1, requeue_keeps_place=keeps)
    jobs = {"victim": kit.running("s", 5), "waiting": kit.submit("s", 5)}
    kit.pass_time(5)
    preempt(kit, jobs["victim"])
    kit.pass_time(STOPPED_AFTER)
    front = kit.batch("GetJobQueueSnapshot", jobQueue=QUEUE)["frontOfQuotaShares"]["quotaShares"]["s"]
    assert front[0]["jobArn"].endswith(jobs[first])


@pytest.mark.parametrize(("retried", "state"), [(True, "RUNNABLE"), (False, "FAILED")])
def test_a_training_job_stopped_by_hand(retried: bool, state: str) -> None:
    kit = Kit(share("s"), environment=1, stopped_outside_is_retried=retried)
    job = kit.running("s", retryStrategy={"attempts": 3})
    kit.sagemaker("StopTrainingJob", TrainingJobName=kit.training_name(job))
    kit.pass_time(20)
    assert state in kit.story(job)[-2:]
    attempt = kit.describe(job)["attempts"][0]
    assert attempt["statusReason"] == "Received status from SageMaker: Training job stopped"


def test_a_stopped_training_job_cannot_be_stopped_again() -> None:
    kit = Kit(share("s"), environment=1)
    job = kit.running("s")
    name = kit.training_name(job)
    kit.sagemaker("StopTrainingJob", TrainingJobName=name)
    kit.sagemaker("StopTrainingJob", TrainingJobName=name)  # while Stopping nothing happens
    kit.pass_time(20)
    with pytest.raises(ClientError, match="ValidationException"):
        kit.sagemaker("StopTrainingJob", TrainingJobName=name)


def test_termination_wins_over_preemption() -> None:
    kit = Kit(share("s", in_share=True), environment=1)
    job = kit.running("s")
    preempt(kit, job)
    kit.batch("TerminateServiceJob", jobId=job, reason="enough")
    kit.pass_time(STOPPED_AFTER)
    found = kit.describe(job)
    assert (found["status"], found["statusReason"], found["isTerminated"]) == ("FAILED", "enough", True)


@pytest.mark.parametrize("seconds", [0, 5, 15, 40])
def test_a_job_can_be_terminated_at_any_time(seconds: int) -> None:
    kit = Kit(share("s"), environment=1)
    job = kit.submit("s")
    kit.pass_time(seconds)
    kit.batch("TerminateServiceJob", jobId=job, reason="enough")
    kit.finish()
    assert (kit.status(job), kit.story(job).count("FAILED")) == ("FAILED", 1)
    other = kit.running("s")
    assert kit.status(other) == "RUNNING"


def test_a_job_terminated_while_it_finds_no_capacity_ends() -> None:
    kit = Kit(share("s"), environment=1)
    kit.lab.fail_for_capacity()
    job = kit.submit("s")
    kit.pass_time(12)  # the training job has failed, Batch does not know yet
    kit.batch("TerminateServiceJob", jobId=job, reason="enough")
    kit.finish()
    assert kit.status(job) == "FAILED"


@pytest.mark.parametrize(
    ("rules", "attempts"),
    [
        (None, 3),
        ([{"action": "RETRY", "onStatusReason": "Received status from SageMaker: AlgorithmError*"}], 3),
        ([{"action": "EXIT", "onStatusReason": "*AlgorithmError*"}], 1),
        ([{"action": "EXIT", "onStatusReason": "Received status"}], 3),  # without * the whole text must match
        ([{"action": "RETRY", "onStatusReason": "*"}, {"action": "EXIT", "onStatusReason": "*"}], 3),
    ],
)
def test_failed_attempts_are_retried_by_rule(rules: list[dict[str, str]] | None, attempts: int) -> None:
    kit = Kit(share("s"), environment=1)
    strategy = {"attempts": 3, **({"evaluateOnExit": rules} if rules else {})}
    job = kit.submit("s", request=payload(outcome="fail", runtime_seconds=30), retryStrategy=strategy)
    kit.finish()
    assert (kit.status(job), len(kit.describe(job)["attempts"])) == ("FAILED", attempts)


def test_the_rate_of_capacity_failures() -> None:
    kit = Kit(share("s", 10), environment=10, capacity_failure_rate=0.5)
    jobs = [kit.submit("s") for _ in range(40)]
    kit.finish()
    assert kit.statuses(jobs) == ["SUCCEEDED"] * 40
    failed = [
        d for d in kit.sent("SageMaker Training Job State Change") if d["TrainingJobStatus"] == "Failed"
    ]
    assert 15 < len(failed) < 90


@pytest.mark.parametrize(
    ("where", "seconds"),
    [
        ({"HyperParameters": {"sharewarden-lab-runtime-seconds": "30"}}, 30),
        (
            {"HyperParameters": {"sharewarden-lab-runtime-seconds": '"30"'}},
            30,
        ),  # as the SageMaker SDK writes it
        ({"Environment": {"SHAREWARDEN_LAB_RUNTIME_SECONDS": "40"}}, 40),
        ({}, 50),
    ],
)
def test_a_job_says_how_long_it_runs(where: dict[str, Any], seconds: int) -> None:
    kit = Kit(share("s"), environment=1)
    tags = {"sharewarden-lab-runtime-seconds": "50"}
    job = kit.submit("s", request={**payload(), **where}, tags=tags)
    kit.finish()
    assert trained(kit, job) == seconds + 5


def test_long_names_are_cut_to_what_sagemaker_allows() -> None:
    kit = Kit(share("s"), environment=1)
    job = kit.running("s", request=payload("a-name-that-is-much-longer-than-allowed"))
    name = kit.training_name(job)
    assert len(name) == 63
    assert name.startswith("AWSBatcha-name-that-is-much-lo")


def test_a_snapshot_may_be_old() -> None:
    kit = Kit(share("s"), environment=1, snapshot_age_ms=60_000)
    before = kit.batch("GetJobQueueSnapshot", jobQueue=QUEUE)
    kit.running("s")
    assert kit.batch("GetJobQueueSnapshot", jobQueue=QUEUE) == before
    kit.pass_time(60 - UNTIL_RUNNING)
    assert kit.batch("GetJobQueueSnapshot", jobQueue=QUEUE) != before


@pytest.mark.parametrize(("fails", "priority"), [(True, 7), (False, 7)])
def test_the_priority_of_an_ended_job(fails: bool, priority: int) -> None:
    kit = Kit(share("s"), environment=1, update_terminal_fails=fails)
    job = kit.submit("s", priority)
    kit.finish()
    if fails:
        kit.refused("UpdateServiceJob", jobId=job, schedulingPriority=9)
    else:
        kit.batch("UpdateServiceJob", jobId=job, schedulingPriority=9)
    assert kit.describe(job)["schedulingPriority"] == priority


def test_a_listener_may_call_the_lab() -> None:
    kit = Kit(share("s", 2, in_share=True), environment=2)
    raised: list[str] = []

    def raise_priority(event: dict[str, Any]) -> None:
        detail = event["detail"]
        if detail.get("status") == "RUNNING" and detail.get("jobId") not in raised:
            raised.append(detail["jobId"])
            kit.batch("UpdateServiceJob", jobId=detail["jobId"], schedulingPriority=42)

    kit.lab.subscribe(raise_priority)
    jobs = [kit.submit("s") for _ in range(3)]
    kit.finish()
    assert sorted(raised) == sorted(jobs)
    assert {kit.describe(job)["schedulingPriority"] for job in jobs} == {42}


def test_advancing_is_idempotent_and_moves_the_clock_timer_by_timer() -> None:
    kit = Kit(share("s"), environment=1)
    times: list[int] = []
    kit.lab.subscribe(lambda _: times.append(kit.clock.now()))
    kit.submit("s")
    kit.pass_time(60)
    seen = list(times)
    assert seen == sorted(seen)
    assert len(set(seen)) > 3
    kit.lab.advance_to(kit.clock.now())
    kit.lab.advance_to(START)
    assert (times, kit.clock.now()) == (seen, START + 60_000)
