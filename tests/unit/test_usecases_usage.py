"""Booking in the commit that closes a record, and the GPU-hours that budgets look at."""

from __future__ import annotations

from typing import Any

import pytest
from sharewarden.domain.attempts import Attempt
from sharewarden.domain.booking import UsageDay, day_key
from sharewarden.domain.decide import Decision
from sharewarden.domain.facts import gap_fact
from sharewarden.domain.notice import Notice
from sharewarden.domain.policy import Policy
from sharewarden.domain.record import End, JobRecord, absorb, new_record
from sharewarden.domain.share import ShareRecord
from sharewarden.domain.stored import DAY, HOUR
from sharewarden.domain.usage import Window
from sharewarden.ports import MAX_ACTIONS
from sharewarden.usecases.change import change
from sharewarden.usecases.usage import budgets, queue_usage, team_gpu_hours

from tests.simulation.faults import nothing, watched
from tests.simulation.samples import FIRST, JOB, SHARE, described, share
from tests.simulation.world import MINUTE, NOW, QUEUE, World, world

TODAY = NOW // DAY
END = End(status="FAILED", at=NOW, reason="told")


def policy(*budget: dict[str, Any], **more: Any) -> Policy:
    shares = {"background": {"team": "research"}}
    entries = [{"rule": "gpu-hour-budget", "name": f"b{n}"} | one for n, one in enumerate(budget)]
    return Policy.model_validate(
        {"queues": {"ml-train-qm": {"shares": shares}}, "guardrails": entries} | more
    )


def trained(started_at: int, stopped_at: int | None = NOW, **update: Any) -> JobRecord:
    read = described(read_at=NOW)
    attempts = (Attempt(training_job=FIRST, started_at=started_at, stopped_at=stopped_at),)
    return absorb(new_record(read), read).model_copy(update={"attempts": attempts} | update)


def close(one: World) -> JobRecord:
    update = {"closed_at": one.clock.now()}
    return change(one.runtime, JOB, lambda record: Decision(record=record.model_copy(update=update))).record


def stored_days(one: World) -> list[int]:
    items = (item for item in one.ledger.items.values() if isinstance(item, UsageDay))
    return sorted(item.day - TODAY for item in items if item.spans)


def a_world(record: JobRecord, known: Policy | None = None) -> World:
    one = world(policy=known or policy())
    one.ledger.commit([record, ShareRecord(arn=SHARE, queue=QUEUE, description=share(1))], [], NOW)
    return one


def test_what_closes_a_record_books_it() -> None:
    one = a_world(trained(NOW - 2 * DAY, end=END))
    assert close(one).booked_days == (TODAY - 2, TODAY - 1, TODAY)
    assert stored_days(one) == [-2, -1, 0]


def test_nothing_is_booked_of_an_open_record_or_of_a_job_that_never_ran() -> None:
    one = a_world(trained(NOW - 2 * DAY))
    change(one.runtime, JOB, lambda record: Decision(record=record.model_copy(update={"woken_at": 1})))
    assert stored_days(one) == []
    never = a_world(trained(NOW, attempts=(), end=END))
    assert close(never).closed_at == NOW
    assert stored_days(never) == []


def test_booking_again_writes_nothing() -> None:
    one = a_world(trained(NOW - 2 * DAY, end=END))
    close(one)
    before = {key: item.version for key, item in one.ledger.items.items() if key[0] == "USAGE"}
    one.clock.advance(MINUTE)
    close(one)
    assert {key: item.version for key, item in one.ledger.items.items() if key[0] == "USAGE"} == before


def test_a_correction_moves_the_time_to_its_day() -> None:
    one = a_world(trained(NOW - 2 * DAY, end=END))
    close(one)
    attempts = (Attempt(training_job=FIRST, started_at=NOW - HOUR, stopped_at=NOW),)
    record = one.record(JOB).model_copy(update={"attempts": attempts, "closed_at": None})
    one.ledger.commit([record], [], NOW)
    assert close(one).booked_days == (TODAY,)
    assert stored_days(one) == [0]


