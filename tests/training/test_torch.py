"""The examples really train, are stopped and killed, and end with the weights of a run that was left alone.

Run by `make training`, whose environment has PyTorch, transformers, and the package installed.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sharewarden_checkpoint import Manifest, Saver
from sharewarden_checkpoint.manifest import NAME

from tests.training.kit import ROOT

pytestmark = pytest.mark.torch
PYTHON = ROOT / os.environ.get("TRAINING_VENV", ".venvs/training") / "bin" / "python"
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


@contextmanager
def running(script: str, folder: Path, steps: int, *more: str) -> Iterator[subprocess.Popen[str]]:
    command = [str(PYTHON), str(ROOT / "examples" / "training" / f"train_{script}.py")]
    options = ["--folder", str(folder / "checkpoints"), "--steps", str(steps), *more]
    if script == "huggingface":
        options += ["--output", str(folder / "output")]
    with subprocess.Popen(
        [*command, *options], env=ENVIRONMENT, cwd=folder, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process


def line(process: subprocess.Popen[str], start: str) -> str:
    """The next line of its output that begins so."""
    assert process.stdout is not None
    for found in process.stdout:
        if found.startswith(start):
            return found.removeprefix(start).strip()
    raise AssertionError(f"it ended without a line that begins with {start!r}")


def weights(script: str, folder: Path, steps: int) -> str:
    folder.mkdir(exist_ok=True)
    with running(script, folder, steps) as process:
        return line(process, "weights")


def newest(folder: Path) -> Manifest:
    found = Saver(folder / "checkpoints").latest()
    assert found is not None
    return Manifest.from_json((found.folder / NAME).read_bytes())


def test_law_08_pytorch_killed_twice_and_stopped_once_ends_with_the_same_weights(tmp_path: Path) -> None:
    steps, folder = 150, tmp_path / "hurt"
    folder.mkdir()
    often = ("--every", "0.1", "--pace", "0.01")
    for _ in range(2):
        with running("torch", folder, steps, *often) as process:
            first = int(line(process, "goes on from step"))
            saved = int(line(process, "saved step").split(",")[0])
            process.send_signal(signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL
        assert first < saved <= newest(folder).step
    with running("torch", folder, steps, "--pace", "0.01") as process:
        assert int(line(process, "goes on from step")) == (before := newest(folder).step)
        process.send_signal(signal.SIGTERM)
        stopped = int(line(process, "stopped after step"))
    assert process.returncode == 0
    assert before < stopped == newest(folder).step < steps
    assert (newest(folder).reason, newest(folder).resumed_from) == ("stop", before)
    assert weights("torch", folder, steps) == weights("torch", tmp_path / "left-alone", steps)
    assert newest(folder).resumed_from == stopped


def test_law_08_trainer_stopped_and_killed_goes_on_from_its_step(tmp_path: Path) -> None:
    steps, folder = 60, tmp_path / "hurt"
    folder.mkdir()
    with running("huggingface", folder, steps, "--pace", "0.02") as process:
        line(process, "step 5")
        process.send_signal(signal.SIGTERM)
        stopped = int(line(process, "stopped after step"))
    assert 5 <= stopped == newest(folder).step < steps
    with running("huggingface", folder, steps, "--every", "0.1", "--pace", "0.02") as process:
        assert int(line(process, "step")) == stopped + 1
        line(process, f"step {stopped + 15}")
        process.send_signal(signal.SIGKILL)
    assert stopped < (killed := newest(folder).step) < steps
    assert newest(folder).resumed_from == stopped
    with running("huggingface", folder, steps) as process:
        assert int(line(process, "step")) == killed + 1
        hurt = line(process, "weights")
    assert hurt == weights("huggingface", tmp_path / "left-alone", steps)


RANKS = """
import sys, torch
import torch.distributed as dist
from sharewarden_checkpoint import Saver
from sharewarden_checkpoint.torch import load, save, shard, should_save, stopping
dist.init_process_group("gloo")
mine = torch.nn.Linear(2, 2)
with Saver(sys.argv[1], every=3600, shard=shard()) as saver:
    done = load(saver, model=mine) or 0
    if done:
        assert (mine.weight == dist.get_rank() + done).all(), mine.weight
    for step in range(done + 1, 5):
        torch.nn.init.constant_(mine.weight, dist.get_rank() + step)
        if dist.get_rank() == 1 and step == done + 2:  # one host hears of the stop first
            import os, signal
            os.kill(os.getpid(), signal.SIGTERM)
        if should_save(saver, step):
            save(saver, step, model=mine)
        if stopping(saver):
            break
if dist.get_rank() == 0:
    print("from", done, "to", step, flush=True)
dist.destroy_process_group()
"""


def test_two_ranks_save_the_same_step_and_go_on_from_it(tmp_path: Path) -> None:
    """SIGTERM reaches one of them: both save, each its part; the next start loads each its own."""
    (tmp_path / "ranks.py").write_text(RANKS)
    launch = [
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--local-addr",
        "127.0.0.1",
        "--nproc-per-node",
        "2",
    ]
    told = [
        subprocess.run(
            [PYTHON, *launch, "ranks.py", "checkpoints"],
            env=ENVIRONMENT, cwd=tmp_path, capture_output=True, text=True, check=False,
            timeout=120,
        )
        for _ in range(2)
    ]  # fmt: skip
    assert [each.stdout for each in told] == ["from 0 to 2\n", "from 2 to 4\n"], (
        told[0].stderr + told[1].stderr
    )
    found = Saver(tmp_path / "checkpoints").latest()
    assert found is not None
    assert sorted(path.name for path in found.folder.iterdir()) == [
        "rank-00000-of-00002",
        "rank-00001-of-00002",
    ]
