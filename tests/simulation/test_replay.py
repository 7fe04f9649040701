"""Replays: stories worked out by hand, what is conserved in random ones, and the seat of a controller."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from sharewarden_tools.replay.controller import Hand, Native
from sharewarden_tools.replay.figures import figures_of
from sharewarden_tools.replay.outcome import Outcome, Played
from sharewarden_tools.replay.pool import START, UNIT, lab_options
from sharewarden_tools.replay.run import DAY, HEURISTICS, replay
from sharewarden_tools.replay.week import HOUR, synthetic_week
from sharewarden_tools.replay.workload import Job, Share, Sla, Workload

from tests.simulation.lab_kit import ROUND_TIMES, UNTIL_RUNNING

SECOND = 1_000
ROUND = replace(ROUND_TIMES, cloudtrail=False)
NOTICE = 3  # seconds from the end of an attempt to its requeue
ALONE = (Share("a", 1, in_share=True),)
LOW = Job("low", "a", "ana", 0, 1, 1_000 * SECOND, priority=100, save_every=300 * SECOND, load=20 * SECOND)
HIGH = Job("high", "a", "ben", 700 * SECOND, 1, 100 * SECOND, priority=200)


def workload(*jobs: Job, shares: tuple[Share, ...] = ALONE, span: int = HOUR) -> Workload:
    return Workload("by hand", shares, jobs, span, ())


def played(*jobs: Job, shares: tuple[Share, ...] = ALONE) -> dict[str, Played]:
    return {one.job.name: one for one in replay(workload(*jobs, shares=shares), ROUND).jobs}


def attempts(one: Played) -> list[tuple[float | None, ...]]:
    """Dispatched, running, ended, trained, lost: in seconds."""
    times = [(a.dispatched_at, a.started_at, a.ended_at, a.trained, a.lost) for a in one.attempts]
    return [tuple(None if time is None else time / SECOND for time in row) for row in times]


# By hand. RUNNABLE after 1 s, Pending 10 s, Downloading 10 s, Stopping 17 s, Uploading 5 s.


def test_a_job_that_is_pushed_out_goes_on_from_its_save() -> None:
    found = played(LOW, HIGH)
    low, high = found["low"], found["high"]
    # It has trained 680 s when the other one becomes RUNNABLE, at 701 s; the save at 600 s stays.
    assert attempts(low) == [(1, 21, 718, 680, 80), (849, 869, 1_294, 400, 0)]
    assert attempts(high) == [(721, 741, 846, 100, 0)]
    assert (low.waited, high.waited) == (21 * SECOND, 41 * SECOND)
    assert low.restart_waits == (151 * SECOND,)
    assert [attempt.preempted for attempt in low.attempts] == ["in-share", None]
    assert (low.lost, low.kept, low.ended_at) == (80 * SECOND, LOW.runtime, 1_294 * SECOND)


def test_a_job_that_hears_sigterm_loses_nothing_but_the_way_back() -> None:
    low = played(replace(LOW, stop_save=40 * SECOND), HIGH)["low"]
    assert attempts(low) == [(1, 21, 741, 680, 0), (872, 892, 892 + 20 + 320 + 5, 320, 0)]
    assert low.kept == LOW.runtime


def test_a_job_that_saves_nothing_starts_anew() -> None:
    low = played(replace(LOW, save_every=None, load=0), HIGH)["low"]
    assert attempts(low) == [(1, 21, 718, 680, 680), (849, 869, 1_874, 1_000, 0)]


def test_a_job_that_is_pushed_out_before_it_runs_has_lost_nothing() -> None:
    found = played(LOW, replace(HIGH, submitted_at=5 * SECOND))
    low = found["low"]
    assert attempts(low) == [(1, None, 6 + 17, 0, 0), (154, 174, 174 + 1_000 + 5, 1_000, 0)]
    assert (low.waited, low.restart_waits, low.preemptions) == (174 * SECOND, (), 1)


def test_without_in_share_preemption_the_higher_priority_waits() -> None:
    found = played(LOW, HIGH, shares=(Share("a", 1, in_share=False),))
    assert attempts(found["low"]) == [(1, 21, 1_026, 1_000, 0)]
    assert found["high"].attempts[0].dispatched_at == (1_026 + NOTICE) * SECOND


def test_lent_capacity_comes_back_by_cross_share_preemption() -> None:
    shares = (Share("a", 1, in_share=False), Share("b", 1, in_share=False))
    wide = Job("wide", "a", "ana", 0, 2, 3_600 * SECOND, save_every=600 * SECOND)
    own = Job("own", "b", "ben", 1_000 * SECOND, 1, 50 * SECOND)
    found = played(wide, own, shares=shares)
    assert attempts(found["wide"])[0] == (1, 21, 1_018, 980, 380)
    assert found["wide"].attempts[0].preempted == "cross-share"
    assert found["own"].waited == (1_021 - 1_000 + 20) * SECOND


def test_a_failing_job_fails_when_it_has_trained_so_long() -> None:
    job = played(replace(LOW, fails_after=90 * SECOND))["low"]
    assert (job.status, job.ended_at, job.kept) == ("FAILED", (21 + 90) * SECOND, 90 * SECOND)


def test_the_figures_of_the_story() -> None:
    sla = Sla("silver", start_within=30 * SECOND, restart_within=150 * SECOND, finish_by=1_294 * SECOND)
    figures = figures_of(replay(workload(replace(LOW, sla=sla), replace(HIGH, sla=sla)), ROUND))
    assert (figures.missed_start, figures.missed_restart, figures.missed_finish) == (1, 1, 0)
    assert (figures.sla_jobs, figures.sla_missed, figures.miss_rate) == (2, 2, 1.0)
    assert figures.lost_gpu_hours == 80 / 3_600
    assert figures.used == (718 - 1 + 1_294 - 849 + 846 - 721) / 3_600


def test_promises_that_are_just_kept() -> None:
    sla = Sla("silver", start_within=41 * SECOND, restart_within=151 * SECOND, finish_by=1_294 * SECOND)
    figures = figures_of(replay(workload(replace(LOW, sla=sla), replace(HIGH, sla=sla)), ROUND))
    assert figures.sla_missed == 0


def test_what_has_not_ended_is_told_as_that() -> None:
    long = replace(LOW, runtime=20 * DAY, save_every=DAY)
    waiting = replace(HIGH, priority=0, sla=Sla("gold", start_within=60 * SECOND))
    outcome = replay(workload(long, waiting), ROUND)
    figures = figures_of(outcome)
    assert (figures.unfinished, figures.missed_start) == (2, 1)
    running, waits = outcome.jobs
    assert outcome.ended_at == HOUR + 14 * DAY
    assert running.kept == outcome.ended_at - UNTIL_RUNNING * SECOND
    assert (waits.waited, waits.attempts) == (outcome.ended_at - 700 * SECOND, ())


def test_what_has_not_come_back_counts_with_its_wait_so_far() -> None:
    pushed = replace(HIGH, runtime=20 * DAY, save_every=DAY)
    low = replay(workload(LOW, pushed), ROUND).jobs[0]
    assert low.restart_waits == (low.seen_until - 718 * SECOND,)


# What is conserved.


@pytest.fixture(scope="module", params=HEURISTICS)
def outcome(request: pytest.FixtureRequest) -> Outcome:
    return replay(synthetic_week(2, stormy=True, load=1.3), lab_options(request.param), seed=2)


def test_every_job_ends_or_is_told_as_unfinished(outcome: Outcome) -> None:
    assert [one.job for one in outcome.jobs] == list(outcome.workload.jobs)
    ended = [one for one in outcome.jobs if one.ended_at is not None]
    assert len(ended) + figures_of(outcome).unfinished == len(outcome.jobs)
    assert len(ended) > 0.95 * len(outcome.jobs)
    for one in ended:
        assert one.status == ("SUCCEEDED" if one.job.fails_after is None else "FAILED")


def test_training_adds_up_to_what_the_job_needed_and_what_was_lost(outcome: Outcome) -> None:
    assert sum(one.preemptions for one in outcome.jobs) > 20
    for one in outcome.jobs:
        if one.ended_at is not None:
            assert one.kept == one.job.trains, one.job.name
        for attempt in one.attempts:
            assert 0 <= attempt.lost <= attempt.trained <= attempt.held(outcome.ended_at)
            assert attempt.lost == 0 or attempt.preempted
            longest = one.job.runtime if one.job.save_every is None else one.job.save_every
            assert attempt.lost <= longest


def test_attempts_follow_one_another(outcome: Outcome) -> None:
    for one in outcome.jobs:
        before = one.job.submitted_at
        for attempt in one.attempts:
            assert before < attempt.dispatched_at
            before = outcome.ended_at if attempt.ended_at is None else attempt.ended_at + NOTICE * SECOND - 1
        assert [attempt.preempted is None for attempt in one.attempts][:-1] == [False] * (
            len(one.attempts) - 1
        )


def changes(outcome: Outcome) -> Iterator[tuple[int, int]]:
    for one in outcome.jobs:
        for attempt in one.attempts:
            yield attempt.dispatched_at, one.job.gpus
            ended = attempt.dispatched_at + attempt.held(outcome.ended_at)
            yield ended, -one.job.gpus


def test_no_more_gpus_are_held_than_there_are(outcome: Outcome) -> None:
    held = 0
    for _, change in sorted(changes(outcome)):
        held += change
        assert 0 <= held <= outcome.workload.gpus
    assert held == 0


def test_use_is_the_time_that_gpus_were_held(outcome: Outcome) -> None:
    held, last, area, span = 0, 0, 0, outcome.workload.span
    for at, change in sorted(changes(outcome)):
        area += held * (min(at, span) - min(last, span))
        held, last = held + change, at
    assert figures_of(outcome).used == area / (outcome.workload.gpus * span)


class Meter(Native):
    """Reads the pool's own counter of instances in use, at every change."""

    name = "meter"

    def begin(self, hand: Hand) -> None:
        self._hand, self._last, self._total, self.area = hand, START, 0, 0
        (self._queue,) = hand.lab.state.queues.values()

    def changed(self, job: str, status: str) -> None:
        now = self._hand.now()
        self.area += self._total * (now - self._last)
        self._last, self._total = now, self._queue.pool.now.units[UNIT].total


