"""When a save is due, what the manifest tells, and that a failed save leaves everything as it was."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sharewarden_checkpoint import Manifest, Saver
from sharewarden_checkpoint.manifest import NAME
from sharewarden_checkpoint.saver import Clock

from tests.training.kit import environment, save

START = 1_800_000_000.0


@dataclass
class Hands:
    """Of a clock that stands until it is moved."""

    at: float = field(default=0.0)

    def clock(self) -> Clock:
        return Clock(wall=lambda: START + self.at, steady=lambda: self.at)


def manifest(saver: Saver) -> Manifest:
    newest = saver.latest()
    assert newest is not None
    return Manifest.from_json((newest.folder / NAME).read_bytes())


def test_a_save_is_due_when_the_interval_has_passed_since_the_last(tmp_path: Path) -> None:
    hands = Hands()
    saver = Saver(tmp_path, every=600, clock=hands.clock())
    due = {}
    for step, at in enumerate([0, 599, 600, 601, 1199, 1200, 1201]):
        hands.at = at
        due[at] = saver.should_save(step)
        if due[at]:
            save(saver, step)
    assert [at for at, is_due in due.items() if is_due] == [600, 1200]


def test_a_wall_clock_that_jumps_moves_no_interval(tmp_path: Path) -> None:
    wall, steady = Hands(), Hands()
    saver = Saver(tmp_path, every=600, clock=Clock(wall.clock().wall, steady.clock().steady))
    wall.at = 100_000
    assert not saver.should_save(1)
    wall.at, steady.at = -100_000, 600
    assert saver.should_save(1)


def test_the_interval_counts_from_the_end_of_a_save(tmp_path: Path) -> None:
    """A save that takes longer than the interval must not be followed by the next at once."""
    hands = Hands()
    saver = Saver(tmp_path, every=60, clock=hands.clock())
    hands.at = 60
    with saver.save(1):
        hands.at = 200
    hands.at = 259
    assert not saver.should_save(2)
    hands.at = 260
    assert saver.should_save(2)


def test_the_manifest_tells_the_interval_and_the_length_of_saves(tmp_path: Path) -> None:
    hands = Hands()
    saver = Saver(tmp_path, clock=hands.clock())
    told = []
    for step, at in enumerate([0, 100, 200, 500]):
        hands.at = at
        with saver.save(step):
            hands.at += 3
        found = manifest(saver)
        told.append((found.save_ms, found.previous_saved_at, found.typical_interval_ms))
    start = int(START * 1000)
    assert told == [
        (3000, None, None),
        (3000, start + 3_000, 100_000),
        (3000, start + 103_000, 100_000),
        (3000, start + 203_000, 100_000),
    ]


def test_the_manifest_tells_the_job_and_where_it_went_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINING_JOB_NAME", "AWSBatchfirst")
    saver = Saver(tmp_path)
    assert saver.latest() is None
    save(saver, 5)
    assert (manifest(saver).training_job, manifest(saver).resumed_from) == ("AWSBatchfirst", None)
    monkeypatch.setenv("TRAINING_JOB_NAME", "AWSBatchsecond")
    second = Saver(tmp_path)
    second.latest()
    save(second, 9)
    assert (manifest(second).training_job, manifest(second).resumed_from) == ("AWSBatchsecond", 5)


@pytest.mark.parametrize(("every", "reason"), [(0.0, "interval"), (600.0, "script")])
def test_the_manifest_tells_why(tmp_path: Path, every: float, reason: str) -> None:
    saver = Saver(tmp_path, every=every)
    save(saver, 1)
    assert manifest(saver).reason == reason


def test_no_step_is_saved_twice(tmp_path: Path) -> None:
    saver = Saver(tmp_path, every=0)
    save(saver, 1)
    assert not saver.should_save(1)
    assert saver.should_save(2)


def fail_while_saving(saver: Saver, error: BaseException) -> None:
    with saver.save(2) as folder:
        (folder / "model.bin").write_bytes(b"half")
        raise error


@pytest.mark.parametrize("error", [OSError("No space left on device"), KeyboardInterrupt()])
def test_a_save_that_fails_is_not_there_and_is_due_again(tmp_path: Path, error: BaseException) -> None:
    saver = Saver(tmp_path, every=0)
    save(saver, 1)
    with pytest.raises(type(error)):
        fail_while_saving(saver, error)
    assert saver.should_save(2)
    assert [path.name.split("-")[1] for path in tmp_path.iterdir()] == ["000000000001"]


def test_local_saving_needs_the_standard_library_alone(tmp_path: Path) -> None:
    """Without site-packages there is no boto3, torch or anything else."""
    code = (
        "import sys; from sharewarden_checkpoint import Saver\n"
        "with Saver(sys.argv[1]) as saver:\n"
        "    with saver.save(3) as folder: (folder / 'x').write_text('x')\n"
        "    print(saver.latest().step)"
    )
    command = [sys.executable, "-S", "-c", code, str(tmp_path)]
    ran = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    assert ran.stdout == "3\n"
