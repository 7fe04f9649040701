"""Objects under a checkpoint URI, as tests lay them out."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from sharewarden.domain.policy import Policy
from sharewarden.usecases.checkpoints import Looked, listed, newest
from sharewarden_tools.memory_objects import MemoryCheckpoints

from tests.simulation.world import NOW, World, world

URI = "s3://ckpt/team/run"
MIB = 1_048_576


def manifest(step: int, files: Mapping[str, int] | None = None, **members: Any) -> bytes:
    """As the training helper writes it."""
    given = {
        "format": 1,
        "step": step,
        "saved_at": NOW - 1000,
        "files": {"model.pt": 5} if files is None else files,
        "rank": 0,
        "world_size": 1,
        "save_ms": 1200,
        "typical_interval_ms": 600_000,
        "training_job": "train-1",
        "resumed_from": None,
    }
    return json.dumps(given | members).encode()


def saved(step: int, once: str = "aaaa", *, at: int = NOW - 1000, body: bytes = b"model") -> dict[str, bytes]:
    """A whole set of one process."""
    folder = f"step-{step:012d}-{once}"
    return {f"{folder}/model.pt": body, f"{folder}/_SAVED.json": manifest(step, saved_at=at)}


def ranks(step: int, world_size: int, ranks: Iterable[int] | None = None) -> dict[str, bytes]:
    """A set of which these ranks (all, if not given) have saved their part."""
    made = {}
    for rank in range(world_size) if ranks is None else ranks:
        part = f"step-{step:012d}-bbbb/rank-{rank:05d}-of-{world_size:05d}"
        made[f"{part}/model.pt"] = b"model"
        made[f"{part}/_SAVED.json"] = manifest(step, rank=rank, world_size=world_size)
    return made


def trainer(step: int, *leave_out: str) -> dict[str, bytes]:
    """A folder of the Hugging Face Trainer."""
    names = {"trainer_state.json", "model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth"}
    return {f"checkpoint-{step}/{name}": b"12345" for name in names - set(leave_out)}


def place(objects: Mapping[str, bytes], policy: Policy | None = None, at: int = NOW) -> World:
    """A world with these objects, all written at that time."""
    made = world(policy=policy or Policy())
    lay(made, objects, at)
    return made


def lay(made: World, objects: Mapping[str, bytes], at: int) -> None:
    """Write the objects at that time, and turn the clock back to now."""
    now, made.clock.at = made.clock.at, at
    for key, body in objects.items():
        made.runtime.checkpoints.put(URI, key, body)
    made.clock.at = now


def store(made: World) -> MemoryCheckpoints:
    checkpoints = made.runtime.checkpoints
    assert isinstance(checkpoints, MemoryCheckpoints)
    checkpoints.buckets.setdefault("ckpt", {})
    return checkpoints


def look(made: World, *patterns: str, people: bool = False) -> Looked:
    store(made)
    return (listed if people else newest)(made.runtime, URI, patterns, made.clock.now())


def found(objects: Mapping[str, bytes], *patterns: str) -> Looked:
    return look(place(objects), *patterns)
