"""Random pools in which much is preempted, the care of that, and what the lab knows of who was behind it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from sharewarden.domain.audit import AuditRecord
from sharewarden.domain.preemption.case import Case
from sharewarden.domain.stored import MINUTE
from sharewarden.usecases.care.frame import take
from sharewarden.usecases.care.measure import measure
from sharewarden.usecases.care.preemptor import preemptor
from sharewarden_tools.lab import Options
from sharewarden_tools.lab.errors import ApiError
from sharewarden_tools.lab.model import Preemption

from tests.simulation.pool import Pool
from tests.simulation.world import NOW, QUEUE, Json, World, stored

UNITS = ("ml.g5.xlarge", "ml.p5.48xlarge")
STRATEGIES = ("LEND_AND_BORROW", "LEND_AND_BORROW", "LEND", "RESERVE")
SWEEP_EVERY = 5 * MINUTE


@dataclass
class RandomPool(Pool):
    """Two to four shares with limits of their own for one or two instance types."""

    shares: dict[str, dict[str, int]] = field(default_factory=dict)

    def _make_queue(self, queue: str) -> None:
        if queue == "other":
            return
        rng = random.Random(self.seed)
        names = ["one", "two", "three", "four"][: rng.randint(2, 4)]
        units = UNITS[: rng.randint(1, 2)]
        self.shares = {name: {unit: rng.randint(1, 4) for unit in units} for name in names}
        total = {unit: sum(limits[unit] for limits in self.shares.values()) for unit in units}
        self._make_pool(queue, total)
        for number, (name, limits) in enumerate(self.shares.items()):
            strategy = "LEND_AND_BORROW" if number == 0 else rng.choice(STRATEGIES)
            borrows = {"borrowLimit": rng.choice((-1, -1, 100))} if strategy == "LEND_AND_BORROW" else {}
            self._call(
                "CreateQuotaShare",
                quotaShareName=name,
                jobQueue=queue,
                capacityLimits=_limits(limits),
                resourceSharingConfiguration={"strategy": strategy, **borrows},
                preemptionConfiguration={"inSharePreemption": rng.choice(("ENABLED", "DISABLED"))},
            )

    def _make_pool(self, queue: str, total: dict[str, int]) -> None:
        fifo = {"idleResourceAssignmentStrategy": "FIFO"}
        policy = self._call("CreateSchedulingPolicy", name="fifo", quotaSharePolicy=fifo)
        self._call(
            "CreateServiceEnvironment",
            serviceEnvironmentName="env",
            serviceEnvironmentType="SAGEMAKER_TRAINING",
            capacityLimits=_limits(total),
        )
        self._call(
            "CreateJobQueue",
            jobQueueName=queue,
            jobQueueType="SAGEMAKER_TRAINING",
            priority=1,
            schedulingPolicyArn=policy["arn"],
            serviceEnvironmentOrder=[{"order": 1, "serviceEnvironment": "env"}],
        )

    def _call(self, operation: str, **request: object) -> Json:
        return dict(self.lab.operations["batch"][operation](request))

    def steps(self, rng: random.Random, jobs: int) -> Iterator[Callable[[], object]]:
        """What people do, one after the other."""
        ids: list[str] = []
        for number in range(jobs):
            yield lambda number=number: ids.append(self._submit_one(rng, number))
            if rng.random() < 0.2:
                yield lambda: self._prioritise(rng.choice(ids), rng.randint(0, 999))
            if rng.random() < 0.15:
                yield lambda: self._set_limit(rng)

    def _submit_one(self, rng: random.Random, number: int) -> str:
        share = rng.choice(list(self.shares))
        unit = rng.choice(list(self.shares[share]))
        payload = {
            "TrainingJobName": f"job-{number}",
            "RoleArn": "arn:aws:iam::123456789012:role/T",
            "OutputDataConfig": {"S3OutputPath": "s3://example-out/x"},
            "ResourceConfig": {"InstanceType": unit, "InstanceCount": rng.choice((1, 1, 1, 2, 3))},
            "CheckpointConfig": {"S3Uri": f"s3://example-checkpoints/job-{number}"},
            "HyperParameters": {"sharewarden-lab-runtime-seconds": str(rng.choice((900, 3600, 7200)))},
        }
        return self.submit(
            f"job-{number}",
            share,
            serviceRequestPayload=json.dumps(payload),
            schedulingPriority=rng.choice((100, 100, 200, rng.randint(0, 500))),
        )

    def _prioritise(self, job: str, priority: int) -> None:
        try:
            self._call("UpdateServiceJob", jobId=job, schedulingPriority=priority)
        except ApiError:
            return

    def _set_limit(self, rng: random.Random) -> None:
        name = rng.choice(list(self.shares))
        limits = {unit: rng.randint(1, 4) for unit in self.shares[name]}
        self.shares[name] = limits
        self._call(
            "UpdateQuotaShare", quotaShareArn=f"{QUEUE}/quota-share/{name}", capacityLimits=_limits(limits)
        )


def _limits(limits: dict[str, int]) -> list[Json]:
    return [{"capacityUnit": unit, "maxCapacity": limit} for unit, limit in limits.items()]


@dataclass
class Cared:
    """A story with the care of its preemptions, and the truth by the attempt's ARN."""

    world: World
    truth: dict[str, Preemption]

    def told(self, kind: str) -> dict[str, AuditRecord]:
        """The records of that kind by attempt."""
        facts = [fact for fact in self.world.ledger.facts.values() if fact.kind == kind]
        found = {fact.figures["attempt"]: fact for fact in facts}
        assert len(found) == len(facts)
        return found


