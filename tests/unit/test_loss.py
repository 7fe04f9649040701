"""What a preemption cost, by what is known of the attempt and of its saves."""

from __future__ import annotations

import pytest
from sharewarden.domain.attempts import Attempt
from sharewarden.domain.checkpoints import Save
from sharewarden.domain.policy import Policy
from sharewarden.domain.preemption.case import Sight
from sharewarden.domain.preemption.loss import Loss, loss_of, measure_fact
from sharewarden.domain.record import JobRecord
from sharewarden.domain.stored import HOUR, MINUTE, SECOND

QUEUE = "arn:aws:batch:us-east-1:123456789012:job-queue/q"
TRAINING = "arn:aws:sagemaker:us-east-1:123456789012:training-job/AWSBatch-1"
#: Dispatched at 0, trained from 4 min to 64 min.
DISPATCHED, START, STOP = 10 * HOUR, 10 * HOUR + 4 * MINUTE, 11 * HOUR + 4 * MINUTE
ATTEMPT = Attempt(training_job=TRAINING, started_at=START, stopped_at=STOP, preempted=True)


def save(at: int, **more: object) -> Save:
    known = Save(name="step-7", step=7, saved_at=at, size=1, files=1, layout="manifest")
    return known.model_copy(update=more)


CASES: list[tuple[str, Save | None, Sight | None, str, int | None]] = [
    ("since the save", save(STOP - 6 * MINUTE), "found", "save", 6 * MINUTE),
    ("saved at the stop", save(STOP), "found", "save", 0),
    ("saved when it started", save(START), "found", "save", HOUR),
    ("its own by name", save(STOP - MINUTE, training_job="AWSBatch-1"), "found", "save", MINUTE),
    ("a clock a little ahead", save(STOP + 30 * SECOND), "found", "save", 0),
    ("a clock a minute ahead", save(STOP + MINUTE), "found", "save", 0),
    ("dated after the stop", save(STOP + MINUTE + 1), "found", "odd-save", None),
    ("an earlier attempt's", save(START - 1), "found", "start", HOUR),
    ("another's by name", save(STOP - MINUTE, training_job="AWSBatch-0"), "found", "start", HOUR),
    ("another's, after the stop", save(STOP + HOUR, training_job="AWSBatch-0"), "found", "start", HOUR),
    ("without a step", save(STOP - MINUTE, step=None), "found", "save", MINUTE),
    ("nothing saved", None, "none", "start", HOUR),
    ("no CheckpointConfig", None, "nowhere", "no-checkpoints", HOUR),
    ("the bucket was not read", None, "unknown", "unseen", None),
    ("an old look, the bucket was not read", save(STOP - MINUTE), "unknown", "unseen", None),
    ("nobody looked", None, None, "unseen", None),
    ("found, and gone", None, "found", "unseen", None),
]


@pytest.mark.parametrize(("_name", "found", "sight", "basis", "lost"), CASES, ids=[c[0] for c in CASES])
def test_what_is_lost_is_what_came_after_the_newest_save(
    _name: str, found: Save | None, sight: Sight | None, basis: str, lost: int | None
) -> None:
    loss = loss_of(ATTEMPT, found, sight, DISPATCHED)
    assert (loss.basis, loss.lost) == (basis, lost)
    assert (loss.ran, loss.held) == (HOUR, 4 * MINUTE)


@pytest.mark.parametrize("found", [None, save(STOP - MINUTE)])
def test_an_attempt_that_never_trained_lost_no_training_and_held_its_instances(found: Save | None) -> None:
    never = ATTEMPT.model_copy(update={"started_at": None})
    assert loss_of(never, found, "unknown", DISPATCHED) == Loss(
        basis="not-started", ran=0, lost=0, held=HOUR + 4 * MINUTE
    )
    assert loss_of(never, found, "none", None).held is None


def test_without_a_stop_nothing_is_known() -> None:
    unstopped = ATTEMPT.model_copy(update={"stopped_at": None})
    assert loss_of(unstopped, save(START), "found", DISPATCHED) == Loss(
        basis="no-stop", ran=None, lost=None, held=None
    )


def test_clocks_that_disagree_give_no_negative_time() -> None:
    odd = ATTEMPT.model_copy(update={"stopped_at": START - SECOND})
    loss = loss_of(odd, None, "none", START + SECOND)
    assert (loss.ran, loss.lost, loss.held) == (0, 0, 0)


# --- the record -------------------------------------------------------------------------------------------

