"""The scheduler alone, on pools whose outcome can be worked out by hand."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from sharewarden_tools.lab.book import PoolJob, ShareRules
from sharewarden_tools.lab.heuristics import adversarial, documented, seeded
from sharewarden_tools.lab.pool import Pool
from sharewarden_tools.lab.scheduler import (
    ENVIRONMENT_MAX,
    OVER_BORROW_LIMIT,
    OVER_BORROWABLE,
    OVER_LIMIT,
    Plan,
    Rules,
    plan,
)

A, B = "ml.g5.xlarge", "ml.p5.48xlarge"
DEFAULTS = Rules()
BOTH, LEND, RESERVE = "LEND_AND_BORROW", "LEND", "RESERVE"


def rules(own: int, strategy: str = BOTH, borrow: int = -1, *, in_share: bool = False) -> ShareRules:
    return ShareRules({A: own}, strategy, borrow, in_share)  # type: ignore[arg-type]


@dataclass
class Table:
    """A pool on one line per share, jobs named `share/name`."""

    shares: dict[str, ShareRules]
    environment: int = 100
    pool: Pool = field(init=False)
    jobs: dict[str, PoolJob] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.pool = Pool({A: self.environment, B: self.environment})
        for name, share in self.shares.items():
            self.pool.configure_share(name, share)

    def wait(self, name: str, instances: int = 1, priority: int = 0, unit: str = A) -> PoolJob:
        job = self._job(name, instances, priority, unit)
        self.pool.enqueue(job)
        return job

    def run(self, name: str, instances: int = 1, priority: int = 0, at: int = 0) -> PoolJob:
        job = self._job(name, instances, priority, A)
        self.pool.dispatch(job, at)
        return job

    def _job(self, name: str, instances: int, priority: int, unit: str) -> PoolJob:
        share = name.partition("/")[0]
        self.jobs[name] = PoolJob(name, share, ((unit, instances),), priority, len(self.jobs))
        return self.jobs[name]

    def plan(self, rules: Rules = DEFAULTS) -> Plan:
        return plan(self.pool, documented, 1_000_000, rules)

    def outcome(self, rules: Rules = DEFAULTS) -> tuple[list[str], list[str]]:
        """Names dispatched, and names preempted."""
        decided = self.plan(rules)
        return [d.job.id for d in decided.dispatches], [p.job.id for p in decided.preemptions]


@pytest.mark.parametrize(
    ("share", "instances", "starts"),
    [
        (rules(2, BOTH, 100), 4, True),  # the user guide's example: own 2, borrowLimit 100, at most 4
        (rules(2, BOTH, 100), 5, False),
        (rules(2, BOTH, 200), 6, True),
        (rules(2, BOTH, 0), 2, True),
        (rules(2, BOTH, 0), 3, False),
        (rules(2, BOTH, -1), 12, True),
        (rules(2, BOTH, -1), 13, False),  # 10 are lent, no more
        (rules(2, LEND), 2, True),
        (rules(2, LEND), 3, False),
        (rules(2, RESERVE), 3, False),
        (rules(3, BOTH, 50), 4, True),  # 50 % of 3 is one whole instance
        (rules(3, BOTH, 50), 5, False),
    ],
)
def test_largest_job(share: ShareRules, instances: int, *, starts: bool) -> None:
    table = Table({"s": share, "lender": rules(10, LEND)})
    table.wait("s/job", instances)
    assert table.outcome()[0] == (["s/job"] if starts else [])


@pytest.mark.parametrize(("strategy", "lent"), [(RESERVE, False), (LEND, True), (BOTH, True)])
def test_idle_capacity_is_lent_unless_reserved(strategy: str, *, lent: bool) -> None:
    table = Table({"s": rules(0), "idle": rules(1, strategy)})
    table.wait("s/job")
    assert table.outcome()[0] == (["s/job"] if lent else [])


def test_own_capacity_first_then_borrowers_first_in_first_out() -> None:
    table = Table({"a": rules(0), "b": rules(0), "owner": rules(3)})
    for name in ("b/first", "a/second", "b/third", "owner/mine"):
        table.wait(name)
    assert table.outcome()[0] == ["owner/mine", "b/first", "a/second"]


def test_priority_then_fifo_within_a_share() -> None:
    table = Table({"s": rules(2, RESERVE)})
    table.wait("s/early"), table.wait("s/later"), table.wait("s/high", priority=9)
    assert table.outcome()[0] == ["s/high", "s/early"]


def test_a_front_job_that_waits_holds_its_share_but_no_other() -> None:
    table = Table({"s": rules(2, RESERVE), "t": rules(1, RESERVE)})
    table.run("s/runs")
    table.wait("s/big", 2), table.wait("s/small"), table.wait("t/job")
    assert table.outcome() == (["t/job"], [])


@pytest.mark.parametrize(("backfill", "started"), [(True, ["b/small"]), (False, [])])
def test_a_borrower_that_does_not_fit(backfill: bool, started: list[str]) -> None:
    table = Table({"a": rules(0), "b": rules(0), "lender": rules(2, LEND)})
    table.run("lender/runs")
    table.wait("a/big", 2), table.wait("b/small")
    assert table.outcome(Rules(borrow_backfill=backfill))[0] == started


def test_lent_capacity_comes_back_when_its_owner_has_work() -> None:
    table = Table({"bg": rules(1), "owner": rules(1)}, environment=2)
    table.run("bg/own"), table.run("bg/borrowed", at=500)
    table.wait("owner/job")
    decided = table.plan()
    assert [(p.job.id, p.kind, p.demander) for p in decided.preemptions] == [
        ("bg/borrowed", "cross-share", table.jobs["owner/job"])
    ]


def test_while_the_victim_stops_nothing_more_happens_and_then_the_owner_starts() -> None:
    table = Table({"bg": rules(1), "owner": rules(1), "other": rules(0)}, environment=2)
    table.run("bg/own")
    victim = table.run("bg/borrowed", at=5)
    table.wait("owner/job"), table.wait("other/greedy")
    decided = table.plan()
    assert (decided.preemptions[0].job, decided.claims) == (victim, {"owner": 1})
    table.pool.stop(victim)
    table.pool.claims = decided.claims
    assert table.outcome() == ([], [])
    table.pool.release(victim)
    assert table.outcome() == (["owner/job"], [])


def test_several_waiting_jobs_of_an_owner_take_back_together() -> None:
    table = Table({"bg": rules(0), "owner": rules(3)}, environment=3)
    for name in ("bg/1", "bg/2", "bg/3"):
        table.run(name)
    table.wait("owner/1"), table.wait("owner/2")
    assert len(table.outcome()[1]) == 2


@pytest.mark.parametrize(("instances", "victims"), [(2, ["bg/a"]), (4, [])])
def test_a_job_beyond_its_own_capacity_takes_nothing_back(instances: int, victims: list[str]) -> None:
    """The owner lent 2: a job of 2 gets them back, one that would have to borrow as well waits."""
    table = Table({"bg": rules(0), "owner": rules(2), "lender": rules(2, LEND)}, environment=4)
    table.run("bg/a", 2, at=5), table.run("bg/b", 2)
    table.wait("owner/job", instances)
    assert table.outcome() == ([], victims)


def test_no_preemption_when_it_would_not_make_room() -> None:
    """The environment is smaller than the shares together, and nobody borrows."""
    table = Table({"a": rules(2, RESERVE), "b": rules(2)}, environment=2)
    table.run("a/1"), table.run("a/2")
    table.wait("b/job")
    assert table.outcome() == ([], [])


def test_victims_that_later_ones_made_needless_are_spared() -> None:
    table = Table({"bg": rules(0), "owner": rules(4)}, environment=5)
    table.pool.configure_share("bg", rules(1))
    table.run("bg/small", 1, priority=0, at=900_000), table.run("bg/large", 4, priority=5)
    table.wait("owner/job", 4)
    assert table.outcome()[1] == ["bg/large"]


@pytest.mark.parametrize(
    ("in_share", "waiting", "victims"),
    [
        (True, 9, ["s/low"]),
        (True, 3, []),  # equal is not higher
        (False, 9, []),
    ],
)
def test_in_share_preemption(in_share: bool, waiting: int, victims: list[str]) -> None:
    table = Table({"s": rules(2, RESERVE, in_share=in_share)})
    table.run("s/low", priority=3), table.run("s/high", priority=5)
    table.wait("s/job", priority=waiting)
    assert table.outcome() == ([], victims)


def test_in_share_preemption_never_reaches_another_share() -> None:
    table = Table({"s": rules(1, in_share=True), "t": rules(1)}, environment=2)
    table.run("t/low", 2, priority=0)
    table.wait("s/mine", 2, priority=9)
    assert table.outcome() == ([], [])


def test_idle_capacity_spares_the_lower_priority() -> None:
    table = Table({"s": rules(1, in_share=True), "lender": rules(1, LEND)})
    table.run("s/low")
    table.wait("s/high", priority=9)
    assert table.outcome() == (["s/high"], [])


@pytest.mark.parametrize("strategy", [RESERVE, LEND, BOTH])
def test_a_lowered_limit_preempts_whatever_the_strategy(strategy: str) -> None:
    table = Table({"s": rules(2, strategy, 0 if strategy == BOTH else -1)})
    table.run("s/long", at=0), table.run("s/short", at=900)
    table.pool.configure_share("s", rules(1, strategy, 0 if strategy == BOTH else -1))
    decided = table.plan()
    assert [(p.job.id, p.kind, p.demander) for p in decided.preemptions] == [("s/short", "limit", None)]


@pytest.mark.parametrize(("reclaim", "victims"), [(True, ["bg/job"]), (False, [])])
def test_borrowing_that_lost_its_lender(reclaim: bool, victims: list[str]) -> None:
    table = Table({"bg": rules(0), "lender": rules(1, LEND)})
    table.run("bg/job")
    table.pool.configure_share("lender", rules(1, RESERVE))
    assert table.outcome(Rules(reclaim_uncovered=reclaim))[1] == victims


@pytest.mark.parametrize(
    ("share", "instances", "reason"),
    [
        (rules(2, RESERVE), 3, OVER_LIMIT),
        (rules(2, LEND), 3, OVER_LIMIT),
        (rules(2, BOTH, 100), 5, OVER_BORROW_LIMIT),
        (rules(2, BOTH), 8, OVER_BORROWABLE),
        (rules(2, BOTH), 11, ENVIRONMENT_MAX),
        (rules(2, BOTH), 7, None),
    ],
)
def test_why_a_job_can_never_start(share: ShareRules, instances: int, reason: str | None) -> None:
    table = Table({"s": share, "lender": rules(5, LEND), "keeper": rules(3, RESERVE)}, environment=10)
    table.run("lender/busy")
    table.wait("s/job", instances)
    assert [b.reason for b in table.plan().blocked] == ([reason] if reason else [])


def test_a_unit_without_a_limit_blocks() -> None:
    table = Table({"s": rules(2, RESERVE)})
    table.wait("s/job", unit=B)
    assert [b.reason for b in table.plan().blocked] == [OVER_LIMIT]


def test_the_verdict_changes_with_the_configuration() -> None:
    table = Table({"s": rules(2, RESERVE)})
    table.wait("s/job", 3)
    assert table.plan().blocked
    table.pool.configure_share("s", rules(3, RESERVE))
    assert (table.plan().blocked, table.outcome()[0]) == ([], ["s/job"])


@pytest.mark.parametrize(("holds", "started"), [(False, ["t/job"]), (True, [])])
def test_a_blocked_share_and_the_rest_of_the_queue(holds: bool, started: list[str]) -> None:
    table = Table({"s": rules(1, RESERVE), "t": rules(1, RESERVE)})
    table.wait("s/never", 2), table.wait("t/job")
    assert table.outcome(Rules(blocked_share_holds_queue=holds))[0] == started


def test_a_job_of_two_instance_types_needs_both() -> None:
    table = Table({})
    table.pool.configure_share("s", ShareRules({A: 2, B: 1}))
    job = PoolJob("s/both", "s", ((A, 2), (B, 1)), 0, 0)
    table.run("s/runs")
    table.pool.enqueue(job)
    assert table.outcome()[0] == []
    table.pool.release(table.jobs["s/runs"])
    assert table.outcome()[0] == ["s/both"]


@pytest.mark.parametrize(
    ("heuristic", "first"),
    [
        (documented, "big/old"),  # borrows more; then lower priority; then the shorter run
        (adversarial, "small/unsaved"),  # has not saved for the longest time
    ],
)
def test_heuristics_differ(heuristic: object, first: str) -> None:
    table = Table({"big": rules(0), "small": rules(0), "lender": rules(9, LEND)})
    table.run("big/old", 3, priority=1, at=10).saved_at = 900
    table.run("big/high", 3, priority=2, at=800).saved_at = 950
    table.run("small/unsaved", 1, at=0)
    order = heuristic(list(table.jobs.values()), table.pool.stay, 1_000)  # type: ignore[operator]
    assert order[0].id == first


def test_documented_prefers_the_shorter_run_among_equals() -> None:
    table = Table({"s": rules(0), "lender": rules(9, LEND)})
    table.run("s/long", at=0), table.run("s/short", at=900)
    assert [j.id for j in documented(list(table.jobs.values()), table.pool.stay, 1_000)] == [
        "s/short",
        "s/long",
    ]


def test_random_repeats_with_the_seed_only() -> None:
    table = Table({"s": rules(0), "lender": rules(99, LEND)})
    jobs = [table.run(f"s/{n}") for n in range(20)]
    orders = [tuple(j.id for j in seeded(seed)(jobs, table.pool.stay, 5)) for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]


def test_an_owner_need_not_wait_for_borrowers_that_have_lost_their_lender() -> None:
    table = Table({"keeper": rules(1, RESERVE), "bg": rules(0), "lender": rules(1, LEND)}, environment=3)
    table.run("bg/job")
    table.wait("keeper/job")
    table.pool.configure_share("lender", rules(1, RESERVE))
    assert table.outcome() == (["keeper/job"], ["bg/job"])
