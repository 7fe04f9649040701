"""The files a training job of the lab saves, as the training helper does (docs/checkpoint-format.md)."""

from __future__ import annotations

import json

from .objects import ObjectStore

MANIFEST = "_SAVED.json"
WEIGHTS = "weights.bin"


def save(objects: ObjectStore, uri: str, step: int, saved_at: int, training_job: str) -> None:
    """Write weights, then the manifest. A step is one second of training; a set's name is used once."""
    folder = f"{uri}step-{step:012d}-{saved_at:x}/"
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
    }
    objects.put(folder + MANIFEST, json.dumps(manifest).encode())


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
