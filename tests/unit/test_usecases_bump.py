"""A person asks: what is answered, what is refused, and that asking twice is asking once."""

from __future__ import annotations

import pytest
from sharewarden.domain.policy import Policy
from sharewarden.domain.priority import MOST_LIVE_BOOSTS
from sharewarden.ports import Unavailable
from sharewarden.usecases.bump import Answer, BumpRequest, Refused, UnbumpRequest, bump, unbump

from tests.simulation.samples import ARN, HOUR, JOB, described
from tests.simulation.world import ENFORCE, MINUTE, NOW, World, facts_of, world


def pool(**update: object) -> World:
    one = world()
    one.batch.tell(described(**update))
    return one


def ask(one: World, name: str = "b1", job: str = JOB, **what: object) -> Answer:
    return bump(one.runtime, BumpRequest(id=name, job=job, actor="U1", reason="a deadline", **what))  # type: ignore[arg-type]


def take_back(one: World, name: str = "u1") -> Answer:
    return unbump(one.runtime, UnbumpRequest(id=name, job=JOB, actor="U2", reason="no longer"))


@pytest.mark.parametrize(
    ("what", "after"),
    [({"by": 100}, 300), ({"to": 900}, 900), ({"by": 9999}, 999), ({"to": 9999}, 999)],
)
@pytest.mark.parametrize("job", [JOB, ARN])
def test_a_bump_answers_what_will_be(what: dict[str, object], after: int, job: str) -> None:
    one = pool()
    answer = ask(one, job=job, **what)
    assert (answer.mode, answer.before, answer.after) == ("enforce", 200, after)
    assert answer.capped_at == (999 if 9999 in what.values() else None)
    (boost,) = one.record(JOB).priority.boosts
    assert boost.amount == after - 200
    assert [message.wish for message in one.wishes.sent] == [1]
    assert one.batch.priorities == []


def test_asking_twice_is_asking_once() -> None:
    one = pool()
    ask(one, by=100)
    ask(one, by=100)
    assert len(one.record(JOB).priority.boosts) == 1
    assert len(facts_of(one.ledger, "bump")) == 1
    assert len(one.wishes.sent) == 1
    one.apply_all()
    take_back(one)
    take_back(one)
    assert len(facts_of(one.ledger, "unbump")) == len(facts_of(one.ledger, "boost-ended")) == 1


def test_law_01_one_id_for_several_requests_hides_none_of_them() -> None:
    one = pool()
    one.policies.policy = Policy()
    ask(one, by=100)
    one.policies.policy = ENFORCE
    ask(one, by=100)
    one.batch.tell(described(job="job-2", arn=f"{ARN[:-1]}2"))
    ask(one, job="job-2", by=100)
    told = sorted((fact.job or "", fact.mode) for fact in facts_of(one.ledger, "bump"))
    assert told == [(JOB, "enforce"), (JOB, "shadow"), ("job-2", "enforce")]


@pytest.mark.parametrize(
    ("update", "what", "words"),
    [
        ({"status": "SUCCEEDED", "stopped_at": NOW, "reason": "r"}, {"by": 5}, "has ended"),
        ({"status": "FAILED"}, {"by": 5}, "has ended"),
        ({"priority": None}, {"by": 5}, "does not tell"),
        ({"priority": 2000}, {"by": 5}, "999 at most"),
        ({}, {"to": 200}, "would not raise"),
        ({}, {"to": 0}, "would not raise"),
        ({}, {}, "either"),
        ({}, {"by": 5, "to": 900}, "either"),
        ({"queue": "arn:aws:batch:us-east-1:123456789012:job-queue/other"}, {"by": 5}, "does not look after"),
    ],
)
def test_what_cannot_be_is_refused(update: dict[str, object], what: dict[str, object], words: str) -> None:
    one = pool(**update)
    with pytest.raises(Refused, match=words):
        ask(one, **what)
    assert not facts_of(one.ledger, "bump")
    assert one.wishes.sent == []


