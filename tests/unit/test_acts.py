"""Acts of guardrails: what they write into a record, what they wait for, and how they end."""

from __future__ import annotations

import pytest
from sharewarden.domain.policy import Policy, QueuePolicy
from sharewarden.domain.priority import MOST_LIVE_DEMOTIONS, demotions, effective, live_boosts
from sharewarden.domain.termination import KEPT_ENDED, LONGEST_TEXT, MOST_OPEN, TerminationWish, find_open
from sharewarden.usecases.bump import BumpRequest, UnbumpRequest, bump, unbump

from tests.simulation.acts_kit import (
    BOTH,
    GIANTS,
    PROTECTED,
    RULES_ONLY,
    TEXT,
    begins,
    ends,
    kill,
    lower,
    running,
    turn,
    waiting,
)
from tests.simulation.samples import HOUR, JOB, described, state
from tests.simulation.world import MINUTE, NOW, QUEUE, facts_of, world

BUMPS_ONLY = Policy(queues={"ml-train-qm": QueuePolicy(bumps="enforce")})


def bumped(name: str = "b1", by: int = 300, lasts: int | None = None) -> BumpRequest:
    return BumpRequest(id=name, job=JOB, actor="U1", reason="a deadline", by=by, lasts=lasts)


# Lower the priority.


def test_a_waiting_job_is_lowered_while_its_rule_is_broken_and_raised_again() -> None:
    one = waiting()
    begins(one, lower())
    assert one.batch.priorities == []
    turn(one)
    ends(one, "a1")
    turn(one)
    assert one.batch.priorities == [(JOB, 150), (JOB, 200)]
    told = [(f.actor, f.before, f.after, f.reason) for f in facts_of(one.ledger, "priority-changed")]
    assert told == [
        ("guardrail:giants", "200", "150", "asks for 9 instances"),
        ("guardrail:giants", "150", "200", "boost cleared: asks for 9 instances"),
    ]
    (ended,) = facts_of(one.ledger, "boost-ended")
    assert (ended.before, ended.reason) == ("-50", "cleared: asks for 9 instances")


def test_law_09_the_same_act_twice_is_one_act_and_an_ended_one_does_not_begin_again() -> None:
    one = waiting()
    begins(one, lower())
    before = one.record(JOB)
    begins(one, lower())
    assert one.record(JOB) == before
    ends(one, "a1", "unknown")
    ended = one.record(JOB)
    begins(one, lower())
    ends(one, "a1")
    assert one.record(JOB) == ended
    turn(one)
    assert one.batch.priorities == []


def test_the_deepest_demotion_counts_and_a_bump_still_adds() -> None:
    one = waiting(BOTH)
    begins(one, lower("a1", 50))
    begins(one, lower("a2", 120))
    turn(one)
    bump(one.runtime, bumped(by=300))
    one.apply_all()
    ends(one, "a2")
    turn(one)
    assert [value for _, value in one.batch.priorities] == [80, 380, 450]


def test_law_04_a_demotion_stops_at_the_lowest_priority() -> None:
    one = waiting()
    begins(one, lower(points=9999))
    turn(one)
    assert one.batch.priorities == [(JOB, 0)]


def test_law_05_a_dispatched_job_is_lowered_only_after_its_hold_and_that_is_told_as_a_risk() -> None:
    one = running()
    begins(one, lower())
    for _ in range(5):
        turn(one)
    assert one.batch.priorities == []
    assert not one.wishes.sent, "a wish that is held takes a place under the blast radius"
    assert not facts_of(one.ledger, "wish-dropped")
    turn(one)
    assert one.clock.now() == NOW + 1 + RULES_ONLY.hold
    assert one.batch.priorities == [(JOB, 150)]
    assert [f.figures["may_evict"] for f in facts_of(one.ledger, "priority-changed")] == [True]


def test_law_05_the_shares_minimum_runtime_counts_where_it_is_longer() -> None:
    rules = {"mode": "enforce", "shares": {"background": {"min_runtime": "2h"}}}
    one = running(Policy.model_validate({"queues": {"ml-train-qm": rules}, "guardrails": [GIANTS]}))
    begins(one, lower())
    turn(one, 2 * HOUR - 2)
    assert one.batch.priorities == []
    turn(one, 10)
    assert one.batch.priorities == [(JOB, 150)]


