"""GPU-hours follow from the records alone: whatever was doubled, late, reopened or crashed in between."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from sharewarden.domain.booking import Span, UsageDay
from sharewarden.domain.policy import Policy, QueuePolicy, SharePolicy
from sharewarden.domain.record import JobRecord
from sharewarden.domain.stored import DAY, HOUR
from sharewarden.domain.usage import Window
from sharewarden.usecases.usage import queue_usage

from tests.simulation.faults import crash, lose, watched
from tests.simulation.pool import story
from tests.simulation.samples import FIRST, described, share
from tests.simulation.usage_kit import (
    SECOND,
    TEAMS,
    Job,
    Used,
    begin,
    by_definition,
    close,
    counted,
    forget_records,
    hear,
    pool,
    put_shares,
    second_by_second,
)
from tests.simulation.world import NOW, QUEUE, World, facts_of, reproduce, seeds, stored, world

POLICY = Policy(
    queues={"ml-train-qm": QueuePolicy(shares={name: SharePolicy(team=TEAMS[name]) for name in TEAMS})}
)
#: The jobs run across a midnight.
START = (NOW // DAY + 1) * DAY - 600 * SECOND
LENGTH = 1200
WINDOW = Window(START, START + LENGTH * SECOND)


def told_in_any_order(seed: int, jobs: list[Job], *, faults: bool) -> World:
    """Every event at least once, closings in between wherever the end is known, and one at last."""
    rng, one = random.Random(seed), world(policy=POLICY)
    one.clock.at = WINDOW.until
    put_shares(one)
    for job in jobs:
        begin(one, job)
    if faults:
        one.runtime, _ = watched(one.runtime, lambda *_: rng.choice(FAULTS)() if rng.random() < 0.1 else None)
    todo = [(job, seen) for job in jobs for seen in job.told for _ in range(rng.choice((1, 1, 2)))]
    rng.shuffle(todo)
    for job, seen in todo:
        hear(one, job, seen)
        if rng.random() < 0.4:
            close(one, rng.choice(jobs))
    rng.shuffle(jobs)
    for job in jobs:
        close(one, job)
    return one


FAULTS = (crash, lose)


def used(one: World) -> Used:
    plain = replace(one.runtime, ledger=one.ledger, policies=one.policies)
    return counted(queue_usage(plain, QUEUE, WINDOW).days)


@pytest.mark.parametrize("faults", [False, True], ids=["calm", "faults"])
@pytest.mark.parametrize("seed", seeds(25))
def test_law_10_closed_jobs_leave_the_same_figures_whatever_happened_on_the_way(
    seed: int, faults: bool
) -> None:
    jobs = pool(seed, START, LENGTH)
    truth = second_by_second(jobs, START, *WINDOW)
    one = told_in_any_order(seed, jobs, faults=faults)
    line = reproduce("closed_jobs_leave", seed)
    assert not list(one.ledger.open_items(JobRecord, QUEUE)), line
    assert used(one) == truth, line
    forget_records(one)
    assert used(one) == truth, line


@pytest.mark.parametrize("seed", seeds(25))
def test_open_closed_and_reopened_jobs_give_one_figure(seed: int) -> None:
    """Some are still open, some are booked, some are both: at any time the sums are those of the truth."""
    rng, jobs, one = random.Random(seed), pool(seed, START, LENGTH), world(policy=POLICY)
    one.clock.at = WINDOW.until
    put_shares(one)
    for job in jobs:
        begin(one, job)
        for seen in job.told:
            hear(one, job, seen)
    truth = second_by_second(jobs, START, *WINDOW)
    for job in rng.choices(jobs, k=20):
        close(one, job)
        if rng.random() < 0.3:
            record = one.record(job.name)
            one.ledger.commit([record.model_copy(update={"closed_at": None})], [], one.clock.now())
        assert used(one) == truth, reproduce("open_closed_and_reopened", seed)


@pytest.mark.parametrize("seed", seeds(10))
def test_a_running_job_counts_until_now(seed: int) -> None:
    """Half way through, known by the events so far."""
    now = START + LENGTH // 2 * SECOND
    jobs, one = pool(seed, START, LENGTH), world(policy=POLICY)
    put_shares(one)
    for job in jobs:
        begin(one, job)
        for seen in job.told:
            if seen.at <= now:
                hear(one, job, seen)
    found = queue_usage(one.runtime, QUEUE, Window(START, now)).days
    assert counted(found) == second_by_second(jobs, START, START, now), reproduce("counts_until_now", seed)


def test_owned_and_borrowed_are_all_of_the_time() -> None:
    jobs = pool(3, START, LENGTH, jobs=40)
    one = told_in_any_order(3, jobs, faults=False)
    whole = sum((end - start) * job.instances * SECOND for job in jobs for start, end in job.runs)
    assert sum(used(one).values()) == whole
    assert {kind for *_, kind in used(one)} == {"owned", "borrowed"}


def test_the_days_that_a_record_has_booked_are_those_that_hold_its_time() -> None:
    jobs = pool(4, START, LENGTH)
    one = told_in_any_order(4, jobs, faults=True)
    for job in jobs:
        held = {item.day for item in stored(one.ledger, UsageDay) if item.job == job.name and item.spans}
        assert set(one.record(job.name).booked_days) == held


@pytest.mark.parametrize("seed", seeds(4))
def test_law_10_after_a_busy_day_the_figures_are_what_the_training_jobs_were(seed: int) -> None:
    """The real sweep closes and books, after events doubled and in any order; then the records expire."""
    told = story(seed, jobs=40)
    one, rng = told.world(), random.Random(seed)
    events = [event for _, event in told.events for _ in range(rng.randint(1, 2))]
    rng.shuffle(events)
    one.take(*events)
    one.settle(3)
    truth, line = by_definition(told.lab, limit=1), reproduce("after_a_busy_day", seed)
    assert {kind for *_, kind in truth} == {"owned", "borrowed"}
    by_share = {name: SharePolicy(team=name) for name in (*TEAMS, "urgent")}
    one.policies.policy = Policy(queues={"ml-train-qm": QueuePolicy(shares=by_share)})
    window = Window(NOW, told.lab.now())
    assert counted(queue_usage(one.runtime, QUEUE, window).days) == truth, line
    one.clock.advance(2 * DAY)
    one.settle()
    assert not list(one.ledger.open_items(JobRecord, QUEUE)), line
    forget_records(one)
    assert counted(queue_usage(one.runtime, QUEUE, window).days) == truth, line


@pytest.mark.parametrize(("limit", "fires"), [(2.5, True), (3.0, True), (3.5, False)])
def test_a_budget_counts_jobs_whose_records_are_gone_and_those_that_run(limit: float, fires: bool) -> None:
    """Two GPU-hours are booked, one more was used since; the finding is about the job that waits."""
    entry = {"rule": "gpu-hour-budget", "period": "week", "total": limit}
    shares = {name: {"team": team} for name, team in TEAMS.items()}
    policy = {"queues": {"ml-train-qm": {"shares": shares}}, "guardrails": [entry]}
    one = world(policy=Policy.model_validate(policy))
    one.batch.quota_shares[QUEUE] = [share(1)]
    span = Span(attempt="gone", started_at=NOW - 2 * HOUR, stopped_at=NOW - HOUR)
    known = {"share": "background", "unit": "ml.g5.xlarge", "instances": 2, "spans": (span,)}
    one.ledger.commit([UsageDay(job="gone", queue=QUEUE, day=NOW // DAY, **known)], [], NOW)
    running = {"status": "RUNNING", "attempt": FIRST, "started_at": NOW - HOUR, "instance_count": 1}
    one.batch.tell(described(**running))
    one.batch.tell(described(job="job-2", arn="arn:aws:batch:us-east-1:123456789012:service-job/job-2"))
    one.sweep()
    one.sweep()
    found = facts_of(one.ledger, "finding")
    assert [fact.figures["total"]["used"] for fact in found] == ([3.0] if fires else [])
