"""Care stopped between any two calls, or left without an answer: the case comes to the same end (law 10)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache

import pytest

from tests.simulation.care_kit import CareStory, begins, goes_on, preempted
from tests.simulation.faults import Hook, When, crash, lose, nothing, once

MINUTES = 150


def live(hook: Hook = nothing) -> CareStory:
    """The whole story; the ports of the workflow's steps fail by ``hook``."""
    story = CareStory(hook)
    begins(story)
    preempted(story)
    goes_on(story, ends=100)
    story.runs(MINUTES)
    return story


@cache
def undisturbed() -> CareStory:
    return live()


def end_of(story: CareStory) -> object:
    """What is on record, told and done, without the times at which that was."""
    (case,) = story.cases()
    facts = Counter((fact.kind, fact.after) for fact in story.world.ledger.facts.values())
    notices = Counter(notice.kind for notice in story.notices("resume"))
    known = case.save and case.save.step, case.sight, case.outcome, case.proof, case.next_attempt
    return facts, notices, known, case.closed_at is not None, case.generation


CALLS = undisturbed().calls.names


def test_the_story_calls_every_port_of_care() -> None:
    assert {"load", "current", "pages", "read", "protection", "open_items", "commit"} <= set(CALLS)


@pytest.mark.parametrize(("act", "when"), [(crash, "before"), (crash, "after"), (lose, "after")])
@pytest.mark.parametrize("number", range(1, len(CALLS) + 1))
def test_law_10_a_fault_at_any_call_leaves_no_case_open(
    number: int, act: Callable[[], None], when: When
) -> None:
    assert end_of(live(once(number, when, act))) == end_of(undisturbed())
