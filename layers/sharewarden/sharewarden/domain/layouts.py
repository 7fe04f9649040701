"""Which set an object belongs to, by its key alone, and which piece of it it is.

What is recognised without a pattern lies directly below the URI: further down there may be several runs, and
the newest of another run is not what a training resumes from.
"""

import re
from typing import NamedTuple

from .checkpoints import Layout
from .save_patterns import MOST_WORLD, Pattern

MANIFEST = "_SAVED.json"
TRAINER_STATE = "trainer_state.json"
#: Our own that belong to no set: parts being written, save requests (docs/checkpoint-format.md).
OWN = (".saving-", ".sharewarden/")
#: Of the training helper (docs/checkpoint-format.md).
SET_NAME = r"^step-([0-9]{1,18})-[0-9a-z]{1,64}$"
_SET = re.compile(SET_NAME)
_PART_MANIFEST = re.compile(rf"rank-([0-9]{{1,9}})-of-([0-9]{{1,9}})/{re.escape(MANIFEST)}")
#: Of the Trainer of transformers and of PEFT (transformers/utils/__init__.py, peft/utils/constants.py).
_HUGGING_FACE = re.compile(r"checkpoint-([0-9]{1,18})")
_WEIGHTS = {"model.safetensors", "pytorch_model.bin", "adapter_model.safetensors", "adapter_model.bin"}
_SHARD = re.compile(r"(model|pytorch_model)-([0-9]{1,6})-of-([0-9]{1,6})\.(safetensors|bin)")
_INDEX = re.compile(r"(model|pytorch_model)\.(safetensors|bin)\.index\.json")
WEIGHTS, SHARDS, INDEX = "weights", "shards of ", "index of "

_PYTORCH = re.compile(r"[^/.][^/]{0,250}\.(?:pt|pth|ckpt)")
#: A file of such a name is a part of something larger: alone it is no checkpoint.
_FRAGMENT = re.compile(
    r"(?<![a-z])(?:rank|shard|part|worker|node|host|proc|optim|optimizer|scheduler|scaler|rng|tmp|temp"
    r"|partial|of)(?![a-z])"
)
_SURE_STEP = re.compile(r"(?<![a-z])(?:step|steps|iter|iters|iteration)[-_=.]?([0-9]{1,18})(?![0-9])")
_LIKELY_STEP = re.compile(r"(?<![a-z])(?:epoch|ep|checkpoint|ckpt)[-_=.]?([0-9]{1,18})(?![0-9])")


class Piece(NamedTuple):
    """One of ``world`` pieces of a group; a set needs all of them."""

    group: str
    rank: int = 0
    world: int = 1


class Member(NamedTuple):
    """``piece`` is None for a file that says nothing about completeness."""

    name: str
    layout: Layout
    step: int | None
    piece: Piece | None
    parts: int = 1
    """How many groups of pieces make up the set, where a pattern says so."""


def member_of(key: str, patterns: tuple[Pattern, ...]) -> Member | None:
    """Where the object belongs; None when its name says nothing. The patterns of the policy come first."""
    for pattern in patterns:
        if found := pattern.match(key):
            piece = Piece(str(found.part), found.rank, found.world)
            return Member(found.name, "pattern", found.step, piece, len(pattern.parts))
    folder, _, below = key.partition("/")
    return _in_folder(folder, below) if below else _alone(key)


def _in_folder(folder: str, below: str) -> Member | None:
    if ours := _SET.fullmatch(folder):
        return Member(folder, "manifest", int(ours[1]), _of_ours(below))
    if trainer := _HUGGING_FACE.fullmatch(folder):
        return Member(folder, "hugging-face", int(trainer[1]), _of_hugging_face(below))
    return None


def _of_ours(below: str) -> Piece | None:
    if below == MANIFEST:
        return Piece(MANIFEST)
    part = _PART_MANIFEST.fullmatch(below)
    return _numbered("", part[1], part[2]) if part else None


def _of_hugging_face(below: str) -> Piece | None:
    if below == TRAINER_STATE:
        return Piece(TRAINER_STATE)
    if below in _WEIGHTS:
        return Piece(WEIGHTS)
    if index := _INDEX.fullmatch(below):
        return Piece(f"{INDEX}{index[1]}.{index[2]}")
    shard = _SHARD.fullmatch(below)
    return _numbered(f"{SHARDS}{shard[1]}.{shard[4]}", shard[2], shard[3]) if shard else None


def _numbered(group: str, rank: str, world: str) -> Piece | None:
    """A world that nobody has, or a rank outside it, is somebody's mistake."""
    inside = 1 <= int(world) <= MOST_WORLD and int(rank) <= int(world)
    return Piece(group, int(rank), int(world)) if inside else None


def _alone(key: str) -> Member | None:
    """One file that holds everything, as ``torch.save`` writes it."""
    name = key.lower()
    if not _PYTORCH.fullmatch(name) or _FRAGMENT.search(name):
        return None
    return Member(key, "pytorch", _step_in(name.rpartition(".")[0]), Piece("file"))


def _step_in(stem: str) -> int | None:
    """The step in a file's name, where it can only be that: ``epoch=3-step=400``, ``ckpt_400``, ``400``.

    ``resnet_50`` names no step, and taken for one it would never move on.
    """
    for expression in (_SURE_STEP, _LIKELY_STEP):
        found = expression.findall(stem)
        if len(found) == 1:
            return int(found[0])
        if found:
            return None
    return int(stem) if re.fullmatch("[0-9]{1,18}", stem) else None
