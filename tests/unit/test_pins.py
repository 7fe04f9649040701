"""What a pin holds, what endangers a checkpoint, and what a restore has to copy."""

from __future__ import annotations

import pytest
from sharewarden.aws.rows import MAX_ITEM_BYTES, state_row
from sharewarden.domain.checkpoints import Layout, Protection, Save, Version
from sharewarden.domain.pins import (
    MOST_ATTEMPTS,
    Pin,
    PinnedFile,
    PinPart,
    dangers,
    found_again,
    pin_of,
    restorable,
)
from sharewarden.domain.policy import CheckpointPolicy, Policy
from sharewarden.domain.stored import DAY

from tests.simulation.samples import FIRST, SECOND
from tests.simulation.world import NOW
from tests.unit.pin_kit import job

POLICY = Policy()


def save(layout: Layout = "manifest", name: str = "step-000000000007-aaaa") -> Save:
    return Save(name=name, step=7, saved_at=NOW, size=3, files=3, layout=layout)


def file(key: str, version: str = "v1", size: int = 1) -> PinnedFile:
    return PinnedFile(key=key, version_id=version, size=size, etag=f"e-{key}-{version}")


def made(
    *files: PinnedFile, attempt: str = FIRST, layout: Layout = "manifest"
) -> tuple[Pin, tuple[PinPart, ...]]:
    return pin_of(job(), attempt, save(layout), files, POLICY, NOW)


def test_every_file_is_in_one_part_and_no_part_is_too_big_for_an_item() -> None:
    files = [file(f"{number:05}/{'ü' * 500}", "v" * 1024) for number in range(2_000)]
    pin, parts = made(*reversed(files))
    assert [one for part in parts for one in part.files] == files
    assert [part.number for part in parts] == list(range(pin.parts))
    assert len({part.key for part in parts}) == pin.parts > 10
    copied = [one.model_copy(update={"copy_id": "c" * 1024}) for one in parts[0].files]
    for part in (*parts, parts[0].model_copy(update={"files": tuple(copied)})):
        state_row(part)
    assert pin.parts < 2_000 * 5_000 / MAX_ITEM_BYTES * 2


def test_a_part_has_room_for_the_ids_of_all_copies() -> None:
    files = [PinnedFile(key=str(n), version_id="v" * 1024, size=1, etag="e") for n in range(1_000)]
    for part in made(*files)[1]:
        copied = tuple(one.model_copy(update={"copy_id": "c" * 1024}) for one in part.files)
        state_row(part.model_copy(update={"files": copied}))


def test_few_files_are_one_part() -> None:
    pin, (part,) = made(file("a"), file("b"))
    assert (pin.parts, part.pin, part.keep_until) == (1, pin.key, NOW + 30 * DAY)


def test_the_same_files_are_the_same_pin_in_any_order_and_another_version_is_another() -> None:
    same = {made(file("a"), file("b"))[0].key, made(file("b"), file("a"), attempt=SECOND)[0].key}
    assert len(same) == 1
    assert made(file("a"), file("b", "v2"))[0].key not in same
    assert made(file("a"), file("b", size=2))[0].key not in same
    assert made(file("a"))[0].key not in same


def test_a_pin_is_kept_for_as_long_as_the_policy_says_after_the_last_preemption_that_found_it() -> None:
    policy = Policy(checkpoints=CheckpointPolicy(keep_pins=2 * DAY))
    first, _ = pin_of(job(), FIRST, save(), [file("a")], policy, NOW)
    second, _ = pin_of(job(), SECOND, save(), [file("a")], policy, NOW + DAY)
    again = found_again(first, second)
    assert (again.attempts, again.pinned_at, again.expires_at) == ((FIRST, SECOND), NOW + DAY, NOW + 3 * DAY)
    assert found_again(again, first).attempts == (SECOND, FIRST)
    assert found_again(again, first).expires_at == NOW + 3 * DAY


def test_of_very_many_attempts_the_latest_are_named() -> None:
    pin, _ = made(file("a"))
    for number in range(2 * MOST_ATTEMPTS):
        pin = found_again(pin, made(file("a"), attempt=f"arn/{number}")[0])
    assert len(pin.attempts) == MOST_ATTEMPTS
    assert pin.attempts[-1] == f"arn/{2 * MOST_ATTEMPTS - 1}"


