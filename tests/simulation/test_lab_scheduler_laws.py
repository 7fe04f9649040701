"""Laws of the scheduler over a thousand random pools, judged by an oracle that only counts jobs."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from sharewarden_tools.lab.book import PoolJob, ShareRules
from sharewarden_tools.lab.heuristics import by_name
from sharewarden_tools.lab.pool import Pool
from sharewarden_tools.lab.scheduler import Plan, Rules, never_fits, plan

UNITS = ("ml.g5.xlarge", "ml.p5.48xlarge")
STRATEGIES = ("RESERVE", "LEND", "LEND_AND_BORROW")
POOLS = 1_000
CHUNKS = 10
STEPS = 40


class Load:
    """A random pool under random load; every step is followed by a pass whose plan is judged, then done."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.units = UNITS[: self.rng.choice((1, 1, 2))]
        shares = {f"s{n}": self.random_rules() for n in range(self.rng.randint(2, 5))}
        self.environment = {
            unit: max(
                1, sum(rules.own[unit] for rules in shares.values()) + self.rng.choice((0, 0, 0, -1, 2))
            )
            for unit in self.units
        }
        self.pool = Pool(self.environment)
        for name, rules in shares.items():
            self.pool.configure_share(name, rules)
        self.heuristic = by_name(seed)[self.rng.choice(("documented", "random", "adversarial"))]
        self.rules = Rules(borrow_backfill=self.rng.random() < 0.8)
        self.now = 0
        self.serial = 0

    def random_rules(self) -> ShareRules:
        strategy = self.rng.choice(STRATEGIES)
        return ShareRules(
            own={unit: self.rng.randint(0, 5) for unit in self.units},
            strategy=strategy,  # type: ignore[arg-type]
            borrow_limit=self.rng.choice((-1, 0, 50, 100, 200)),
            in_share=self.rng.random() < 0.5,
        )

    def random_job(self) -> PoolJob:
        self.serial += 1
        units = self.units if self.rng.random() < 0.1 else (self.rng.choice(self.units),)
        demand = tuple((unit, self.rng.choice((1, 1, 1, 2, 3))) for unit in units)
        name = self.rng.choice(list(self.pool.shares))
        return PoolJob(f"j{self.serial:04}", name, demand, self.rng.choice((0, 0, 5, 9)), self.serial)

    # Steps.

    def step(self) -> None:
        self.now += self.rng.randint(1, 600)
        self.rng.choice(
            (self.arrive, self.arrive, self.end_one, self.stopped, self.save, self.reprioritise)
        )()

    def arrive(self) -> None:
        for _ in range(self.rng.randint(1, 4)):
            self.pool.enqueue(self.random_job())

    def end_one(self) -> None:
        if running := self.running():
            self.pool.release(self.rng.choice(running))

    def stopped(self) -> None:
        """Some victims are gone, and wait again."""
        for job in self.stopping():
            if self.rng.random() < 0.7:
                self.pool.release(job)
                self.pool.enqueue(job)

    def save(self) -> None:
        for job in self.running():
            if self.rng.random() < 0.3:
                job.saved_at = self.now

    def reprioritise(self) -> None:
        if jobs := [*self.running(), *self.waiting()]:
            self.pool.reprioritise(self.rng.choice(jobs), self.rng.randint(0, 9))

    def plan(self) -> Plan:
        return plan(self.pool, self.heuristic, self.now, self.rules)

    def do(self, decided: Plan) -> None:
        for preemption in decided.preemptions:
            self.pool.stop(preemption.job)
        for dispatch in decided.dispatches:
            self.pool.dispatch(dispatch.job, self.now)
        self.pool.claims = decided.claims

    def pass_over(self) -> Plan:
        """One judged pass, and a second one that must find nothing left to do."""
        decided = self.plan()
        self.check_victims(decided)
        self.do(decided)
        self.check_capacity()
        again = self.plan()
        assert (again.dispatches, again.preemptions) == ([], [])
        return decided

    def settle(self) -> None:
        """Nothing new happens; victims stop until no more are chosen."""
        for _ in range(200):
            self.pass_over()
            if not self.stopping():
                return
            for job in self.stopping():
                self.pool.release(job)
                self.pool.enqueue(job)
        raise AssertionError("preemption without end")

    # The oracle.

    def running(self) -> list[PoolJob]:
        return [job for share in self.pool.shares.values() for job in share.running.values()]

    def stopping(self) -> list[PoolJob]:
        return [job for share in self.pool.shares.values() for job in share.stopping.values()]

    def waiting(self) -> list[PoolJob]:
        return [job for share in self.pool.shares.values() for _, job in share.waiting]

    def fronts(self) -> list[PoolJob]:
        return [share.waiting[0][1] for share in self.pool.shares.values() if share.waiting]

    def room(self, jobs: Iterable[PoolJob]) -> str | None:
        """Which law is broken when these jobs hold capacity at the same time."""
        held = list(jobs)
        for unit in self.units:
            use = {name: _use(held, unit, name) for name in self.pool.shares}
            if sum(use.values()) > self.environment[unit]:
                return f"more than the environment of {unit}"
            borrowed = lent = 0
            for name, share in self.pool.shares.items():
                own = share.rules.own[unit]
                if use[name] > share.rules.may_use(unit):
                    return f"{name} above own and borrow limit of {unit}"
                borrowed += max(0, use[name] - own)
                lent += max(0, own - use[name]) if share.rules.strategy != "RESERVE" else 0
            if borrowed > lent:
                return f"borrowed {unit} that nobody lends"
        return None

    def check_capacity(self) -> None:
        assert self.room([*self.running(), *self.stopping()]) is None
        for unit in self.units:
            counted = sum(_use([*self.running(), *self.stopping()], unit, name) for name in self.pool.shares)
            assert counted == self.pool.now.units[unit].total

    def check_victims(self, decided: Plan) -> None:
        leaving = {p.job.id for p in decided.preemptions}
        staying = [job for job in self.running() if job.id not in leaving]
        starting = [d.job for d in decided.dispatches]
        demanders = {p.demander.id: p.demander for p in decided.preemptions if p.demander}
        for preemption in decided.preemptions:
            victim, demander = preemption.job, preemption.demander
            rules = self.pool.shares[victim.share].rules
            assert demander is not None, "limits stand, so every preemption serves somebody"
            assert demander in self.waiting()
            assert rules.strategy != "RESERVE" or rules.in_share, "a protected share was hit"
            if preemption.kind == "in-share":
                assert rules.in_share
                assert victim.share == demander.share
                assert victim.priority < demander.priority
            else:
                assert victim.share != demander.share
                assert self.borrows(victim, self.running())
                assert self.lent_out(demander, staying)
        waiting = [job for job in demanders.values() if job not in starting]
        assert self.room([*staying, *starting, *waiting]) is None, "no room for the demanders"

    def borrows(self, job: PoolJob, held: list[PoolJob]) -> bool:
        own = self.pool.shares[job.share].rules.own
        return any(_use(held, unit, job.share) > own[unit] for unit, _ in job.demand)

    def lent_out(self, job: PoolJob, held: list[PoolJob]) -> bool:
        """Whether the share has own capacity that it does not use itself."""
        own = self.pool.shares[job.share].rules.own
        return any(_use(held, unit, job.share) < own[unit] for unit, _ in job.demand)


