"""Killed at any point of a save: what is found again is whole, and no older than the last save that ended."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.training.kit import ROOT, environment


@pytest.mark.parametrize(
    ("how", "seed", "seconds", "least"),
    [
        ("at-every-call", 0, 120, 150),
        ("at-random", 1, 12, 80),
        ("at-random", 2, 12, 80),
        ("ranks-at-random", 3, 12, 50),
        ("ranks-at-random", 4, 12, 50),
    ],
)
def test_law_08_a_kill_costs_the_save_under_way_and_no_more(
    tmp_path: Path, how: str, seed: int, seconds: int, least: int
) -> None:
    """``killed.py`` checks after each of its kills; ``least`` is far below what two busy cores manage."""
    command = [sys.executable, "-m", "tests.training.killed", how, str(tmp_path), str(seed), str(seconds)]
    ended = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) >= least
