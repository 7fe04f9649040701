"""``_SAVED.json``: what one part of a set of ours consists of (docs/checkpoint-format.md).

The same manifests count as in ``sharewarden_checkpoint``: what a training will not load is no checkpoint.
"""

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from .checkpoints import AHEAD, Save
from .layouts import MANIFEST
from .listing import FUTURE, Gathered

#: Bytes of a manifest that are read: it names some ten thousand files then.
MOST_BYTES = 1_048_576
#: Of the name of a training job (CreateTrainingJob).
LONGEST_NAME = 63


def _number_or_none(value: object) -> object:
    return value if type(value) is int and 0 <= value < 2**63 else None


def _name_or_none(value: object) -> object:
    return value if isinstance(value, str) and 0 < len(value) <= LONGEST_NAME else None


def _inside(name: str) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.name:
        raise ValueError("no relative path")
    return str(path)


Number = Annotated[int, Field(strict=True, ge=0, lt=2**63)]
Optional = Annotated[int | None, BeforeValidator(_number_or_none)]


class Manifest(BaseModel):
    """One rank's part of a set. What only informs is None where it makes no sense."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    format: Literal[1]
    step: Number
    saved_at: Number
    files: dict[Annotated[str, BeforeValidator(_inside)], Number]
    """Path below the part's folder -> size in bytes."""
    rank: Number
    world_size: Annotated[Number, Field(ge=1)]
    save_ms: Optional = None
    typical_interval_ms: Optional = None
    resumed_from: Optional = None
    training_job: Annotated[str | None, BeforeValidator(_name_or_none)] = None


class Part(NamedTuple):
    """Where a part lies, below the set's folder: empty, or with a slash at its end."""

    folder: str
    rank: int
    world: int


def worlds_of(gathered: Gathered) -> list[tuple[Part, ...]]:
    """The ways in which the set may be whole: all parts of each world whose manifests are all there."""
    if gathered.worlds(MANIFEST):
        return [(Part("", 0, 1),)]
    return [tuple(_part(rank, world) for rank in range(world)) for world in gathered.worlds("")]


def _part(rank: int, world: int) -> Part:
    return Part(f"rank-{rank:05d}-of-{world:05d}/", rank, world)


def parse(body: bytes) -> Manifest | None:
    """The manifest, or None for what is none of this format."""
    try:
        return Manifest.model_validate_json(body)
    except ValidationError:
        return None


def fault(manifest: Manifest, step: int | None, part: Part, now: int) -> str | None:
    """Why it does not count as the manifest of that part; None when it does."""
    if (manifest.step, manifest.rank, manifest.world_size) != (step, part.rank, part.world):
        return f"{part.folder}{MANIFEST} is of another step, rank or world"
    return FUTURE if manifest.saved_at > now + AHEAD else None


def files_of(found: Mapping[Part, Manifest]) -> dict[str, int]:
    """Every file that the manifests name, by its path below the set's folder, with its size."""
    return {part.folder + name: size for part, one in found.items() for name, size in one.files.items()}


def save_of(gathered: Gathered, manifests: Iterable[Manifest]) -> Save:
    """The save that they tell of: over before S3 had its last file, whatever the training's clock says."""
    all_of = list(manifests)
    newest = max(all_of, key=lambda one: one.saved_at)
    return gathered.save().model_copy(
        update={
            "saved_at": min(newest.saved_at, gathered.modified_at),
            "took": max((one.save_ms for one in all_of if one.save_ms is not None), default=None),
            "interval": newest.typical_interval_ms,
            "training_job": newest.training_job,
            "resumed_from": newest.resumed_from,
        }
    )
