"""Acts of guardrails, stopped between any two calls, raced, or met by the world itself (laws 1, 2, 3, 10)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache

import pytest
from sharewarden.domain.termination import open_terminations
from sharewarden.ports import Conflict, Runtime
from sharewarden.usecases.apply import apply

from tests.simulation.acts_kit import GRACE, RULES_ONLY, TEXT, begins, ends, kill, lower, still_broken
from tests.simulation.faults import Hook, When, crash, lose, nothing, once, watched
from tests.simulation.samples import FIRST, JOB, attempt_row, state
from tests.simulation.test_loop_crashes import Story, outcome, told
from tests.simulation.world import MINUTE, NOW, Unavailable, World, facts_of

Act = Callable[[World], object]


def _lowered_and_raised(story: Story) -> None:
    story.takes(state("RUNNABLE", story.now()))
    story.does(lambda one: begins(one, lower()))
    _sweeps_on(story)
    story.does(lambda one: ends(one, "a1"))
    _sweeps_on(story)


def _terminated(story: Story) -> None:
    story.becomes(status="RUNNING", attempt=FIRST, scheduled_at=story.now())
    story.takes(state("RUNNING", story.now(), latestAttempt=attempt_row(FIRST)))
    due = story.now() + GRACE
    story.does(lambda one: begins(one, kill(not_before=due)))
    story.passes(GRACE)
    _sweeps_on(story)
    story.becomes(status="FAILED", stopped_at=story.now(), reason=TEXT)
    ended = state("FAILED", story.now(), stoppedAt=story.now(), statusReason=TEXT)
    ended["detail"]["stoppedAt"] = story.batch.descriptions[JOB].stopped_at
    story.takes(ended)


def _sweeps_on(story: Story) -> None:
    for _ in range(3):
        story.passes(6 * MINUTE)
        story.sweeps()
        story.applies()


def live(hook: Hook = nothing) -> Story:
    story = Story(hook)
    story.world.policies.policy = RULES_ONLY
    for chapter in (_lowered_and_raised, _terminated, Story.settles):
        chapter(story)
    return story


@cache
def undisturbed() -> Story:
    return live()


def test_the_story_is_what_it_should_be() -> None:
    story = undisturbed()
    assert story.batch.priorities == [(JOB, 150), (JOB, 200)]
    assert story.batch.terminations == [(JOB, TEXT)]
    kinds = sorted(fact.kind for fact in story.world.ledger.facts.values())
    changes = ["priority-changed", "priority-changed"]
    assert kinds == ["boost-ended", "job-ended", "job-timeline", *changes, "terminated"]


CALLS = undisturbed().calls.names


@pytest.mark.parametrize("number", range(1, len(CALLS) + 1))
@pytest.mark.parametrize(
    ("when", "fault"), [("before", crash), ("after", crash), ("before", lose), ("after", lose)]
)
def test_law_10_any_call_may_be_the_last(number: int, when: When, fault: Callable[[], None]) -> None:
    story = live(once(number, when, fault))
    where = f"{fault.__name__} {when} call {number}, {CALLS[number - 1]}"
    assert [text for _, text in story.batch.terminations] == [TEXT], where
    assert outcome(story) == outcome(undisturbed()), where
    assert told(story) == told(undisturbed()), where
    assert open_terminations(story.world.record(JOB).terminations) == (), where


# Two at once.


def _ended_by_itself(one: World) -> None:
    known = one.batch.descriptions[JOB]
    if known.status == "RUNNING" and not known.terminated:
        at = NOW + GRACE
        one.batch.tell(known.model_copy(update={"status": "SUCCEEDED", "stopped_at": at, "reason": "done"}))


def _preempted(one: World) -> None:
    known = one.batch.descriptions[JOB]
    if known.status == "RUNNING" and not known.terminated:
        one.batch.tell(known.model_copy(update={"status": "RUNNABLE", "preempted_count": 0}))


def _terminated_by_hand(one: World) -> None:
    known = one.batch.descriptions[JOB]
    if known.status == "RUNNING" and not known.terminated:
        update = {"status": "FAILED", "terminated": True, "stopped_at": NOW + GRACE, "reason": "by hand"}
        one.batch.tell(known.model_copy(update=update))


def _paused(one: World) -> None:
    one.policies.policy = RULES_ONLY.model_copy(update={"paused": True})


ACTS: dict[str, Act] = {
    "apply": lambda one: apply(one.runtime, JOB, "t1"),
    "sweep": lambda one: one.sweep("race-1"),
    "other sweep": lambda one: one.sweep("race-2"),
    "the rule holds again": lambda one: ends(one, "t1"),
    "begun again": lambda one: begins(one, kill()),
    "event": lambda one: one.take(state("RUNNING", NOW + GRACE)),
}
OTHERS: dict[str, Act] = ACTS | {
    "ended by itself": _ended_by_itself,
    "preempted": _preempted,
    "terminated by hand": _terminated_by_hand,
    "paused": _paused,
}


def _raced(first: Act, second: Act, number: int, when: When) -> tuple[Story, bool]:
    """``second`` inside that call of ``first``; False when ``first`` makes fewer calls."""
    story = Story(nothing)
    story.world.policies.policy = RULES_ONLY
    story.becomes(status="RUNNING", attempt=FIRST, scheduled_at=NOW)
    story.takes(state("RUNNING", NOW, latestAttempt=attempt_row(FIRST)))
    begins(story.world, kill())
    story.passes(GRACE)
    story.sweeps()
    other = replace(story.world, runtime=story.plain, pending=[])
    runtime, calls = watched(story.plain, once(number, when, lambda: _tolerant(second, other)))
    _tolerant(first, _at(story, runtime))
    story.world.policies.policy = RULES_ONLY
    for _ in range(2):  # a sweep sees where the job stands, and its rule is broken there as well
        still_broken(story.world)
        _sweeps_on(story)
    _stops(story)
    story.settles()
    return story, calls.number >= number


def _at(story: Story, runtime: Runtime) -> World:
    return replace(story.world, runtime=runtime, pending=[])


def _tolerant(act: Act, one: World) -> None:
    with suppress(Unavailable, Conflict):
        act(one)


def _stops(story: Story) -> None:
    """What was to be terminated while it ran has stopped by now."""
    known = story.batch.descriptions[JOB]
    if known.terminated and known.status == "RUNNING":
        reason = story.batch.terminations[0][1] if story.batch.terminations else "by hand"
        story.becomes(status="FAILED", stopped_at=story.now(), reason=reason)


def _check(story: Story, where: str) -> None:
    """The audit says exactly what was done, and no act is open on a job that goes on or has ended."""
    assert len(story.batch.terminations) <= 1, where
    told_of = facts_of(story.world.ledger, "terminated")
    assert len(told_of) == len(story.batch.terminations), where
    dropped = facts_of(story.world.ledger, "wish-dropped")
    assert len(told_of) + len(dropped) <= 1, where
    record = story.world.record(JOB)
    assert open_terminations(record.terminations) == (), where
    assert record.end is not None or dropped, where


@pytest.mark.parametrize("second", OTHERS)
@pytest.mark.parametrize("first", ACTS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_law_01_every_race_of_two_tells_what_happened(first: str, second: str, when: When) -> None:
    for number in range(1, 200):
        story, reached = _raced(ACTS[first], OTHERS[second], number, when)
        _check(story, f"{second} {when} call {number} of {first}")
        if not reached:
            return
    raise AssertionError("it never came to its end")
