"""What is found in a folder: never garbage, never an exception, the newest that is whole."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sharewarden_checkpoint import Manifest, Saver, Shard
from sharewarden_checkpoint.manifest import MOST_AHEAD_MS, NAME
from sharewarden_checkpoint.saver import Clock

from tests.training.kit import is_whole, save, shards

NOW = 1_800_000_000.0
CLOCK = Clock(wall=lambda: NOW, steady=lambda: 0.0)


def saver_in(folder: Path, keep: int = 9, shard: Shard | None = None, clock: Clock = CLOCK) -> Saver:
    return Saver(folder, keep=keep, shard=shard, clock=clock)


def set_of(root: Path, step: int) -> Path:
    (found,) = root.glob(f"step-{step:012d}-*")
    return found


def edit(**members: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        data = json.loads((folder / NAME).read_text())
        (folder / NAME).write_text(json.dumps(data | members))

    return change


def text(value: str | bytes) -> Callable[[Path], None]:
    return lambda folder: (
        (folder / NAME).write_bytes(value.encode() if isinstance(value, str) else value) and None
    )


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no manifest": lambda folder: (folder / NAME).unlink(),
    "an empty manifest": text(""),
    "half a manifest": lambda folder: os.truncate(folder / NAME, 40),
    "a manifest that is no JSON": text("\x00garbage"),
    "a manifest that is no UTF-8": text(b'{"format": 1, "step": "\xff"}'),
    "a manifest that is a list": text("[]"),
    "a manifest too deep": text("[" * 100_000),
    "a number of too many digits": text('{"format": 1, "step": ' + "9" * 10_000 + "}"),
    "a manifest that is a folder": lambda folder: ((folder / NAME).unlink(), (folder / NAME).mkdir()),
    "another format": edit(format=2),
    "another step than the name's": edit(step=19),
    "a step that is no number": edit(step="20"),
    "a step that is a boolean": edit(step=True),
    "a negative time": edit(saved_at=-1),
    "no time": edit(saved_at=None),
    "a part of two in the place of one": edit(world_size=2),
    "files that are a list": edit(files=["model.bin"]),
    "a size that is no number": edit(files={"model.bin": None}),
    "a file outside": edit(files={"../step/model.bin": 1}),
    "an absolute path": edit(files={"/etc/hostname": 1}),
    "a path with a zero byte": edit(files={"a\0b": 1}),
    "a path too long": edit(files={"a" * 5000: 1}),
    "a folder in the place of a file": edit(files={"rank": 4096}),
    "a file that is missing": lambda folder: (folder / "model.bin").unlink(),
    "a file that is short": lambda folder: os.truncate(folder / "optimizer.bin", 29_999),
    "a file that is long": lambda folder: os.truncate(folder / "optimizer.bin", 30_001),
    "a set from the future": edit(saved_at=int(NOW * 1000) + MOST_AHEAD_MS + 1),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=list(DAMAGES))
def test_a_damaged_set_is_passed_over(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    saver = saver_in(tmp_path)
    for step in (10, 20):
        save(saver, step)
    assert saver.latest() == (20, set_of(tmp_path, 20))
    damage(set_of(tmp_path, 20))
    assert saver.latest() == (10, set_of(tmp_path, 10))


@pytest.mark.parametrize("shape", ["no folder", "an empty folder", "a file", "odd names"])
def test_nothing_to_find_is_none(tmp_path: Path, shape: str) -> None:
    folder = tmp_path / "checkpoints"
    if shape == "a file":
        folder.write_text("")
    elif shape != "no folder":
        folder.mkdir()
    if shape == "odd names":
        for name in ("step-1", "step-x-1", "checkpoint-7", ".saving-rank-00000-of-00001-step-000000000001-a"):
            (folder / name).mkdir()
        (folder / "step-000000000001-abc").write_text("a file")
    assert saver_in(folder).latest() is None


def test_a_clock_that_is_a_little_ahead_is_trusted(tmp_path: Path) -> None:
    saver = saver_in(tmp_path)
    save(saver, 10)
    edit(saved_at=int(NOW * 1000) + MOST_AHEAD_MS)(set_of(tmp_path, 10))
    assert saver.latest() == (10, set_of(tmp_path, 10))


def test_members_of_later_versions_are_no_matter(tmp_path: Path) -> None:
    saver = saver_in(tmp_path)
    save(saver, 10)
    edit(colour="green")(set_of(tmp_path, 10))
    assert saver.latest() is not None


def test_of_one_step_the_set_saved_last_counts_and_a_higher_step_beats_a_later_time(tmp_path: Path) -> None:
    for at, step, by in [(NOW, 30, "a"), (NOW + 2, 30, "b"), (NOW + 1, 30, "c"), (NOW + 3, 20, "d")]:
        save(saver_in(tmp_path, clock=Clock(wall=lambda at=at: at)), step, by)
    newest = saver_in(tmp_path, clock=Clock(wall=lambda: NOW + 9)).latest()
    assert newest is not None
    assert is_whole(newest.folder, 30, by="b")


def test_a_manifest_survives_the_way_through_json() -> None:
    manifest = Manifest(1, 2, {"a/ü": 3}, 1, 2, 3, 4, 5, "stop", "job", 0)
    assert Manifest.from_json(manifest.to_json()) == manifest
    assert json.loads(manifest.to_json())["saved_at_text"] == "1970-01-01T00:00:00.002+00:00"


def test_a_set_of_many_ranks_is_there_when_all_parts_are(tmp_path: Path) -> None:
    savers = [saver_in(tmp_path, shard=shard) for shard in shards(3)]
    for saver in savers:
        save(saver, 10)
    for saver in savers[:2]:
        assert saver.latest() == (10, set_of(tmp_path, 10))
        save(saver, 20)
        assert saver.latest() == (10, set_of(tmp_path, 10))
    save(savers[2], 20)
    assert savers[0].latest() == (20, set_of(tmp_path, 20))
    for rank in range(3):
        assert is_whole(set_of(tmp_path, 20) / f"rank-{rank:05d}-of-00003", 20, rank)
    (set_of(tmp_path, 20) / "rank-00001-of-00003" / "empty").unlink()
    assert savers[0].latest() == (10, set_of(tmp_path, 10))


def test_parts_of_two_attempts_never_make_a_set(tmp_path: Path) -> None:
    """Each rank's state comes from another random past: together they are none."""
    first, second = shards(2, "first")[0], shards(2, "second")[1]
    for shard in (first, second):
        save(saver_in(tmp_path, shard=shard), 10)
    assert saver_in(tmp_path).latest() is None


