"""Pinning a set: what is kept of it, what is told, and what keeps a half pin from looking whole."""

from __future__ import annotations

from typing import Any

import pytest
from sharewarden.domain.policy import CheckpointPolicy, Policy
from sharewarden.domain.stored import DAY, MINUTE
from sharewarden.ports import Conflict, Unavailable
from sharewarden.usecases import pins as usecase
from sharewarden.usecases.pins import pin_save
from sharewarden.usecases.restore import pins_of

from tests.simulation.faults import Crash, crash, once, watched
from tests.simulation.samples import FIRST, JOB, SECOND
from tests.simulation.world import NOW, World, facts_of
from tests.unit.checkpoint_kit import URI, place, ranks, saved, store, trainer
from tests.unit.pin_kit import BUCKET, job, newest, parts, pin, pins, versioned

POLICY = Policy()


@pytest.mark.parametrize(
    "objects",
    [saved(7), ranks(7, 3), trainer(7), {"last.pt": b"1"}, {"run-7.a": b"1", "run-7.b": b"2"}],
    ids=["manifest", "ranks", "trainer", "one-file", "pattern"],
)
def test_every_file_of_the_set_is_pinned_with_the_version_that_is_current(objects: dict[str, bytes]) -> None:
    policy = Policy(checkpoints=CheckpointPolicy(patterns=("run-{step}.a + run-{step}.b",)))
    made = versioned(objects | {"checkpoint-3/x": b"1", "notes.txt": b"1", "checkpoint-7/": b""}, policy)
    pinned = pin(made).pin
    assert pinned is not None
    (part,) = parts(made)
    current = made.runtime.checkpoints.versions(URI, list(objects))
    assert {one.key: one.version_id for one in part.files} == {
        key: kept[0].id for key, kept in current.items()
    }
    assert (pinned.attempts, pinned.uri, pinned.keep_until) == ((FIRST,), URI, NOW + 30 * DAY)


def test_a_pin_is_told_once_an_attempt() -> None:
    made = versioned(saved(7))
    pin(made)
    pin(made)
    pin(made, SECOND)
    facts = facts_of(made.ledger, "checkpoint-pinned")
    assert [fact.figures["attempt"] for fact in facts] == [FIRST, SECOND]
    assert {(fact.figures["step"], fact.figures["set_files"], fact.share) for fact in facts} == {
        (7, 2, "background")
    }


def test_a_set_that_several_preemptions_find_is_one_pin_kept_from_the_last_on() -> None:
    made = versioned(saved(7))
    pin(made)
    made.clock.advance(DAY)
    pin(made, SECOND)
    (only,) = pins(made)
    assert (only.attempts, only.keep_until) == ((FIRST, SECOND), NOW + 31 * DAY)
    assert [part.keep_until for part in parts(made)] == [NOW + 31 * DAY]


def test_the_pins_of_a_job_are_found_the_latest_first_until_their_time_is_over() -> None:
    made = versioned(saved(7))
    pin(made)
    made.clock.advance(MINUTE)
    made.runtime.checkpoints.put(URI, "checkpoint-9/trainer_state.json", b"1")
    made.runtime.checkpoints.put(URI, "checkpoint-9/model.safetensors", b"1")
    pin(made, SECOND)
    assert [one.save.step for one in pins_of(made.runtime, JOB)] == [9, 7]
    assert [one.save.step for one in pins_of(made.runtime, JOB, FIRST)] == [7]
    assert [one.save.step for one in pins_of(made.runtime, JOB, SECOND.rpartition("/")[2])] == [9]
    assert pins_of(made.runtime, "another") == pins_of(made.runtime, JOB, "another") == []
    made.clock.at = NOW + 30 * DAY
    assert [one.save.step for one in pins_of(made.runtime, JOB)] == [9]


def test_a_bucket_without_versions_pins_nothing_and_says_what_helps() -> None:
    made = place(saved(7))
    store(made).expires[BUCKET] = 7
    pinned = pin(made)
    assert pinned.pin is None
    assert (pins(made), parts(made)) == ([], [])
    assert {fact.figures["cause"]: fact.figures["days"] for fact in pinned.facts} == {
        "unversioned": None,
        "expiring": 7,
    }
    assert [notice.fact for notice in pinned.notices] == [fact.key for fact in pinned.facts]
    assert "Enable versioning on the bucket" in pinned.notices[0].text
    assert (
        "deletes for good after 7 days, and a pin is kept for 30 d. Raise it to 30" in pinned.notices[1].text
    )


def test_what_is_pinned_and_expires_too_soon_is_told_beside_the_pin() -> None:
    made = versioned(saved(7))
    store(made).expires[BUCKET] = 3
    pinned = pin(made)
    assert pinned.pin is not None
    assert [fact.kind for fact in pinned.facts] == ["checkpoint-pinned", "checkpoint-unprotected"]


def test_each_cause_is_told_once_a_job_not_once_a_preemption() -> None:
    made = place(saved(7))
    keys = {pin(made, attempt).facts[0].key for attempt in (FIRST, SECOND)}
    assert len(keys) == len(facts_of(made.ledger, "checkpoint-unprotected")) == 1


