"""All at once over the lab: bumps, late and lost events, crashes, a Batch that will not answer (law 10)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from sharewarden.domain.priority import live_boosts
from sharewarden.domain.record import JobRecord, status
from sharewarden.ports import Unavailable
from sharewarden.usecases.bump import BumpRequest, Refused, UnbumpRequest, bump, unbump
from sharewarden.usecases.sweep import LEASE

from tests.simulation.faults import Crash, When, watched
from tests.simulation.pool import Pool, telling
from tests.simulation.world import (
    MINUTE,
    QUEUE,
    Json,
    World,
    facts_of,
    reproduce,
    seeds,
    stored,
)


class Days:
    """Each event arrives up to eight minutes late, once, twice or never; one call in fifty goes wrong."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.telling = telling(seed % 50, jobs=20)
        self.pool, at = next(self.telling)
        self.next: int | None = at
        self.one = self.pool.world()
        self.plain = self.one.runtime
        self.faults = 0.02
        self.one.runtime, _ = watched(self.plain, self._fault)
        self.heard = 0
        self.coming: list[tuple[int, int, Json]] = []
        self.asked = 0

    def _fault(self, number: int, name: str, when: When) -> None:
        if self.rng.random() < self.faults:
            raise self.rng.choice((Crash, Unavailable))(f"{when} {name}")

    def live(self) -> None:
        while self.next is not None or self.coming:
            self._advance(self.rng.randint(1, 4 * MINUTE))
            self.rng.choice(self.doings())()
        self.faults = 0
        self.pool.lab.run_until_idle(self.pool.lab.now() + 100 * 3_600_000)
        self._advance(LEASE)
        self.one.settle(3)

    def doings(self) -> Sequence[Callable[[], None]]:
        """What may be done next."""
        return (self._sweep, self._bump, self._apply, self._apply, self._unbump)

    def _advance(self, ms: int) -> None:
        until = self.pool.lab.now() + ms
        while self.next is not None and self.next <= until:
            _, self.next = next(self.telling, (None, None))
        self.pool.lab.advance_to(until)
        for at, event in self.pool.events[self.heard :]:
            for _ in range(self.rng.choice((0, 1, 1, 2))):
                self.coming.append((at + self.rng.randint(0, 8 * MINUTE), len(self.coming), event))
        self.heard = len(self.pool.events)
        due = sorted(one for one in self.coming if one[0] <= until)
        self.coming = [one for one in self.coming if one[0] > until]
        for at, number, event in due:
            try:
                self.one.take(event)
            except (Crash, Unavailable):
                self.coming.append((at + 3 * MINUTE, number, event))

    # What went wrong here is tried again by whoever calls next.

    def _sweep(self) -> None:
        with suppress(Crash, Unavailable):
            self.one.sweep(f"sweep-{self.pool.lab.now()}")

    def _apply(self) -> None:
        with suppress(Crash):
            self.one.apply_all()

    def _bump(self) -> None:
        self.asked += 1
        lasts = self.rng.choice((30 * MINUTE, 90 * MINUTE))
        with suppress(Crash, Unavailable, Refused):
            bump(
                self.one.runtime,
                BumpRequest(
                    id=f"b{self.asked}",
                    job=self._some_job(),
                    actor="U1",
                    reason="r",
                    lasts=lasts,
                    to=self.rng.randint(600, 999),
                ),
            )

    def _unbump(self) -> None:
        with suppress(Crash, Unavailable, Refused):
            unbump(
                self.one.runtime,
                UnbumpRequest(id=f"u{self.asked}", job=self._some_job(), actor="U2", reason="r"),
            )

    def _some_job(self) -> str:
        return self.rng.choice(sorted(self.pool.lab.state.jobs) or ["none"])


def _holds(pool: Pool, one: World) -> None:
    jobs = {job.id: job for job in pool.lab.state.jobs.values() if job.queue_arn == QUEUE}
    for item in stored(one.ledger, JobRecord):
        assert isinstance(item, JobRecord)
        job = jobs[item.job]
        assert status(item) == job.status, job.name
        assert item.end is not None, job.name
        assert item.end.at == job.stopped_at, job.name
        assert item.closed_at is not None, job.name
        assert (item.priority.wish, live_boosts(item.priority)) == (None, ()), job.name
        preempted = [fact for fact in facts_of(one.ledger, "preemption") if fact.job == job.id]
        assert len(preempted) == job.preempted_count, job.name
    assert not facts_of(one.ledger, "gap")
    kept = {item.key for item in stored(one.ledger, JobRecord)}
    assert {fact.job for fact in facts_of(one.ledger, "job-timeline")} == kept
    bumped = {fact.key.rpartition("#")[2] for fact in facts_of(one.ledger, "bump")}
    ended = {fact.figures["boost"] for fact in facts_of(one.ledger, "boost-ended")}
    assert {name for name in ended if name.startswith("b")} == bumped


def test_law_10_everything_at_once_converges() -> None:
    for seed in seeds(12):
        days = Days(seed)
        days.live()
        try:
            _holds(days.pool, replace(days.one, runtime=days.plain))
        except AssertionError as error:
            raise AssertionError(f"{reproduce('everything_at_once', seed)}\n{error}") from error