def test_law_05_a_job_dispatched_after_the_release_is_held_by_apply() -> None:
    one = waiting()
    begins(one, lower())
    one.sweep()
    one.batch.tell(described(status="RUNNING", scheduled_at=NOW + 1))
    assert one.apply_all() == ["held"]
    turn(one, RULES_ONLY.hold + MINUTE)
    assert one.batch.priorities == [(JOB, 150)]


def test_law_05_a_job_that_was_preempted_meanwhile_waits_and_is_lowered_at_once() -> None:
    one = running()
    begins(one, lower())
    one.batch.tell(described(status="RUNNABLE"))
    one.take(state("RUNNABLE", NOW + MINUTE))
    turn(one)
    assert one.batch.priorities == [(JOB, 150)]
    assert [f.figures["may_evict"] for f in facts_of(one.ledger, "priority-changed")] == [False]


def test_a_held_demotion_that_ends_changes_nothing_in_batch() -> None:
    one = running()
    begins(one, lower())
    ends(one, "a1")
    assert one.record(JOB).priority.wish is None
    turn(one, 2 * HOUR)
    assert one.batch.priorities == []


def test_law_03_drift_ends_a_demotion_which_does_not_come_back() -> None:
    one = waiting()
    begins(one, lower())
    turn(one)
    one.batch.tell(described(priority=400))
    for _ in range(3):
        turn(one)
        begins(one, lower())
    assert one.batch.priorities == [(JOB, 150)]
    record = one.record(JOB)
    assert (record.priority.base, demotions(record.priority)) == (400, ())
    assert [f.reason for f in facts_of(one.ledger, "boost-ended")] == ["superseded: asks for 9 instances"]


def test_an_act_on_a_job_whose_priority_is_not_known_yet_waits_for_it() -> None:
    one = waiting(priority=None)
    begins(one, lower())
    turn(one)
    one.batch.tell(described())
    turn(one)
    turn(one)
    assert one.batch.priorities == [(JOB, 150)]
    assert [f.actor for f in facts_of(one.ledger, "priority-changed")] == ["guardrail:giants"]


def test_law_03_an_act_that_ends_while_a_strangers_value_settles_writes_no_wish() -> None:
    one = waiting()
    begins(one, lower())
    turn(one)
    one.batch.tell(described(priority=400))
    one.sweep("sees it")
    ends(one, "a1")
    assert one.record(JOB).priority.wish is None
    assert len(facts_of(one.ledger, "boost-ended")) == 1


@pytest.mark.parametrize("act", [lower(), kill()])
def test_no_act_on_a_protected_share_or_an_ended_job(act: object) -> None:
    one = waiting(PROTECTED)
    before = one.record(JOB)
    begins(one, act)  # type: ignore[arg-type]
    assert one.record(JOB) == before
    one = waiting()
    one.take(state("FAILED", NOW, stoppedAt=NOW, statusReason="r"))
    begins(one, act)  # type: ignore[arg-type]
    assert (one.record(JOB).priority.boosts, one.record(JOB).terminations) == ((), ())


def test_people_cannot_crowd_guardrails_out_nor_the_other_way_round() -> None:
    one = waiting(BOTH)
    for number in range(10):
        bump(one.runtime, bumped(f"b{number}", by=100 + number))
    for number in range(MOST_LIVE_DEMOTIONS + 1):
        begins(one, lower(f"a{number}", 50 + number))
    assert len(demotions(one.record(JOB).priority)) == MOST_LIVE_DEMOTIONS
    ends(one, "a0")
    begins(one, lower(f"a{MOST_LIVE_DEMOTIONS}", 99))
    assert demotions(one.record(JOB).priority)[0].amount == -99

    other = waiting(BOTH)
    for number in range(MOST_LIVE_DEMOTIONS):
        begins(other, lower(f"a{number}"))
    for number in range(10):
        bump(other.runtime, bumped(f"b{number}", by=100 + number))
    assert len(live_boosts(other.record(JOB).priority)) == MOST_LIVE_DEMOTIONS + 10


def test_unbump_ends_what_people_gave_and_leaves_the_guardrails_act() -> None:
    one = waiting(BOTH)
    begins(one, lower())
    bump(one.runtime, bumped())
    one.apply_all()
    unbump(one.runtime, UnbumpRequest(id="u1", job=JOB, actor="U1", reason="r"))
    one.apply_all()
    assert [value for _, value in one.batch.priorities] == [450, 150]


