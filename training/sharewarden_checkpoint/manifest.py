"""``_SAVED.json``: what a part of a checkpoint consists of. Described in docs/checkpoint-format.md."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path, PurePosixPath
from typing import Any

NAME = "_SAVED.json"
FORMAT = 1
#: A manifest from further ahead than this is distrusted: no clock skew between two hosts explains it, and one
#: less strict would let a broken clock's set be the newest for ever.
MOST_AHEAD_MS = 3_600_000


@dataclass(frozen=True)
class Manifest:
    """One rank's part of the set of one step. Times are epoch ms, durations ms."""

    step: int
    saved_at: int
    files: dict[str, int]
    """Relative POSIX path of every file but this one -> size in bytes."""
    rank: int = 0
    world_size: int = 1
    save_ms: int = 0
    """From the start of the save to this manifest."""
    previous_saved_at: int | None = None
    """Of the save before, by the same process."""
    typical_interval_ms: int | None = None
    """Median distance between the last saves of the process."""
    reason: str = "script"
    """Why it was saved: ``interval``, ``request``, ``stop``, or ``script`` where the script chose to."""
    training_job: str | None = None
    """Name of the SageMaker training job, one an attempt."""
    resumed_from: int | None = None
    """Step of the set that the process read last before this save."""

    def to_json(self) -> bytes:
        head = {"format": FORMAT, "saved_at_text": rfc3339(self.saved_at)}
        return json.dumps(head | asdict(self), indent=1, sort_keys=True).encode()

    @classmethod
    def from_json(cls, text: bytes) -> Manifest:
        """Raises ValueError for all that is not a manifest of this format. Unknown members are ignored."""
        data = json.loads(text)
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ValueError(f"not a manifest of format {FORMAT}")
        _check(data)
        return cls(**{name: data[name] for name in cls.__dataclass_fields__ if name in data})


def read_whole(folder: Path) -> Manifest | None:
    """The manifest in ``folder`` if each file that it names is there with its size. Never raises."""
    try:
        manifest = Manifest.from_json((folder / NAME).read_bytes())
        whole = all(_size(folder / name) == size for name, size in manifest.files.items())
    except (OSError, ValueError, RecursionError):
        return None
    return manifest if whole else None


def sizes(folder: Path) -> dict[str, int]:
    """Relative POSIX path -> size of every file below ``folder``."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in found}


def rfc3339(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, timezone.utc).isoformat(timespec="milliseconds")


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None


def _check(data: dict[str, Any]) -> None:
    for name, least in (("step", 0), ("saved_at", 0), ("rank", 0), ("world_size", 1)):
        if not _is_number(data.get(name), least):
            raise ValueError(f"{name} is no number from {least}")
    files = data.get("files")
    if not isinstance(files, dict) or not all(_is_inside(n) and _is_number(s, 0) for n, s in files.items()):
        raise ValueError("files is no map of relative paths to sizes")


def _is_number(value: object, least: int) -> bool:
    return type(value) is int and least <= value < 2**63


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and path.name != ""