def test_points_count_from_the_base_and_a_refusal_says_so() -> None:
    one = pool()
    ask(one, by=100)
    with pytest.raises(
        Refused, match=r"stays at 300, which an earlier bump gave it.*base 200.*more than \+100"
    ):
        ask(one, "b2", by=100)
    assert ask(one, "b3", by=101).after == 301


def test_an_unknown_job_is_refused_and_an_unreadable_one_is_not() -> None:
    one = pool()
    with pytest.raises(Refused, match="knows no job"):
        ask(one, job="nobody", by=5)
    one.batch.down = "throttled"
    with pytest.raises(Unavailable):
        ask(one, by=5)


def test_nothing_is_built_on_a_value_that_is_settling() -> None:
    one = pool()
    ask(one, by=5)
    one.batch.tell(described(priority=777))
    with pytest.raises(Refused, match="ask again in 1 min"):
        ask(one, "b2", by=5)
    one.clock.advance(MINUTE)
    assert ask(one, "b2", by=5).before == 777
    assert len(facts_of(one.ledger, "drift")) == 1


def test_a_job_takes_so_many_bumps_and_no_more() -> None:
    one = pool()
    for number in range(MOST_LIVE_BOOSTS):
        ask(one, f"b{number}", by=10 + number)
    with pytest.raises(Refused, match="unbump"):
        ask(one, "more", by=500)


def test_law_09_shadow_tells_the_same_plan_and_does_nothing() -> None:
    enforced, shadowed = pool(), pool()
    shadowed.policies.policy = Policy()
    plans = [ask(one, by=100).model_dump(exclude={"mode"}) for one in (enforced, shadowed)]
    assert plans[0] == plans[1]
    (fact,) = facts_of(shadowed.ledger, "bump")
    assert (fact.mode, fact.before, fact.after) == ("shadow", "200", "300")
    assert shadowed.wishes.sent == []
    assert not shadowed.record(JOB).priority.boosts


def test_unbump_before_the_bump_was_done_leaves_nothing_to_do() -> None:
    one = pool()
    ask(one, by=100)
    answer = take_back(one)
    assert (answer.before, answer.after, answer.held_until) == (300, 200, None)
    assert one.record(JOB).priority.wish is None
    assert set(one.apply_all()) == {"superseded"}
    assert one.batch.priorities == []


def test_nobody_bumped_is_said() -> None:
    with pytest.raises(Refused, match="nobody has bumped"):
        take_back(pool())


def test_law_05_a_boost_that_started_the_job_is_held_and_said_so() -> None:
    one = pool()
    ask(one, by=100)
    one.apply_all()
    one.clock.advance(MINUTE)
    one.batch.tell(described(status="RUNNING", priority=300, scheduled_at=one.clock.now()))
    one.clock.advance(MINUTE)
    answer = take_back(one)
    assert (answer.after, answer.held_until) == (300, NOW + MINUTE + ENFORCE.hold)
    one.clock.advance(ENFORCE.hold)
    one.sweep()
    one.apply_all()
    assert one.batch.priorities == [(JOB, 300), (JOB, 200)]
    assert [fact.reason for fact in facts_of(one.ledger, "boost-ended")] == ["revoked: a deadline"]


def test_law_05_a_boost_expires_by_itself() -> None:
    one = pool()
    ask(one, by=100, lasts=HOUR)
    one.apply_all()
    one.clock.advance(HOUR)
    one.sweep()
    one.apply_all()
    assert one.batch.priorities == [(JOB, 300), (JOB, 200)]
    assert [fact.reason for fact in facts_of(one.ledger, "boost-ended")] == ["expired: a deadline"]


def test_a_lost_message_is_brought_back_by_the_sweep() -> None:
    one = pool()
    ask(one, by=100)
    one.wishes.sent.clear()
    one.clock.advance(10 * MINUTE)
    one.sweep()
    assert [message.wish for message in one.wishes.sent] == [1]
