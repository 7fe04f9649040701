"""Who gets capacity, who gives it back and who waits, on pools that can be worked out by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.contract.lab_clients import UNIT, Bench, payload

STARTED = "Batch Service Job Preemption Started"
OTHER = "ml.p5.48xlarge"
BOTH = "LEND_AND_BORROW"


def of(instances: int) -> dict[str, str]:
    """The payload of a job of so many instances of UNIT."""
    return {"serviceRequestPayload": payload(instances=instances)}


def grouped(**groups: int) -> dict[str, str]:
    """The payload of a heterogeneous cluster: ``one`` instances of UNIT, ``other`` of OTHER."""
    units = {"one": UNIT, "other": OTHER}
    listed = [
        {"InstanceGroupName": name, "InstanceType": units[name], "InstanceCount": count}
        for name, count in groups.items()
    ]
    request = json.loads(payload()) | {"ResourceConfig": {"VolumeSizeInGB": 50, "InstanceGroups": listed}}
    return {"serviceRequestPayload": json.dumps(request)}


def limits(own: int, other: int) -> list[dict[str, Any]]:
    return [{"capacityUnit": UNIT, "maxCapacity": own}, {"capacityUnit": OTHER, "maxCapacity": other}]


def preempted(bench: Bench) -> list[str]:
    return [detail["preemptedJobArn"].rsplit("/", 1)[1] for detail in bench.heard(STARTED)]


def settle(bench: Bench, *jobs: str) -> list[str]:
    bench.pass_time(120)
    return bench.status(*jobs)


def test_a_share_fills_its_own_capacity_before_anyone_borrows_it() -> None:
    bench = Bench(capacity=2)
    bench.share("borrower", 0, BOTH)
    bench.share("owner", 2, BOTH)
    jobs = [bench.submit("borrower"), bench.submit("owner"), bench.submit("owner")]
    assert settle(bench, *jobs) == ["RUNNABLE", "RUNNING", "RUNNING"]


@pytest.mark.parametrize(("instances", "status"), [(4, "RUNNING"), (5, "RUNNABLE")])
def test_half_an_instance_cannot_be_borrowed(instances: int, status: str) -> None:
    bench = Bench(capacity=13)
    bench.share("s", 3, BOTH, borrow=50)
    bench.share("lender", 10, "LEND")
    assert settle(bench, bench.submit("s", **of(instances))) == [status]


@pytest.mark.parametrize(("backfill", "status"), [(True, "RUNNING"), (False, "RUNNABLE")])
def test_a_later_borrower_may_pass_one_that_does_not_fit(backfill: bool, status: str) -> None:
    bench = Bench(capacity=2, borrow_backfill=backfill)
    for name, own, strategy in (("a", 0, BOTH), ("b", 0, BOTH), ("lender", 2, "LEND")):
        bench.share(name, own, strategy)
    bench.until(bench.submit("lender"), "RUNNING")
    big = bench.submit("a", **of(2))
    bench.pass_time(5)
    assert settle(bench, big, bench.submit("b")) == ["RUNNABLE", status]


def test_what_the_environment_has_beyond_all_shares_cannot_be_borrowed() -> None:
    bench = Bench(capacity=9)
    bench.share("s", 1, BOTH)
    bench.share("keeper", 1, "RESERVE")
    assert settle(bench, bench.submit("s"), bench.submit("s")) == ["RUNNING", "RUNNABLE"]


def test_shares_promised_more_than_there_is_never_use_more() -> None:
    bench = Bench(capacity=3)
    jobs = []
    for name in ("a", "b"):
        bench.share(name, 2, BOTH)
        jobs += [bench.submit(name), bench.submit(name)]
    assert sorted(settle(bench, *jobs)) == ["RUNNABLE", "RUNNING", "RUNNING", "RUNNING"]


def test_a_victim_holds_its_capacity_until_batch_has_noticed_that_it_stopped() -> None:
    bench = Bench(capacity=1)
    bench.share("bg", 0, BOTH)
    bench.share("owner", 1, BOTH)
    victim = bench.submit("bg")
    bench.until(victim, "RUNNING")
    owner = bench.submit("owner")
    bench.pass_time(2)
    for _ in range(19):  # 17 s to stop, 3 s until Batch hears of it
        assert bench.status(victim, owner) == ["RUNNING", "RUNNABLE"]
        snapshot = bench.batch.get_job_queue_snapshot(jobQueue=bench.queue)
        usage = snapshot["queueUtilization"]["totalCapacityUsage"]
        assert usage == [{"capacityUnit": UNIT, "quantity": 1.0}]
        bench.pass_time(1)
    bench.pass_time(2)
    assert bench.status(victim, owner) == ["RUNNABLE", "SCHEDULED"]


def test_a_share_starts_jobs_by_priority_then_first_in_first_out() -> None:
    bench = Bench(capacity=2)
    bench.share("s", 2)
    early, later, high = bench.submit("s"), bench.submit("s"), bench.submit("s", schedulingPriority=9)
    assert settle(bench, early, later, high) == ["RUNNING", "RUNNABLE", "RUNNING"]


@pytest.mark.parametrize("small", [grouped(one=1), grouped(other=1)], ids=["same type", "other type"])
def test_a_front_job_that_waits_holds_its_share_but_no_other(small: dict[str, str]) -> None:
    bench = Bench(capacity=3)
    bench.batch.update_service_environment(serviceEnvironment="pool", capacityLimits=limits(3, 1))
    bench.share("s", capacityLimits=limits(2, 1))
    bench.share("t")
    bench.until(bench.submit("s"), "RUNNING")
    big = bench.submit("s", **of(2))
    bench.pass_time(5)
    jobs = [big, bench.submit("s", **small), bench.submit("t")]
    assert settle(bench, *jobs) == ["RUNNABLE", "RUNNABLE", "RUNNING"]


def test_a_job_of_two_instance_types_starts_when_both_are_free() -> None:
    bench = Bench(capacity=2)
    bench.batch.update_service_environment(serviceEnvironment="pool", capacityLimits=limits(2, 1))
    bench.share("s", capacityLimits=limits(2, 1))
    first = bench.submit("s")
    bench.until(first, "RUNNING")
    both = bench.submit("s", **grouped(one=2, other=1))
    assert settle(bench, both) == ["RUNNABLE"]
    bench.batch.terminate_service_job(jobId=first, reason="make room")
    assert settle(bench, both) == ["RUNNING"]
    assert bench.describe(both)["capacityUsage"] == [
        {"capacityUnit": UNIT, "quantity": 2.0},
        {"capacityUnit": OTHER, "quantity": 1.0},
    ]


def test_waiting_jobs_of_an_owner_take_back_together() -> None:
    bench = Bench(capacity=3)
    bench.share("bg", 0, BOTH)
    bench.share("owner", 3, BOTH)
    background = [bench.submit("bg") for _ in range(3)]
    bench.until(background[-1], "RUNNING")
    owners = [bench.submit("owner") for _ in range(2)]
    bench.pass_time(3)
    assert len(preempted(bench)) == 2
    assert settle(bench, *owners) == ["RUNNING", "RUNNING"]


@pytest.mark.parametrize(("instances", "victims"), [(2, 1), (4, 0)])
def test_a_job_beyond_its_own_capacity_takes_nothing_back(instances: int, victims: int) -> None:
    """The owner lent 2: a job of 2 gets them back, one that would have to borrow as well waits."""
    bench = Bench(capacity=4)
    bench.share("bg", 0, BOTH)
    bench.share("owner", 2, BOTH)
    bench.share("lender", 2, "LEND")
    background = [bench.submit("bg", **of(2)) for _ in range(2)]
    bench.until(background[-1], "RUNNING")
    owner = bench.submit("owner", **of(instances))
    assert settle(bench, owner) == ["RUNNING" if victims else "RUNNABLE"]
    assert len(preempted(bench)) == victims


@pytest.mark.parametrize(("reclaim", "status"), [(True, "RUNNABLE"), (False, "RUNNING")])
def test_borrowing_that_lost_its_lender_is_taken_back(reclaim: bool, status: str) -> None:
    bench = Bench(capacity=1, reclaim_uncovered=reclaim)
    bench.share("bg", 0, BOTH)
    lender = bench.share("lender", 1, "LEND")
    job = bench.submit("bg")
    bench.until(job, "RUNNING")
    bench.batch.update_quota_share(quotaShareArn=lender, resourceSharingConfiguration={"strategy": "RESERVE"})
    assert settle(bench, job) == [status]


@pytest.mark.parametrize(("heuristic", "victim"), [("documented", "large"), ("adversarial", "long")])
def test_who_loses_is_up_to_the_heuristic(heuristic: str, victim: str) -> None:
    """Documented inputs: more borrowed instances first; the adversary takes the longest unsaved run."""
    bench = Bench(capacity=4, heuristic=heuristic)
    bench.share("small", 0, BOTH)
    bench.share("big", 0, BOTH)
    bench.share("owner", 4, BOTH)
    jobs = {"long": bench.submit("small")}
    bench.until(jobs["long"], "RUNNING")
    jobs["large"] = bench.submit("big", **of(3))
    bench.until(jobs["large"], "RUNNING")
    bench.submit("owner")
    bench.pass_time(3)
    assert preempted(bench) == [jobs[victim]]


@pytest.mark.parametrize(("priority", "loser"), [(9, "long"), (0, "short")])
def test_among_equal_borrowers_lower_priority_then_the_shorter_run_loses(priority: int, loser: str) -> None:
    bench = Bench(capacity=2)
    bench.share("bg", 0, BOTH)
    bench.share("owner", 2, BOTH)
    jobs = {"long": bench.submit("bg", schedulingPriority=0)}
    bench.until(jobs["long"], "RUNNING")
    jobs["short"] = bench.submit("bg", schedulingPriority=priority)
    bench.until(jobs["short"], "RUNNING")
    bench.submit("owner")
    bench.pass_time(3)
    assert preempted(bench) == [jobs[loser]]


def test_a_unit_without_a_limit_blocks() -> None:
    bench = Bench(capacity=2)
    bench.batch.update_service_environment(serviceEnvironment="pool", capacityLimits=limits(2, 1))
    bench.share("s", 2)
    job = bench.submit("s", **grouped(other=1))
    assert settle(bench, job) == ["RUNNABLE"]
    reason = bench.describe(job)["statusReason"]
    assert reason.endswith("Job requirements exceed quota share capacity limits.")


@pytest.mark.parametrize(("holds", "status"), [(False, "RUNNING"), (True, "RUNNABLE")])
def test_a_blocked_share_and_the_rest_of_the_queue(holds: bool, status: str) -> None:
    bench = Bench(capacity=2, blocked_share_holds_queue=holds)
    bench.share("s", 1)
    bench.share("t", 1)
    never = bench.submit("s", **of(2))
    bench.pass_time(5)
    assert settle(bench, never, bench.submit("t")) == ["RUNNABLE", status]
