"""Telling people: what each answer of a channel makes of a notice, and which notices one message tells."""

import logging
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from sharewarden.domain.notice import LOST, MAX_TRIES, Channel, claimed, delivery, settled_under
from sharewarden.domain.notice import Notice as Stored
from sharewarden.domain.stored import HOUR, MINUTE
from sharewarden.domain.telling import Message
from sharewarden.ports import Conflict, Denied, Nowhere, Unavailable, Unsure
from sharewarden.usecases.notify import ATTEMPTS, FOLDING, notify, remind
from sharewarden_tools.memory import MemoryChannel, MemoryLedger

from tests.simulation.notices import BOTH, People, notice, people
from tests.simulation.world import QUEUE

ONE = notice("vision-1")
ANSWERS: list[tuple[Exception | None, str, str]] = [
    (None, "told", "sent"),
    (Unavailable("throttled"), "later", "waiting"),
    (Denied("no such topic"), "notices_failed", "waiting"),
    (Unsure("timed out"), "notices_unsure", "unsure"),
]


def states(found: Stored) -> dict[str, str]:
    return {one.channel: one.state for one in found.deliveries}


@pytest.mark.parametrize(("fault", "outcome", "state"), ANSWERS)
def test_what_a_channel_answers_is_kept_and_concerns_that_channel_alone(
    fault: Exception | None, outcome: str, state: str
) -> None:
    told = people()
    told.commit(ONE)
    told.topic.fault = fault
    assert notify(told.runtime, ONE.key) == outcome
    assert states(told.notice("vision-1")) == {"topic": state, "webhook": "sent"}
    assert told.told("webhook") == [ONE.fact]
    kept = delivery(told.notice("vision-1"), "topic")
    assert (kept.tries, kept.why) == (1, str(fault) if fault else None)


def test_the_other_channel_is_not_told_again_when_one_is_tried_again() -> None:
    told = people()
    told.commit(ONE)
    told.topic.fault = Unavailable("throttled")
    notify(told.runtime, ONE.key)
    told.topic.fault = None
    told.settle()
    assert told.told("topic") == told.told("webhook") == [ONE.fact]
    assert told.notice("vision-1").state == "sent"


