"""What SageMaker uploads, file by file in any order during saves, is taken for complete only if it is."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from sharewarden_checkpoint import Saver, Shard

from tests.training import kit
from tests.training.kit import FILES, content, is_whole, shards


class Sync:
    """The checkpoint folder's copy in S3. An object is what its file was at one moment; deletions follow."""

    def __init__(self, local: Path, chance: random.Random) -> None:
        self.local, self.chance = local, chance
        self.objects: dict[str, bytes] = {}

    def some(self) -> None:
        """Some files, in no order, some of them in the middle of being written."""
        files = {
            path.relative_to(self.local).as_posix(): path for path in self.local.rglob("*") if path.is_file()
        }
        for name in self.chance.sample(sorted(self.objects), len(self.objects)):
            if name not in files and self.chance.random() < 0.5:
                del self.objects[name]
        for name in self.chance.sample(sorted(files), self.chance.randint(0, min(8, len(files)))):
            self.objects[name] = files[name].read_bytes()

    def download(self, folder: Path) -> Path:
        """What the next attempt's container starts with."""
        for name, body in self.objects.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(body)
        return folder


def write(folder: Path, step: int, by: str, rank: int, between: Callable[[], None]) -> None:
    for name in FILES:
        (folder / name).parent.mkdir(exist_ok=True)
        data = content(step, name, rank, by)
        (folder / name).write_bytes(data[: len(data) // 2] + bytes(len(data) - len(data) // 2))
        between()  # its size is right already, its content is not
        (folder / name).write_bytes(data)
        between()


@pytest.mark.parametrize("world_size", [1, 2])
@pytest.mark.parametrize("seed", range(12))
def test_law_08_a_set_in_s3_is_whole_and_of_one_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, world_size: int
) -> None:
    chance = random.Random(seed)
    sync = Sync(tmp_path / "0", chance)
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (fsync(descriptor), sync.some())[0])
    found = 0
    for attempt in range(8):
        local = sync.download(tmp_path / f"{attempt}")
        local.mkdir(exist_ok=True)
        sync.local = local
        found += check(local, attempt, world_size)
        newest = Saver(local).latest()
        first = newest.step + 1 if newest else 0
        savers = [Saver(local, keep=2, shard=shard) for shard in run_of(attempt, world_size)]
        for step in range(first, first + chance.randint(1, 4)):
            for saver in savers:
                with saver.save(step) as folder:
                    write(folder, step, f"{attempt}", saver.shard.rank, sync.some)
            check(sync.download(tmp_path / "look"), attempt + 1, world_size)
            shutil.rmtree(tmp_path / "look", ignore_errors=True)
    assert found >= 2, "hardly anything was uploaded"


def run_of(attempt: int, world_size: int) -> list[Shard]:
    return shards(world_size, f"attempt {attempt}")


def check(folder: Path, attempts: int, world_size: int) -> bool:
    newest = Saver(folder).latest()
    if newest is None:
        return False
    for shard in shards(world_size):
        part = shard.part(newest.folder)
        wholes = [is_whole(part, newest.step, shard.rank, f"{attempt}") for attempt in range(attempts)]
        assert any(wholes), f"{part} mixes attempts, or is torn"
    return True


def test_the_kit_tells_a_torn_state(tmp_path: Path) -> None:
    kit.save(Saver(tmp_path), 7)
    (folder,) = tmp_path.iterdir()
    assert is_whole(folder, 7)
    (folder / "model.bin").write_bytes(content(6, "model.bin"))
    assert not is_whole(folder, 7)