def test_a_refusal_of_s3_pins_nothing_and_claims_nothing_about_the_bucket() -> None:
    made = versioned(saved(7))
    save = newest(made)
    store(made).denied = "s3:GetBucketVersioning is not allowed"
    pinned = pin(made, save=save)
    (fact,) = pinned.facts
    assert (pinned.pin, fact.figures["cause"]) == (None, "refused")
    assert "s3:GetBucketVersioning is not allowed" in fact.reason
    assert "keeps no earlier versions" not in fact.reason


def test_too_many_files_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usecase, "MOST_FILES", 5)
    made = versioned(ranks(7, 3))
    (fact,) = pin(made).facts
    assert (fact.figures["cause"], pins(made)) == ("too-large", [])
    monkeypatch.setattr(usecase, "MOST_FILES", 6)
    assert pin(made).pin is not None


def test_law_02_s3_that_cannot_be_asked_is_no_finding() -> None:
    made = versioned(saved(7))
    save = newest(made)
    store(made).down = "throttled"
    with pytest.raises(Unavailable):
        pin(made, save=save)
    assert made.ledger.facts == {}


def _overwrite(made: World) -> None:
    made.runtime.checkpoints.put(URI, "step-000000000007-aaaa/model.pt", b"other")


def _delete(made: World) -> None:
    store(made).delete(URI, "step-000000000007-aaaa/model.pt")


@pytest.mark.parametrize("change", [_overwrite, _delete])
def test_a_set_that_changes_while_it_is_looked_at_is_not_pinned_half(change: Any) -> None:
    """Between the listing and the versions."""
    made = versioned(saved(7))
    save = newest(made)
    runtime, calls = watched(made.runtime, lambda number, name, when: None)
    pin_save(runtime, job(), FIRST, save, POLICY, NOW)
    at = calls.names.index("versions") + 1
    made = versioned(saved(7))
    runtime, _ = watched(made.runtime, once(at, "before", lambda: change(made)))
    with pytest.raises(Unavailable, match=r"step-000000000007-aaaa/model\.pt changed"):
        pin_save(runtime, job(), FIRST, save, POLICY, NOW)
    assert parts(made) == []


def test_a_set_that_is_no_longer_as_it_was_found_is_not_pinned() -> None:
    made = versioned(saved(7))
    save = newest(made)
    _delete(made)
    with pytest.raises(Unavailable, match="changed since it was found complete"):
        pin(made, save=save)


@pytest.fixture
def tiny_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """One file a part."""
    monkeypatch.setattr("sharewarden.domain.pins.MOST_BYTES", 1)


@pytest.mark.usefixtures("tiny_parts")
def test_a_crash_between_the_parts_leaves_no_pin_and_the_next_try_completes_it() -> None:
    whole = versioned(ranks(7, 3))
    runtime, calls = watched(whole.runtime, lambda number, name, when: None)
    pin_save(runtime, job(), FIRST, newest(whole), POLICY, NOW)
    for number in range(1, calls.number + 1):
        for when in ("before", "after"):
            made = versioned(ranks(7, 3))
            save = newest(made)
            runtime, _ = watched(made.runtime, once(number, when, crash))  # type: ignore[arg-type]
            with pytest.raises(Crash):
                pin_save(runtime, job(), FIRST, save, POLICY, NOW)
            assert pins_of(made.runtime, JOB) == []
            made.clock.advance(MINUTE)
            pin(made, save=save)
            (only,) = pins(made)
            assert sorted(part.number for part in parts(made)) == list(range(6)) == list(range(only.parts))
            assert min(part.keep_until for part in parts(made)) >= only.keep_until


@pytest.mark.usefixtures("tiny_parts")
def test_two_at_once_make_one_pin() -> None:
    made = versioned(ranks(7, 2))
    save = newest(made)
    runtime, _ = watched(made.runtime, once(7, "before", lambda: pin_first(made, save)))
    second = pin_save(runtime, job(), FIRST, save, POLICY, NOW)
    assert second.pin is not None
    if second.pin.version == 0:
        with pytest.raises(Conflict):
            made.ledger.commit([second.pin], [], NOW)
    assert [one.digest for one in pins(made)] == [second.pin.digest]
    assert len(parts(made)) == 4


def pin_first(made: World, save: Any) -> None:
    pin(made, save=save)


def test_parts_that_never_stop_changing_are_unavailable() -> None:
    made = versioned(saved(7))
    save = newest(made)

    def meddle(number: int, name: str, when: str) -> None:
        if (name, when) == ("commit", "before"):
            raise Conflict("again")

    runtime, _ = watched(made.runtime, meddle)
    with pytest.raises(Unavailable, match="5 commits"):
        pin_save(runtime, job(), FIRST, save, POLICY, NOW)


def test_a_pin_that_a_person_let_go_of_is_made_again_by_the_next_preemption() -> None:
    made = versioned(saved(7))
    pin(made)
    (known,) = pins(made)
    made.ledger.commit([known.model_copy(update={"keep_until": NOW})], [], NOW)
    assert pins_of(made.runtime, JOB) == []
    made.clock.advance(MINUTE)
    pin(made, SECOND)
    assert [one.attempts for one in pins_of(made.runtime, JOB)] == [(FIRST, SECOND)]