def test_a_channel_that_stays_away_is_tried_less_and_less_and_then_given_up() -> None:
    told = people(frozenset(("topic",)))
    told.commit(ONE)
    told.topic.fault = Unavailable("throttled")
    pauses: list[int] = []
    outcomes: list[str] = []
    while told.notice("vision-1").is_open:
        outcomes.append(notify(told.runtime, ONE.key))
        pause = delivery(told.notice("vision-1"), "topic").next_at - told.clock.now()
        if told.notice("vision-1").is_open:
            pauses.append(pause // MINUTE)
            told.clock.advance(pause - 1)
            assert notify(told.runtime, ONE.key) == "later"
            told.clock.advance(1)
    assert pauses == [1, 2, 4, 8, 16, 32, 60]
    assert outcomes == ["later"] * (MAX_TRIES - 1) + ["notices_failed"]
    assert told.notice("vision-1").state == "failed"
    told.topic.fault = None
    told.settle()
    assert told.topic.sent == []


def test_whoever_finds_a_claim_whose_sender_is_gone_sends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    told = people()
    told.commit(ONE)
    begun = claimed(told.notice("vision-1"), "topic", BOTH, told.clock.now())
    told.ledger.commit([begun], [], told.clock.now())
    told.clock.advance(LOST - 1)
    assert notify(told.runtime, ONE.key) == "busy"
    assert (told.topic.sent, told.webhook.sent) == ([], [])
    told.clock.advance(1)
    with caplog.at_level(logging.ERROR):
        assert notify(told.runtime, ONE.key) == "notices_unsure"
    assert ONE.key in caplog.text
    assert (told.told("topic"), told.told("webhook")) == ([], [ONE.fact])
    assert notify(told.runtime, ONE.key) == "settled"


def test_a_claim_from_the_future_is_by_a_clock_that_went_wrong() -> None:
    told = people()
    told.commit(ONE)
    begun = claimed(told.notice("vision-1"), "topic", BOTH, told.clock.now() + HOUR)
    told.ledger.commit([begun], [], told.clock.now())
    assert notify(told.runtime, ONE.key) == "notices_unsure"


def test_without_a_channel_it_is_listed_and_nothing_alarms() -> None:
    told = people(frozenset())
    told.commit(ONE)
    assert notify(told.runtime, ONE.key) == "untold"
    assert [each.key for each in told.ledger.open_items(Stored, settled_under(QUEUE, told=False))] == [
        ONE.key
    ]
    assert notify(told.runtime, ONE.key) == "settled"
    assert remind(told.runtime, QUEUE, told.clock.now() + HOUR, 100) == 0


def test_a_channel_that_was_taken_away_meanwhile_refuses() -> None:
    told = people()
    told.commit(ONE)
    told.topic.fault = Unavailable("throttled")
    notify(told.runtime, ONE.key)
    told.clock.advance(HOUR)
    moved = replace(told.runtime, channels=frozenset(("webhook",)), topic=Nowhere())
    assert notify(moved, ONE.key) == "notices_failed"
    assert "no such channel is set up" in (delivery(told.notice("vision-1"), "topic").why or "")


def test_an_unknown_key_is_nothing() -> None:
    assert notify(people().runtime, "finding#x") == "gone"


# One message for what is alike.


def storm(told: People, count: int, **changes: Any) -> list[Stored]:
    notices = [notice(f"vision-{number:03}", **changes) for number in range(count)]
    told.commit(*notices)
    return notices


def test_what_is_alike_and_waits_goes_out_in_one_message_and_the_rest_is_counted() -> None:
    told = people()
    notices = storm(told, 300)
    outcomes = Counter(notify(told.runtime, each.key) for each in notices)
    assert outcomes == {"told": 3, "settled": 297}
    assert len(told.topic.sent) == len(told.webhook.sent) == 3
    assert sum(message.document["count"] for message in told.webhook.sent) == 300
    assert all("and 80 more of this kind: sharewarden audit list" in each.text for each in told.topic.sent)
    assert {told.notice(each.job or "").state for each in notices} == {"sent"}


@pytest.mark.parametrize(
    "other",
    [
        {"kind": "blast-radius"},
        {"severity": "alarm"},
        {"share": "urgent"},
        {"team": None},
        {"policy": "fedcba9876543210"},
        {"mode": "shadow"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_differs_is_told_apart(other: dict[str, Any]) -> None:
    told = people()
    told.commit(ONE, notice("vision-2", **other))
    notify(told.runtime, ONE.key)
    assert told.told("topic") == [ONE.fact]


@pytest.mark.parametrize("channel", ["topic", "webhook"])
def test_what_another_sends_or_waits_for_its_pause_is_not_folded_in(channel: Channel) -> None:
    told = people()
    told.commit(ONE, notice("vision-2"))
    begun = claimed(told.notice("vision-2"), channel, BOTH, told.clock.now())
    told.ledger.commit([begun], [], told.clock.now())
    notify(told.runtime, ONE.key)
    assert told.told("topic") == told.told("webhook") == [ONE.fact]


def test_an_index_that_lags_costs_the_folding_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    told = people(frozenset(("topic",)))
    notices = storm(told, 3)
    stale = [told.notice(each.job or "") for each in notices]
    notify(told.runtime, notices[1].key)
    late = notice("vision-late")
    told.commit(late)
    monkeypatch.setattr(told.ledger, "open_items", lambda *_: iter(stale))
    assert notify(told.runtime, late.key) == "told"
    assert told.told("topic") == [notices[1].fact, notices[0].fact, notices[2].fact, late.fact]


def test_a_notice_that_others_keep_writing_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    told = people(frozenset(("topic",)))
    told.commit(ONE)
    stale = told.notice("vision-1")
    told.ledger.commit([stale], [], told.clock.now())
    loads: list[str] = []
    monkeypatch.setattr(told.ledger, "load", lambda _, key: loads.append(key) or stale)
    with pytest.raises(Unavailable, match="another writer"):
        notify(told.runtime, ONE.key)
    assert len(loads) == 1 + len(FOLDING)
    assert told.topic.sent == []


# What the sweep brings back.


def test_the_sweep_brings_back_what_waits_or_lost_its_sender_up_to_a_cap() -> None:
    told = people()
    told.commit(*(notice(f"n{number}") for number in range(4)))
    now = told.clock.now()
    told.ledger.commit([claimed(told.notice("n0"), "topic", BOTH, now)], [], now)
    assert remind(told.runtime, QUEUE, now, 100) == 3
    assert notice("n0").key not in told.queue.sent
    assert remind(told.runtime, QUEUE, now + LOST, 100) == 4
    told.queue.sent.clear()
    assert remind(told.runtime, QUEUE, now + LOST, 2) == 2
    assert len(told.queue.sent) == 2
    assert remind(told.runtime, f"{QUEUE}-other", now + LOST, 100) == 0


def test_what_is_in_its_pause_is_left_alone() -> None:
    told = people()
    told.commit(ONE)
    told.topic.fault = Unavailable("throttled")
    notify(told.runtime, ONE.key)
    assert remind(told.runtime, QUEUE, told.clock.now(), 100) == 0
    assert remind(told.runtime, QUEUE, told.clock.now() + MINUTE, 100) == 1


# Keeping what came of it.

OPEN = {"waiting", "sending"}


class Busy(MemoryLedger):
    """Refuses commits of outcomes so many times, as another transaction on the same items makes it do."""

    refusals = 1

    def commit(self, items: Any, facts: Any, now: int) -> None:
        outcomes = [item for item in items if isinstance(item, Stored) and item.state not in OPEN]
        if outcomes and self.refusals:
            self.refusals -= 1
            raise Conflict("another transaction is writing the item")
        super().commit(items, facts, now)


def busy(refusals: int) -> People:
    told = people(frozenset(("topic",)))
    ledger = Busy()
    ledger.refusals = refusals
    return replace(told, ledger=ledger, runtime=replace(told.runtime, ledger=ledger))


@pytest.mark.parametrize("refusals", [1, ATTEMPTS])
def test_an_outcome_outlasts_other_writers(refusals: int) -> None:
    told = busy(refusals)
    notices = storm(told, 3)
    assert notify(told.runtime, notices[0].key) == "told"
    assert {told.notice(each.job or "").state for each in notices} == {"sent"}


def test_an_outcome_that_cannot_be_kept_ends_as_unsure_and_is_not_sent_again() -> None:
    told = busy(1 + ATTEMPTS)
    told.commit(ONE)
    with pytest.raises(Unavailable, match="another writer"):
        notify(told.runtime, ONE.key)
    told.settle()
    assert (told.notice("vision-1").state, told.told("topic")) == ("unsure", [ONE.fact])


def test_what_was_given_up_as_lost_meanwhile_stays_so() -> None:
    told = people(frozenset(("topic",)))
    told.commit(ONE)

    class Slow(MemoryChannel):
        """Longer on its way than a function lives, by the clock of somebody else."""

        def send(self, message: Message) -> None:
            super().send(message)
            told.clock.advance(LOST)
            assert notify(told.runtime, ONE.key) == "notices_unsure"

    assert notify(replace(told.runtime, topic=Slow()), ONE.key) == "told"
    assert told.notice("vision-1").state == "unsure"