def _use(jobs: Iterable[PoolJob], unit: str, share: str) -> int:
    return sum(n for job in jobs if job.share == share for name, n in job.demand if name == unit)


def loads(chunk: int) -> Iterable[Load]:
    return (Load(seed) for seed in range(chunk, POOLS, CHUNKS))


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_laws_hold_at_every_tick(chunk: int) -> None:
    for load in loads(chunk):
        for _ in range(STEPS):
            load.step()
            load.pass_over()


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_at_rest_owners_have_their_own_and_nothing_that_fits_waits(chunk: int) -> None:
    for load in loads(chunk):
        for _ in range(STEPS // 2):
            load.step()
            load.do(load.plan())
        load.settle()
        enough = all(
            sum(s.rules.own[unit] for s in load.pool.shares.values()) <= load.environment[unit]
            for unit in load.units
        )
        for job in load.fronts():
            assert not (enough and load.pool.now.within_own(job)), "an owner waits for what is its own"
            assert not load.rules.borrow_backfill or load.room([*load.running(), job]) is not None


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_job_ends_when_the_load_ends(chunk: int) -> None:
    for load in loads(chunk):
        for _ in range(STEPS // 2):
            load.step()
            load.do(load.plan())
        for _ in range(500):
            if not load.waiting():
                break
            load.settle()
            for job in load.running():
                load.pool.release(job)
            for job in load.fronts():
                if never_fits(load.pool, job):
                    load.pool.withdraw(job)
        assert load.waiting() == []


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_changed_limits_are_enforced_and_then_leave_the_pool_in_order(chunk: int) -> None:
    for load in loads(chunk):
        for _ in range(STEPS // 2):
            load.step()
            load.do(load.plan())
        name = load.rng.choice(list(load.pool.shares))
        load.pool.configure_share(name, load.random_rules())
        for _ in range(100):
            load.do(load.plan())
            for job in load.stopping():
                load.pool.release(job)
                load.pool.enqueue(job)
            if not load.plan().preemptions:
                break
        load.check_capacity()
