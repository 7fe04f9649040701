"""Saves in processes that are killed by SIGKILL, and checks after each kill what is found.

    python -m tests.training.killed (at-every-call | at-random | ranks-at-random) FOLDER SEED SECONDS

A program of its own since it forks hundreds of times. Prints how many processes were killed.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sharewarden_checkpoint import Requests, Saver, Shard
from sharewarden_checkpoint.manifest import NAME
from sharewarden_checkpoint.sets import PART

from tests.training.kit import is_whole, save, shards

KEEP = 2


def saver_in(folder: Path, shard: Shard | None = None) -> Saver:
    return Saver(folder, keep=KEEP, shard=shard, requests=Requests())


def train(saver: Saver, steps: int, done: Callable[[int], None], meet: Callable[[], object] = int) -> None:
    """Go on from what is found, as a script does; ``meet`` the other ranks, as a training step does."""
    newest = saver.latest()
    first = newest.step + 1 if newest else 0
    for step in range(first, first + steps):
        meet()
        save(saver, step)
        done(step)


def fork(work: Callable[[Callable[[int], None]], None]) -> tuple[int, int]:
    """Process id, and the end of a pipe that gets a byte for each step that was done."""
    reading, writing = os.pipe()
    if child := os.fork():
        os.close(writing)
        return child, reading
    with suppress(BaseException):
        work(lambda _: os.write(writing, b"."))
        os._exit(0)
    os._exit(1)


def collect(child: int, reading: int) -> tuple[int, int]:
    """Wait status, and how many steps were done."""
    _, status = os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as pipe:
        return status, len(pipe.read())


def die_at_call(number: int) -> None:
    """SIGKILL this process in place of its so manieth call that touches the disk."""
    left = number

    def count(event: str = "os.fsync", _arguments: object = None) -> None:
        nonlocal left
        if event == "open" or event.startswith(("os.", "shutil.")):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    fsync = os.fsync
    os.fsync = lambda descriptor: (count(), fsync(descriptor))[1]
    sys.addaudithook(count)


def check(folder: Path, least: int, most: int, what: str) -> int:
    """The newest complete set is whole, and no older than what was done; -1 if there is none."""
    newest = saver_in(folder).latest()
    step = newest.step if newest else -1
    assert least <= step <= most, f"{what}: done up to {least}, begun up to {most}, found {step}"
    for part in sorted(newest.folder.glob("rank-*")) or [newest.folder] if newest else []:
        match = PART.fullmatch(part.name)
        assert is_whole(part, step, int(match[1]) if match else 0), f"{what}: {part} is torn"
    return step


def at_every_call(root: Path, _seed: int, seconds: float) -> int:
    """Four saves, two deletions: killed at the first call, at the second, and so on; then gone on with."""
    end = time.monotonic() + seconds
    for number in range(1, sys.maxsize):
        assert time.monotonic() < end, f"only {number} calls in {seconds} s"
        folder = root / str(number)

        def work(done: Callable[[int], None], folder: Path = folder, number: int = number) -> None:
            saver = saver_in(folder)
            die_at_call(number)
            train(saver, 4, done)

        status, done = collect(*fork(work))
        if status == 0:
            return number - 1
        assert os.WTERMSIG(status) == signal.SIGKILL
        check(folder, done - 1, done, f"call {number}")
        status, _ = collect(*fork(lambda done, folder=folder: train(saver_in(folder), 3, done)))
        assert status == 0
        left = sorted(path.name for path in folder.iterdir())
        assert len(left) == KEEP, f"call {number}: {left}"
    raise AssertionError


def at_random(root: Path, seed: int, seconds: float) -> int:
    """One folder, in which one process after the other goes on until it is killed."""
    chance, end = random.Random(seed), time.monotonic() + seconds
    found, killed = -1, 0
    while time.monotonic() < end:
        child, pipe = fork(lambda done: train(saver_in(root), 1000, done))
        time.sleep(chance.uniform(0, 0.06))
        os.kill(child, signal.SIGKILL)
        status, done = collect(child, pipe)
        assert os.WTERMSIG(status) == signal.SIGKILL
        found = check(root, found + done, found + done + 1, f"seed {seed}, kill {killed}")
        killed += 1
    return killed


def ranks_at_random(root: Path, seed: int, seconds: float) -> int:
    """Three ranks of one set, each killed at a moment of its own."""
    chance, end = random.Random(seed), time.monotonic() + seconds
    found, killed = -1, 0
    while time.monotonic() < end:
        meet = multiprocessing.get_context("fork").Barrier(3).wait
        ranks = [
            fork(lambda done, shard=shard, meet=meet: train(saver_in(root, shard), 1000, done, meet))
            for shard in shards(3, f"attempt {killed}")
        ]
        time.sleep(chance.uniform(0, 0.06))
        for child, _ in ranks:
            os.kill(child, signal.SIGKILL)
        done = [collect(*rank)[1] for rank in ranks]
        found = check(root, found + min(done), found + min(done) + 1, f"seed {seed}, kill {killed}")
        killed += 1
    return killed


def main() -> None:
    how, folder, seed, seconds = sys.argv[1:]
    way = {"at-every-call": at_every_call, "at-random": at_random, "ranks-at-random": ranks_at_random}[how]
    assert NAME == "_SAVED.json"
    print(way(Path(folder), int(seed), float(seconds)))


if __name__ == "__main__":
    main()
