"""The values of checkpoint care: places, the usual interval, the best one; and that the helper agrees."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sharewarden.domain.checkpoints import (
    AHEAD,
    LAST_GAPS,
    Place,
    best_interval,
    inside,
    learn_interval,
    place_of,
)
from sharewarden.domain.manifests import parse
from sharewarden.domain.stored import HOUR, MINUTE, SECOND
from sharewarden_checkpoint import Saver, Shard
from sharewarden_checkpoint.manifest import MOST_AHEAD_MS, Manifest
from sharewarden_checkpoint.sets import newest

from tests.simulation.world import NOW
from tests.unit.checkpoint_kit import look, place


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("s3://bucket", Place("bucket", "")),
        ("s3://bucket/", Place("bucket", "")),
        ("s3://bucket/a", Place("bucket", "a/")),
        ("s3://bucket/a/b/", Place("bucket", "a/b/")),
        ("s3://bucket/a//", Place("bucket", "a//")),
        ("s3://bucket//a", Place("bucket", "/a/")),
        ("s3://bucket/a..b/...", Place("bucket", "a..b/.../")),
        ("s3://bucket/ü ?#%2e%2e", Place("bucket", "ü ?#%2e%2e/")),
    ],
)
def test_a_uri_names_a_bucket_and_a_prefix(uri: str, expected: Place) -> None:
    assert place_of(uri) == expected


@pytest.mark.parametrize(
    ("uri", "folder", "expected"),
    [("s3://b", "x/", "s3://b/x/"), ("s3://b/a/", "x/", "s3://b/a/x/"), ("s3://b/a", "", "s3://b/a/")],
)
def test_a_folder_below_a_uri(uri: str, folder: str, expected: str) -> None:
    assert inside(uri, folder) == expected


@pytest.mark.parametrize(
    ("minutes", "interval"),
    [
        ([], None),
        ([5], None),
        ([5, 5], None),
        ([0, 10], 10),
        ([30, 0, 10, 20], 10),
        ([0, 10, 20, 80, 90], 10),
        ([0, 10, 30], 15),
        ([*range(0, 1200, 100), *range(1101, 1111)], 50.5),
        ([*range(0, 1000, 100), *range(1000, 1000 + LAST_GAPS + 1)], 1),
    ],
)
def test_the_usual_interval_is_the_median_of_the_last_gaps(
    minutes: list[int], interval: float | None
) -> None:
    learnt = learn_interval([minute * MINUTE for minute in minutes])
    assert learnt == (None if interval is None else interval * MINUTE)


@pytest.mark.parametrize(
    ("took", "between", "best"),
    [
        (2 * SECOND, HOUR, 2 * MINUTE),
        (50 * SECOND, 100 * HOUR, 6000 * SECOND),
        (MINUTE, 10 * SECOND, MINUTE),
        (0, HOUR, 0),
    ],
)
def test_how_often_to_save_is_youngs_interval(took: int, between: int, best: int) -> None:
    assert best_interval(took, between) == best


# The training helper writes the format, and what it would not load is no checkpoint.


def test_both_distrust_the_same_future() -> None:
    assert AHEAD == MOST_AHEAD_MS


def test_a_manifest_of_the_helper_is_read() -> None:
    body = Manifest(step=7, saved_at=NOW, files={"a/b": 1}, rank=1, world_size=2, save_ms=3).to_json()
    ours = parse(body)
    assert ours is not None
    assert (ours.step, ours.saved_at, ours.files, ours.rank, ours.world_size, ours.save_ms) == (
        *(7, NOW, {"a/b": 1}, 1, 2),
        3,
    )


JUNK = st.none() | st.booleans() | st.integers(-3, 2**64) | st.floats() | st.text(max_size=5) | st.just([])
PATHS = st.sampled_from(["a", "a/b", "/a", "../a", "a/../b", "", ".", "a//b", "./a", "a/", "ü"])


@given(
    st.dictionaries(
        st.sampled_from(["step", "saved_at", "rank", "world_size", "format", "save_ms"]), JUNK, max_size=2
    ),
    st.dictionaries(PATHS, st.integers(-1, 5) | JUNK, max_size=2) | JUNK,
)
def test_both_take_the_same_for_a_manifest(junk: dict[str, object], files: object) -> None:
    whole = {"format": 1, "step": 1, "saved_at": 2, "rank": 0, "world_size": 1, "files": files}
    body = json.dumps(
        whole | {name: value for name, value in junk.items() if value not in (True, 1.0)}
    ).encode()
    try:
        theirs = Manifest.from_json(body)
    except ValueError:
        theirs = None
    assert (parse(body) is None) == (theirs is None)


#: Later than every save by this machine's clock.
LATER = 2**42


def objects_in(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


CHANGES = st.lists(
    st.tuples(st.sampled_from(["keep", "delete", "shorten", "empty"]), st.integers(0, 50)), max_size=6
)


SAVES = st.lists(st.tuples(st.integers(0, 5), st.sampled_from([1, 2, 3])), min_size=1, max_size=5)


@given(SAVES, CHANGES)
@settings(max_examples=25)
def test_what_the_helper_would_load_is_what_we_find(
    saves: list[tuple[int, int]], changes: list[tuple[str, int]]
) -> None:
    """Whatever was lost on the way to S3."""
    with TemporaryDirectory() as folder:
        _agree(Path(folder), saves, changes)


def _agree(root: Path, saves: list[tuple[int, int]], changes: list[tuple[str, int]]) -> None:
    for step, world in saves:
        for rank in range(world):
            with Saver(root, keep=9, shard=Shard(rank, world, run=f"run-{world}")).save(step) as folder:
                (folder / "model.pt").write_bytes(b"model" * (rank + 1))
    paths = sorted(path for path in root.rglob("*") if path.is_file())
    for what, which in changes:
        path = paths[which % len(paths)]
        if what == "delete":
            path.unlink(missing_ok=True)
        elif what != "keep" and path.exists():
            path.write_bytes(b"" if what == "empty" else path.read_bytes()[:-1])
    made = place(objects_in(root), at=LATER)
    made.clock.at = LATER
    theirs, ours = newest(root, made.clock.at), look(made)
    assert ours.partial is False
    assert (ours.save and ours.save.name) == (theirs and theirs.folder.name)
