"""States that tell whether they are whole, and processes that save them."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from sharewarden_checkpoint import Saver, Shard
from sharewarden_checkpoint.manifest import NAME

ROOT = Path(__file__).parents[2]
#: Name -> size; one in a folder, one empty.
FILES = {"model.bin": 70_000, "optimizer.bin": 30_000, "rank/state.bin": 5_000, "empty": 0}


def content(step: int, name: str, rank: int = 0, by: str = "") -> bytes:
    """Another one for each file, step, rank and process."""
    seed = hashlib.sha256(f"{step} {name} {rank} {by}".encode()).digest()
    return (seed * (FILES[name] // len(seed) + 1))[: FILES[name]]


def write(folder: Path, step: int, rank: int = 0, by: str = "") -> None:
    """In pieces, so that a kill can tear a file."""
    for name in FILES:
        (folder / name).parent.mkdir(exist_ok=True)
        data = content(step, name, rank, by)
        with (folder / name).open("wb", buffering=0) as file:
            for at in range(0, len(data), 16_384):
                file.write(data[at : at + 16_384])


def save(saver: Saver, step: int, by: str = "") -> None:
    with saver.save(step) as folder:
        write(folder, step, saver.shard.rank, by)


def is_whole(part: Path, step: int, rank: int = 0, by: str = "") -> bool:
    found = {path.relative_to(part).as_posix() for path in part.rglob("*") if path.is_file()}
    return found == {*FILES, NAME} and all(
        (part / name).read_bytes() == content(step, name, rank, by) for name in FILES
    )


def environment(**extra: str) -> dict[str, str]:
    """For a Python process that imports the package from the checkout."""
    path = os.pathsep.join([str(ROOT / "training"), str(ROOT)])
    return {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **extra}


def python(code: str, *arguments: str, **extra: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(command, env=environment(**extra), stdout=subprocess.PIPE, text=True)


def shards(world_size: int, run: str = "run") -> list[Shard]:
    return [Shard(rank, world_size, run) for rank in range(world_size)]
