"""The real use cases over the ports in memory and the lab: what the law tests have in common."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sharewarden.domain.audit import AuditRecord
from sharewarden.domain.base import last_part
from sharewarden.domain.observation import SETTLE
from sharewarden.domain.policy import Policy, QueuePolicy, SharePolicy
from sharewarden.domain.record import JobRecord
from sharewarden.domain.stored import MINUTE, Stored
from sharewarden.domain.training import TrainingRecord
from sharewarden.intake.events import take_in
from sharewarden.intake.looks import look_at
from sharewarden.ports import Runtime, Unavailable
from sharewarden.usecases.apply import apply
from sharewarden.usecases.sweep import sweep
from sharewarden.usecases.walk import Limits, Report
from sharewarden_tools.memory import (
    MemoryBatch,
    MemoryClock,
    MemoryDeadLetters,
    MemoryLedger,
    MemoryLookQueue,
    MemoryNoticeQueue,
    MemoryPolicies,
    MemoryWishQueue,
    MemoryWorkflows,
    Message,
)
from sharewarden_tools.memory_objects import MemoryCheckpoints

NOW = 1_789_372_800_000
QUEUE = "arn:aws:batch:us-east-1:123456789012:job-queue/ml-train-qm"
ENFORCE = Policy(
    queues={
        "ml-train-qm": QueuePolicy(
            mode="enforce", bumps="enforce", shares={"background": SharePolicy(team="research")}
        )
    }
)

Json = dict[str, Any]


def seeds(few: int) -> Iterable[int]:
    """So many seeds, or SHAREWARDEN_SEEDS; SHAREWARDEN_SEED picks out one that failed."""
    if (one := os.environ.get("SHAREWARDEN_SEED")) is not None:
        return (int(one),)
    return range(int(os.environ.get("SHAREWARDEN_SEEDS", few)))


def reproduce(test: str, seed: int) -> str:
    """The line that runs one failing seed again."""
    return f"reproduce: SHAREWARDEN_SEED={seed} pytest tests/simulation -k {test}"


class TickingClock(MemoryClock):
    """Every look at it takes a millisecond, so that nothing happens twice at one time."""

    def now(self) -> int:
        self.at += 1
        return self.at


@dataclass
class World:
    """A runtime whose parts lie open."""

    clock: MemoryClock
    batch: Any
    ledger: MemoryLedger
    wishes: MemoryWishQueue
    policies: MemoryPolicies
    runtime: Runtime
    looks: MemoryLookQueue
    pending: list[Message] = field(default_factory=list)

    def take(self, *events: Json) -> None:
        """Events in, as EventBridge would hand them over."""
        for event in events:
            take_in(self.runtime, json.dumps(event))

    def apply_all(self) -> list[str]:
        """Every wish message that waits, each tried once."""
        return [_tried(self.runtime, *message) for message in self.wishes.drain()]

    def apply_until_done(self) -> None:
        """As Lambda does: a message is gone once it was handled, and comes again after six minutes if not."""
        self.pending += self.wishes.drain()
        while self.pending:
            try:
                apply(self.runtime, *self.pending[0])
            except Unavailable:
                self.clock.advance(6 * MINUTE)
                continue
            self.pending.pop(0)
            self.pending += self.wishes.drain()

    def watch(self) -> list[str]:
        """Every look message that is due, each tried once."""
        return [look_at(self.runtime, look.body) for look in self.looks.take_due()]

    def sweep(self, holder: str = "sweep") -> Report:
        return sweep(self.runtime, holder, Limits())

    def settle(self, rounds: int = 2) -> None:
        """The faults have stopped: so many sweeps, each followed by ``apply``, past ``SETTLE``."""
        for _ in range(rounds):
            self.clock.advance(SETTLE + MINUTE)
            self.sweep(f"settle-{self.clock.now()}")
            self.apply_all()

    def record(self, job: str) -> JobRecord:
        record = self.ledger.load(JobRecord, last_part(job))
        assert record is not None, f"no record of {job}"
        return record


def _tried(runtime: Runtime, job: str, wish: int | str) -> str:
    try:
        return apply(runtime, job, wish)
    except Unavailable:
        return "unavailable"


def world(
    *,
    batch: Any = None,
    clock: MemoryClock | None = None,
    policy: Policy = ENFORCE,
    queue: str = QUEUE,
    classic: frozenset[str] = frozenset(),
    buckets: frozenset[str] = frozenset(),
) -> World:
    """A world of one queue; ``batch`` defaults to one that says what it was told, ``buckets`` are watched."""
    clock = clock or MemoryClock(NOW)
    ledger, wishes, policies = MemoryLedger(), MemoryWishQueue(clock), MemoryPolicies(policy)
    batch, looks = batch or MemoryBatch(clock), MemoryLookQueue(clock)
    runtime = Runtime(
        batch=batch,
        ledger=ledger,
        audit=ledger,
        wishes=wishes,
        notices=MemoryNoticeQueue(),
        dead_letters=MemoryDeadLetters(),
        checkpoints=MemoryCheckpoints(clock),
        policies=policies,
        clock=clock,
        queues=frozenset({queue}),
        classic_queues=classic,
        looks=looks,
        workflows=MemoryWorkflows(),
        checkpoint_buckets=buckets,
        own_role="sharewarden-apply",
    )
    return World(clock, batch, ledger, wishes, policies, runtime, looks)


# What is compared.

#: When something was read or written says nothing about what happened.
READ_TIMES: dict[str, Any] = {
    "version": True,
    "snapshot": {"read_at"},
    "priority": {"as_of"},
    "closed_at": True,
    "adopted_at": True,
    "missing_since": True,
    "woken_at": True,
    # A "preemption started" names no attempt: while events are missing it may be taken for another one's.
    "attempts": {"__all__": {"cased", "mistaken"}},
}


def records(ledger: MemoryLedger) -> dict[str, Json]:
    """All that is remembered of jobs and training jobs, without the times of reading."""
    return {
        f"{item.item} {item.key}": item.model_dump(
            exclude=READ_TIMES if isinstance(item, JobRecord) else {"version"}
        )
        for item in ledger.items.values()
        if isinstance(item, JobRecord | TrainingRecord)
    }


def audit(ledger: MemoryLedger) -> dict[str, Json]:
    """The audit set, without the time of writing.

    An unknown type of event is on record once: with the time of whichever came first.
    """
    return {
        key: fact.model_dump(exclude={"recorded_at"} | ({"at"} if fact.kind == "unrecognised" else set()))
        for key, fact in ledger.facts.items()
    }


def difference(one: dict[str, Json], other: dict[str, Json]) -> str:
    """What tells two such sets apart, for people; empty when nothing does."""
    lines = [f"only once: {key}" for key in sorted(one.keys() ^ other.keys())]
    for key in sorted(one.keys() & other.keys()):
        lines += [
            f"{key}: {name}: {one[key][name]!r} / {other[key][name]!r}"
            for name in one[key]
            if one[key][name] != other[key][name]
        ]
    return "\n".join(lines)


def stored(ledger: MemoryLedger, kind: type[Stored]) -> list[Stored]:
    return [item for item in ledger.items.values() if isinstance(item, kind)]


def facts_of(ledger: MemoryLedger, kind: str) -> list[AuditRecord]:
    return [fact for fact in ledger.facts.values() if fact.kind == kind]
