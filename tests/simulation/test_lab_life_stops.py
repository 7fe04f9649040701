"""What a stop costs a job that hears SIGTERM, and what it costs to go on from a checkpoint."""

from __future__ import annotations

import pytest
from sharewarden_tools.lab.checkpoints import newest_step

from tests.simulation.lab_kit import Kit, share
from tests.simulation.test_lab_life import FOLDER, preempt, saving, trained


@pytest.mark.parametrize(
    ("takes", "step", "stopping"), [(0, 90, 17), (17, 90, 17), (100, 90, 100), (120, 90, 120), (121, 0, 120)]
)
def test_a_save_on_sigterm_lengthens_the_stop_and_may_be_too_slow(
    takes: int, step: int, stopping: int
) -> None:
    kit = Kit(share("s", in_share=True), environment=1)
    request = saving(runtime_seconds=1_000, checkpoint_seconds=600, stop_save_seconds=takes)
    job = kit.running("s", request=request)
    kit.pass_time(89)
    preempt(kit, job)
    assert newest_step(kit.lab.objects, FOLDER) == pytest.approx(step, abs=1)
    kit.pass_time(stopping + 10)
    (attempt,) = kit.describe(job)["preemptionSummary"]["recentPreemptedAttempts"]
    (began,) = kit.lab.state.preemptions
    assert attempt["stoppedAt"] - began.at == 1_000 * stopping


def test_a_checkpoint_takes_its_time_to_load() -> None:
    kit = Kit(share("s", in_share=True), environment=1)
    job = kit.running("s", request=saving(runtime_seconds=400, checkpoint_seconds=60, load_seconds=50))
    first = kit.training_name(job)
    kit.pass_time(200)
    preempt(kit, job)
    kit.finish()
    assert kit.training_name(job) != first
    assert trained(kit, job) == 50 + 400 - 180 + 5
    saves = [int(name.split("step-")[1][:12]) for name in kit.lab.objects.list(FOLDER) if "weights" in name]
    assert saves == [60, 120, 180, 240, 300, 360]


def test_a_job_that_is_stopped_while_it_loads_has_lost_nothing() -> None:
    kit = Kit(share("s", in_share=True), environment=1)
    job = kit.running("s", request=saving(runtime_seconds=400, checkpoint_seconds=60, load_seconds=300))
    kit.pass_time(70)
    kit.batch("TerminateServiceJob", jobId=preempt(kit, job), reason="the job is to go on")
    kit.pass_time(60)
    assert kit.status(job) == "RUNNING"
    kit.pass_time(30)
    preempt(kit, job)
    assert [training.progress_ms for training in kit.lab.state.trainings.values()][-1] == 60_000