@pytest.mark.parametrize(
    ("protection", "causes"),
    [
        (Protection(versioned=True), []),
        (Protection(versioned=True, expires_after_days=29), [("expiring", 29)]),
        (Protection(versioned=True, expires_after_days=30), []),
        (Protection(versioned=False), [("unversioned", None)]),
        (Protection(versioned=False, expires_after_days=7), [("unversioned", None), ("expiring", 7)]),
        (Protection(versioned=False, expires_after_days=365), [("unversioned", None)]),
    ],
)
def test_what_endangers_a_checkpoint(protection: Protection, causes: list[tuple[str, int | None]]) -> None:
    assert [(one.cause, one.days) for one in dangers(protection, POLICY)] == causes


def version(
    of: PinnedFile, *, current: bool = True, etag: str | None = None, version_id: str = ""
) -> Version:
    return Version(version_id or of.version_id, of.size, etag or of.etag, current)


A = file("s/a")


@pytest.mark.parametrize(
    ("kept", "copied"),
    [
        ([version(A)], None),
        ([version(A, version_id="copy"), version(A, current=False)], None),
        ([version(A, current=False)], "v1"),
        ([version(A, version_id="v2", etag="other"), version(A, current=False)], "v1"),
        ([version(A, version_id="v2", etag="other", current=False), version(A, current=False)], "v1"),
        ([version(A, version_id="copy", etag="kms", current=False), version(A, current=False)], "v1"),
        ([version(A, version_id="copy", current=False)], "copy"),  # the pinned one is gone, its copy is not
    ],
    ids=["untouched", "copied", "deleted", "overwritten", "both", "copy-deleted", "from-a-copy"],
)
def test_what_is_missing_or_changed_is_copied(kept: list[Version], copied: str | None) -> None:
    todo = restorable(made(A)[0], [A], {"s/a": kept})
    assert [one.version.id for one in todo.files] == ([copied] if copied else [])
    assert todo.gone == ()
    assert todo.missing == (copied is not None and not kept[0].current)


def test_a_copy_of_ours_is_known_by_its_version_where_etags_do_not_tell() -> None:
    other = version(A, version_id="copy", etag="kms")
    known = A.model_copy(update={"copy_id": "copy"})
    kept = {"s/a": [other, version(A, current=False)]}
    assert restorable(made(A)[0], [known], kept).number == 0
    assert restorable(made(A)[0], [A], kept).number == 1


def test_the_id_null_tells_nothing() -> None:
    """It is that of every content while a bucket keeps no versions."""
    one = file("s/a", "null")
    assert restorable(made(one)[0], [one], {"s/a": [version(one, etag="other")]}).gone == ("s/a",)
    assert restorable(made(one)[0], [one], {"s/a": [version(one)]}) == ((), (), 0, ())


@pytest.mark.parametrize("kept", [{}, {"s/a": [version(A, version_id="v2", etag="other")]}])
def test_what_has_no_version_left_is_named(kept: dict[str, list[Version]]) -> None:
    todo = restorable(made(A)[0], [A], kept)
    assert (todo.gone, todo.number, todo.missing) == (("s/a",), 0, 0)


@pytest.mark.parametrize(
    ("layout", "last"),
    [
        ("manifest", "_SAVED.json"),
        ("hugging-face", "trainer_state.json"),
        ("pytorch", None),
        ("pattern", None),
    ],
)
def test_what_makes_a_set_complete_comes_back_last(layout: Layout, last: str | None) -> None:
    names = ("_SAVED.json", "trainer_state.json", "rank-00001-of-00002/_SAVED.json", "z_SAVED.json", "m.pt")
    files = [file(f"s/{name}") for name in names]
    todo = restorable(
        made(*files, layout=layout)[0], files, {one.key: [version(one, current=False)] for one in files}
    )
    assert {one.file.key.rpartition("/")[2] for one in todo.last} == ({last} if last else set())
    assert (todo.number, todo.missing, todo.size) == (5, 5, 5)
    assert all(one.file.key.rpartition("/")[2] != last for one in todo.files)
