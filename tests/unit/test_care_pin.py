"""The step of a preempted attempt's case that pins what it had saved."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import pytest
from sharewarden.domain.attempts import Attempt
from sharewarden.domain.checkpoints import Save
from sharewarden.domain.notice import Notice
from sharewarden.domain.observation import Status
from sharewarden.domain.pins import Pin
from sharewarden.domain.preemption.before_stop import saved_before_next
from sharewarden.domain.preemption.case import Case
from sharewarden.domain.record import JobRecord, Transition
from sharewarden.domain.stored import HOUR, MINUTE
from sharewarden.ports import Runtime, Unavailable
from sharewarden.usecases.care.frame import Answer, take
from sharewarden.usecases.care.pin import pin
from sharewarden.usecases.restore import pins_of

from tests.simulation.faults import Crash, crash, once, watched
from tests.simulation.samples import FIRST, JOB, SECOND
from tests.simulation.world import NOW, QUEUE, World, facts_of, stored
from tests.unit.checkpoint_kit import URI, lay, manifest, place, ranks, saved, store, trainer
from tests.unit.pin_kit import job, newest, parts, pins, versioned

STOP = NOW + 1 * HOUR
AGAIN = NOW + 2 * HOUR


def step(at: int, status: Status, attempt: str | None = None) -> Transition:
    return Transition(at=at, what="status", status=status, attempt=attempt)


#: The first attempt ran and was preempted; the second runs.
TIMELINE = (
    step(NOW, "RUNNING", FIRST),
    step(STOP, "RUNNABLE"),
    step(AGAIN - 4 * MINUTE, "SCHEDULED", SECOND),
    step(AGAIN, "RUNNING", SECOND),
)


def record(*timeline: Transition) -> JobRecord:
    attempt = Attempt(training_job=FIRST, started_at=NOW, stopped_at=STOP, preempted=True)
    return job(timeline=timeline or TIMELINE[:2], attempts=(attempt,))


def case(made: World, *timeline: Transition, **update: Any) -> World:
    """The world with the case opened, at its stop."""
    opened = Case(attempt=FIRST, job=JOB, queue=QUEUE, opened_at=STOP, **update)
    made.ledger.commit([record(*timeline), opened], [], NOW)
    made.clock.at = STOP + MINUTE
    return made


def taken(made: World, runtime: Runtime | None = None) -> Answer:
    return take(runtime or made.runtime, FIRST, pin)


def known(made: World) -> Case:
    found = made.ledger.load(Case, FIRST)
    assert found is not None
    return found


def causes(made: World) -> list[str]:
    return [fact.figures["cause"] for fact in facts_of(made.ledger, "checkpoint-unprotected")]


def test_the_newest_complete_set_is_pinned_with_its_fact_in_one_commit() -> None:
    made = case(versioned(saved(7) | saved(5) | {"step-000000000009-aaaa/model.pt": b"half"}))
    assert taken(made) == Answer(done=True, wait=0, outcome="")
    (only,) = pins(made)
    assert (only.save.step, only.attempts, known(made).pinned) == (7, (FIRST,), True)
    assert (known(made).save, known(made).sight) == (only.save, "found")
    assert len(facts_of(made.ledger, "checkpoint-pinned")) == 1


def test_what_was_saved_after_the_first_look_is_pinned_and_is_the_cases_save_from_then_on() -> None:
    made = versioned(saved(7))
    case(made, save=newest(made), sight="found")
    lay(made, saved(8, at=STOP), STOP)
    taken(made)
    assert [one.save.step for one in pins(made)] == [8]
    assert known(made).save == pins(made)[0].save


def test_taken_again_it_asks_s3_nothing_and_changes_nothing() -> None:
    made = case(versioned(saved(7)))
    taken(made)
    lay(made, saved(8), STOP)
    before, asked = dict(made.ledger.facts), store(made).asked
    assert taken(made).done
    assert (made.ledger.facts, store(made).asked) == (before, asked)


@pytest.mark.parametrize("own", ["AWSBatch1", None], ids=["told", "not-told"])
@pytest.mark.parametrize("late", [0, 10])
def test_law_08_what_the_next_attempt_saved_does_not_count(own: str | None, late: int) -> None:
    """However late the step comes."""
    made = versioned({})
    files = {f"step-00000000000{n}-aaaa": STOP - 10 * MINUTE + n * MINUTE for n in (6, 7)}
    for folder, at in files.items():
        made.runtime.checkpoints.put(URI, f"{folder}/model.pt", b"model")
        body = manifest(int(folder[5:17]), training_job=own, saved_at=at)
        made.runtime.checkpoints.put(URI, f"{folder}/_SAVED.json", body)
    case(made, *TIMELINE)
    made.clock.at = AGAIN + HOUR
    for number, told in ((8, "AWSBatch2"), (9, own and "AWSBatch2")):
        folder = f"step-00000000000{number}-bbbb"
        made.runtime.checkpoints.put(URI, f"{folder}/model.pt", b"model")
        body = manifest(number, training_job=told, saved_at=AGAIN + MINUTE + late)
        made.runtime.checkpoints.put(URI, f"{folder}/_SAVED.json", body)
    taken(made)
    assert [one.save.step for one in pins(made)] == [7]


def test_a_folder_of_the_trainer_that_the_next_attempt_wrote_does_not_count() -> None:
    made = versioned({})
    lay(made, trainer(100), STOP - MINUTE)
    lay(made, trainer(200), AGAIN + MINUTE)
    case(made, *TIMELINE)
    made.clock.at = AGAIN + HOUR
    taken(made)
    assert [one.save.step for one in pins(made)] == [100]


ZEROTH = FIRST.replace("AWSBatch1", "AWSBatch0")
EARLIER = (step(NOW - HOUR, "RUNNING", ZEROTH), step(NOW - MINUTE, "RUNNABLE"))
SAVE = Save(name="s", step=7, saved_at=STOP, size=1, files=1, layout="manifest")


@pytest.mark.parametrize(
    ("timeline", "saved_at", "told", "counts"),
    [
        (TIMELINE, STOP, "AWSBatch1", True),
        (TIMELINE, AGAIN + HOUR, "AWSBatch1", True),  # its clock may be wrong, its name is not
        (TIMELINE, STOP + 5 * MINUTE, None, True),  # copied a little after the stop
        (TIMELINE, AGAIN - 1, "AWSBatch0", True),  # of an attempt before it
        (TIMELINE, AGAIN, None, False),
        (TIMELINE, STOP, "AWSBatch2", False),
        (TIMELINE[:3], AGAIN + HOUR, None, True),  # the next one does not run yet
        (TIMELINE[:2], AGAIN + HOUR, None, True),
        (EARLIER + TIMELINE, STOP, None, True),  # an attempt before it rules nothing out
        (EARLIER + TIMELINE, STOP, "AWSBatch0", True),
        (TIMELINE[2:], AGAIN + HOUR, None, True),  # nothing is known of the attempt: nothing is ruled out
    ],
)
def test_which_saves_are_of_before_the_next_attempt(
    timeline: tuple[Transition, ...], saved_at: int, told: str | None, counts: bool
) -> None:
    save = SAVE.model_copy(update={"saved_at": saved_at, "training_job": told})
    without = job(timeline=timeline)
    assert saved_before_next(without, FIRST)(save) is counts


@pytest.mark.parametrize("where", ["nowhere", "empty"])
def test_where_nothing_was_saved_nothing_is_told(where: str) -> None:
    made = versioned({})
    case(made, sight="none")
    if where == "nowhere":
        stand = made.ledger.load(JobRecord, JOB)
        assert stand is not None
        made.ledger.commit([stand.model_copy(update={"checkpoint_uri": None})], [], NOW)
    assert taken(made).done
    assert (known(made).pinned, made.ledger.facts, pins(made)) == (True, {}, [])


def test_an_unprotected_bucket_is_told_once_a_job_not_once_a_preemption() -> None:
    made = case(place(saved(7)))
    store(made).expires["ckpt"] = 7
    taken(made)
    assert causes(made) == ["unversioned", "expiring"]
    assert len(stored(made.ledger, Notice)) == 2
    made.ledger.commit([Case(attempt=SECOND, job=JOB, queue=QUEUE, opened_at=AGAIN)], [], NOW)
    assert take(made.runtime, SECOND, pin).done
    assert causes(made) == ["unversioned", "expiring"]
    assert len(stored(made.ledger, Notice)) == len(made.runtime.notices.sent) == 2  # type: ignore[attr-defined]


def test_a_set_that_went_before_it_was_pinned_is_told_and_the_case_keeps_what_it_knew() -> None:
    made = versioned(saved(7) | saved(5))
    seen = newest(made)
    case(made, save=seen, sight="found")
    store(made).delete(URI, min(saved(7)))
    taken(made)
    assert causes(made) == ["gone"]
    assert "step 7 is not there any longer" in facts_of(made.ledger, "checkpoint-unprotected")[0].reason
    assert [one.save.step for one in pins(made)] == [5]
    assert known(made).save == seen
    empty = versioned({})
    case(empty, save=seen, sight="found")
    taken(empty)
    assert (causes(empty), known(empty).save, pins(empty)) == (["gone"], seen, [])


def test_law_02_a_look_that_ended_early_is_not_a_set_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    made = versioned(saved(7))
    case(made, save=newest(made), sight="found")
    monkeypatch.setattr("sharewarden.usecases.checkpoints.MOST_PAGES", 0)
    taken(made)
    assert causes(made) == ["too-large"]


def test_law_02_s3_that_does_not_answer_leaves_the_step_undone() -> None:
    made = case(versioned(saved(7)))
    store(made).down = "throttled"
    with pytest.raises(Unavailable):
        taken(made)
    assert (known(made).pinned, made.ledger.facts) == (False, {})
    store(made).down = None
    assert taken(made).done
    assert len(pins(made)) == 1


@pytest.mark.parametrize(("sight", "told"), [("found", ["refused"]), (None, ["refused"]), ("unknown", [])])
def test_a_refusal_is_told_unless_it_is_known(sight: Any, told: list[str]) -> None:
    made = case(versioned(saved(7)), sight=sight)
    store(made).denied = "AccessDenied"
    assert taken(made).done
    assert (causes(made), known(made).pinned) == (told, True)


def test_law_02_a_refusal_after_the_stop_leaves_open_what_was_saved_in_between() -> None:
    """The first look had found nothing; the attempt may have saved while it was stopped."""
    made = case(versioned(saved(7)), sight="none")
    store(made).denied = "AccessDenied"
    assert taken(made).done
    assert known(made).sight == "unknown"


@pytest.fixture
def tiny_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """One file a part."""
    monkeypatch.setattr("sharewarden.domain.pins.MOST_BYTES", 1)


def whole(made: World) -> bool:
    """One pin, with all its parts, told once, and the case says so."""
    (only,) = pins_of(made.runtime, JOB)
    numbers = [part.number for part in parts(made) if part.pin == only.key]
    facts = facts_of(made.ledger, "checkpoint-pinned")
    return sorted(numbers) == list(range(6)) and len(facts) == 1 and known(made).pinned


@pytest.mark.usefixtures("tiny_parts")
@pytest.mark.parametrize("when", ["before", "after"])
def test_law_10_a_crash_anywhere_leaves_no_half_pin_and_the_next_try_ends_it(when: Any) -> None:
    for number in itertools.count(1):
        made = case(versioned(ranks(7, 3)))
        runtime, calls = watched(made.runtime, once(number, when, crash))
        try:
            taken(made, runtime)
        except Crash:
            assert [one for one in pins_of(made.runtime, JOB) if not known(made).pinned] == []
            made.clock.advance(MINUTE)
            assert taken(made).done
            assert whole(made), calls.names
            continue
        break
    assert calls.names.count("commit") == 7


@pytest.mark.usefixtures("tiny_parts")
def test_two_invocations_at_once_make_one_pin() -> None:
    for number in itertools.count(1):
        made = case(versioned(ranks(7, 3)))
        runtime, calls = watched(made.runtime, once(number, "before", partial(taken, made)))
        assert taken(made, runtime).done
        assert whole(made), calls.names
        if calls.number < number:
            break
    assert number > 15


def test_the_set_of_two_preemptions_without_progress_is_one_pin() -> None:
    made = case(versioned(saved(7)))
    taken(made)
    made.ledger.commit([Case(attempt=SECOND, job=JOB, queue=QUEUE, opened_at=AGAIN)], [], NOW)
    take(made.runtime, SECOND, pin)
    (only,) = stored(made.ledger, Pin)
    assert isinstance(only, Pin)
    assert only.attempts == (FIRST, SECOND)
