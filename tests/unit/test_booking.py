"""When the attempts of a job ran, as far as its record tells; and what is booked of a closed one."""

from __future__ import annotations

import pytest
from sharewarden.aws.rows import MAX_ITEM_BYTES, state_row
from sharewarden.domain.attempts import KEPT_ATTEMPTS, Attempt
from sharewarden.domain.booking import KEPT, Span, UsageDay, booking, rebooked, stints
from sharewarden.domain.policy import Policy, TagNames
from sharewarden.domain.record import End, JobRecord, Snapshot, Transition, absorb, new_record
from sharewarden.domain.stored import DAY, HOUR

from tests.simulation.samples import FIRST, SECOND, described
from tests.simulation.world import MINUTE, NOW, QUEUE

POLICY = Policy()
LATER = NOW + HOUR
TODAY = NOW // DAY


def record(*attempts: Attempt, **update: object) -> JobRecord:
    known = absorb(new_record(described()), described(read_at=NOW))
    return known.model_copy(update={"attempts": attempts} | update)


def first(started_at: int | None = NOW, stopped_at: int | None = None) -> Attempt:
    return Attempt(training_job=FIRST, started_at=started_at, stopped_at=stopped_at)


def second(started_at: int | None = NOW + 20 * MINUTE) -> Attempt:
    return Attempt(training_job=SECOND, started_at=started_at)


def step(status: str, at: int, attempt: str | None = None) -> Transition:
    return Transition(at=at, what="status", status=status, attempt=attempt)


def read(started_at: int | None, **update: object) -> Snapshot:
    known = Snapshot(read_at=NOW, status="RUNNING", attempt=FIRST, started_at=started_at)
    return known.model_copy(update=update)


FAILED = End(status="FAILED", at=NOW + 9 * MINUTE)


