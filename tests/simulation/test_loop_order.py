"""Order, number and completeness of the delivery change neither records nor audit (laws 1 and 10)."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable
from dataclasses import replace
from functools import cache

import pytest
from sharewarden.domain.foreign import ForeignJob
from sharewarden.domain.observation import JobDescription
from sharewarden.domain.record import JobRecord, status
from sharewarden_tools.lab import Options

from tests.simulation.pool import LabBatch, Pool, story, telling
from tests.simulation.world import (
    MINUTE,
    Json,
    World,
    audit,
    difference,
    facts_of,
    records,
    reproduce,
    seeds,
    stored,
)

#: Members of a state change that AWS does not promise, or that a version of it may leave out.
DOUBTFUL_MEMBERS = (
    *("stoppedAt", "statusReason", "attempts", "latestAttempt", "jobName", "createdAt", "startedAt"),
    *("quotaShareName", "preemptionSummary", "isTerminated", "jobQueue"),
)


@cache
def thousand(seed: int, options: Options) -> tuple[Pool, tuple[Json, ...]]:
    """A story of at least a thousand events, and news of sorts that nobody knows yet."""
    pool = story(seed, jobs=85, options=options)
    known = [event for _, event in pool.events]
    assert len(known) >= 1000
    strange = [
        known[0] | {"id": f"strange-{number}", "detail-type": kind, "detail": {"new": number}}
        for number, kind in enumerate(("Batch Quota Share State Change", "Batch Service Job Moved") * 3)
    ]
    odd = next(event for event in known if event["detail-type"] == "Batch Service Job State Change")
    paused = odd | {"id": "strange-status", "detail": odd["detail"] | {"status": "PAUSED"}}
    return pool, (*known, *strange, paused)


def shuffled(events: Iterable[Json], rng: random.Random) -> list[Json]:
    """Each event one to three times, in any order."""
    delivered = [event for event in events for _ in range(rng.randint(1, 3))]
    rng.shuffle(delivered)
    return delivered


def stripped(event: Json, how: str, seed: int, kept: tuple[str, ...] = ()) -> Json:
    """The event without what AWS does not promise: all of it ("bare"), some of it ("patchy"), or as null."""
    if how == "full" or event["detail-type"] != "Batch Service Job State Change":
        return event
    rng = random.Random(f"{seed}:{event['id']}")
    lost = [name for name in DOUBTFUL_MEMBERS if how == "bare" or rng.random() < 0.4]
    lost = [name for name in lost if name not in kept]
    detail = copy.copy(event["detail"])
    for name in lost:
        if how == "null" and name in detail:
            detail[name] = None
        else:
            detail.pop(name, None)
    return event | {"detail": detail}


@pytest.mark.parametrize("how", ["full", "bare", "patchy", "null"])
@pytest.mark.parametrize("preempted_in_attempts", [True, False])
def test_law_01_order_of_a_thousand_events_changes_nothing(how: str, preempted_in_attempts: bool) -> None:
    options = Options(optional_members=how != "bare", preempted_in_attempts=preempted_in_attempts)
    for seed in seeds(2):
        pool, told = thousand(seed % 7, options)
        events = [stripped(event, how, seed) for event in told]
        straight, mixed = pool.world(), pool.world()
        straight.take(*events)
        mixed.take(*shuffled(events, random.Random(seed)))
        _same(straight, mixed, "order_of_a_thousand", seed)
        straight.settle()
        mixed.settle()
        _same(straight, mixed, "order_of_a_thousand", seed)
        _is_true(mixed, pool)


class Forgetful(LabBatch):
    """A Batch that no longer knows some jobs."""

    forgotten: frozenset[str] = frozenset()

    def describe(self, job: str) -> JobDescription | None:
        return None if job.rpartition("/")[2] in self.forgotten else super().describe(job)


@pytest.mark.parametrize("how", ["full", "patchy"])
def test_law_01_order_does_not_matter_for_jobs_that_batch_has_forgotten(how: str) -> None:
    for seed in seeds(6):
        pool = story(seed % 7, jobs=25)
        # CloudTrail's attribution needs the queue: of a job that is gone, only a record could tell it.
        # Its name and when it was created, only its events can tell.
        hints = [event for _, event in pool.events if "CloudTrail" not in event["detail-type"]]
        events = [stripped(event, how, seed, kept=("createdAt", "jobName")) for event in hints]
        worlds = []
        for deliver in (list(events), shuffled(events, random.Random(seed))):
            one = pool.world()
            batch = Forgetful(pool.lab)
            batch.forgotten = frozenset(job for job in pool.lab.state.jobs if _hash_of(job) % 2)
            one.runtime = replace(one.runtime, batch=batch)
            one.take(*deliver)
            one.settle()
            worlds.append(one)
        _same(*worlds, "batch_has_forgotten", seed)


def _hash_of(job: str) -> int:
    return int(job[:4], 16)


def test_law_10_late_doubled_and_lost_events_and_sweeps_between_converge() -> None:
    """Events are late by up to eight minutes, doubled, or lost; sweeps run all the time; Batch is live."""
    for seed in seeds(12):
        pool, one = _lived(seed, lose=0.3 if seed % 2 else 0.0)
        _is_true(one, pool)
        if seed % 2 == 0:
            _same_story(one, _lived(seed, lose=0.0, luck=seed + 1000)[1], "sweeps_between_converge", seed)


def _lived(seed: int, *, lose: float, luck: int | None = None) -> tuple[Pool, World]:
    """The same story, watched while it happens; ``luck`` decides the delivery."""
    pool = story(seed % 50, jobs=25)
    script = [event for _, event in pool.events]
    sent = dict(zip((e["id"] for e in script), (at for at, _ in pool.events), strict=True))
    rng = random.Random(seed if luck is None else luck)
    arrivals = sorted(
        (sent[event["id"]] + rng.randint(0, 8 * MINUTE), number, event)
        for number, event in enumerate(event for event in script for _ in range(rng.randint(1, 2)))
        if rng.random() >= lose
    )
    return _replayed(seed, arrivals, rng)


def _replayed(seed: int, arrivals: list[tuple[int, int, Json]], rng: random.Random) -> tuple[Pool, World]:
    live = Live(seed)
    one = live.pool.world()
    next_sweep = 0
    for at, _, event in arrivals:
        while next_sweep and next_sweep < at:
            live.advance_to(next_sweep)
            one.sweep(f"sweep-{next_sweep}")
            next_sweep += rng.randint(1, 20) * MINUTE
        live.advance_to(at)
        one.take(event)
        next_sweep = next_sweep or at
    live.advance_to(arrivals[-1][0] + 100 * MINUTE)
    one.settle()
    return live.pool, one


class Live:
    """The story again, stopped wherever the watcher is."""

    def __init__(self, seed: int) -> None:
        self._telling = telling(seed % 50, jobs=25)
        self.pool, self._next = next(self._telling)

    def advance_to(self, at: int) -> None:
        while self._next is not None and self._next <= at:
            _, self._next = next(self._telling, (None, None))
        self.pool.lab.advance_to(at)


def _same(one: World, other: World, test: str, seed: int) -> None:
    for what in (records, audit):
        found = difference(what(one.ledger), what(other.ledger))
        assert not found, f"{reproduce(test, seed)}\n{found}"


def _same_story(one: World, other: World, test: str, seed: int) -> None:
    """What happened is the same; what was read on the way, and so the drift that was seen, may differ."""
    read = {"snapshot", "priority", "drifted"}
    for what in (records, audit):
        told = [
            {
                key: {name: value for name, value in item.items() if name not in read}
                for key, item in what(world.ledger).items()
                if item.get("kind") != "drift"
            }
            for world in (one, other)
        ]
        found = difference(*told)
        assert not found, f"{reproduce(test, seed)}\n{found}"


def _is_true(one: World, pool: Pool) -> None:
    """Every record equals what Batch says, nothing of ours is open, and each preemption is on record once."""
    jobs = {job.id: job for job in pool.lab.state.jobs.values() if job.queue_arn.endswith("ml-train-qm")}
    kept = {item.key: item for item in stored(one.ledger, JobRecord)}
    for key, item in kept.items():
        job = jobs[key]
        assert isinstance(item, JobRecord)
        assert status(item) == job.status, (job.name, status(item), job.status)
        assert item.end is not None, job.name
        assert (item.end.at, item.end.reason) == (job.stopped_at, job.status_reason), job.name
        assert item.preempted_count == job.preempted_count
        assert item.priority.wish is None
        assert item.closed_at is not None, job.name
    preempted = {
        f"preemption#{job.id}#{attempt['serviceResourceId']['value']}"
        for job in jobs.values()
        if job.id in kept
        for attempt in job.preempted
    }
    assert {fact.key for fact in facts_of(one.ledger, "preemption")} == preempted
    assert {fact.job for fact in facts_of(one.ledger, "job-ended")} == kept.keys()
    assert {fact.job for fact in facts_of(one.ledger, "job-timeline")} == kept.keys()
    assert not [fact for fact in one.ledger.facts.values() if fact.kind == "gap"]
    assert all(job not in jobs for job in (item.key for item in stored(one.ledger, ForeignJob)))