RECORD = JobRecord(
    job="j",
    arn="a/j",
    name="n",
    queue=QUEUE,
    created_at=0,
    share="background",
    instance_type="ml.g5.12xlarge",
    instance_count=2,
)


def told(found: Save | None, sight: Sight | None, record: JobRecord = RECORD, **attempt: object) -> object:
    one = ATTEMPT.model_copy(update=attempt)
    fact = measure_fact(record, one, loss_of(one, found, sight, DISPATCHED), found, Policy(), STOP)
    return fact.reason


def test_the_figures_are_gpus_times_time() -> None:
    found = save(STOP - 6 * MINUTE)
    fact = measure_fact(RECORD, ATTEMPT, loss_of(ATTEMPT, found, "found", DISPATCHED), found, Policy(), STOP)
    assert (fact.key, fact.kind, fact.at) == (f"preemption-measure#j#{TRAINING}", "preemption-measure", STOP)
    assert fact.figures == {
        "kind": "unknown",
        "attempt": TRAINING,
        "basis": "save",
        "instance_type": "ml.g5.12xlarge",
        "instances": 2,
        "seconds": 3600,
        "gpu_seconds": 8 * 3600,
        "lost_seconds": 360,
        "lost_gpu_seconds": 8 * 360,
        "held_seconds": 240,
        "held_gpu_seconds": 8 * 240,
        "step": 7,
        "saved_at": STOP - 6 * MINUTE,
        "save": "step-7",
    }


@pytest.mark.parametrize("update", [{"instance_type": "ml.new.xlarge"}, {"instance_count": None}])
def test_gpus_that_are_not_known_give_no_figure(update: dict[str, object]) -> None:
    record = RECORD.model_copy(update=update)
    loss = loss_of(ATTEMPT, None, "none", DISPATCHED)
    figures = measure_fact(record, ATTEMPT, loss, None, Policy(), STOP).figures
    assert (figures["lost_seconds"], figures["lost_gpu_seconds"], figures["gpu_seconds"]) == (
        3600,
        None,
        None,
    )


def test_a_loss_that_is_not_known_has_its_bound() -> None:
    loss = loss_of(ATTEMPT, None, "unknown", DISPATCHED)
    figures = measure_fact(RECORD, ATTEMPT, loss, None, Policy(), STOP).figures
    assert (figures["lost_seconds"], figures["lost_gpu_seconds"]) == (None, None)
    assert (figures["seconds"], figures["gpu_seconds"]) == (3600, 8 * 3600)
    assert "step" not in figures


def test_it_says_so_in_words() -> None:
    assert told(save(STOP - 6 * MINUTE), "found") == "lost 6 min (0.80 GPU-hours): since the save of step 7"
    assert told(save(STOP - MINUTE, step=None), "found") == "lost 1 min (0.13 GPU-hours): since the save"
    assert told(None, "none") == "lost 1 h (8.00 GPU-hours): all of the attempt, it had saved nothing"
    assert told(save(START - 1), "found") == (
        "lost 1 h (8.00 GPU-hours): all of the attempt, it had saved nothing, "
        "the newest save of step 7 is from before it"
    )
    assert told(None, "nowhere") == (
        "lost 1 h (8.00 GPU-hours): all of the attempt, the job has no CheckpointConfig"
    )
    assert told(None, "unknown") == ("lost 1 h (8.00 GPU-hours) at most: what it had saved could not be read")
    assert told(save(STOP + HOUR), "found") == (
        "lost 1 h (8.00 GPU-hours) at most: its newest save is dated after the stop"
    )
    assert told(None, "none", started_at=None) == (
        "no training lost: it had not started to train, "
        "and had held its instances for 1 h 4 min (8.53 GPU-hours)"
    )
    assert told(None, "none", stopped_at=None) == (
        "what was lost is not known: Batch never told when the attempt stopped"
    )


def test_it_says_what_it_cannot_know_of_the_instances() -> None:
    new = RECORD.model_copy(update={"instance_type": "ml.new.xlarge"})
    assert str(told(None, "none", new)).startswith("lost 1 h (GPUs of ml.new.xlarge unknown): ")
    untyped = RECORD.model_copy(update={"instance_type": None})
    assert str(told(None, "none", untyped)).startswith("lost 1 h (GPUs of its instance type unknown): ")
    uncounted = RECORD.model_copy(update={"instance_count": None})
    assert str(told(None, "none", uncounted)).startswith("lost 1 h (number of instances unknown): ")