@pytest.mark.parametrize(
    ("known", "ran"),
    [
        (record(first(NOW, NOW + MINUTE)), [(0, 1)]),
        (record(first(NOW)), [(0, 60)]),
        (record(first(None)), []),
        (record(first(None, NOW + MINUTE)), []),
        (record(first(NOW, NOW)), []),
        (record(first(NOW + MINUTE, NOW)), []),
        (record(first(NOW + 2 * HOUR)), []),
        (record(first(NOW), second()), [(0, 20), (20, 60)]),
        (record(first(NOW, NOW + 5 * MINUTE), second()), [(0, 5), (20, 60)]),
        (record(first(NOW), end=FAILED), [(0, 9)]),
        (record(first(NOW), missing_since=NOW + 7 * MINUTE), [(0, 7)]),
        (record(first(NOW), timeline=(step("RUNNABLE", NOW + 3 * MINUTE),)), [(0, 3)]),
        (record(first(NOW), timeline=(step("RUNNABLE", NOW - MINUTE),)), [(0, 60)]),
        (record(first(NOW), timeline=(step("RUNNING", NOW + MINUTE, FIRST),)), [(0, 60)]),
        (record(first(None), timeline=(step("RUNNING", NOW + 4 * MINUTE, FIRST),)), [(4, 60)]),
        (record(first(None), timeline=(step("RUNNING", NOW + 4 * MINUTE, SECOND),)), []),
        (record(first(None), timeline=(step("STARTING", NOW + 4 * MINUTE, FIRST),)), []),
        (record(first(None), snapshot=read(NOW + 2 * MINUTE)), [(2, 60)]),
        (record(first(None), snapshot=read(None)), []),
        (record(first(None), snapshot=read(NOW, status="STARTING")), []),
        (record(first(None), snapshot=read(NOW, attempt=SECOND)), []),
        (record(first(NOW, NOW + 5 * MINUTE), second(None), snapshot=read(NOW, attempt=SECOND)), [(0, 5)]),
    ],
)
def test_an_attempt_ran_from_its_start_until_something_says_that_it_was_over(
    known: JobRecord, ran: list[tuple[int, int]]
) -> None:
    found = stints(known, POLICY, LATER)
    minutes = [((one.started_at - NOW) // MINUTE, (one.stopped_at - NOW) // MINUTE) for one in found]
    assert minutes == ran


def test_a_running_job_that_was_adopted_counts_from_the_start_that_batch_tells() -> None:
    told = described(status="RUNNING", read_at=LATER, attempt=FIRST, started_at=NOW + 30 * MINUTE)
    (one,) = stints(absorb(new_record(told), told), POLICY, LATER)
    assert (one.started_at, one.stopped_at) == (NOW + 30 * MINUTE, LATER)


@pytest.mark.parametrize(
    ("update", "told"),
    [
        ({}, ("background", "ml.g5.xlarge", 2, "research")),
        ({"share": None, "instance_type": None, "instance_count": None, "tags": ()}, ("", "", 0, "")),
        ({"instance_count": -3}, ("background", "ml.g5.xlarge", 0, "research")),
    ],
)
def test_what_is_not_known_of_a_job_is_empty(update: dict[str, object], told: tuple[object, ...]) -> None:
    (one,) = stints(record(first(), **update), POLICY, LATER)
    assert (one.share, one.unit, one.instances, one.tag_team) == told


def test_the_name_of_the_tag_is_the_policys() -> None:
    (one,) = stints(record(first(), tags=(("squad", "nlp"),)), Policy(tags=TagNames(team="squad")), LATER)
    assert one.tag_team == "nlp"


@pytest.mark.parametrize(
    ("start", "stop", "days"),
    [
        (TODAY * DAY, (TODAY + 1) * DAY, [0]),
        (TODAY * DAY - 1, TODAY * DAY + 1, [-1, 0]),
        (TODAY * DAY - 1, TODAY * DAY, [-1]),
        (NOW - 3 * DAY, NOW, [-3, -2, -1, 0]),
        (1, 2, []),
        (NOW, NOW + 400 * DAY, [0, 1]),
    ],
)
def test_an_attempt_is_booked_on_each_day_that_it_touches(start: int, stop: int, days: list[int]) -> None:
    booked = booking(record(first(start, stop)), POLICY, NOW)
    assert [item.day - TODAY for item in booked] == days
    assert {item.spans for item in booked} <= {
        (Span(attempt="AWSBatch1", started_at=start, stopped_at=stop),)
    }
    assert all(item.open_queue == f"{QUEUE}#{item.day}" for item in booked)


def test_nonsense_that_reaches_back_for_ever_is_booked_as_far_as_days_are_kept() -> None:
    booked = booking(record(first(1, NOW)), POLICY, NOW)
    assert len(booked) == KEPT // DAY + 1
    assert min(item.expires_at for item in booked) > NOW


def test_a_day_that_was_booked_and_has_nothing_any_more_is_emptied() -> None:
    known = record(first(NOW, LATER), booked_days=(TODAY - 1, TODAY))
    before, today = booking(known, POLICY, LATER)
    assert (before.day, before.spans, before.open_queue) == (TODAY - 1, (), None)
    assert today.spans


def test_attempts_that_a_record_has_forgotten_stay_booked() -> None:
    (stored,) = booking(record(first(NOW, LATER)), POLICY, LATER)
    known = record(second(LATER), end=End(status="FAILED", at=LATER + MINUTE))
    (again,) = booking(known, POLICY, LATER + HOUR)
    assert [span.attempt for span in rebooked(stored, again, known).spans] == ["AWSBatch1", "AWSBatch2"]


def test_attempts_that_it_knows_are_replaced() -> None:
    (stored,) = booking(record(first(NOW, LATER)), POLICY, LATER)
    known = record(first(NOW, LATER - MINUTE))
    (again,) = booking(known, POLICY, LATER)
    written = rebooked(stored.model_copy(update={"version": 3}), again, known)
    assert (written.version, written.spans) == (3, again.spans)


def test_the_busiest_day_of_a_job_fits_into_an_item() -> None:
    def attempt(number: int) -> Attempt:
        at = TODAY * DAY + number * MINUTE
        return Attempt(training_job=f"x/{'n' * 60}{number}", started_at=at, stopped_at=at + MINUTE)

    busy = record(*map(attempt, range(KEPT_ATTEMPTS)))
    (day,) = booking(busy, POLICY, NOW)
    forgotten = [Span(attempt=f"{'o' * 60}{n}", started_at=n, stopped_at=n + 1) for n in range(1000)]
    full = rebooked(day.model_copy(update={"spans": tuple(forgotten)}), day, busy)
    assert len(full.spans) == 1000 + KEPT_ATTEMPTS
    assert len(state_row(full)["doc"]["S"]) < MAX_ITEM_BYTES / 2


def test_an_item_goes_and_comes_back_whole() -> None:
    (item,) = booking(record(first(NOW, LATER)), POLICY, LATER)
    assert UsageDay.model_validate_json(item.model_dump_json()) == item
    assert list(item.stints()) == list(stints(record(first(NOW, LATER)), POLICY, LATER))
