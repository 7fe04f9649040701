"""Two invocations at once: the one runs as a whole inside each call of the other (laws 1, 3, 5)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest
from sharewarden.domain.priority import effective, live_boosts
from sharewarden.ports import Conflict, Runtime
from sharewarden.usecases.apply import apply
from sharewarden.usecases.bump import Refused, UnbumpRequest, bump, unbump

from tests.simulation.faults import When, nothing, once, watched
from tests.simulation.samples import JOB, SHARE, api_call, share, state
from tests.simulation.test_loop_crashes import Story, _bump, share_changes
from tests.simulation.world import MINUTE, NOW, QUEUE, Unavailable, World, facts_of

#: Between the first sweep and the race.
LATER = NOW + 20_000

Act = Callable[[World], object]


def _applies(one: World) -> object:
    record = one.record(JOB)
    return apply(one.runtime, JOB, record.priority.wish.version if record.priority.wish else 1)


ACTS: dict[str, Act] = {
    "apply": _applies,
    "bump": lambda one: bump(one.runtime, _bump("b2", to=900)),
    "unbump": lambda one: unbump(one.runtime, UnbumpRequest(id="u1", job=JOB, actor="U2", reason="r")),
    "sweep": lambda one: one.sweep("race-1"),
    "other sweep": lambda one: one.sweep("race-2"),
    "event": lambda one: one.take(state("RUNNABLE", LATER)),
    "end": lambda one: one.take(state("FAILED", LATER, stoppedAt=LATER, statusReason="by hand")),
    "end without details": lambda one: one.take(state("FAILED", LATER)),
    "share call": lambda one: one.take(api_call("UpdateQuotaShare", {"quotaShareArn": SHARE}, LATER)),
}


def _prepared() -> Story:
    """A job with a wish that waits."""
    story = Story(nothing)
    story.takes(state("RUNNABLE", NOW))
    story.sweeps()
    bump(story.plain, _bump("b1", by=100))
    story.batch.quota_shares[QUEUE] = [share(3)]
    story.passes(MINUTE)
    return story


def _at(story: Story, runtime: Runtime) -> World:
    return replace(story.world, runtime=runtime, pending=[])


def _raced(first: Act, second: Act, number: int, when: When) -> tuple[Story, bool]:
    """``second`` inside that call of ``first``; False when ``first`` makes fewer calls."""
    story = _prepared()
    other = _at(story, story.plain)
    runtime, calls = watched(story.plain, once(number, when, lambda: _tolerant(second, other)))
    _tolerant(first, _at(story, runtime))
    for act in (first, second):  # what was not done comes again
        story.passes(6 * MINUTE)
        _tolerant(act, other)
    for _ in range(3):
        story.acts()
        story.settles()
    return story, calls.number >= number


def _tolerant(act: Act, one: World) -> None:
    with suppress(Unavailable, Refused, Conflict):
        act(one)


def _check(story: Story, where: str) -> None:
    record, ledger = story.world.record(JOB), story.world.record(JOB).priority
    shown = story.batch.descriptions[JOB].priority
    sent = [value for _, value in story.batch.priorities]
    told = sorted(facts_of(story.world.ledger, "priority-changed"), key=lambda fact: fact.figures["version"])
    assert [int(fact.after or "") for fact in told] == sent, f"{where}: audit and calls differ"
    assert not facts_of(story.world.ledger, "drift"), f"{where}: our own value passed for drift"
    assert ledger.wish is None
    assert ledger.sent is None
    assert ledger.confirmed == shown, where
    if record.end is None:
        assert shown == effective(ledger, story.world.policies.policy.queue(QUEUE).bands), where
    else:
        assert not live_boosts(ledger), where
    ended = {fact.figures["boost"] for fact in facts_of(story.world.ledger, "boost-ended")}
    asked = {fact.key.rpartition("#")[2] for fact in facts_of(story.world.ledger, "bump")}
    assert asked == {boost.id for boost in ledger.boosts}, f"{where}: a boost was lost"
    assert ended == {boost.id for boost in ledger.boosts if boost.end}, where


@pytest.mark.parametrize("second", ACTS)
@pytest.mark.parametrize("first", ACTS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_law_03_every_race_of_two_has_one_hand(first: str, second: str, when: When) -> None:
    for number in range(1, 200):
        story, reached = _raced(ACTS[first], ACTS[second], number, when)
        _check(story, f"{second} {when} call {number} of {first}")
        changes = facts_of(story.world.ledger, "quota-share-change")
        assert len(changes) == 1, [fact.key for fact in changes]
        if not reached:
            return
    raise AssertionError("it never came to its end")


def test_a_share_change_is_on_record_once_whoever_sees_it_first() -> None:
    story = _prepared()
    story.batch.quota_shares[QUEUE] = [share(1)]
    share_changes(story)
    assert len(facts_of(story.world.ledger, "quota-share-change")) == 2
    assert len(facts_of(story.world.ledger, "attribution")) == 1
