"""Looks at checkpoints that are lost, doubled, late or cut off: the same is found, once (laws 1, 8, 10)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from sharewarden.domain.base import last_part
from sharewarden.domain.notice import Notice
from sharewarden.domain.policy import Policy
from sharewarden.ports import Unavailable
from sharewarden_tools.memory import MemoryLookQueue

from tests.simulation.faults import Crash, Hook, When, crash, lose, nothing, once, watched
from tests.simulation.samples import FIRST, JOB, SECOND, attempt_row, described, share, state
from tests.simulation.world import (
    ENFORCE,
    MINUTE,
    NOW,
    QUEUE,
    World,
    facts_of,
    reproduce,
    seeds,
    stored,
    world,
)
from tests.unit.checkpoint_kit import URI, manifest

STALE = {"rule": "stale-checkpoint", "times": 2, "action": "notify"}
POLICY = Policy.model_validate(ENFORCE.model_dump() | {"guardrails": [STALE]})
#: The queue hides a message that was not finished for so long (template).
HIDDEN = 18 * MINUTE
#: Minutes. The first attempt saves, then not for long, then again; it is preempted, and the second one saves.
SAVES = (2, 14, 26, *range(110, 135, 12), *range(150, 211, 12))
PREEMPTED, AGAIN, ENDS = 136, 138, 215


class Story:
    """Some hours of one job, minute by minute; a sweep comes every quarter of an hour."""

    def __init__(self, hook: Hook) -> None:
        self.world = world(policy=POLICY, buckets=frozenset({"arn:aws:s3:::ckpt"}))
        self.plain = self.world.runtime
        self.plain.checkpoints.put("s3://ckpt", "other/x", b"")
        self.world.batch.tell(described(status="RUNNING", checkpoint_uri=URI, attempt=FIRST))
        self.world.batch.quota_shares[QUEUE] = [share(1)]
        self.world.runtime, self.calls = watched(self.plain, hook)

    def runs(self) -> None:
        for minute in range(ENDS + 46):
            self._passes(minute)
            self._does(self.world.watch, lambda: self.world.looks.send(JOB, HIDDEN))
            if minute % 15 == 0:
                self._does(lambda holder=f"sweep-{minute}": self.world.sweep(holder), lambda: None)
            self.world.clock.advance(MINUTE)

    def _passes(self, minute: int) -> None:
        now = self.world.clock.at
        if minute in SAVES:
            by = last_part(FIRST if minute < PREEMPTED else SECOND)
            self.plain.checkpoints.put(URI, f"step-{minute:012d}-aaaa/model.pt", b"model")
            told = manifest(minute, saved_at=now, training_job=by)
            self.plain.checkpoints.put(URI, f"step-{minute:012d}-aaaa/_SAVED.json", told)
        if minute == 0:
            self._hears("RUNNING", FIRST)
        if minute == PREEMPTED:
            self._hears("RUNNABLE", FIRST)
        if minute == AGAIN:
            self._hears("RUNNING", SECOND)
        if minute == ENDS:
            self._hears("SUCCEEDED", SECOND, stoppedAt=now, statusReason="done")

    def _hears(self, status: Any, attempt: str, **more: Any) -> None:
        now, more = self.world.clock.at, {"latestAttempt": attempt_row(attempt)} | more
        ended = {"stopped_at": now, "reason": "done"} if status == "SUCCEEDED" else {}
        told = self.world.batch.descriptions[JOB]
        self.world.batch.tell(told.model_copy(update={"status": status, "attempt": attempt} | ended))
        event = state(status, now, **more)
        self._does(lambda: self.world.take(event), lambda: self.world.take(event))

    def _does(self, work: Callable[[], object], again: Callable[[], object]) -> None:
        try:
            work()
        except (Crash, Unavailable):
            again()


def live(hook: Hook = nothing) -> Story:
    story = Story(hook)
    story.runs()
    return story


@cache
def undisturbed() -> Story:
    return live()


def found(one: World) -> Counter[str]:
    return Counter(fact.kind for fact in one.ledger.facts.values())


def outcome(story: Story) -> object:
    one = story.world
    notices = [notice.kind for notice in stored(one.ledger, Notice)]  # type: ignore[attr-defined]
    newest = one.record(JOB).saves.newest
    return found(one), notices, newest and newest.training_job


def looks(story: Story) -> int:
    return story.calls.names.count("pages")


def test_the_story_is_what_it_should_be() -> None:
    story = undisturbed()
    (stale,) = facts_of(story.world.ledger, "finding")
    (over,) = facts_of(story.world.ledger, "finding-cleared")
    assert (stale.figures["interval"], stale.figures["age"]) == (720, 1560)
    assert (stale.at - NOW, over.at - NOW) == (52 * MINUTE, 112 * MINUTE)
    save = story.world.record(JOB).saves.newest
    assert save is not None
    assert save.step == 210
    assert story.world.looks.next_due() is None  # nobody looks at a job that has ended


CALLS = undisturbed().calls.names


@pytest.mark.parametrize(
    ("when", "fault", "every"),
    [("before", crash, 1), ("after", crash, 5), ("before", lose, 5), ("after", lose, 2)],
)
def test_law_10_any_call_of_looks_and_sweeps_may_be_the_last(
    when: When, fault: Callable[[], None], every: int
) -> None:
    """A crash after a call mostly leaves what one before the next call does: a sample is enough."""
    for number, name in list(enumerate(CALLS, 1))[::every]:
        story = live(once(number, when, fault))
        where = f"{fault.__name__} {when} call {number}, {name}"
        assert outcome(story) == outcome(undisturbed()), where
        assert looks(story) <= looks(undisturbed()) + 4, where


class Unreliable(MemoryLookQueue):
    """Loses, doubles and delays messages."""

    def __init__(self, world: World, seed: int) -> None:
        super().__init__(world.clock)
        self._random = random.Random(seed)

    def send(self, job: str, delay: int) -> None:
        for _ in range(self._random.choice((0, 1, 1, 2, 3))):
            super().send(job, delay + self._random.choice((0, 0, MINUTE, 7 * MINUTE)))


def test_law_10_lost_doubled_and_late_looks_change_nothing_that_is_found() -> None:
    for seed in seeds(25):
        story = Story(nothing)
        queue = Unreliable(story.world, seed)
        story.world.looks = queue
        story.world.runtime, story.calls = watched(replace(story.plain, looks=queue), nothing)
        story.runs()
        where = reproduce("test_law_10_lost_doubled_and_late_looks", seed)
        assert outcome(story) == outcome(undisturbed()), where
        assert looks(story) <= looks(undisturbed()) + 4, where


def test_law_08_no_look_of_which_nothing_came_makes_a_job_stale_or_fresh() -> None:
    """S3 is away from the first save on, for ever: the age of the attempt stays unknown."""

    def away(number: int, name: str, when: When) -> None:
        if name == "pages" and when == "before":
            raise Unavailable("SlowDown")

    story = live(away)
    assert not facts_of(story.world.ledger, "finding")
    assert story.world.record(JOB).saves.newest is None
