"""As process 1 of a container would: SIGTERM reaches a script behind a shell, and its save is waited for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sharewarden_checkpoint import Saver

from tests.training.kit import environment
from tests.training.test_stop import TRAIN

FORWARD = [sys.executable, "-m", "sharewarden_checkpoint.forward"]


def start(*command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True)


def test_a_script_behind_a_shell_saves(tmp_path: Path) -> None:
    """The shell dies of the signal at once; whoever waited for it alone would kill the save."""
    script = f'{sys.executable} -c "$0" {tmp_path}; true'
    with start(*FORWARD, "sh", "-c", script, TRAIN) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "0\n"
        process.terminate()
        last = int(process.stdout.readline())
    newest = Saver(tmp_path).latest()
    assert newest is not None
    assert newest.step == last
    assert process.returncode == 128 + signal.SIGTERM


def test_it_ends_only_after_the_last_process_of_the_command() -> None:
    slow = "trap 'sleep 0.5; echo saved; exit' TERM; echo ready; while :; do sleep 0.05; done"
    with start(*FORWARD, "sh", "-c", 'sh -c "$0" & wait', slow) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.terminate()
        assert process.wait() == 128 + signal.SIGTERM
        os.set_blocking(process.stdout.fileno(), False)  # in a container nobody outlives process 1
        assert os.read(process.stdout.fileno(), 100) == b"saved\n"


@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137), ("sleep 9 >&- & exit 4", 4)]
)
def test_the_code_is_the_commands(script: str, code: int) -> None:
    assert subprocess.run([*FORWARD, "sh", "-c", script], env=environment(), check=False).returncode == code


def test_without_a_command_it_says_how() -> None:
    ran = subprocess.run(FORWARD, env=environment(), capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr[:6]) == (1, "usage:")
