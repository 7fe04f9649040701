"""A deployment that tells people: channels that remember, a queue that brings back what was not done."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from sharewarden.domain.audit import AuditFact, subject_key
from sharewarden.domain.notice import Channel, Notice
from sharewarden.domain.stored import MINUTE
from sharewarden.ports import Runtime, Unavailable
from sharewarden.usecases.notify import notify, remind
from sharewarden_tools.memory import MemoryChannel, MemoryClock, MemoryLedger, MemoryNoticeQueue

from tests.simulation.world import NOW, QUEUE, world

BOTH: frozenset[Channel] = frozenset(("topic", "webhook"))


def notice(name: str, **changes: Any) -> Notice:
    """A finding about the job of that name."""
    told = Notice(
        fact=subject_key("finding", name, "checkpoint-required"),
        kind="finding",
        at=NOW,
        title=f"checkpoint-required: {name}",
        text="it may be preempted and saves nothing",
        queue=QUEUE,
        share="background",
        team="research",
        job=name,
        job_name=name,
        policy="0123456789abcdef",
        mode="enforce",
    )
    return told.model_copy(update=changes)


@dataclass
class People:
    """``topic`` and ``webhook`` hold what people were told."""

    clock: MemoryClock
    ledger: MemoryLedger
    queue: MemoryNoticeQueue
    topic: MemoryChannel
    webhook: MemoryChannel
    runtime: Runtime

    def commit(self, *notices: Notice) -> None:
        """As whoever finds something does: each with its fact."""
        for each in notices:
            fact = AuditFact(key=each.fact, kind="finding", at=each.at, queue=each.queue)
            self.runtime.ledger.commit([each], [fact], self.clock.now())

    def settle(self, rounds: int = 3) -> None:
        """The faults have stopped: so many sweeps, five minutes apart, and whatever they send again."""
        for _ in range(rounds):
            self.clock.advance(5 * MINUTE)
            self.queue.sent.clear()
            remind(self.runtime, QUEUE, self.clock.now(), 100)
            for key in self.queue.sent:
                notify(self.runtime, key)

    def notice(self, name: str) -> Notice:
        found = self.ledger.load(Notice, notice(name).key)
        assert found is not None
        return found

    def told(self, channel: Channel) -> list[str]:
        """Facts that the channel was told of, each as often as it was."""
        sent = (self.topic if channel == "topic" else self.webhook).sent
        return list(chain.from_iterable(_records(message.document) for message in sent))


def people(channels: frozenset[Channel] = BOTH) -> People:
    """Nobody has been told anything."""
    made = world()
    queue, topic, webhook = MemoryNoticeQueue(), MemoryChannel(), MemoryChannel()
    runtime = replace(made.runtime, notices=queue, channels=channels, topic=topic, webhook=webhook)
    return People(made.clock, made.ledger, queue, topic, webhook, runtime)


def tried(runtime: Runtime, key: str) -> str:
    """One delivery by SQS."""
    try:
        return notify(runtime, key)
    except Unavailable:
        return "again"


def _records(document: dict[str, Any]) -> list[str]:
    return [entry["record"] for entry in document["notices"]]
