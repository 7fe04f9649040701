"""Deliveries that are doubled, lost, late and cut short at any step: each fact is told once at most."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from sharewarden.domain.notice import MAX_TRIES, Channel
from sharewarden.domain.stored import HOUR, MINUTE
from sharewarden.domain.telling import LISTED, Message
from sharewarden.ports import Conflict, Unavailable, Unsure
from sharewarden.usecases.notify import notify, remind

from tests.simulation.faults import Crash, Hook, crash, lose, once, watched
from tests.simulation.notices import People, notice, people, tried
from tests.simulation.world import QUEUE

CHANNELS: tuple[Channel, ...] = ("topic", "webhook")
FACTS = [notice(f"vision-{number}") for number in range(3)]


def interrupted(hook: Hook) -> tuple[People, list[str]]:
    """Three facts, the first of them delivered under ``hook``; then the faults stop. And what was called."""
    told = people()
    told.commit(*FACTS)
    runtime, calls = watched(told.runtime, hook)
    with suppress(Crash):
        tried(runtime, FACTS[0].key)
    for fact in FACTS:
        tried(told.runtime, fact.key)
    told.settle(rounds=2 * MAX_TRIES)
    return told, calls.names


STEPS = range(1, 1 + len(interrupted(lambda *_: None)[1]))


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("act", [crash, lose])
@pytest.mark.parametrize("step", STEPS)
def test_law_01_a_delivery_cut_short_at_any_step_tells_each_fact_once_at_most(
    step: int, act: Any, when: Any
) -> None:
    told, names = interrupted(once(step, when, act if (names_of(step), when) != ("send", "after") else doubt))
    for channel in CHANNELS:
        assert max(Counter(told.told(channel)).values(), default=0) <= 1
    assert all(told.notice(fact.job or "").state in {"sent", "unsure"} for fact in FACTS)
    assert_known(told)
    assert names


def test_law_01_most_steps_lose_nothing() -> None:
    """Only between claim and outcome, on one channel, is anything in doubt."""
    doubtful = [
        step
        for step in STEPS
        if any(told_less(interrupted(once(step, when, crash))[0]) for when in ("before", "after"))
    ]
    assert len(doubtful) <= 8  # two channels: claim, send, outcome, and the call before each
    assert len(STEPS) > len(doubtful)


def names_of(step: int) -> str:
    return interrupted(lambda *_: None)[1][step - 1]


def doubt() -> None:
    """A channel whose answer does not arrive."""
    raise Unsure("timed out")


def told_less(told: People) -> bool:
    return any(set(told.told(channel)) != {fact.fact for fact in FACTS} for channel in CHANNELS)


def assert_known(told: People) -> None:
    """What is on record as sent was, and what a channel was not told of is on record as unsure."""
    for fact in FACTS:
        for one in told.notice(fact.job or "").deliveries:
            if one.state == "sent":
                assert fact.fact in told.told(one.channel)
            else:
                assert one.state == "unsure"


class Shaky:
    """A channel that refuses, loses the answer, or dies, now and then."""

    def __init__(self, channel: Any, chance: Random) -> None:
        self._channel = channel
        self._chance = chance
        self.calm = False

    def send(self, message: Message) -> None:
        dice = 0.9 if self.calm else self._chance.random()
        if dice < 0.2:
            raise Unavailable("connection refused")
        self._channel.send(message)
        if dice < 0.3:
            raise Unsure("timed out")
        if dice < 0.4:
            raise Crash


class Storage:
    """A ledger that is away now and then, before or after it did what it was asked to."""

    def __init__(self, ledger: Any, chance: Random) -> None:
        self._ledger = ledger
        self._chance = chance
        self.calm = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def commit(self, *args: Any) -> None:
        dice = 0.9 if self.calm else self._chance.random()
        if dice < 0.1:
            raise Unavailable("throttled")
        if dice < 0.15:
            raise Conflict("by another")
        self._ledger.commit(*args)
        if dice < 0.25:
            raise Unavailable("the answer was lost")


@pytest.mark.parametrize("seed", range(40))
def test_law_01_a_storm_under_faults_tells_each_fact_once_at_most_and_converges(seed: int) -> None:
    chance = Random(seed)
    told = people()
    facts = [notice(f"n{number}", share=chance.choice(["background", "urgent"])) for number in range(LISTED)]
    told.commit(*facts)
    ports = [Shaky(told.topic, chance), Shaky(told.webhook, chance), Storage(told.ledger, chance)]
    shaky = replace(told.runtime, topic=ports[0], webhook=ports[1], ledger=ports[2])
    deliveries = [fact.key for fact in facts for _ in range(chance.randint(0, 3))]
    chance.shuffle(deliveries)
    for key in deliveries:
        with suppress(Crash):
            tried(shaky, key)
        told.clock.advance(chance.choice([0, 1_000, MINUTE, 4 * MINUTE]))
    for port in ports:
        port.calm = True
    for _ in range(3):  # past the longest pause and every lost claim, design law 10
        told.clock.advance(HOUR)
        told.queue.sent.clear()
        remind(shaky, QUEUE, told.clock.now(), 100)
        for key in told.queue.sent:
            notify(shaky, key)
    for channel in CHANNELS:
        counted = Counter(told.told(channel))
        assert max(counted.values(), default=0) <= 1
        for fact in facts:
            state = {one.channel: one.state for one in told.notice(fact.job or "").deliveries}[channel]
            assert state == "unsure" or (state == "sent" and counted[fact.fact] == 1)
