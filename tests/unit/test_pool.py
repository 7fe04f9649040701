"""One look at a whole queue: who holds what, and each job's place."""

from __future__ import annotations

from typing import Any

import pytest
from sharewarden.domain.known import KnownShares, facts_of
from sharewarden.domain.observation import JobDescription, Status
from sharewarden.domain.policy import Policy, QueuePolicy, SharePolicy, TeamPolicy
from sharewarden.domain.pool import GpuHours, Pool, pool_of, seen_in
from sharewarden.domain.record import JobRecord, absorb, new_record
from sharewarden.domain.rules.facts import Facts

from tests.simulation.samples import described, share
from tests.simulation.world import NOW

POLICY = Policy(
    queues={"ml-train-qm": QueuePolicy(shares={"urgent": SharePolicy(team="serving")})},
    teams={"research": TeamPolicy(sla=("gold",))},
)


def job(name: str, state: Status, at: int, **more: Any) -> JobRecord:
    """A job that was submitted, and if it runs dispatched, at that second."""
    told: dict[str, Any] = {"tags": (("team", "research"), ("user", "ada")), "created_at": NOW + at * 1000}
    if state != "RUNNABLE":
        told["scheduled_at"] = NOW + at * 1000
    description: JobDescription = described(job=name, arn=f"a/{name}", status=state, **told | more)
    description = description.model_copy(update={"read_at": NOW + 90_000})
    return absorb(new_record(description), description)


def looked(*records: JobRecord, **hours: GpuHours) -> Pool:
    return pool_of([(one, one.snapshot.status) for one in records if one.snapshot], POLICY, hours)


def facts(pool: Pool | None, record: JobRecord) -> Facts:
    shares = KnownShares(shares=(share(3),), whole=True)
    return seen_in(pool, facts_of(record, shares, POLICY, NOW), POLICY)


FIRST, SECOND, WAITS, WAITS_TOO, OTHERS = (
    job("b", "RUNNING", 20),
    job("a", "SCHEDULED", 30, tags=(("team", "research"),)),
    job("d", "RUNNABLE", 10),
    job("c", "RUNNABLE", 10),
    job("e", "RUNNING", 5, share="urgent", instance_count=8),
)
POOL = looked(OTHERS, SECOND, WAITS, FIRST, WAITS_TOO)


@pytest.mark.parametrize(
    ("record", "running", "queued"),
    [(FIRST, 2, None), (SECOND, 4, None), (WAITS_TOO, None, 1), (WAITS, None, 2)],
)
def test_each_job_has_its_place_in_its_team(
    record: JobRecord, running: int | None, queued: int | None
) -> None:
    team = facts(POOL, record).team
    assert team is not None
    assert (team.name, team.running_instances, team.running_gpus, team.queued_jobs) == ("research", 4, 4, 2)
    assert (team.running_up_to_job, team.queued_up_to_job) == (running, queued)
    assert team.granted_sla == ("gold",)


def test_a_user_is_counted_over_teams() -> None:
    user = facts(POOL, OTHERS).user
    assert user is not None
    assert (user.name, user.running_instances, user.running_up_to_job) == ("ada", 10, 8)
    assert facts(POOL, SECOND).user is None


def test_what_the_share_uses_and_borrows() -> None:
    found = facts(POOL, FIRST).share
    assert found is not None
    unit = found.units["ml.g5.xlarge"]
    assert (unit.limit, unit.used, unit.borrowed) == (3, 4, 1)
    alone = facts(looked(FIRST), FIRST).share
    assert alone is not None
    assert (alone.units["ml.g5.xlarge"].used, alone.units["ml.g5.xlarge"].borrowed) == (2, 0)


def test_gpu_hours_come_with_the_team() -> None:
    team = facts(looked(FIRST, research=GpuHours(owned={"day": 3.0}, borrowed={"day": 1.0})), FIRST).team
    assert team is not None
    assert (team.owned_gpu_hours, team.borrowed_gpu_hours) == ({"day": 3.0}, {"day": 1.0})


@pytest.mark.parametrize("pool", [None, looked(FIRST)], ids=["no look", "not in it"])
def test_of_a_job_that_was_not_looked_at_nothing_is_added(pool: Pool | None) -> None:
    seen = facts(pool, SECOND)
    assert (seen.team, seen.user) == (None, None)
    assert seen.share is not None
    assert seen.share.units["ml.g5.xlarge"].used is None


def test_a_job_that_has_moved_on_since_the_look_has_no_place_in_it() -> None:
    moved = job("d", "RUNNING", 40)
    ended = job("b", "SUCCEEDED", 20, stopped_at=NOW)
    assert (facts(POOL, moved).team, facts(POOL, ended).team) == (None, None)


def test_what_batch_lists_counts_and_not_what_the_record_says() -> None:
    pool = pool_of([(FIRST, "SUCCEEDED"), (WAITS, "RUNNING")], POLICY)
    assert pool.dispatched == {"d": True}
    assert pool.teams["research"].running_instances == 2


@pytest.mark.parametrize("known", [True, False], ids=["the listing is ahead of it", "nobody told"])
def test_law_02_a_job_whose_dispatch_is_not_known_has_no_place_and_pushes_nobody_back(known: bool) -> None:
    """It may have been dispatched first of all, or last."""
    unknown = job("a", "RUNNABLE", 1) if known else job("a", "RUNNING", 1, scheduled_at=None)
    pool = pool_of([(unknown, "RUNNING"), (FIRST, "RUNNING")], POLICY)
    dispatched = job("a", "RUNNING", 1)
    assert (facts(pool, dispatched).team, facts(pool, dispatched).user) == (None, None)
    team = facts(pool, FIRST).team
    assert team is not None
    assert (team.running_instances, team.running_up_to_job) == (4, 2)


def test_law_02_a_dispatch_from_before_the_listing_is_another_one() -> None:
    pool = pool_of([(FIRST, "RUNNING"), (SECOND, "SCHEDULED")], POLICY, behind={"b"})
    team = facts(pool, SECOND).team
    assert team is not None
    assert (facts(pool, FIRST).team, team.running_up_to_job) == (None, 2)


def test_a_job_of_no_team_and_of_unknown_size_accuses_nobody() -> None:
    record = job("x", "RUNNING", 1, tags=(), instance_count=None, instance_type=None)
    pool = looked(record)
    assert (facts(pool, record).team, facts(pool, record).user, pool.teams) == (None, None, {})


def test_the_figures_do_not_depend_on_the_order_of_the_records() -> None:
    assert looked(FIRST, WAITS, WAITS_TOO, OTHERS, SECOND) == POOL
