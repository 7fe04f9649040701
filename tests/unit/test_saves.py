"""What looks at checkpoints show: the newest save, the interval, the age, and when the next look is due."""

from __future__ import annotations

from typing import Any

import pytest
from sharewarden.domain.checkpoints import LAST_GAPS, Save, SetSeen, State
from sharewarden.domain.saves import (
    LONGEST,
    LOST,
    REFUSED,
    SHORTEST,
    UNKNOWN,
    Saves,
    age_at_look,
    begun,
    due_since,
    refused,
    seen,
    unanswered,
    usual_interval,
)
from sharewarden.domain.stored import HOUR, MINUTE

NOW = 100 * HOUR
START = NOW - 2 * HOUR
ATTEMPT = "arn:aws:sagemaker:us-east-1:123456789012:training-job/AWSBatch1"


def a_set(at: int, step: int | None = 1, state: State = "complete") -> SetSeen:
    name = f"s{step or at}"
    return SetSeen(name=name, step=step, saved_at=at, size=1, files=1, layout="manifest", state=state)


def a_save(at: int, step: int | None = 1, **more: Any) -> Save:
    return Save(name=f"s{step or at}", step=step, saved_at=at, size=1, files=1, layout="manifest", **more)


def looked(*ats: int, at: int = NOW, saves: Saves | None = None, whole: bool = True, **more: Any) -> Saves:
    """A look that saw sets saved at these times, one a step, the last of them newest."""
    sets = [a_set(one, number) for number, one in enumerate(ats, 1)]
    newest = a_save(ats[-1], len(ats), **more) if ats else None
    return seen(saves or Saves(), newest, reversed(sets), at, whole=whole)


def age(saves: Saves, since: int = START) -> int | None:
    return age_at_look(saves, since, ATTEMPT)


# --- the age ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("saves", "expected"),
    [
        (Saves(), None),  # nobody looked
        (looked(), 2 * HOUR),  # nothing is there: since the attempt began
        (looked(NOW - 7 * MINUTE), 7 * MINUTE),
        (looked(START - MINUTE), 2 * HOUR),  # an earlier attempt's
        (looked(at=START - 1), None),  # no look in this attempt
        (looked(NOW - 7 * MINUTE, whole=False), None),  # there may be a newer one
        (looked(whole=False), None),
        (refused(looked(NOW - 7 * MINUTE), "AccessDenied", NOW), None),
        (unanswered(looked(NOW - 7 * MINUTE), NOW + HOUR), 7 * MINUTE),  # as of the last look, nothing newer
        (looked(NOW - 7 * MINUTE, training_job="AWSBatch1"), 7 * MINUTE),
        (looked(NOW - 7 * MINUTE, training_job="AWSBatch2"), None),  # two jobs in one folder
        (looked(START - HOUR, training_job="AWSBatch0"), 2 * HOUR),
    ],
)
def test_the_age_is_of_the_last_look_and_unknown_is_never_stale(saves: Saves, expected: int | None) -> None:
    assert age(saves) == expected


@pytest.mark.parametrize("state", ["complete", "unverified"])
def test_a_training_that_began_again_below_an_older_step_is_not_called_stale(state: State) -> None:
    sets = [a_set(START - HOUR, 900), a_set(NOW - MINUTE, 10, state)]
    assert age(seen(Saves(), a_save(START - HOUR, 900), sets, NOW, whole=True)) is None


@pytest.mark.parametrize("state", ["incomplete", "distrusted"])
def test_a_set_that_is_not_whole_makes_nothing_fresh(state: State) -> None:
    sets = [a_set(NOW - MINUTE, 2, state), a_set(NOW - HOUR, 1)]
    saves = seen(Saves(), a_save(NOW - HOUR), sets, NOW, whole=True)
    assert (age(saves), len(saves.times)) == (HOUR, 1)


