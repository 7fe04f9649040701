"""What one look at a checkpoint URI costs, and whether its memory grows with the objects there."""

import json
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import islice
from time import process_time
from typing import Any

from sharewarden.domain.checkpoints import ObjectSeen
from sharewarden.usecases.checkpoints import Looked, newest
from sharewarden_tools.memory import MemoryBatch, MemoryClock

from .memory import memory_runtime
from .pool import START
from .section import Section

PAGE = 1000
RANKS = 8
MIB = 1_048_576

Row = dict[str, str | int | float]


def checkpoints(objects: tuple[int, int]) -> Section:
    rows = [row for name, keys in LAYOUTS.items() for row in _rows(name, keys, objects)]
    return Section(
        "Looking for the newest complete checkpoint",
        "CPU time of one look, the calls to S3 that it makes, and the most memory it holds; a memory ratio "
        "near 1.00 means that ten times the objects need no more",
        "S3: it lists what does not exist, made up page by page in the order of names, and answers at once",
        rows,
    )


def _rows(name: str, keys: Callable[[int], str], objects: tuple[int, int]) -> Iterator[Row]:
    least = 0.0
    for number in objects:
        seconds, calls = _timed(keys, number)
        most = _peak(keys, number)
        least = least or most
        yield {
            "layout": name,
            "objects": number,
            "pages": calls["pages"],
            "manifests": calls["read"],
            "ms": seconds * 1000,
            "MiB": most / MIB,
            "memory against the first": most / least,
        }


def _timed(keys: Callable[[int], str], number: int) -> tuple[float, dict[str, int]]:
    store = MadeUp(keys, number)
    began = process_time()
    _look(store)
    return process_time() - began, store.calls


def _peak(keys: Callable[[int], str], number: int) -> int:
    store = MadeUp(keys, number)
    tracemalloc.start()
    try:
        _look(store)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _look(store: "MadeUp") -> Looked:
    clock = MemoryClock(START)
    runtime = memory_runtime(clock, MemoryBatch(clock))
    object.__setattr__(runtime, "checkpoints", store)
    looked = newest(runtime, "s3://bucket/run", (), START)
    assert looked.save is not None, "there is a complete one"
    assert not looked.partial, "it saw everything"
    return looked


def _ours(number: int) -> str:
    """Every set has a model and a manifest of each rank."""
    step, within = divmod(number, 2 * RANKS)
    rank, file = divmod(within, 2)
    name = ("_SAVED.json", "model.pt")[file]
    return f"step-{step:012d}-aaaaaaaa/rank-{rank:05d}-of-{RANKS:05d}/{name}"


_TRAINER_FILES = ("model.safetensors", "optimizer.pt", "rng_state.pth", "trainer_state.json")


def _trainer(number: int) -> str:
    step, within = divmod(number, 4)
    return f"checkpoint-{step}/{_TRAINER_FILES[within]}"


LAYOUTS: dict[str, Callable[[int], str]] = {
    "ours, 8 ranks": _ours,
    "Hugging Face Trainer": _trainer,
    "single files": lambda number: f"ckpt-{number}.pt",
    "no layout": lambda number: f"ckpt-1.pt/../{number}" if number else "ckpt-1.pt",
}


class MadeUp:
    """Checkpoints whose objects are named when they are listed: nothing of them lies in memory."""

    def __init__(self, keys: Callable[[int], str], number: int) -> None:
        self._keys = keys
        self._number = number
        self.calls = {"pages": 0, "read": 0}

    def pages(self, uri: str) -> Iterator[tuple[ObjectSeen, ...]]:
        below = uri.removeprefix("s3://bucket/run").removeprefix("/")
        found = (key for key in map(self._keys, range(self._number)) if key.startswith(below))
        seen = (ObjectSeen(key.removeprefix(below), 5, START - 60_000, '"etag"') for key in found)
        while page := tuple(islice(seen, PAGE)):
            self.calls["pages"] += 1
            yield page

    def read(self, _uri: str, key: str, _most: int) -> bytes:
        self.calls["read"] += 1
        folder, part, _ = key.split("/")
        step, rank = int(folder.split("-")[1]), int(part.split("-")[1])
        made: dict[str, Any] = {"step": step, "rank": rank, "world_size": RANKS, "files": {"model.pt": 5}}
        return json.dumps({"format": 1, "saved_at": START - 60_000, **made}).encode()