def test_gpu_time_is_what_the_pool_itself_counted() -> None:
    meter = Meter()
    outcome = replay(synthetic_week(6, load=0.5), lab_options("random"), seed=6, controller=meter)
    assert figures_of(outcome).unfinished == 0
    held = sum(
        one.job.gpus * (attempt.held(outcome.ended_at) + NOTICE * SECOND)
        for one in outcome.jobs
        for attempt in one.attempts
    )
    assert meter.area == held
    assert outcome.controller == "meter"


def test_the_same_arguments_give_the_same_outcome_and_heuristics_differ() -> None:
    week = synthetic_week(7, load=0.7)
    first, again, other = (
        replay(week, lab_options(name), seed=7) for name in ("random", "random", "adversarial")
    )
    assert first == again
    assert first.jobs != other.jobs


# A controller.


class Raising(Native):
    """Raises a job once, so long after it was first seen waiting."""

    name = "raising"

    def __init__(self, after: int, to: int) -> None:
        self._after, self._to = after, to
        self._due: int | None = None
        self.seen: list[tuple[str, str, float]] = []
        self.asked: list[float] = []

    def begin(self, hand: Hand) -> None:
        self._hand = hand

    def changed(self, job: str, status: str) -> None:
        described = self._hand.describe(job)
        self.seen.append((described["jobName"], status, (self._hand.now() - START) / SECOND))
        if described["jobName"] == "late" and status == "RUNNABLE":
            self._job, self._due = job, self._hand.now() + self._after * SECOND

    def next_due(self) -> int | None:
        return self._due

    def due(self) -> None:
        self.asked.append((self._hand.now() - START) / SECOND)
        self._due = None
        self._hand.set_priority(self._job, self._to)