def cared(seed: int, options: Options, *, jobs: int = 30, lost: float = 0) -> Cared:
    """Busy hours in a random pool: events at once, sweeps every five minutes, steps when they are due.

    ``lost``: so many of the events never come.
    """
    rng = random.Random(f"story/{seed}")
    pool = RandomPool(seed, options)
    world = pool.world()
    clockwork = _Clockwork(pool, world, lost)
    at = NOW
    for step in pool.steps(rng, jobs):
        at += rng.choice((rng.randint(1_000, 20_000), rng.randint(60_000, 900_000)))
        clockwork.run_until(at)
        step()
    clockwork.run_until(at + 90 * MINUTE)
    found = {one.attempt: one for one in pool.lab.state.preemptions if one.attempt}
    return Cared(world, found)


class _Clockwork:
    """Brings the lab on, and does what is due in between."""

    def __init__(self, pool: Pool, world: World, lost: float) -> None:
        self._rng = random.Random(f"lost/{pool.seed}")
        self._lost = lost
        self._pool = pool
        self._world = world
        self._heard = 0
        self._sweep_at = NOW

    def run_until(self, at: int) -> None:
        lab = self._pool.lab
        while lab.now() < at:
            due = [case.next_at for case in self._open()] + [self._sweep_at, at]
            lab.advance_to(max(lab.now() + 1_000, min(due)))
            self._hear()
            if lab.now() >= self._sweep_at:
                self._world.sweep(f"sweep-{lab.now()}")
                self._sweep_at = lab.now() + SWEEP_EVERY
            for case in self._open():
                if case.next_at <= lab.now():
                    self._take(case)

    def _hear(self) -> None:
        events, self._heard = self._pool.events[self._heard :], len(self._pool.events)
        self._world.take(*(event for _, event in events if self._rng.random() >= self._lost))

    def _open(self) -> list[Case]:
        cases = [case for case in stored(self._world.ledger, Case) if isinstance(case, Case)]
        return [case for case in cases if not case.preemptor_told]

    def _take(self, case: Case) -> None:
        """As the workflow does, but for the steps of others."""
        if take(self._world.runtime, case.attempt, measure).done:
            take(self._world.runtime, case.attempt, preemptor)
