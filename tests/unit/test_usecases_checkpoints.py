"""The newest complete set: in which order, within which bounds, and what is not known."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sharewarden.domain import listing
from sharewarden.domain.checkpoints import AHEAD, ObjectSeen
from sharewarden.domain.stored import HOUR, MINUTE
from sharewarden.ports import Denied, Unavailable
from sharewarden.usecases import checkpoints
from sharewarden.usecases.checkpoints import CANDIDATES, MOST_TOLD, Looked, files, newest, whole

from tests.simulation.world import NOW, World
from tests.unit.checkpoint_kit import (
    MIB,
    URI,
    found,
    lay,
    look,
    manifest,
    place,
    ranks,
    saved,
    store,
    trainer,
)

Objects = dict[str, bytes]


def step_of(looked: Looked) -> int | None:
    return None if looked.save is None else looked.save.step


def test_nothing_at_all_is_no_checkpoint_for_sure() -> None:
    looked = look(place({}))
    assert (looked.save, looked.partial, looked.objects) == (None, False, 0)


def test_steps_count_as_numbers_whatever_was_written_last() -> None:
    made = place({"ckpt-99.pt": b"1"})
    lay(made, {"ckpt-100.pt": b"1"}, NOW - HOUR)
    assert step_of(look(made)) == 100


def test_of_names_without_a_step_the_newest_counts() -> None:
    made = place({"z.pt": b"1"}, at=NOW - HOUR)
    lay(made, {"a.pt": b"1"}, NOW - MINUTE)
    looked = look(made)
    assert [seen.name for seen in looked.sets] == ["a.pt", "z.pt"]
    assert looked.save is not None
    assert (looked.save.name, looked.save.saved_at) == ("a.pt", NOW - MINUTE)


def test_a_step_counts_more_than_none() -> None:
    made = place({"last.ckpt": b"1"})
    lay(made, {"epoch=0-step=1.ckpt": b"1"}, NOW - HOUR)
    assert step_of(look(made)) == 1


def test_a_half_written_set_is_passed_over_and_told_of() -> None:
    looked = found(saved(100) | {"step-000000000200-cccc/model.pt": b"model"} | ranks(300, 4, range(3)))
    assert step_of(looked) == 100
    assert [(seen.step, seen.state) for seen in looked.sets] == [
        (300, "incomplete"),
        (200, "incomplete"),
        (100, "complete"),
    ]


def test_of_one_step_saved_twice_the_later_counts() -> None:
    looked = found(saved(100, "zzzz", at=NOW - HOUR) | saved(100, "aaaa", at=NOW - MINUTE))
    assert looked.save is not None
    assert looked.save.name == "step-000000000100-aaaa"


def test_a_second_save_of_a_step_that_is_half_written_does_not_hide_the_first() -> None:
    objects = saved(100, "aaaa") | {"step-000000000100-bbbb/_SAVED.json": manifest(100)}
    assert step_of(found(objects)) == 100


def test_the_time_of_a_save_is_that_of_its_files() -> None:
    made = place(trainer(5, "optimizer.pt"), at=NOW - HOUR)
    lay(made, {"checkpoint-5/optimizer.pt": b"1"}, NOW - 5 * MINUTE)
    looked = look(made)
    assert looked.save is not None
    assert looked.save.saved_at == NOW - 5 * MINUTE


def test_a_manifest_tells_the_time_but_no_later_one_than_s3() -> None:
    early, late = saved(100, at=NOW - 2 * HOUR), saved(100, at=NOW + 30 * MINUTE)
    for objects, at in ((early, NOW - 2 * HOUR), (late, NOW - HOUR)):
        looked = look(place(objects, at=NOW - HOUR))
        assert looked.save is not None
        assert looked.save.saved_at == looked.sets[0].saved_at == at


def test_the_parts_of_a_set_tell_together() -> None:
    objects = ranks(100, 2)
    slow = manifest(100, rank=1, world_size=2, save_ms=9000, saved_at=NOW - 500, training_job="train-2")
    objects["step-000000000100-bbbb/rank-00001-of-00002/_SAVED.json"] = slow
    save = found(objects).save
    assert save is not None
    assert (save.saved_at, save.took, save.training_job, save.files) == (NOW - 500, 9000, "train-2", 4)


@pytest.mark.parametrize(
    "newer",
    [
        saved(200, at=NOW + AHEAD + 1),
        ranks(200, 2)
        | {
            "step-000000000200-bbbb/rank-00001-of-00002/_SAVED.json": manifest(
                200, rank=1, world_size=2, saved_at=NOW + AHEAD + 1
            )
        },
    ],
)
def test_law_08_a_set_from_the_future_buys_nothing(newer: Objects) -> None:
    looked = found(saved(100) | newer)
    assert (step_of(looked), looked.partial) == (100, False)
    assert (looked.sets[0].state, looked.sets[0].why) == ("distrusted", "dated in the future")


@pytest.mark.parametrize(("ahead", "step"), [(AHEAD, 200), (AHEAD + 1, 100)])
def test_law_08_nor_does_an_object_from_the_future(ahead: int, step: int) -> None:
    made = place({"ckpt-100.pt": b"1"}, at=NOW - HOUR)
    lay(made, {"ckpt-200.pt": b"1"}, NOW + ahead)
    assert step_of(look(made)) == step


# Bounds.


def test_law_02_a_look_that_ended_early_never_says_that_there_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checkpoints, "MOST_PAGES", 2)
    few = {f"a{number:05}": b"1" for number in range(2000)}
    assert (found(few).save, found(few).partial) == (None, False)
    more = found(few | {"z.pt": b"1"})
    assert (more.save, more.partial, more.objects) == (None, True, 2000)


def test_what_was_found_before_the_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "MOST_PAGES", 1)
    looked = found({f"ckpt-{number}.pt": b"1" for number in range(10_000, 11_001)})
    assert (step_of(looked), looked.partial) == (10_999, True)


def test_the_pages_of_a_look_are_counted() -> None:
    made = place({f"a{number:05}": b"1" for number in range(2500)})
    before = store(made).asked
    look(made)
    assert store(made).asked - before == 3


def broken(step: int) -> Objects:
    return {f"step-{step:012d}-aaaa/_SAVED.json": manifest(step)}


def test_law_02_more_broken_sets_than_a_look_reads_leave_it_open() -> None:
    for count, partial in ((CANDIDATES - 1, False), (CANDIDATES, True)):
        objects = {key: body for step in range(2, 2 + count) for key, body in broken(step).items()}
        looked = found(objects | saved(1))
        assert (step_of(looked), looked.partial) == (None if partial else 1, partial)


def test_for_people_more_manifests_are_read() -> None:
    objects = {key: body for step in range(100, 110) for key, body in saved(step).items()}
    states = {people: [seen.state for seen in look(place(objects), people=people).sets] for people in (0, 1)}
    assert states == {False: ["complete"] + ["unverified"] * 9, True: ["complete"] * 10}


def test_for_people_an_older_set_that_was_not_read_leaves_nothing_open() -> None:
    count = MOST_TOLD + 5
    objects = {key: body for step in range(100, 100 + count) for key, body in saved(step).items()}
    looked = look(place(objects), people=True)
    assert (step_of(looked), looked.partial, len(looked.sets)) == (99 + count, False, MOST_TOLD)


def test_behind_many_half_written_sets_the_whole_one_is_found_and_few_are_told_of() -> None:
    half = {f"checkpoint-{number}/optimizer.pt": b"1" for number in range(100, 110 + MOST_TOLD)}
    looked = found(trainer(5) | half)
    assert (step_of(looked), looked.partial, len(looked.sets)) == (5, False, MOST_TOLD)


@pytest.mark.parametrize(("bound", "most"), [("MOST_MANIFESTS", 3), ("MOST_FOLDER_PAGES", 0)])
def test_law_02_a_set_too_large_to_verify_leaves_it_open(
    bound: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, bound, most)
    looked = found(ranks(200, 4))
    assert (looked.save, looked.partial, looked.sets[0].state) == (None, True, "unverified")
    assert "too many" in (looked.sets[0].why or "")


def test_the_manifests_of_a_look_are_counted_over_all_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = ranks(100, 4) | ranks(200, 4)
    del objects["step-000000000200-bbbb/rank-00003-of-00004/model.pt"]
    for bound, step in ((8, 100), (7, None)):
        monkeypatch.setattr(checkpoints, "MOST_MANIFESTS", bound)
        looked = found(objects)
        assert (step_of(looked), looked.partial) == (step, step is None)


def test_law_02_a_part_that_could_not_be_read_counts_more_than_one_that_lacks() -> None:
    objects = ranks(100, 2) | ranks(100, 3)
    objects["step-000000000100-bbbb/rank-00001-of-00002/_SAVED.json"] = b" " * (MIB + 1)
    del objects["step-000000000100-bbbb/rank-00002-of-00003/model.pt"]
    looked = found(objects)
    assert (looked.save, looked.partial, looked.sets[0].state) == (None, True, "unverified")


def test_law_02_a_manifest_that_went_meanwhile_leaves_it_open() -> None:
    made = place(saved(100))

    class Pruned(type(store(made))):  # type: ignore[misc]
        def read(self, *_: Any) -> None:
            return None

    store(made).__class__ = Pruned
    looked = look(made)
    assert (looked.save, looked.partial) == (None, True)


def test_no_more_than_the_newest_sets_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "KEPT_SETS", 5)
    many = {f"ckpt-{number}.pt": b"1" for number in range(40)}
    looked = found(many)
    assert (step_of(looked), looked.partial, len(looked.sets)) == (39, False, 5)
    half = {f"checkpoint-{number}/optimizer.pt": b"1" for number in range(100, 140)}
    assert (found(many | half).save, found(many | half).partial) == (None, True)


@pytest.mark.parametrize("error", [Unavailable, Denied])
def test_law_02_s3_that_cannot_be_asked_is_no_answer(error: type[Exception]) -> None:
    made = place(saved(100))
    fault = "down" if error is Unavailable else "denied"
    setattr(store(made), fault, "because")
    with pytest.raises(error, match="because"):
        look(made)


def test_what_is_no_place_in_s3_is_denied() -> None:
    made = place({})
    with pytest.raises(Denied):
        newest(made.runtime, "https://example.com/ckpt", (), NOW)


# Any order.


class Shuffled:
    """The listing of a world in any order, on pages of any length."""

    def __init__(self, made: World, random: Random) -> None:
        self._store = store(made)
        self._random = random

    def pages(self, uri: str) -> Iterator[tuple[ObjectSeen, ...]]:
        left = [seen for page in self._store.pages(uri) for seen in page]
        self._random.shuffle(left)
        while left:
            taken = self._random.randint(1, len(left))
            yield tuple(left[:taken])
            left = left[taken:]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


SHARDED = "run-{step}/part-{rank}-of-{world}.bin"
COMPLETE: dict[str, Any] = {
    "ours": saved,
    "ranks": lambda step: ranks(step, 3),
    "trainer": trainer,
    "file": lambda step: {f"ckpt-{step}.pt": b"1"},
    "shards": lambda step: {f"run-{step}/part-{rank}-of-4.bin": b"1" for rank in range(4)},
}
HALF: dict[str, Any] = {
    "ours": lambda step: {f"step-{step:012d}-aaaa/model.pt": b"model"},
    "ranks": lambda step: ranks(step, 3, [0, 2]),
    "trainer": lambda step: trainer(step, "trainer_state.json"),
    "file": lambda step: {f"ckpt-{step}.pt": b""},
    "shards": lambda step: {f"run-{step}/part-{rank}-of-4.bin": b"1" for rank in (0, 1, 3)},
}


@given(
    st.dictionaries(
        st.integers(0, 2000), st.tuples(st.sampled_from(sorted(COMPLETE)), st.booleans()), max_size=12
    ),
    st.randoms(use_true_random=False),
)
def test_any_order_and_any_half_written_set_give_the_same_newest_complete(
    sets: dict[int, tuple[str, bool]], random: Random
) -> None:
    objects: Objects = {"notes.txt": b"1"}
    for step, (layout, complete) in sets.items():
        objects |= (COMPLETE if complete else HALF)[layout](step)
    made = place(objects)
    expected = max((step for step, (_, complete) in sets.items() if complete), default=None)
    ordered = look(made, SHARDED)
    object.__setattr__(made.runtime, "checkpoints", Shuffled(made, random))
    shuffled = newest(made.runtime, URI, (SHARDED,), NOW)
    assert shuffled == ordered
    assert (step_of(ordered), ordered.partial) == (expected, False)


@given(st.permutations(range(12)), st.sampled_from(["ckpt-{}.pt", "checkpoint-{}/trainer_state.json"]))
def test_the_newest_are_kept_in_whatever_order_they_come(order: list[int], name: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listing, "KEPT_SETS", 3)
        sets = listing.Sets(())
        for step in order:
            sets.add([ObjectSeen(name.format(step), 1, NOW)])
        assert [one.step for one in sets.newest_first()] == [11, 10, 9]
        assert sets.dropped


# The files of a save.


@pytest.mark.parametrize(
    ("objects", "patterns"),
    [
        (saved(7), ()),
        (ranks(7, 2), ()),
        (trainer(7), ()),
        ({"ckpt-7.pt": b"1"}, ()),
        (COMPLETE["shards"](7), (SHARDED,)),
        ({"7.model": b"1", "opt/7.state": b"1"}, ("{step}.model + opt/{step}.state",)),
    ],
)
def test_the_files_of_a_save_are_found_again(objects: Objects, patterns: tuple[str, ...]) -> None:
    other = saved(6) | trainer(6) | {"ckpt-6.pt": b"1", "run-6/part-0-of-4.bin": b"1", "6.model": b"1"}
    made = place(objects | other)
    save = look(made, *patterns).save
    assert save is not None
    assert save.step == 7
    assert {seen.key for seen in files(made.runtime, URI, save, patterns)} == objects.keys()


def test_what_has_the_name_of_a_save_and_is_of_another_layout_is_not_of_it() -> None:
    made = place(trainer(5), at=NOW - HOUR)
    lay(made, {"checkpoint-5": b"1"}, NOW)
    save = look(made, "checkpoint-{step}").save
    assert save is not None
    assert [seen.key for seen in files(made.runtime, URI, save, ("checkpoint-{step}",))] == ["checkpoint-5"]


@pytest.mark.parametrize(("objects", "count"), [(saved(7), 2), (trainer(7), 5)])
def test_the_files_of_a_folder_are_found_without_looking_through_the_rest(
    objects: Objects, count: int
) -> None:
    made = place(objects | {f"a{number:05}": b"1" for number in range(2500)})
    save = look(made).save
    assert save is not None
    before = store(made).asked
    assert len(list(files(made.runtime, URI, save, ()))) == count
    assert store(made).asked - before == 1


@pytest.mark.parametrize(
    ("objects", "there"),
    [
        (saved(7, "aaaa"), True),
        (ranks(7, 2), False),  # of another name
        ({f"step-{7:012d}-aaaa/model.pt": b"model"}, False),
        ({f"step-{7:012d}-aaaa/_SAVED.json": manifest(7)}, False),
        (saved(7, "aaaa", at=NOW + 2 * HOUR), False),
        ({}, False),
    ],
)
def test_a_set_of_that_name_is_whole_or_not(objects: Objects, *, there: bool) -> None:
    made = place(objects | {f"a{number:05}": b"1" for number in range(1500)})
    before = store(made).asked
    found = whole(made.runtime, URI, f"step-{7:012d}-aaaa", NOW)
    assert (found is not None) == there
    assert store(made).asked - before <= 3


def test_a_set_of_many_ranks_is_whole_once_all_are_there() -> None:
    name = f"step-{7:012d}-bbbb"
    assert whole(place(ranks(7, 3, [0, 1])).runtime, URI, name, NOW) is None
    save = whole(place(ranks(7, 3)).runtime, URI, name, NOW)
    assert save is not None
    assert (save.name, save.files) == (name, 6)