def test_the_newest_are_kept(tmp_path: Path) -> None:
    saver = saver_in(tmp_path, keep=2)
    for step in (1, 2, 3, 4):
        save(saver, step)
    assert sorted(tmp_path.iterdir()) == [set_of(tmp_path, 3), set_of(tmp_path, 4)]


def test_damaged_sets_do_not_count_and_go_when_they_are_old(tmp_path: Path) -> None:
    saver = saver_in(tmp_path, keep=2)
    for step in (1, 2):
        save(saver, step)
    DAMAGES["no manifest"](set_of(tmp_path, 2))
    save(saver, 3)
    assert len(list(tmp_path.iterdir())) == 3, "with 2 damaged, 1 is still one of the two newest"
    save(saver, 4)
    assert sorted(tmp_path.iterdir()) == [set_of(tmp_path, 3), set_of(tmp_path, 4)]


def test_one_set_alone_is_too_few_to_keep(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="keep at least 2"):
        saver_in(tmp_path, keep=1)


def test_a_set_that_is_read_stays(tmp_path: Path) -> None:
    reader, saver = saver_in(tmp_path), saver_in(tmp_path, keep=2)
    save(saver, 1)
    with reader.reading() as checkpoint:
        assert checkpoint == (1, set_of(tmp_path, 1))
        for step in (2, 3):
            save(saver, step)
        assert is_whole(set_of(tmp_path, 1), 1)
    save(saver, 4)
    assert len(list(tmp_path.iterdir())) == 2


def test_reading_nothing_yields_none(tmp_path: Path) -> None:
    with saver_in(tmp_path).reading() as checkpoint:
        assert checkpoint is None


def test_an_error_of_the_reader_is_its_own(tmp_path: Path) -> None:
    save(saver_in(tmp_path), 1)
    with pytest.raises(FileNotFoundError, match="mine"), saver_in(tmp_path).reading():
        raise FileNotFoundError("mine")


def test_a_rank_deletes_its_own_parts_and_those_of_ranks_that_are_gone(tmp_path: Path) -> None:
    for step in (1, 2):
        for shard in shards(4, "four"):
            save(saver_in(tmp_path, shard=shard), step)
    pair = [saver_in(tmp_path, keep=2, shard=shard) for shard in shards(2, "two")]
    for step in (3, 4):
        save(pair[0], step)
    left = [path.name for path in sorted(set_of(tmp_path, 1).iterdir())]
    assert left == ["rank-00001-of-00004", "rank-00003-of-00004"]
    for step in (3, 4):
        save(pair[1], step)
    assert sorted(tmp_path.iterdir()) == [set_of(tmp_path, 3), set_of(tmp_path, 4)]


def test_what_killed_attempts_left_does_not_push_out_the_last_complete_set(tmp_path: Path) -> None:
    for shard in shards(2, "a"):
        save(saver_in(tmp_path, keep=2, shard=shard), 1)
    for attempt in "bcd":
        save(saver_in(tmp_path, keep=2, shard=shards(2, attempt)[1]), 2)
    newest = saver_in(tmp_path).latest()
    assert newest is not None
    assert newest.step == 1
