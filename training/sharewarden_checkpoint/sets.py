"""Sets of checkpoint files in a folder: written whole, found, deleted.

    step-000000001200-5e1f09c4/            the set of one step, saved once
      model.pt  _SAVED.json                one process saves all of it, or
      rank-00000-of-00002/model.pt ...     each rank saves a part, with a manifest of its own
    .saving-...                            a part being written; never read

The name of a set is used for one save only; a part gets it by a rename once all its files are on the disk.
So each key that SageMaker uploads under ``step-...`` only ever has its final content, in whatever order it
uploads: a set in S3 whose manifests' files are all there, with their sizes, is whole.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from .manifest import MOST_AHEAD_MS, NAME, Manifest, read_whole

SAVING = ".saving-"
SET = re.compile(r"step-([0-9]{1,18})-[0-9a-z]{1,64}")
PART = re.compile(r"rank-([0-9]{1,9})-of-([0-9]{1,9})")


class Checkpoint(NamedTuple):
    """A complete set: its step and its folder."""

    step: int
    folder: Path


@dataclass(frozen=True)
class Shard:
    """Which part of a set this process writes: ``rank`` of ``world_size``.

    ``run`` is a text that all ranks share and that no other start of the training has; without it, the name
    of the SageMaker training job. ``sharewarden_checkpoint.torch.shard`` agrees on one between the ranks.
    """

    rank: int = 0
    world_size: int = 1
    run: str = field(default_factory=lambda: os.environ.get("TRAINING_JOB_NAME", "run"))

    def set_name(self, step: int) -> str:
        """One process takes a random name; ranks have to come to the same one without talking."""
        once = secrets.token_hex(4) if self.world_size == 1 else sha256(self.run.encode()).hexdigest()[:8]
        return f"step-{step:012d}-{once}"

    def part_name(self) -> str:
        return f"rank-{self.rank:05d}-of-{self.world_size:05d}"

    def part(self, folder: Path) -> Path:
        """Where this process's part of the set in ``folder`` is."""
        return folder if self.world_size == 1 else folder / self.part_name()

    def cares_for(self, rank: int) -> bool:
        """Is it this process that cleans up after ``rank``, maybe of a larger world before a restart?"""
        return rank % self.world_size == self.rank


class Part(NamedTuple):
    folder: Path
    step: int
    rank: int
    world_size: int

    def manifest(self, now: int) -> Manifest | None:
        """None unless it is whole, what its path says, and not from the future."""
        manifest = read_whole(self.folder)
        if manifest is None or manifest.saved_at > now + MOST_AHEAD_MS:
            return None
        same = (manifest.step, manifest.rank, manifest.world_size) == self[1:]
        return manifest if same else None


def newest(root: Path, now: int) -> Checkpoint | None:
    """The complete set of the highest step, of several the one saved last; None without one. Never raises."""
    found = [(saved_at, folder) for folder in _sets(root) if (saved_at := complete(folder, now)) is not None]
    if not found:
        return None
    _, folder = max(found, key=lambda each: (_step(each[1]), each[0], each[1].name))
    return Checkpoint(_step(folder), folder)


def complete(folder: Path, now: int) -> int | None:
    """When the last part of the set was saved; None while one of its parts is missing or not whole."""
    parts = {(part.rank, part.world_size): part for part in parts_of(folder)}
    for world_size in {world_size for _, world_size in parts}:
        if all((rank, world_size) in parts for rank in range(world_size)):
            manifests = [parts[rank, world_size].manifest(now) for rank in range(world_size)]
            whole = [manifest.saved_at for manifest in manifests if manifest]
            if len(whole) == world_size:
                return max(whole)
    return None


def parts_of(folder: Path) -> list[Part]:
    """Whole or not. None in an empty folder: a rank is just about to write the first."""
    inside = _folders(folder)
    named = [(path, match) for path in inside if (match := PART.fullmatch(path.name))]
    if named and not (folder / NAME).exists():
        return [Part(path, _step(folder), int(match[1]), int(match[2])) for path, match in named]
    return [Part(folder, _step(folder), 0, 1)] if any(_listed(folder)) else []


@contextmanager
def held(checkpoint: Checkpoint) -> Iterator[None]:
    """No ``prune``, of this process or another, deletes the set meanwhile (where the disk has locks)."""
    with ExitStack() as files:
        for part in parts_of(checkpoint.folder):
            with suppress(OSError):
                fcntl.flock(files.enter_context((part.folder / NAME).open("rb")), fcntl.LOCK_SH)
        yield


def start(root: Path, shard: Shard, name: str) -> Path:
    """An empty folder to write into. Removes what a killed process left in one."""
    root.mkdir(parents=True, exist_ok=True)
    for path in root.glob(f"{SAVING}{shard.part_name()}-*"):
        shutil.rmtree(path, ignore_errors=True)
    folder = root / f"{SAVING}{shard.part_name()}-{name}"
    folder.mkdir()
    return folder


def publish(written: Path, manifest: Manifest, part: Path) -> None:
    """Give what was written, and its manifest, their name: all at once, after everything is on the disk."""
    for path in written.rglob("*"):
        _sync(path)
    (written / NAME).write_bytes(manifest.to_json())
    _sync(written / NAME)
    _sync(written)
    part.parent.mkdir(exist_ok=True)
    shutil.rmtree(part, ignore_errors=True)  # a rank saves a step again, in the same run
    written.rename(part)
    _sync(part.parent)
    _sync(written.parent)


def prune(root: Path, shard: Shard, keep: int, now: int) -> None:
    """Delete this rank's parts of sets, complete or not, older than the ``keep`` newest to count on."""
    saved = {folder: _saved(folder, shard, now) for folder in _sets(root)}
    ages = sorted((_step(folder), saved_at) for folder, saved_at in saved.items() if saved_at is not None)
    for folder, saved_at in saved.items():
        if len(ages) >= keep and (_step(folder), saved_at or 0) < ages[-keep]:
            _delete_mine(folder, shard)


def _saved(folder: Path, shard: Shard, now: int) -> int | None:
    """When a set to count on was saved: a complete one, or one of this run, whose other ranks may be on other
    hosts or not done yet. The ranks go in step, so of those only the newest can be incomplete."""
    if folder.name != shard.set_name(_step(folder)):
        return complete(folder, now)
    manifest = read_whole(shard.part(folder))
    return manifest.saved_at if manifest else None


def _delete_mine(folder: Path, shard: Shard) -> None:
    for part in parts_of(folder):
        if shard.cares_for(part.rank) and not _is_read(part):
            shutil.rmtree(part.folder, ignore_errors=True)
    with suppress(OSError):  # it is not empty: another rank's part is in it
        folder.rmdir()


def _is_read(part: Part) -> bool:
    """Does a process hold it? An exclusive lock is to be had only while nobody does."""
    try:
        with (part.folder / NAME).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _sets(root: Path) -> list[Path]:
    return [path for path in _folders(root) if SET.fullmatch(path.name)]


def _step(folder: Path) -> int:
    return int(folder.name.split("-")[1])


def _folders(folder: Path) -> list[Path]:
    return [path for path in _listed(folder) if path.is_dir()]


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