def test_a_job_with_more_days_than_a_commit_holds_is_closed_once_all_are_booked() -> None:
    days = 2 * MAX_ACTIONS + 10
    one = a_world(trained((TODAY - days) * DAY, (TODAY * DAY), end=END))
    closed = [close(one).closed_at is not None for _ in range(3)]
    assert closed == [False, False, True]
    assert stored_days(one) == list(range(-days, 0))
    assert len(one.record(JOB).booked_days) == days


def test_a_correction_in_the_middle_of_a_long_booking_leaves_nothing_behind() -> None:
    one = a_world(trained((TODAY - 250) * DAY, (TODAY * DAY), end=END))
    for _ in range(2):
        assert close(one).closed_at is None
    attempts = (Attempt(training_job=FIRST, started_at=NOW - HOUR, stopped_at=NOW),)
    one.ledger.commit([one.record(JOB).model_copy(update={"attempts": attempts})], [], NOW)
    assert [close(one).closed_at is not None for _ in range(3)] == [False, False, True]
    assert stored_days(one) == [0]


@pytest.mark.parametrize(("facts", "notices"), [(60, 0), (30, 30), (MAX_ACTIONS - 1, 0)])
def test_days_leave_room_for_what_else_is_in_the_commit(facts: int, notices: int) -> None:
    one = a_world(trained((TODAY - 70) * DAY, (TODAY * DAY), end=END))

    def step(record: JobRecord) -> Decision:
        told = [
            gap_fact(record, Policy(), subject=f"s{number}", at=NOW, reason="told") for number in range(facts)
        ]
        words = [
            Notice(fact=fact.key, kind="gap", at=NOW, title="t", text="t", queue=QUEUE)
            for fact in told[:notices]
        ]
        closed = record.model_copy(update={"closed_at": NOW})
        return Decision(record=closed, facts=tuple(told), notices=tuple(words))

    decision = change(one.runtime, JOB, step)
    assert decision.record.closed_at is None
    assert len(stored_days(one)) == MAX_ACTIONS - 1 - facts - notices
    assert close(one).closed_at == NOW
    assert stored_days(one) == list(range(-70, 0))


def test_usage_adds_up_what_is_booked_and_what_runs() -> None:
    one = a_world(trained(NOW - HOUR, end=END))
    close(one)
    other = trained(NOW - 30 * MINUTE, None, job="job-2", arn="x/job-2")
    one.ledger.commit([other], [], NOW)
    (today,) = queue_usage(one.runtime, QUEUE, Window(TODAY * DAY, NOW)).days
    assert (today.team, today.day) == ("research", TODAY)
    # one instance is the share's own; the older job has that one from the beginning to its end
    assert (today.usage.owned_gpu_hours, today.usage.borrowed_gpu_hours) == (1.0, 2.0)


def test_a_past_window_ends_where_it_ends() -> None:
    one = a_world(trained(NOW - 3 * DAY, None))
    window = Window((TODAY - 2) * DAY, (TODAY - 1) * DAY)
    (day,) = queue_usage(one.runtime, QUEUE, window).days
    assert (day.day, day.usage.owned_gpu_hours + day.usage.borrowed_gpu_hours) == (TODAY - 2, 48.0)


@pytest.mark.parametrize(
    ("update", "unknown", "unsized", "no_limit"),
    [
        ({}, 0, 0, ()),
        ({"instance_type": "ml.x9.xlarge"}, 2, 0, ("background ml.x9.xlarge",)),
        ({"instance_type": None}, 2, 0, ("background (no type)",)),
        ({"instance_count": None}, 0, HOUR, ()),
        ({"share": "gone"}, 0, 0, ("gone ml.g5.xlarge",)),
        ({"share": None}, 0, 0, ("(no share) ml.g5.xlarge",)),
    ],
)
def test_what_is_not_known_is_told_and_never_counted_as_nothing(
    update: dict[str, Any], unknown: float, unsized: int, no_limit: tuple[str, ...]
) -> None:
    one = a_world(trained(NOW - HOUR, **update))
    found = queue_usage(one.runtime, QUEUE, Window(TODAY * DAY, NOW))
    (day,) = found.days
    assert (day.usage.unknown_instance_hours, day.usage.unsized) == (unknown, unsized)
    assert found.no_limit == no_limit
    gpu_hours = day.usage.owned_gpu_hours + day.usage.borrowed_gpu_hours
    assert gpu_hours == (0 if unknown or unsized else 2)
    if no_limit:
        assert day.usage.borrowed_gpu_hours == 0


