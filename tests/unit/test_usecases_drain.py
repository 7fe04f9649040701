"""Before an uninstall: every boost ends by the product's own path, every job goes back to its base."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sharewarden.domain.policy import Policy
from sharewarden.domain.priority import REST, Boost, live_boosts, refuse
from sharewarden.ports import Unavailable
from sharewarden.usecases.apply import apply
from sharewarden.usecases.bump import BumpRequest, Refused, bump
from sharewarden.usecases.drain import DrainRequest, Remaining, drain, standing

from tests.simulation.acts_kit import BOTH, RULES_ONLY, begins, kill, lower
from tests.simulation.faults import Crash, crash, once, watched
from tests.simulation.samples import JOB, described
from tests.simulation.world import ENFORCE, MINUTE, NOW, QUEUE, World, facts_of, world


def pool(*jobs: str) -> World:
    """Each job waits at priority 200."""
    one = world()
    for job in jobs or (JOB,):
        one.batch.tell(described(job=job, arn=f"arn:aws:batch:::service-job/{job}", name=job))
    return one


def raised(one: World, job: str = JOB, name: str = "b1") -> None:
    bump(one.runtime, BumpRequest(id=name, job=job, actor="U1", reason="a deadline", by=100))
    one.apply_all()


def started(one: World, **more: Any) -> None:
    """The bump has started the job a minute ago."""
    one.clock.advance(MINUTE)
    known = one.batch.descriptions[JOB]
    one.batch.tell(known.model_copy(update={"status": "RUNNING", "scheduled_at": one.clock.now()} | more))
    one.clock.advance(MINUTE)


def go(one: World, *, at_once: bool = False, name: str = "d1") -> tuple[Remaining, ...]:
    request = DrainRequest(id=name, actor="root", reason="we leave", at_once=at_once)
    return drain(one.runtime, request)


def shown(one: World, job: str = JOB) -> int | None:
    priority: int | None = one.batch.descriptions[job].priority
    return priority


def test_every_boosted_job_goes_back_to_its_base() -> None:
    one = pool("a", "b", "untouched")
    raised(one, "a")
    raised(one, "b", "b2")
    assert [left.why for left in go(one)] == ["waits for apply", "waits for apply"]
    assert one.batch.priorities[2:] == []
    one.apply_all()
    assert go(one) == ()
    assert [shown(one, job) for job in ("a", "b", "untouched")] == [200, 200, 200]
    assert {fact.reason for fact in facts_of(one.ledger, "boost-ended")} == {"revoked: a deadline"}


def test_law_03_drain_itself_changes_nothing_in_batch() -> None:
    one = pool()
    raised(one)
    before = list(one.batch.priorities)
    go(one)
    assert one.batch.priorities == before


def test_law_05_a_boost_that_started_the_job_is_held() -> None:
    one = pool()
    raised(one)
    started(one)
    (left,) = go(one)
    assert (left.until, left.shown, left.base) == (NOW + MINUTE + ENFORCE.hold, 300, 200)
    assert left.why.startswith("held")
    one.apply_all()
    assert shown(one) == 300
    one.clock.advance(ENFORCE.hold)
    assert [left.why for left in go(one)] == ["waits for apply"]
    one.apply_all()
    assert (go(one), shown(one)) == ((), 200)


@pytest.mark.parametrize("asked_before", [False, True], ids=["at first", "after a try that kept it"])
def test_a_person_may_give_up_the_hold_and_it_is_on_record(asked_before: bool) -> None:
    one = pool()
    raised(one)
    started(one)
    if asked_before:
        go(one)
    go(one, at_once=True, name="d2")
    one.apply_all()
    assert (go(one, at_once=True, name="d2"), shown(one)) == ((), 200)
    assert [f.figures["hold_waived"] for f in facts_of(one.ledger, "unbump")][-1] is True


def test_a_restore_that_a_hold_keeps_waiting_is_freed_too() -> None:
    """The boost ended first, the job was dispatched before apply came to lower it."""
    one = pool()
    raised(one)
    go(one)
    started(one)
    assert set(one.apply_all()) == {"held"}
    (left,) = go(one, name="d2")
    assert left.until is not None
    go(one, at_once=True, name="d3")
    one.clock.advance(6 * MINUTE)
    go(one, at_once=True, name="d3")
    one.apply_all()
    assert shown(one) == 200


def test_each_taking_back_is_one_record() -> None:
    one = pool()
    raised(one)
    go(one)
    go(one)
    one.apply_all()
    go(one)
    assert [(f.actor, f.before, f.after, f.reason) for f in facts_of(one.ledger, "unbump")] == [
        ("root", "300", "200", "we leave")
    ]


def test_what_was_given_meanwhile_is_found() -> None:
    one = pool()
    raised(one)
    go(one)
    one.apply_all()
    raised(one, name="b2")
    assert len(go(one)) == 1
    one.apply_all()
    assert (go(one), shown(one)) == ((), 200)
    assert len(facts_of(one.ledger, "unbump")) == 2


def test_automatic_boosts_end_as_well() -> None:
    one = pool()
    raised(one)
    record = one.record(JOB)
    step = Boost(id="a1", kind="automatic", amount=50, by="sla", reason="gold", since=NOW)
    ledger = record.priority.model_copy(update={"boosts": (*record.priority.boosts, step)})
    one.ledger.commit([record.model_copy(update={"priority": ledger})], [], NOW)
    go(one)
    assert live_boosts(one.record(JOB).priority) == ()


def test_law_03_a_strangers_priority_is_left_as_it_is() -> None:
    one = pool()
    raised(one)
    one.batch.tell(described(priority=777, name=JOB))
    (left,) = go(one)
    assert "somebody else just set 777" in left.why
    one.clock.advance(ENFORCE.drift_settle)
    assert go(one) == ()
    one.apply_all()
    assert (shown(one), one.record(JOB).priority.base) == (777, 777)


def test_law_02_a_job_that_cannot_be_read_remains_and_the_others_go_on() -> None:
    one = pool("a", "b")
    raised(one, "a")
    raised(one, "b", "b2")
    known = one.batch.descriptions.pop("a")
    left = {row.name: row.why for row in go(one)}
    assert left["a"].startswith("Batch knows no such job")
    assert left["b"] == "waits for apply"
    one.batch.tell(known)
    one.batch.down = "throttled"
    assert {row.why for row in go(one)} == {"AWS could not be asked: throttled"}
    assert one.batch.priorities == [("a", 300), ("b", 300)]


def test_an_ended_job_has_nothing_to_restore() -> None:
    one = pool()
    raised(one)
    one.batch.tell(described(status="SUCCEEDED", stopped_at=NOW, reason="done", name=JOB))
    assert go(one) == ()
    assert [f.reason for f in facts_of(one.ledger, "boost-ended")] == ["job-ended: a deadline"]


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (ENFORCE.model_copy(update={"paused": True}), "the policy is paused"),
        (Policy(), "bumps of this queue are in shadow mode"),
    ],
)
def test_why_nothing_can_come_of_it_is_said(policy: Policy, words: str) -> None:
    one = pool()
    raised(one)
    one.policies.policy = policy
    (left,) = go(one)
    assert words in left.why
    one.apply_all()
    assert shown(one) == 300


def test_standing_says_what_there_is_and_changes_nothing() -> None:
    one = pool()
    raised(one)
    before = dict(one.ledger.items)
    (left,) = standing(one.runtime)
    assert (left.name, left.base, left.shown, left.why) == (JOB, 200, 300, "is boosted")
    assert one.ledger.items == before


def test_a_lost_message_is_sent_again() -> None:
    one = pool()
    raised(one)
    go(one)
    one.wishes.sent.pop()
    one.clock.advance(6 * MINUTE)
    go(one)
    one.apply_all()
    assert (go(one), shown(one)) == ((), 200)


def test_jobs_of_other_queues_are_not_looked_at() -> None:
    one = pool()
    raised(one)
    other = one.record(JOB).model_copy(update={"job": "x", "queue": QUEUE + "-other", "version": 0})
    one.ledger.commit([other], [], NOW)
    assert [row.job for row in go(one)] == [JOB]


def test_what_guardrails_have_lowered_goes_back_and_their_open_acts_are_withdrawn() -> None:
    one = pool("a", "b")
    one.sweep("adopts")
    begins(one, lower(), job="a")
    begins(one, kill(), job="b")
    one.policies.policy = BOTH
    one.sweep()
    one.apply_all()
    one.policies.policy = ENFORCE
    assert shown(one, "a") == 150
    assert {left.name for left in go(one)} == {"a"}
    one.apply_all()
    assert (go(one), shown(one, "a")) == ((), 200)
    one.clock.advance(24 * 60 * MINUTE)
    one.sweep("later")
    assert (one.apply_all(), one.batch.terminations) == ([], [])
    assert [f.reason for f in facts_of(one.ledger, "wish-dropped")] == ["withdrawn by root: we leave"]


def test_a_demotion_of_a_running_job_ends_at_once() -> None:
    """Raising it makes nobody a victim of ours: there is nothing to hold."""
    one = pool()
    one.sweep("adopts")
    begins(one, lower())
    one.policies.policy = BOTH
    one.sweep()
    one.apply_all()
    one.policies.policy = ENFORCE
    started(one)
    assert [left.why for left in go(one)] == ["waits for apply"]
    one.apply_all()
    assert (go(one), shown(one)) == ((), 200)


def test_a_termination_under_way_remains_until_batch_shows_it() -> None:
    one = pool()
    one.sweep("adopts")
    begins(one, kill(not_before=NOW))
    one.sweep()
    one.policies.policy = RULES_ONLY
    number_of_the_call = 6  # load, policy, Describe, load, commit
    runtime, calls = watched(one.runtime, once(number_of_the_call, "before", crash))
    with pytest.raises(Crash):
        apply(runtime, JOB, "t1")
    assert calls.names[-1] == "terminate"
    one.policies.policy = ENFORCE
    (left,) = go(one)
    assert left.why.startswith("was to be terminated")
    one.clock.advance(3 * MINUTE)
    assert go(one) == ()
    assert one.batch.terminations == []


ACTING = {"rule": "max-instances-per-job", "limit": 4, "action": "lower-priority", "mode": "enforce"}


@pytest.mark.parametrize("paused", [True, False])
def test_while_jobs_are_submitted_again_there_is_no_end_to_it(*, paused: bool) -> None:
    one = pool()
    rules = {"paused": paused, "checkpoints": {"resubmit": {"mode": "enforce", "roles": ["*"]}}}
    one.policies.policy = Policy.model_validate(rules)
    for ask in (lambda: standing(one.runtime), lambda: go(one)):
        with pytest.raises(Refused, match=r"checkpoints\.resubmit in shadow mode"):
            ask()


@pytest.mark.parametrize(
    ("entry", "refused"),
    [
        (ACTING, True),
        (ACTING | {"mode": "shadow"}, False),
        (ACTING | {"action": "notify"}, False),
        (ACTING | {"queues": ["another"]}, False),
    ],
)
def test_while_guardrails_act_there_is_no_end_to_it(entry: dict[str, Any], refused: bool) -> None:
    one = pool()
    raised(one)
    text = one.policies.policy.model_dump(mode="json") | {"guardrails": [entry]}
    one.policies.policy = Policy.model_validate(text)
    if not refused:
        assert len(go(one)) == 1
        return
    for ask in (lambda: standing(one.runtime), lambda: go(one)):
        with pytest.raises(Refused, match="guardrails still act: max-instances-per-job on ml-train-qm"):
            ask()
    assert facts_of(one.ledger, "unbump") == []


def test_without_the_policy_nothing_is_done() -> None:
    one = pool()
    raised(one)

    class Unread:
        def current(self) -> Policy:
            raise Unavailable("GetItem: throttled")

    runtime = replace(one.runtime, policies=Unread())
    with pytest.raises(Unavailable):
        drain(runtime, DrainRequest(id="d", actor="root", reason="r"))
    assert live_boosts(one.record(JOB).priority) != ()


def test_a_restore_that_aws_refused_is_said_and_asked_for_again() -> None:
    one = pool()
    raised(one)
    go(one)
    record = one.record(JOB)
    ledger, _ = refuse(record.priority, ENFORCE.queue(QUEUE).bands, one.clock.now())
    one.ledger.commit([record.model_copy(update={"priority": ledger})], [], NOW)
    (left,) = go(one)
    assert left.why.startswith("AWS refused")
    one.clock.advance(REST)
    go(one)
    one.apply_all()
    assert (go(one), shown(one)) == ((), 200)
