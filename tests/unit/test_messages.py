"""A batch of SQS messages: each stands by itself, in a FIFO queue each group does."""

import json
from typing import Any

import pytest
from sharewarden import messages
from sharewarden.messages import MESSAGE_SPARE_MS, TRIES_WHEN_BROKEN, TRIES_WHEN_UNAVAILABLE, Poison, consume
from sharewarden.ports import Runtime, Unavailable
from sharewarden_tools.memory import (
    Buried,
    MemoryBatch,
    MemoryClock,
    MemoryDeadLetters,
    MemoryLedger,
    MemoryNoticeQueue,
    MemoryPolicies,
    MemoryWishQueue,
)
from sharewarden_tools.memory_objects import MemoryCheckpoints

FAILURES: dict[str, Exception] = {
    "poison": Poison("no JSON"),
    "unavailable": Unavailable("throttled"),
    "broken": KeyError("oops"),
}


class Shut(MemoryDeadLetters):
    def bury(self, body: str, reason: str, origin: str) -> None:
        raise Unavailable("SendMessage: throttled")


class Consumer:
    """Consumes bodies such as ``"broken"`` or ``"fine"``; ``used`` says which were tried."""

    def __init__(self, dead_letters: MemoryDeadLetters | None = None) -> None:
        self.used: list[str] = []
        self.remaining = 300_000
        self.dead_letters = dead_letters or MemoryDeadLetters()
        clock, ledger = MemoryClock(), MemoryLedger()
        self._runtime = Runtime(
            batch=MemoryBatch(clock),
            ledger=ledger,
            audit=ledger,
            wishes=MemoryWishQueue(clock),
            notices=MemoryNoticeQueue(),
            dead_letters=self.dead_letters,
            checkpoints=MemoryCheckpoints(clock),
            policies=MemoryPolicies(),
            clock=clock,
            queues=frozenset(),
        )

    def __call__(self, *records: dict[str, Any], fifo: bool = False) -> list[str]:
        """Ids of the messages that must come again."""
        answer = consume(
            {"Records": list(records)},
            self._runtime,
            "events",
            self._use,
            fifo=fifo,
            remaining=lambda: self.remaining,
        )
        return [row["itemIdentifier"] for row in answer["batchItemFailures"]]

    def _use(self, body: str) -> str:
        self.used.append(body)
        self.remaining -= 5_000
        if body in FAILURES:
            raise FAILURES[body]
        return "tracked"


@pytest.fixture(autouse=True)
def namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages.metrics.provider, "namespace", "Sharewarden")
    monkeypatch.setattr(messages.metrics.provider, "service", "sharewarden")


def record(number: int, body: str, *, tries: int = 1, group: str | None = None) -> dict[str, Any]:
    attributes = {"ApproximateReceiveCount": str(tries)} | ({"MessageGroupId": group} if group else {})
    return {"messageId": f"m{number}", "body": body, "attributes": attributes}


def test_a_bad_message_does_not_block_the_others() -> None:
    consumer = Consumer()
    bodies = ("fine", "broken", "fine", "unavailable", "poison", "fine")
    assert consumer(*(record(number, body) for number, body in enumerate(bodies))) == ["m1", "m3"]
    assert tuple(consumer.used) == bodies
    assert consumer.dead_letters.buried == [Buried("poison", "Poison: no JSON", "events")]


@pytest.mark.parametrize(
    ("body", "tries", "comes_again"),
    [
        ("poison", 1, False),
        ("broken", TRIES_WHEN_BROKEN - 1, True),
        ("broken", TRIES_WHEN_BROKEN, False),
        ("unavailable", TRIES_WHEN_UNAVAILABLE - 1, True),
        ("unavailable", TRIES_WHEN_UNAVAILABLE, False),
    ],
)
def test_how_often_a_message_is_tried(body: str, tries: int, *, comes_again: bool) -> None:
    consumer = Consumer()
    assert consumer(record(0, body, tries=tries)) == (["m0"] if comes_again else [])
    assert len(consumer.dead_letters.buried) == (0 if comes_again else 1)


@pytest.mark.parametrize("fifo", [False, True])
def test_what_there_is_no_time_for_comes_again_untried(*, fifo: bool) -> None:
    consumer = Consumer()
    consumer.remaining = MESSAGE_SPARE_MS + 5_000
    records = [record(number, "fine", group="abcd"[number]) for number in range(4)]
    assert consumer(*records, fifo=fifo) == ["m2", "m3"]
    assert consumer.used == ["fine", "fine"]


def test_what_cannot_be_buried_comes_again() -> None:
    assert Consumer(Shut())(record(0, "poison"), record(1, "fine")) == ["m0"]


def test_in_a_fifo_queue_a_group_waits_for_its_failed_message() -> None:
    consumer = Consumer()
    sent = [
        ("a", "fine"),
        ("b", "unavailable"),
        ("a", "broken"),
        ("b", "later"),
        ("a", "last"),
        ("c", "other"),
    ]
    records = [record(number, body, group=group) for number, (group, body) in enumerate(sent)]
    assert consumer(*records, fifo=True) == ["m1", "m2", "m3", "m4"]
    assert consumer.used == ["fine", "unavailable", "broken", "other"]


def test_a_buried_message_does_not_hold_its_group() -> None:
    consumer = Consumer()
    assert consumer(record(0, "poison", group="a"), record(1, "fine", group="a"), fifo=True) == []
    assert consumer.used == ["poison", "fine"]


def test_outcomes_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    Consumer()(*(record(number, body) for number, body in enumerate(("fine", "fine", "broken", "poison"))))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (counts,) = [line for line in lines if "_aws" in line]
    assert (counts["tracked"], counts["deferred"], counts["buried"]) == ([1.0, 1.0], [1.0], [1.0])