# Modes.


@pytest.mark.parametrize(
    ("policy", "human", "outcome"),
    [
        (RULES_ONLY, False, 150),
        (RULES_ONLY, True, None),  # a bump gave a part of it, and bumps are in shadow mode
        (BUMPS_ONLY, False, None),  # nobody asks for the act any longer
        (BOTH.model_copy(update={"queues": PROTECTED.queues}), False, None),
        (BUMPS_ONLY, True, 450),
        (BOTH, True, 450),
        (Policy(), False, None),
        (BOTH.model_copy(update={"paused": True}), False, None),
        (BOTH.model_copy(update={"paused": True}), True, None),
    ],
)
def test_law_09_whose_wish_it_is_says_which_mode_counts(
    policy: Policy, human: bool, outcome: int | None
) -> None:
    one = waiting(BOTH)
    begins(one, lower())
    if human:
        bump(one.runtime, bumped())
        list(one.wishes.drain())
    one.policies.policy = policy
    turn(one)
    assert [value for _, value in one.batch.priorities] == ([] if outcome is None else [outcome])


def test_law_09_a_rule_that_is_enforced_by_itself_gives_back_what_it_took() -> None:
    entry = {"rule": "max-instances-per-job", "limit": 9, "action": "lower-priority", "mode": "enforce"}
    one = waiting()
    begins(one, lower())
    turn(one)
    ends(one, "a1")
    one.policies.policy = Policy.model_validate({"guardrails": [entry | {"queues": ["another"]}]})
    turn(one)
    assert one.batch.priorities == [(JOB, 150)]
    one.policies.policy = Policy.model_validate({"guardrails": [entry]})
    turn(one)
    assert one.batch.priorities == [(JOB, 150), (JOB, 200)]


def test_law_09_without_an_act_nothing_is_written() -> None:
    one = waiting(Policy())
    before = dict(one.ledger.items)
    ends(one, "a1", "t1")
    assert one.ledger.items == before


# Terminate.


def test_what_stands_on_the_job() -> None:
    wish = TerminationWish(
        id="t1",
        label="giants",
        fingerprint="f",
        reason="asks\nfor  9 instances",
        situation="RUNNING",
        created_at=0,
        not_before=0,
    )
    assert wish.text == TEXT
    assert wish.is_on(TEXT)
    assert not wish.is_on("Sharewarden guardrail giants-2: asks for 9 instances")
    assert not wish.is_on(None)
    spaced = wish.model_copy(update={"label": "too  many spaces"})
    assert spaced.is_on(spaced.text)
    endless = wish.model_copy(update={"reason": "x" * 500, "label": "l" * 300})
    assert len(endless.text) == LONGEST_TEXT
    assert endless.is_on(endless.text)


def test_several_terminations_have_room_and_the_oldest_ended_are_forgotten() -> None:
    one = waiting()
    for number in range(MOST_OPEN + 1):
        begins(one, kill(f"t{number}"))
    assert [wish.id for wish in one.record(JOB).terminations] == ["t0", "t1", "t2"]
    for number in range(30):
        ends(one, f"t{number}")
        begins(one, kill(f"t{number + MOST_OPEN}"))
    ended = [wish for wish in one.record(JOB).terminations if wish.end]
    assert len(ended) <= KEPT_ENDED + MOST_OPEN
    assert all(wish.end == "withdrawn" for wish in ended)


def test_a_termination_that_is_withdrawn_is_told_once_and_does_not_begin_again() -> None:
    one = waiting()
    begins(one, kill())
    ends(one, "t1")
    ends(one, "t1")
    begins(one, kill())
    assert find_open(one.record(JOB).terminations, "t1") is None
    (fact,) = facts_of(one.ledger, "wish-dropped")
    assert (fact.key, fact.actor, fact.after) == (f"wish-dropped#{JOB}#t1", "guardrail:giants", "terminated")
    turn(one, HOUR)
    assert one.batch.terminations == []


def test_effective_is_base_and_highest_boost_and_deepest_demotion() -> None:
    one = world(policy=BOTH)
    one.batch.tell(described())
    one.take(state("RUNNABLE", NOW))
    begins(one, lower("a1", 30))
    bump(one.runtime, bumped())
    assert effective(one.record(JOB).priority, BOTH.queue(QUEUE).bands) == 200 + 300 - 30
