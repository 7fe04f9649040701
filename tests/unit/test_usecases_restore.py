"""Copying a pinned set back: byte by byte, what is missing alone, and on from where it broke off."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from sharewarden.domain.pins import Pin
from sharewarden.domain.policy import CheckpointPolicy, Policy
from sharewarden.domain.stored import HOUR, MINUTE
from sharewarden.ports import Conflict, Denied, Runtime, Unavailable
from sharewarden.usecases import restore as usecase
from sharewarden.usecases.bump import Refused
from sharewarden.usecases.restore import plan, restore, unpin

from tests.simulation.faults import Crash, crash, once, watched
from tests.simulation.samples import FIRST, JOB
from tests.simulation.world import World, facts_of
from tests.unit.checkpoint_kit import URI, look, ranks, saved, store, trainer
from tests.unit.pin_kit import content, newest, parts, pin, pins, versioned

SETS: dict[str, dict[str, bytes]] = {
    "manifest": saved(7),
    "ranks": ranks(7, 3),
    "trainer": trainer(7),
    "one-file": {"last.pt": b"the good one"},
    "pattern": {"run-7.a": b"1", "run-7.b": b"2"},
}
POLICY = Policy(checkpoints=CheckpointPolicy(patterns=("run-{step}.a + run-{step}.b",)))


def pinned(name: str = "manifest", *, encrypted: bool = False) -> World:
    made = versioned({}, POLICY)
    if encrypted:
        store(made).encrypted.add("ckpt")
    for key, body in SETS[name].items():
        made.runtime.checkpoints.put(URI, key, body)
    pin(made)
    made.clock.advance(MINUTE)
    return made


def damaged(made: World, keys: Iterable[str]) -> None:
    """Every second file overwritten and then all deleted, as a training on its way would."""
    for number, key in enumerate(keys):
        if number % 2:
            made.runtime.checkpoints.put(URI, key, b"worse!")
        store(made).delete(URI, key)


def restored(made: World, runtime: Runtime | None = None, together: Any = map) -> None:
    runtime = runtime or made.runtime
    (only,) = pins(made)
    restore(runtime, plan(runtime, only), "ana", together)


def copies(made: World, key: str) -> int:
    return len(made.runtime.checkpoints.versions(URI, [key]).get(key, ()))


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("kept", [0, 1], ids=["all", "partial"])
def test_a_deleted_set_comes_back_byte_by_byte_and_is_the_newest_again(
    name: str, kept: int, encrypted: bool
) -> None:
    made = pinned(name, encrypted=encrypted)
    save = newest(made, *POLICY.checkpoints.patterns)
    damaged(made, list(SETS[name])[kept % len(SETS[name]) :])
    assert look(made, *POLICY.checkpoints.patterns).save != save
    restored(made)
    assert content(made) == SETS[name]
    again = newest(made, *POLICY.checkpoints.patterns)
    assert (again.name, again.step, again.files, again.size) == (save.name, save.step, save.files, save.size)
    assert name not in ("manifest", "ranks") or again.saved_at == save.saved_at


def test_only_what_is_missing_or_changed_is_copied() -> None:
    made = pinned("ranks")
    deleted, changed, *rest = sorted(SETS["ranks"])
    store(made).delete(URI, deleted)
    made.runtime.checkpoints.put(URI, changed, b"worse!")
    (only,) = pins(made)
    todo = plan(made.runtime, only).todo
    assert (todo.number, todo.missing) == (2, 1)
    restored(made)
    assert content(made) == SETS["ranks"]
    assert {copies(made, key) for key in rest} == {1}
    (fact,) = facts_of(made.ledger, "checkpoint-restored")
    assert (fact.actor, fact.mode, fact.job, fact.figures["files"]) == ("ana", "enforce", JOB, 2)
    assert fact.figures["bytes"] == len(SETS["ranks"][deleted]) + len(SETS["ranks"][changed])


@pytest.mark.parametrize("encrypted", [False, True])
def test_nothing_missing_is_nothing_done(encrypted: bool) -> None:
    made = pinned(encrypted=encrypted)
    restored(made)
    assert facts_of(made.ledger, "checkpoint-restored") == []
    damaged(made, SETS["manifest"])
    restored(made)
    before = {key: copies(made, key) for key in SETS["manifest"]}
    made.clock.advance(MINUTE)
    restored(made)
    assert {key: copies(made, key) for key in SETS["manifest"]} == before
    assert len(facts_of(made.ledger, "checkpoint-restored")) == 1


def test_a_set_lost_twice_is_restored_twice_and_both_are_on_record() -> None:
    made = pinned()
    for _ in range(2):
        damaged(made, SETS["manifest"])
        made.clock.advance(HOUR)
        restored(made)
        assert content(made) == SETS["manifest"]
    assert len(facts_of(made.ledger, "checkpoint-restored")) == 2


@pytest.mark.parametrize("name", ["manifest", "ranks", "trainer"])
def test_until_the_last_file_is_back_the_set_is_not_complete(name: str) -> None:
    made = pinned(name)
    damaged(made, SETS[name])
    seen = list[bool]()

    def hook(number: int, call: str, when: str) -> None:
        if call == "restore":
            seen.append(look(made).save is not None)

    runtime, calls = watched(made.runtime, hook)
    restored(made, runtime)
    assert calls.names.count("restore") == len(SETS[name])
    assert seen == [False] * (len(seen) - 1) + [True]


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_restore_that_breaks_off_anywhere_is_completed_by_the_next(when: Any, encrypted: bool) -> None:
    for number in itertools.count(1):
        made = pinned("ranks", encrypted=encrypted)
        damaged(made, SETS["ranks"])
        runtime, calls = watched(made.runtime, once(number, when, crash))
        try:
            restored(made, runtime)
        except Crash:
            made.clock.advance(HOUR)
            restored(made)
            assert content(made) == SETS["ranks"]
            assert len(facts_of(made.ledger, "checkpoint-restored")) == 1, (number, calls.names)
            assert pins(made)[0].begun is None
            continue
        break
    assert calls.number > 2 * len(SETS["ranks"])


def test_after_an_interruption_only_the_rest_is_copied_also_where_etags_differ() -> None:
    made = pinned("ranks", encrypted=True)
    damaged(made, SETS["ranks"])
    had = {key: copies(made, key) for key in SETS["ranks"]}
    tries = itertools.count()

    def slow_down(number: int, call: str, when: str) -> None:
        if (call, when) == ("restore", "before") and next(tries) == 4:
            raise Unavailable("SlowDown")

    with pytest.raises(Unavailable):
        restored(made, watched(made.runtime, slow_down)[0])
    (only,) = pins(made)
    assert only.begun is not None
    assert plan(made.runtime, only).todo.number == 2
    restored(made)
    assert {key: copies(made, key) for key in SETS["ranks"]} == {key: one + 1 for key, one in had.items()}
    (fact,) = facts_of(made.ledger, "checkpoint-restored")
    assert fact.figures["files"] == 6


def test_the_ids_of_many_copies_are_kept_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usecase, "KEPT_TOGETHER", 2)
    made = pinned("ranks", encrypted=True)
    damaged(made, SETS["ranks"])
    runtime, calls = watched(made.runtime, lambda number, name, when: None)
    restored(made, runtime)
    assert calls.names.count("commit") == 1 + 3 + 1
    assert all(file.copy_id for part in parts(made) for file in part.files)


def test_several_files_are_copied_at_a_time() -> None:
    made = pinned("ranks")
    damaged(made, SETS["ranks"])
    with ThreadPoolExecutor(4) as pool:
        restored(made, together=pool.map)
    assert content(made) == SETS["ranks"]


def test_a_version_that_is_gone_is_named_and_nothing_is_changed() -> None:
    made = pinned("ranks")
    damaged(made, SETS["ranks"])
    first, second, *_ = sorted(SETS["ranks"])
    bucket = store(made).buckets["ckpt"]
    for key in (first, second):
        del bucket[f"team/run/{key}"]
    before = content(made)
    (only,) = pins(made)
    with pytest.raises(Refused, match=rf"no version of {URI}/{first} is left \(nor of 1 more\)"):
        plan(made.runtime, only)
    assert content(made) == before
    assert pins(made)[0].begun is None


def test_a_version_that_goes_between_plan_and_copy_is_refused_and_the_set_stays_incomplete() -> None:
    made = pinned("ranks")
    damaged(made, SETS["ranks"])
    (only,) = pins(made)
    planned = plan(made.runtime, only)
    del store(made).buckets["ckpt"][f"team/run/{planned.todo.files[-1].file.key}"]
    with pytest.raises(Denied, match="has no version"):
        restore(made.runtime, planned, "ana")
    assert look(made).save is None
    assert facts_of(made.ledger, "checkpoint-restored") == []


def _overwritten(made: World, key: str) -> None:
    made.runtime.checkpoints.put(URI, key, b"of another training")


def _deleted(made: World, key: str) -> None:
    store(made).delete(URI, key)


@pytest.mark.parametrize("meddle", [_overwritten, _deleted])
@pytest.mark.parametrize("place", [0, -1], ids=["was-there", "came-back"])
def test_a_set_that_a_training_changes_meanwhile_is_not_called_restored(
    meddle: Callable[[World, str], None], place: int
) -> None:
    made = pinned("ranks")
    keys = sorted(SETS["ranks"])
    damaged(made, keys[1:])
    (only,) = pins(made)
    planned = plan(made.runtime, only)
    copied = [one.file.key for one in (*planned.todo.files, *planned.todo.last)]
    victim = keys[0] if place == 0 else copied[0]
    seen = itertools.count()

    def hook(number: int, call: str, when: str) -> None:
        if (call, when) == ("restore", "after") and next(seen) == 1:
            meddle(made, victim)

    with pytest.raises(Unavailable, match="is not whole: 1 of its files"):
        restore(watched(made.runtime, hook)[0], planned, "ana")
    assert facts_of(made.ledger, "checkpoint-restored") == []
    assert pins(made)[0].begun is not None
    restored(made)
    assert content(made) == SETS["ranks"]
    assert len(facts_of(made.ledger, "checkpoint-restored")) == 1


def test_a_pin_whose_parts_are_gone_is_refused() -> None:
    made = pinned()
    (only,) = pins(made)
    (part,) = parts(made)
    del made.ledger.items["PINPART", part.key]
    with pytest.raises(Refused, match="too old"):
        plan(made.runtime, only)


def test_a_pin_that_goes_before_the_first_copy_is_refused() -> None:
    made = pinned()
    damaged(made, SETS["manifest"])
    (only,) = pins(made)
    planned = plan(made.runtime, only)
    del made.ledger.items["PIN", only.key]
    with pytest.raises(Refused, match="no longer pinned"):
        restore(made.runtime, planned, "ana")
    assert content(made) == {}


def test_two_people_at_once_restore_one_set_with_one_record() -> None:
    for number in itertools.count(1):
        made = pinned("ranks")
        damaged(made, SETS["ranks"])
        runtime, _ = watched(made.runtime, once(number, "before", partial(restored, made)))
        restored(made, runtime)
        assert content(made) == SETS["ranks"]
        facts = facts_of(made.ledger, "checkpoint-restored")
        if not facts or number > 25:
            break
        assert len(facts) == 1
    assert number > 25


def test_what_is_unpinned_is_on_record_once_and_no_longer_found() -> None:
    made = pinned()
    (only,) = pins(made)
    unpin(made.runtime, only, "ana")
    unpin(made.runtime, only, "ben")
    (fact,) = facts_of(made.ledger, "checkpoint-unpinned")
    assert (fact.actor, fact.figures["step"], fact.job) == ("ana", 7, JOB)
    assert usecase.pins_of(made.runtime, JOB) == []
    assert pins(made)[0].expires_at == made.clock.now()


def test_what_has_left_by_its_age_is_not_unpinned() -> None:
    made = pinned()
    (only,) = pins(made)
    made.clock.at = only.keep_until
    unpin(made.runtime, only, "ana")
    assert facts_of(made.ledger, "checkpoint-unpinned") == []


def _restored(made: World, runtime: Runtime) -> None:
    restored(made, runtime)


def _unpinned(made: World, runtime: Runtime) -> None:
    unpin(runtime, pins(made)[0], "ana")


@pytest.mark.parametrize("act", [_restored, _unpinned])
def test_a_record_that_never_stops_changing_is_unavailable(act: Callable[[World, Runtime], None]) -> None:
    made = pinned()
    damaged(made, SETS["manifest"])

    def meddle(number: int, name: str, when: str) -> None:
        if (name, when) == ("commit", "before"):
            raise Conflict("again")

    with pytest.raises(Unavailable, match="5 commits"):
        act(made, watched(made.runtime, meddle)[0])


def test_a_pin_made_again_while_it_is_restored_is_one_restore() -> None:
    made = pinned()
    damaged(made, SETS["manifest"])
    (only,) = pins(made)
    planned = plan(made.runtime, only)
    touched = once(3, "before", lambda: touch(made))
    restore(watched(made.runtime, touched)[0], planned, "ana")
    assert content(made) == SETS["manifest"]
    assert len(facts_of(made.ledger, "checkpoint-restored")) == 1


def touch(made: World) -> None:
    (only,) = pins(made)
    made.ledger.commit([Pin(**dict(only) | {"attempts": (FIRST, "another")})], [], made.clock.now())
