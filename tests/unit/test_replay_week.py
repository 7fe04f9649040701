"""The synthetic week against what was checked of it when its numbers were put together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from statistics import mean, median, pvariance

import pytest
from sharewarden_tools.replay.figures import percentile
from sharewarden_tools.replay.numbers import numbers
from sharewarden_tools.replay.week import HOUR, HOURS, synthetic_week
from sharewarden_tools.replay.workload import Job, Workload

SEEDS = range(40)
GPUS = 64


@pytest.fixture(scope="module")
def weeks() -> list[Workload]:
    return [synthetic_week(seed) for seed in SEEDS]


@pytest.fixture(scope="module")
def jobs(weeks: list[Workload]) -> list[Job]:
    return [job for week in weeks for job in week.jobs]


def within(value: float | None, wanted: float, part: float) -> None:
    assert value == pytest.approx(wanted, rel=part)


def hours(jobs: Iterable[Job], percent: int) -> float:
    return (percentile((job.runtime for job in jobs), percent) or 0) / HOUR


def test_jobs_a_week(weeks: list[Workload]) -> None:
    counts = [len(week.jobs) for week in weeks]
    within(median(counts), 870, 0.05)
    within(percentile(counts, 10), 700, 0.07)
    within(percentile(counts, 90), 1_030, 0.07)


def test_offered_load_without_failures(weeks: list[Workload]) -> None:
    loads = [sum(job.gpus * job.runtime for job in week.jobs) / GPUS / week.span for week in weeks]
    within(median(loads), 0.80, 0.08)
    within(sorted(loads)[4], 0.56, 0.12)
    within(sorted(loads)[36], 1.10, 0.12)


def test_run_times(jobs: list[Job]) -> None:
    within(3_600 * hours(jobs, 50), 613, 0.06)
    within(hours(jobs, 90), 5.3, 0.06)
    within(hours(jobs, 95), 11.6, 0.06)
    within(hours(jobs, 99), 44, 0.1)
    assert min(job.runtime for job in jobs) == numbers().shortest


def test_gpu_time_by_size(jobs: list[Job]) -> None:
    by_size: Counter[int] = Counter()
    for job in jobs:
        by_size[job.gpus] += job.gpus * job.runtime
    total = by_size.total()
    parts = {size: 100 * time / total for size, time in by_size.items()}
    assert parts == pytest.approx({1: 12, 2: 3, 4: 9, 8: 37, 16: 25, 32: 14}, abs=2.5)
    within(total / HOUR / len(jobs), 10.4, 0.08)


def test_few_jobs_hold_much_of_it(weeks: list[Workload]) -> None:
    def top(week: Workload) -> float:
        times = sorted((job.gpus * job.runtime for job in week.jobs), reverse=True)
        return sum(times[: len(times) // 100]) / sum(times)

    within(median(map(top, weeks)), 0.44, 0.1)


def by_hour(week: Workload) -> list[int]:
    counts = Counter(job.submitted_at // HOUR for job in week.jobs)
    return [counts[hour] for hour in range(HOURS)]


def test_arrivals_are_bursty_and_follow_the_hour(weeks: list[Workload]) -> None:
    ratios = [pvariance(counts) / mean(counts) for counts in map(by_hour, weeks)]
    within(mean(ratios), 13, 0.12)
    together = [sum(counts) for counts in zip(*map(by_hour, weeks), strict=True)]
    night, afternoon = mean(together[3:7]), mean(together[14:18])
    assert night < afternoon / 4
    morning = [
        mean(together[24 * day + 9 : 24 * day + 12]) / mean(together[24 * day :][:24]) for day in range(7)
    ]
    assert mean(morning[:5]) > 1.1
    assert mean(morning[5:]) < 1
    assert sum(together[5 * 24 :]) / 2 < sum(together[: 5 * 24]) / 5


def test_outcomes_and_priorities(jobs: list[Job]) -> None:
    failed = [job for job in jobs if job.fails_after is not None]
    within(len(failed) / len(jobs), 0.166, 0.05)
    assert all(job.trains <= job.runtime for job in failed)
    early = [job for job in failed if job.trains <= numbers().failures.early_within]
    assert 0.7 < len(early) / len(failed) < 0.95
    high = [job for job in jobs if job.priority == numbers().teams[job.share].priorities[0]]
    within(len(high) / len(jobs), 0.10, 0.2)


@pytest.mark.parametrize("team", sorted(numbers().teams))
def test_a_team_sends_what_its_row_says(team: str, jobs: list[Job]) -> None:
    mine, row = [job for job in jobs if job.share == team], numbers().teams[team]
    for size, part in row.sizes.items():
        batches = [job for job in mine if job.gpus == size]
        assert len(batches) / len(mine) == pytest.approx(part, abs=0.04)
    assert max(job.runtime for job in mine) <= row.longest
    saving = sum(job.save_every == row.save_every for job in mine if row.save_every) / len(mine)
    wanted = 1 - row.users_without_saves if row.save_every else 0
    assert saving == pytest.approx(wanted, abs=0.1)
    for name, part in row.sla.items():
        assert sum(job.sla is not None and job.sla.name == name for job in mine) / len(mine) == pytest.approx(
            part, abs=0.05
        )


def test_batches_come_job_after_job_of_one_user_with_one_size(weeks: list[Workload]) -> None:
    sweeps = [[job for job in week.jobs if job.share == "sweeps"] for week in weeks]
    pairs = [pair for jobs in sweeps for pair in pairwise(jobs)]
    close = [(one, other) for one, other in pairs if other.submitted_at - one.submitted_at == 5_000]
    assert len(close) / len(pairs) > 0.7
    assert mean((one.user, one.gpus) == (other.user, other.gpus) for one, other in close) > 0.97


def test_the_first_of_a_team_s_users_sends_about_half_and_most_hear_sigterm(jobs: list[Job]) -> None:
    within(sum(job.user.endswith("-1") for job in jobs) / len(jobs), 0.48, 0.1)
    users = {job.user for job in jobs if job.share == "vision"}
    assert users == {f"vision-user-{number}" for number in range(1, 9)}
    saving = [job for job in jobs if job.save_every]
    within(sum(job.stop_save is not None for job in saving) / len(saving), 0.6, 0.12)


@pytest.mark.parametrize(
    ("team", "gpus", "seconds"), [("foundation", 8, 52), ("foundation", 32, 114), ("eval", 1, 0)]
)
def test_checkpoints_over_the_bandwidth_of_the_nodes(
    team: str, gpus: int, seconds: int, jobs: list[Job]
) -> None:
    loads = {job.load for job in jobs if job.share == team and job.gpus == gpus}
    assert loads == {1_000 * seconds}


def test_a_deadline_leaves_time_and_a_guess_is_about_right(jobs: list[Job]) -> None:
    promised = [(job, job.sla) for job in jobs if job.sla]
    for job, sla in promised:
        if sla.finish_by is not None:
            assert sla.finish_by == job.submitted_at + round(1.5 * job.runtime) + 2 * HOUR
    ratios = [(sla.expected_runtime or 0) / job.runtime for job, sla in promised if job.runtime > HOUR]
    within(median(ratios), 1.0, 0.05)
    assert percentile((round(100 * ratio) for ratio in ratios), 90) == pytest.approx(147, abs=8)


def test_the_same_seed_tells_the_same_story_and_another_one_another() -> None:
    assert synthetic_week(3) == synthetic_week(3)
    assert synthetic_week(3).jobs != synthetic_week(4).jobs


def test_load_multiplies_the_sessions_and_storms_only_spread_them(weeks: list[Workload]) -> None:
    usual = mean(len(week.jobs) for week in weeks)
    within(mean(len(synthetic_week(seed, load=1.3).jobs) for seed in SEEDS) / usual, 1.3, 0.05)
    stormy = [synthetic_week(seed, stormy=True) for seed in SEEDS]
    within(mean(len(week.jobs) for week in stormy) / usual, 1.0, 0.06)

    def days(week: Workload) -> float:
        counts = Counter(job.submitted_at // (24 * HOUR) for job in week.jobs)
        return pvariance(list(counts.values())) / mean(counts.values())

    assert mean(map(days, stormy)) > 1.3 * mean(map(days, weeks))


def test_jobs_come_in_order_with_names_of_their_own(weeks: list[Workload]) -> None:
    for week in weeks[:10]:
        assert [job.submitted_at for job in week.jobs] == sorted(job.submitted_at for job in week.jobs)
        assert len({job.name for job in week.jobs}) == len(week.jobs)
        assert week.gpus == GPUS