def crowd() -> Workload:
    long = Job("long", "a", "ana", 0, 1, 1_000 * SECOND, priority=100, save_every=100 * SECOND)
    early = Job("early", "a", "ana", 10 * SECOND, 1, 100 * SECOND, priority=100)
    late = Job("late", "a", "ben", 20 * SECOND, 1, 100 * SECOND, priority=100)
    return workload(long, early, late)


def test_a_controller_acts_at_its_own_time_and_changes_what_happens() -> None:
    native = {one.job.name: one for one in replay(crowd(), ROUND).jobs}
    assert native["late"].waited > native["early"].waited
    raising = Raising(after=180, to=300)
    raised = {one.job.name: one for one in replay(crowd(), ROUND, controller=raising).jobs}
    assert raising.asked == [21 + 180]
    assert raised["late"].attempts[0].dispatched_at == (201 + 17 + NOTICE) * SECOND
    assert raised["long"].attempts[0].preempted == "in-share"
    assert raised["late"].waited < raised["early"].waited


def test_a_controller_hears_every_change_of_state() -> None:
    raising = Raising(after=10_000, to=300)
    replay(workload(replace(LOW, runtime=100 * SECOND)), ROUND, controller=raising)
    assert raising.seen == [
        ("low", "RUNNABLE", 1),
        ("low", "SCHEDULED", 1),
        ("low", "STARTING", 11),
        ("low", "RUNNING", 21),
        ("low", "SUCCEEDED", 129),
    ]


class Insisting(Native):
    """Wants to be asked at a time that is long over."""

    def __init__(self) -> None:
        self.asked = 0

    def next_due(self) -> int | None:
        return START

    def due(self) -> None:
        self.asked += 1


def test_time_goes_on_under_a_controller_that_names_no_later_time() -> None:
    insisting = Insisting()
    outcome = replay(workload(replace(LOW, runtime=2 * SECOND)), ROUND, controller=insisting)
    assert figures_of(outcome).unfinished == 0
    assert insisting.asked > 1_000


def test_tags_tell_what_was_promised() -> None:
    seen = []

    class Reading(Native):
        def begin(self, hand: Hand) -> None:
            self._hand = hand

        def changed(self, job: str, status: str) -> None:
            seen.append(self._hand.describe(job)["tags"])

    sla = Sla("deadline", finish_by=DAY + 5 * HOUR, expected_runtime=90 * 60 * SECOND)
    replay(workload(replace(LOW, sla=sla)), ROUND, controller=Reading())
    assert seen[0] == {
        "team": "a",
        "user": "ana",
        "sla": "deadline",
        "deadline": "2026-09-15T05:00:00Z",
        "expected-runtime": "90m",
    }
