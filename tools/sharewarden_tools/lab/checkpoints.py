"""The files a training job of the lab saves, as the training helper does (docs/checkpoint-format.md)."""

from __future__ import annotations

import json
from typing import NamedTuple

from .objects import ObjectStore
from .world import Json

MANIFEST = "_SAVED.json"
WEIGHTS = "weights.bin"


class Request(NamedTuple):
    """A request to save; nobody waits for it after ``deadline``, in epoch ms."""

    id: str
    deadline: int


def save(
    objects: ObjectStore, uri: str, step: int, saved_at: int, training_job: str, resumed_from: int | None
) -> str:
    """Write weights, then the manifest. A step is one second of training; a set's name is used once.

    Returns that name. `resumed_from` is the step of the set that the training job began with, if it did.
    """
    name = f"step-{step:012d}-{saved_at:x}"
    folder = f"{uri}{name}/"
    weights = f"step {step}".encode()
    objects.put(folder + WEIGHTS, weights)
    manifest = {
        "format": 1,
        "step": step,
        "saved_at": saved_at,
        "files": {WEIGHTS: len(weights)},
        "rank": 0,
        "world_size": 1,
        "save_ms": 0,
        "training_job": training_job,
        "resumed_from": resumed_from,
    }
    objects.put(folder + MANIFEST, json.dumps(manifest).encode())
    return name


def requested(objects: ObjectStore, uri: str, training_job: str) -> Request | None:
    """The request that lies there for the training job, if it is one."""
    try:
        told = json.loads(objects.get(f"{uri}.sharewarden/requests/{training_job}.json"))
        return Request(str(told["request_id"]), int(told["deadline"]))
    except (ValueError, KeyError, TypeError):
        return None


def acknowledge(objects: ObjectStore, uri: str, training_job: str, request: Request, told: Json) -> None:
    """Say which save is the answer to the request: ``step``, ``saved_at`` and ``set``."""
    body = {"format": 1, "request_id": request.id, **told}
    objects.put(f"{uri}.sharewarden/acks/{training_job}/{request.id}.json", json.dumps(body).encode())


def newest_step(objects: ObjectStore, uri: str) -> int:
    """Step of the newest complete checkpoint below `uri`; 0 when there is none."""
    manifests = (objects.get(name) for name in objects.list(uri) if name.endswith("/" + MANIFEST))
    return max((_step(manifest) for manifest in manifests), default=0)


def _step(manifest: bytes) -> int:
    """The step that a manifest names; 0 for one that cannot be read."""
    try:
        return int(json.loads(manifest)["step"])
    except (ValueError, KeyError, TypeError):
        return 0