def test_law_08_a_future_date_buys_no_freshness() -> None:
    ahead = a_save(NOW + 50 * MINUTE)
    saves = seen(Saves(), ahead, [], NOW, whole=True)
    for after in (0, 20 * MINUTE, 70 * MINUTE):
        saves = seen(saves, ahead, [], NOW + after, whole=True)
        assert age(saves) == after  # since it was first seen
    assert usual_interval(saves) is None


def test_a_set_that_is_gone_is_no_checkpoint_any_more() -> None:
    assert age(looked(saves=looked(NOW - MINUTE), at=NOW + MINUTE)) == 2 * HOUR + MINUTE


def test_half_a_look_that_saw_no_complete_set_forgets_none() -> None:
    before = looked(NOW - MINUTE)
    after = looked(saves=before, whole=False, at=NOW + MINUTE)
    assert (after.newest, after.newest_at) == (before.newest, before.newest_at)


# --- the interval -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ats", "expected"),
    [
        ((), None),
        ((NOW - HOUR,), None),
        ((NOW - 30 * MINUTE, NOW - 10 * MINUTE), 20 * MINUTE),
        ((NOW - 9 * HOUR, NOW - 30 * MINUTE, NOW - 20 * MINUTE, NOW - 10 * MINUTE), 10 * MINUTE),  # a pause
        ((NOW - 4000, NOW - 2000, NOW - 1000), SHORTEST),
        ((NOW - 30 * MINUTE, NOW - 10 * MINUTE, NOW + 1), 20 * MINUTE),
    ],
)
def test_the_interval_is_learnt_from_the_last_gaps(ats: tuple[int, ...], expected: int | None) -> None:
    assert usual_interval(looked(*ats)) == expected


def test_what_was_seen_before_is_remembered_within_bounds() -> None:
    """A training that keeps one file: each look shows one save."""
    saves = Saves()
    for number in range(3 * LAST_GAPS):
        at = NOW + number * 10 * MINUTE
        one = a_save(at, None)
        saves = seen(saves, one, [a_set(at, None)], at + MINUTE, whole=True)
    assert usual_interval(saves) == 10 * MINUTE
    assert len(saves.times) == LAST_GAPS + 1


def test_a_step_is_one_save_though_manifest_and_files_tell_two_times() -> None:
    first = looked(NOW - 20 * MINUTE, NOW - 10 * MINUTE)
    later = seen(first, a_save(NOW, 3), [a_set(NOW, 3), a_set(NOW - 10 * MINUTE + 4000, 2)], NOW, whole=True)
    assert len(later.times) == 3


# --- the next look ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("saves", "after"),
    [
        (looked(), UNKNOWN),
        (looked(NOW - 30 * MINUTE, NOW - 23 * MINUTE), 7 * MINUTE),
        (looked(NOW - 2000, NOW - 1000), SHORTEST),
        (looked(NOW - 30 * HOUR, NOW - 10 * HOUR), LONGEST),
        (unanswered(Saves(), NOW), UNKNOWN),
        (refused(Saves(), "AccessDenied", NOW), REFUSED),
        (begun(Saves(), NOW), LOST),
    ],
)
def test_the_next_look_is_paced_by_the_jobs_own_interval(saves: Saves, after: int) -> None:
    assert saves.next_look_at == NOW + after


@pytest.mark.parametrize(
    ("asked_at", "running_since", "expected"),
    [
        (0, None, NOW),  # it runs, and nobody said since when
        (START - 1, START, START),  # a new attempt
        (START, START, NOW),
        (START + MINUTE, START, NOW),
    ],
)
def test_a_new_attempt_is_looked_at_at_once(asked_at: int, running_since: int | None, expected: int) -> None:
    assert due_since(Saves(asked_at=asked_at, next_look_at=NOW), running_since) == expected


def test_the_first_refusal_is_the_one_that_people_were_told_of() -> None:
    first = refused(Saves(), "AccessDenied", NOW)
    assert refused(first, "NoSuchBucket", NOW + HOUR).refusal == "AccessDenied"