@pytest.mark.parametrize(
    ("share_name", "tags", "team"),
    [
        ("background", (("team", "nlp"),), "research"),
        ("other", (("team", "nlp"),), "nlp"),
        ("other", (), "(no team)"),
    ],
)
def test_the_team_is_that_of_the_share_else_the_tags(
    share_name: str, tags: tuple[tuple[str, str], ...], team: str
) -> None:
    one = a_world(trained(NOW - HOUR, share=share_name, tags=tags, end=END))
    for _ in range(2):
        (day,) = queue_usage(one.runtime, QUEUE, Window(TODAY * DAY, NOW)).days
        assert day.team == team
        close(one)


@pytest.mark.parametrize(
    ("entries", "owned", "borrowed"),
    [
        ([{"period": "day", "total": 5}], {"day": 8.0}, {"day": 8.0}),
        ([{"period": "week", "total": 5}], {"week": 8.0}, {"week": 8.0}),
        ([{"period": "month", "owned": 1}], {"month": 48.0}, {"month": 48.0}),
        (
            [{"period": "day", "total": 5}, {"period": "month", "borrowed": 1, "teams": ["research"]}],
            {"day": 8.0, "month": 48.0},
            {"day": 8.0, "month": 48.0},
        ),
    ],
)
def test_budgets_see_the_periods_that_they_are_about(
    entries: list[dict[str, Any]], owned: dict[str, float], borrowed: dict[str, float]
) -> None:
    """Two instances of one GPU, one of them borrowed, since 40 hours before this Monday; it is 08:00."""
    record = trained(TODAY * DAY - 40 * HOUR, None)
    known = policy(*entries)
    one = a_world(record, known)
    found = team_gpu_hours(one.runtime, QUEUE, [record], [share(1)], known, NOW)
    assert (found["research"].owned, found["research"].borrowed) == (owned, borrowed)


def test_a_custom_rule_has_the_periods_that_it_reads() -> None:
    record = trained(TODAY * DAY - 40 * HOUR, None)
    known = policy(guardrails=[{"name": "busy", "when": "team.owned_gpu_hours.day > 1.0"}])
    found = team_gpu_hours(a_world(record, known).runtime, QUEUE, [record], [share(1)], known, NOW)
    assert (found["research"].owned, found["research"].borrowed) == ({"day": 8.0}, {"day": 8.0})


def test_a_team_that_used_nothing_has_used_nothing() -> None:
    known = policy({"total": 1})
    one = a_world(trained(NOW), known)
    idle = trained(NOW, share="other", attempts=(), tags=(("team", "nlp"),))
    found = team_gpu_hours(one.runtime, QUEUE, [idle], [], known, NOW)
    assert (found["nlp"].owned, found["nlp"].borrowed) == ({"week": 0.0}, {"week": 0.0})


@pytest.mark.parametrize("entries", [[], [{"total": 5, "queues": ["another"]}]])
def test_without_a_budget_about_the_queue_nothing_is_read(entries: list[dict[str, Any]]) -> None:
    known = policy(*entries)
    one = a_world(trained(NOW - HOUR), known)
    runtime, calls = watched(one.runtime, nothing)
    assert team_gpu_hours(runtime, QUEUE, [], [], known, NOW) == {}
    assert calls.names == []
    assert budgets(known, QUEUE) == ()


def test_a_budget_costs_one_read_a_day_of_its_period() -> None:
    known = policy({"period": "week", "total": 5})
    one = a_world(trained(NOW - HOUR), known)
    runtime, calls = watched(one.runtime, nothing)
    wednesday = NOW + 2 * DAY
    team_gpu_hours(runtime, QUEUE, [], [], known, wednesday)
    assert calls.names == ["open_items"] * 3


def test_items_are_found_by_queue_and_day_alone() -> None:
    one = a_world(trained(NOW - HOUR, end=END))
    close(one)
    assert len(list(one.ledger.open_items(UsageDay, day_key(QUEUE, TODAY)))) == 1
    assert not list(one.ledger.open_items(UsageDay, day_key(QUEUE, TODAY - 1)))
    assert not list(one.ledger.open_items(UsageDay, day_key("another", TODAY)))
