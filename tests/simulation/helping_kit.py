"""Random pools of the lab, what `can_help` is shown of them, and what a bump really does there."""

from __future__ import annotations

import random
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace

from sharewarden.domain.helping.answer import Answer, Lever
from sharewarden.domain.helping.can_help import can_help
from sharewarden.domain.helping.view import JobView, PoolView, ShareView
from sharewarden.domain.observation import Status
from sharewarden_tools.lab.book import PoolJob, ShareRules
from sharewarden_tools.lab.heuristics import by_name
from sharewarden_tools.lab.pool import Pool
from sharewarden_tools.lab.scheduler import Plan, Rules, plan

UNITS = ("ml.g5.xlarge", "ml.p5.48xlarge", "ml.g6e.12xlarge")
STRATEGIES = ("RESERVE", "LEND", "LEND_AND_BORROW")
HEURISTICS = ("documented", "random", "adversarial")
START = 1_000_000


@dataclass
class Trial:
    """One random pool with its load. The same seed makes the same one, for whichever heuristic."""

    seed: int
    heuristic: str
    rest: bool = True
    """Whether what is under way has come to an end before anybody asks."""
    covered: bool = True
    """Whether the environment holds all that the shares own."""
    rng: random.Random = field(init=False)
    now: int = START
    created: dict[str, int] = field(default_factory=dict)
    queued: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        units = UNITS[: self.rng.choice((1, 1, 2, 3))]
        rules = {f"s{n}": self._rules(units) for n in range(self.rng.randint(1, 5))}
        total = {unit: sum(one.own.get(unit, 0) for one in rules.values()) for unit in units}
        spare = self.rng.choice((0, 0, 0, 2)) if self.covered else self.rng.choice((-1, -2, -3))
        self.pool = Pool({unit: max(1, held + spare) for unit, held in total.items()})
        for name, one in rules.items():
            self.pool.configure_share(name, one)
        self.rules = Rules(borrow_backfill=self.rng.random() < 0.7)
        self.keeps_place = self.rng.random() < 0.7
        self.min_runtime = {name: self.rng.choice((0, 50, 400, 2_000)) for name in rules}
        self.names = units
        self._load()

    def _rules(self, units: tuple[str, ...]) -> ShareRules:
        strategy = self.rng.choice((*STRATEGIES, "LEND_AND_BORROW"))
        return ShareRules(
            own={unit: self.rng.randint(0, 6) for unit in units if self.rng.random() < 0.9},
            strategy=strategy,  # type: ignore[arg-type]
            borrow_limit=self.rng.choice((-1, -1, 0, 50, 100, 200)),
            in_share=self.rng.random() < 0.6,
        )

    def _tick(self) -> int:
        self.now += self.rng.randint(1, 40)
        return self.now

    # The load.

    def _load(self) -> None:
        for _ in range(self.rng.randint(6, 45)):
            self.rng.choice((self._arrive, self._arrive, self._arrive, self._end, self._save))()
            self._pass()
            if self.rng.random() < 0.5:
                self.some_stop()
        if self.rest:
            self.settle()
        self._tick()

    def _arrive(self) -> None:
        at = self._tick()
        name, unit = self.rng.choice(list(self.pool.shares)), self.rng.choice(self.names)
        asked = self._size(name, unit)
        key = f"j{len(self.created):03}"
        if not self.pool.shares[name].rules.own.get(unit) and self.rng.random() < 0.8:
            return
        job = PoolJob(key, name, ((unit, asked),), self.rng.choice((0, 0, 2, 5, 5, 8)), at)
        self.created[key] = self.queued[key] = at
        self.pool.enqueue(job)

    def _size(self, name: str, unit: str) -> int:
        """One that fits its share mostly, and hardly ever one that never does."""
        most = self.pool.shares[name].rules.may_use(unit)
        asked = self.rng.choice((1, 1, 1, 2, 2, 3, 5))
        return asked if asked <= most or self.rng.random() < 0.1 else max(1, int(most))

    def _end(self) -> None:
        if running := self.running():
            self.pool.release(self.rng.choice(running))

    def _save(self) -> None:
        for job in self.running():
            if self.rng.random() < 0.5:
                job.saved_at = self.now

    def running(self) -> list[PoolJob]:
        return [job for share in self.pool.shares.values() for job in share.running.values()]

    def stopping(self) -> list[PoolJob]:
        return [job for share in self.pool.shares.values() for job in share.stopping.values()]

    def waiting(self) -> list[PoolJob]:
        return [job for share in self.pool.shares.values() for _, job in share.waiting]

    # The scheduler.

    def _pass(self) -> Plan:
        decided = plan(self.pool, by_name(self.seed)[self.heuristic], self.now, self.rules)
        for preemption in decided.preemptions:
            self.pool.stop(preemption.job)
        for dispatch in decided.dispatches:
            self.pool.dispatch(dispatch.job, self.now)
        self.pool.claims = decided.claims
        return decided

    def some_stop(self) -> None:
        """At least one victim is gone and waits again, as far as any is stopping."""
        for job in self.stopping():
            if self.rng.random() < 0.7 or len(self.stopping()) == 1:
                at = self._tick()
                self.pool.release(job)
                self.queued[job.id] = at
                if not self.keeps_place:
                    job.order = at
                self.pool.enqueue(job)

    def settle(self) -> list[PoolJob]:
        """Let the scheduler run and victims stop until nothing moves; who was chosen as a victim."""
        victims: list[PoolJob] = []
        for _ in range(300):
            decided = self._pass()
            victims += [preemption.job for preemption in decided.preemptions]
            if not decided.dispatches and not self.stopping():
                return victims
            self.some_stop()
            self._tick()
        raise AssertionError("preemption without end")

    # What is asked, and what comes of it.

    def view(self) -> PoolView:
        return PoolView(
            queue="q",
            shares=tuple(self._share(name) for name in self.pool.shares),
            jobs=tuple(self._job(job) for job in (*self.running(), *self.stopping(), *self.waiting())),
            environment=self.pool.environment,
        )

    def _share(self, name: str) -> ShareView:
        rules = self.pool.shares[name].rules
        return ShareView(
            name=name,
            limits=dict(rules.own),
            strategy=rules.strategy,
            borrow_limit=rules.borrow_limit if rules.strategy == "LEND_AND_BORROW" else None,
            in_share_preemption=rules.in_share,
            min_runtime=self.min_runtime[name],
        )

    def _job(self, job: PoolJob) -> JobView:
        ((unit, asked),) = job.demand
        share = self.pool.shares[job.share]
        held = job.id in share.running or job.id in share.stopping
        return JobView(
            job=job.id,
            name=job.id,
            share=job.share,
            status=self._status(job) if held else "RUNNABLE",
            unit=unit,
            instances=asked,
            priority=job.priority,
            created_at=self.created[job.id],
            queued_at=self.queued[job.id],
            dispatched_at=job.dispatched_at,
            started_at=job.dispatched_at,
            saved_at=job.saved_at,
            stopping=job.id in share.stopping,
        )

    def _status(self, job: PoolJob) -> Status:
        age = self.now - (job.dispatched_at or 0)
        return "SCHEDULED" if age < 40 else "STARTING" if age < 80 else "RUNNING"

    def pulled(self, lever: Lever) -> Trial:
        """A copy in which what the lever says was done."""
        twin = deepcopy(self)
        if lever.change == "wait":
            twin.pool.release(next(job for job in twin.running() if job.id == lever.job))
        elif lever.change != "priority":
            name = lever.share or ""
            twin.pool.configure_share(name, twin._changed(twin.pool.shares[name].rules, lever))
        return twin

    def _changed(self, rules: ShareRules, lever: Lever) -> ShareRules:
        """``lever.unit`` is the one whose capacity limit is raised."""
        changes: dict[str, dict[str, object]] = {
            "in-share-preemption": {"in_share": True},
            "strategy": {"strategy": "LEND_AND_BORROW", "borrow_limit": -1},
            "borrow-limit": {"borrow_limit": lever.value},
            "capacity-limit": {"own": {**rules.own, lever.unit or "": lever.value}},
        }
        return replace(rules, **changes[lever.change])  # type: ignore[arg-type]

    def bumped(self, job: str, priority: int, at: int) -> Outcome:
        """What a bump at that time does, on a copy: nothing else arrives or ends."""
        twin = deepcopy(self)
        twin.now = at
        before = {one.id: at - (one.dispatched_at or 0) for one in twin.running()}
        mine = next(one for one in twin.waiting() if one.id == job)
        twin.pool.reprioritise(mine, priority)
        starts: list[str] = []
        victims: set[str] = set()
        for _ in range(300):
            decided = twin._pass()
            starts += [dispatch.job.id for dispatch in decided.dispatches]
            victims |= {preemption.job.id for preemption in decided.preemptions}
            if not decided.dispatches and not twin.stopping():
                return Outcome(job in starts, {one: before[one] for one in victims & before.keys()})
            twin.some_stop()
            twin._tick()
        raise AssertionError("preemption without end")


@dataclass(frozen=True)
class Outcome:
    """Whether the job started, and how long those pushed out had been dispatched when it was bumped."""

    started: bool
    ages: dict[str, int]


@dataclass(frozen=True)
class Asked:
    """An answer, and what the bump really did at the time that the answer names."""

    trial: Trial
    answer: Answer
    at: int
    outcome: Outcome


def asked(trial: Trial) -> Iterator[Asked]:
    """One job of the pool, at some priority, at the least that is told to help, and just below that."""
    rng = random.Random(f"{trial.seed}/asked")
    waiting = sorted(trial.waiting(), key=lambda job: job.id)
    if not waiting:
        return
    job, view = rng.choice(waiting), trial.view()
    priorities = {rng.choice((job.priority + 1, 6, 9, 9_999))}
    needs = can_help(view, job.id, 9_999, trial.now).needs
    priorities |= set() if needs is None else {needs, needs - 1}
    for priority in sorted(one for one in priorities if one > job.priority):
        answer = can_help(view, job.id, priority, trial.now)
        at = trial.now if answer.at is None else answer.at
        yield Asked(trial, answer, at, trial.bumped(job.id, priority, at))
