"""The one hand terminates: when it acts, when it waits, and that the audit says what happened."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from sharewarden.domain.acts import doubt
from sharewarden.domain.decide import Decision
from sharewarden.domain.policy import Policy
from sharewarden.domain.priority import IN_FLIGHT, MOST_REFUSALS
from sharewarden.domain.termination import find_open, under_way
from sharewarden.intake.wishes import carry_out
from sharewarden.messages import Poison
from sharewarden.ports import Denied, Runtime, Unavailable
from sharewarden.usecases.apply import FRESH, apply
from sharewarden.usecases.change import change

from tests.simulation.acts_kit import (
    GIANTS,
    GRACE,
    PROTECTED,
    RULES_ONLY,
    TEXT,
    begins,
    ends,
    kill,
    lower,
    running,
    still_broken,
    turn,
    waiting,
)
from tests.simulation.faults import Crash, When, crash, lose, nothing, once, watched
from tests.simulation.samples import HOUR, JOB, SECOND, described, state
from tests.simulation.world import MINUTE, NOW, Json, World, facts_of


def wanted(make: Callable[[], World] = waiting) -> World:
    """A job whose termination was released: its grace is over."""
    one = make()
    begins(one, kill())
    one.clock.advance(GRACE)
    one.sweep()
    return one


def test_a_job_is_terminated_and_told_once() -> None:
    one = wanted()
    assert apply(one.runtime, JOB, "t1") == "done"
    assert apply(one.runtime, JOB, "t1") == "superseded"
    assert one.batch.terminations == [(JOB, TEXT)]
    (fact,) = facts_of(one.ledger, "terminated")
    assert (fact.key, fact.actor, fact.mode) == (f"terminated#{JOB}#t1", "guardrail:giants", "enforce")
    assert (fact.before, fact.after, fact.reason) == ("RUNNABLE", "termination accepted", TEXT)
    assert fact.figures == {"act": "t1", "asked_at": NOW + 1, "not_before": NOW + GRACE}


def test_law_10_the_end_that_batch_shows_later_is_no_second_record() -> None:
    one = wanted(running)
    apply(one.runtime, JOB, "t1")
    one.batch.tell(described(status="FAILED", terminated=True, stopped_at=one.clock.now(), reason=TEXT))
    for _ in range(4):
        turn(one, 10 * MINUTE)
    assert len(facts_of(one.ledger, "terminated")) == 1
    assert [fact.reason for fact in facts_of(one.ledger, "job-ended")] == [TEXT]
    assert one.record(JOB).closed_at is not None


def test_nothing_is_done_before_the_grace_is_over() -> None:
    one = waiting()
    begins(one, kill())
    turn(one, GRACE - 2)
    assert apply(one.runtime, JOB, "t1") == "held"
    assert one.wishes.sent == []
    assert turn(one, 1) == ["done"]


@pytest.mark.parametrize(
    ("policy", "outcome"),
    [
        (Policy(), "shadow"),
        (RULES_ONLY.model_copy(update={"paused": True}), "paused"),
        (PROTECTED, "held"),
    ],
)
def test_law_09_shadow_pause_and_protection_leave_it_open(policy: Policy, outcome: str) -> None:
    one = wanted()
    one.policies.policy = policy
    assert apply(one.runtime, JOB, "t1") == outcome
    list(one.wishes.drain())
    assert turn(one, 3 * HOUR) == []
    assert one.batch.terminations == []
    one.policies.policy = RULES_ONLY
    assert turn(one) == ["done"]
    assert not facts_of(one.ledger, "wish-dropped")


def test_law_02_a_job_that_cannot_be_read_is_left_alone() -> None:
    one = wanted()
    one.batch.down = "throttled"
    for _ in range(12):
        assert turn(one) in ([], ["unavailable"])
    assert one.batch.terminations == []
    assert under_way(one.record(JOB).terminations) is None
    one.batch.down = None
    assert turn(one) == ["done"]


def test_law_02_nothing_is_sent_on_an_old_answer() -> None:
    one = wanted()
    runtime, _ = watched(one.runtime, once(_call("commit"), "before", lambda: one.clock.advance(FRESH + 1)))
    with pytest.raises(Unavailable, match="grew old"):
        apply(runtime, JOB, "t1")
    assert one.batch.terminations == []
    assert apply(one.runtime, JOB, "t1") == "done"


@pytest.mark.parametrize(
    ("update", "outcome"),
    [
        ({"status": "SUCCEEDED", "stopped_at": NOW, "reason": "r"}, "settled"),
        ({"status": "FAILED"}, "settled"),  # without details: the end is not settled, and yet nothing is sent
        ({"terminated": True, "status": "RUNNING", "scheduled_at": NOW}, "settled"),  # by somebody else
    ],
)
def test_what_describe_shows_decides(update: dict[str, object], outcome: str) -> None:
    one = wanted()
    one.batch.tell(described(**update))
    assert apply(one.runtime, JOB, "t1") == outcome
    for _ in range(4):
        turn(one, 10 * MINUTE)
    assert one.batch.terminations == []
    assert not facts_of(one.ledger, "terminated")


def test_law_02_what_its_rule_cannot_say_any_longer_is_not_done() -> None:
    one = wanted()
    change(one.runtime, JOB, lambda record: Decision(record=doubt(record, "t1", unsure=True)))
    assert one.apply_all() == ["held"]
    assert turn(one, HOUR) == []
    change(one.runtime, JOB, lambda record: Decision(record=doubt(record, "t1", unsure=False)))
    assert turn(one) == ["done"]


def test_a_job_that_batch_does_not_know_is_left_to_the_sweep() -> None:
    one = wanted()
    del one.batch.descriptions[JOB]
    assert apply(one.runtime, JOB, "t1") == "missing"
    for _ in range(2):
        turn(one, 10 * MINUTE)
    assert find_open(one.record(JOB).terminations, "t1") is None
    assert not facts_of(one.ledger, "terminated")


def test_a_job_that_moved_to_a_queue_of_others_is_not_touched() -> None:
    one = wanted()
    one.batch.tell(described(queue=f"{one.record(JOB).queue}-other"))
    assert apply(one.runtime, JOB, "t1") == "foreign"
    assert apply(one.runtime, JOB, "t1") == "superseded"
    assert one.batch.terminations == []
    assert [fact.figures["act"] for fact in facts_of(one.ledger, "wish-dropped")] == ["t1"]


def test_a_termination_under_way_is_not_dropped_for_being_foreign() -> None:
    """Whether it took effect is not known: the end of the job tells."""
    one = wanted()
    _stopped(one, crash, "before")
    one.batch.tell(described(queue=f"{one.record(JOB).queue}-other"))
    assert apply(one.runtime, JOB, "t1") == "foreign"
    assert under_way(one.record(JOB).terminations) is not None
    assert not facts_of(one.ledger, "wish-dropped")


@pytest.mark.parametrize(
    ("make", "update"),
    [
        (running, {"status": "RUNNABLE", "preempted_count": 1}),
        (running, {"status": "RUNNING", "scheduled_at": NOW, "attempt": SECOND}),
        (waiting, {"status": "SCHEDULED", "scheduled_at": NOW}),
    ],
    ids=["requeued", "another attempt", "dispatched"],
)
def test_law_02_a_job_that_has_moved_on_waits_for_its_rule(
    make: Callable[[], World], update: dict[str, object]
) -> None:
    """What was true of an attempt or of a state may not be so of the next one."""
    one = wanted(make)
    one.batch.tell(described(**update))
    assert one.apply_all() == ["held"]
    assert turn(one) == ["held"]
    still_broken(one)
    assert turn(one) == ["done"]
    assert one.batch.terminations == [(JOB, TEXT)]


OTHERS: dict[str, Json | None] = {
    "removed": None,
    "renamed": {"name": "colossi"},
    "another limit": {"limit": 1000},
    "in shadow": {"mode": "shadow"},
    "only told": {"action": "notify"},
    "of another queue": {"queues": ["other"]},
    "of another share": {"shares": ["urgent"]},
    "of another team": {"teams": ["serving"]},
}


@pytest.mark.parametrize("other", OTHERS)
def test_law_09_what_the_policy_does_not_ask_for_any_longer_is_not_done(other: str) -> None:
    """The policy was pushed between the release and ``apply``: the next sweep has not come yet."""
    one = wanted()
    update = OTHERS[other]
    entries = [] if update is None else [GIANTS.model_dump() | update]
    one.policies.policy = Policy.model_validate(RULES_ONLY.model_dump() | {"guardrails": entries})
    assert one.apply_all() == ["held"]
    assert one.batch.terminations == []
    one.policies.policy = RULES_ONLY
    assert turn(one) == ["done"]


def test_law_03_while_a_strangers_priority_settles_nothing_is_done() -> None:
    one = wanted()
    one.batch.tell(described(priority=100))
    assert one.apply_all() == ["drifting"]
    assert turn(one) == ["done"]


@pytest.mark.parametrize("how", ["crashed", "lost", "refused", "grew old"])
def test_law_02_what_is_withdrawn_under_way_is_not_tried_again(how: str) -> None:
    """The rule held again, or was taken out of the policy, before anybody knew what became of the call."""
    one = wanted(running)
    runtime = {
        "crashed": lambda: _calling(one, crash),
        "lost": lambda: _calling(one, lose),
        "refused": lambda: _calling(one, _refuse),
        "grew old": lambda: watched(
            one.runtime, once(_call("commit"), "after", lambda: _withdrawn(one, FRESH + 1))
        )[0],
    }[how]()
    with suppress(Crash, Unavailable):
        apply(runtime, JOB, "t1")
    ends(one, "t1")
    for _ in range(4):
        turn(one)
    assert one.batch.terminations == []
    assert [wish.end for wish in one.record(JOB).terminations] == ["withdrawn"]
    (dropped,) = facts_of(one.ledger, "wish-dropped")
    assert "holds again" in dropped.reason


def _refuse() -> None:
    raise Denied("TerminateServiceJob: AccessDeniedException: no")


def _calling(one: World, act: Callable[[], None]) -> Runtime:
    return watched(one.runtime, once(_call("terminate"), "before", act))[0]


def _withdrawn(one: World, after: int) -> None:
    ends(one, "t1")
    one.clock.advance(after)


def test_an_act_that_ends_before_apply_comes_is_not_done() -> None:
    one = wanted()
    ends(one, "t1")
    assert one.apply_all() == ["superseded"]
    assert one.batch.terminations == []


def test_a_termination_that_was_sent_is_not_taken_back() -> None:
    one = wanted()
    _stopped(one, lose, "after")
    ends(one, "t1")
    turn(one)
    assert len(facts_of(one.ledger, "terminated")) == 1
    assert not facts_of(one.ledger, "wish-dropped")


def test_a_message_that_comes_too_late_does_nothing_and_the_sweep_gives_the_wish_again() -> None:
    one = wanted()
    one.clock.advance(RULES_ONLY.wish_life + 1)
    assert one.apply_all() == ["expired"]
    assert turn(one) == ["done"]
    assert not facts_of(one.ledger, "wish-dropped")


def _call(name: str) -> int:
    """Which call of an undisturbed ``apply`` that is."""
    runtime, calls = watched(wanted().runtime, nothing)
    apply(runtime, JOB, "t1")
    return calls.names.index(name) + 1


def _stopped(one: World, act: Callable[[], None], when: When) -> None:
    """``apply``, stopped before or after TerminateServiceJob."""
    runtime, _ = watched(one.runtime, once(_call("terminate"), when, act))
    with pytest.raises((Crash, Unavailable)):
        apply(runtime, JOB, "t1")


@pytest.mark.parametrize("act", [crash, lose])
@pytest.mark.parametrize("make", [waiting, running])
def test_law_01_what_took_effect_is_told_and_not_sent_again(
    act: Callable[[], None], make: Callable[[], World]
) -> None:
    one = wanted(make)
    _stopped(one, act, "after")
    for _ in range(3):
        turn(one)
    assert one.batch.terminations == [(JOB, TEXT)]
    one.batch.tell(described(status="FAILED", terminated=True, stopped_at=one.clock.now(), reason=TEXT))
    for _ in range(3):
        turn(one)
    assert one.batch.terminations == [(JOB, TEXT)]
    assert len(facts_of(one.ledger, "terminated")) == 1
    assert len(facts_of(one.ledger, "job-ended")) == 1


@pytest.mark.parametrize("act", [crash, lose])
def test_law_01_what_was_never_sent_leaves_no_record_and_is_done_later(act: Callable[[], None]) -> None:
    one = wanted(running)
    _stopped(one, act, "before")
    assert not facts_of(one.ledger, "terminated")
    with pytest.raises(Unavailable, match="may still change"):
        apply(one.runtime, JOB, "t1")
    one.clock.advance(IN_FLIGHT)
    assert apply(one.runtime, JOB, "t1") == "done"
    assert one.batch.terminations == [(JOB, TEXT)]
    assert len(facts_of(one.ledger, "terminated")) == 1


@pytest.mark.parametrize("reason", [None, "enough of it", "Sharewarden guardrail another: r"])
@pytest.mark.parametrize("status", ["FAILED", "SUCCEEDED"])
def test_law_01_an_end_by_others_is_not_claimed(reason: str | None, status: str) -> None:
    one = wanted(running)
    _stopped(one, crash, "before")
    one.batch.tell(described(status=status, stopped_at=one.clock.now(), reason=reason))
    for _ in range(4):
        turn(one, 10 * MINUTE)
    assert one.batch.terminations == []
    assert not facts_of(one.ledger, "terminated")
    assert [wish.end for wish in one.record(JOB).terminations] == ["job-ended"]


def test_law_01_a_job_that_is_being_stopped_by_our_reason_is_told_before_it_ends() -> None:
    one = wanted(running)
    _stopped(one, crash, "after")
    known = one.batch.descriptions[JOB]
    one.batch.tell(known.model_copy(update={"reason": TEXT}))
    turn(one)
    assert len(facts_of(one.ledger, "terminated")) == 1


def test_of_two_terminations_one_is_under_way_at_a_time() -> None:
    one = waiting()
    begins(one, kill("t1"))
    begins(one, kill("t2"))
    one.clock.advance(GRACE)
    one.sweep()
    _stopped(one, crash, "before")
    with pytest.raises(Unavailable, match="may still change"):
        apply(one.runtime, JOB, "t2")
    one.clock.advance(IN_FLIGHT)
    assert one.apply_all() == ["done"]
    turn(one)
    assert len(one.batch.terminations) == 1
    assert len(facts_of(one.ledger, "terminated")) == 1


def test_law_01_what_a_sweep_has_told_meanwhile_is_not_told_again() -> None:
    one = wanted()
    runtime, _ = watched(one.runtime, once(_call("terminate"), "after", lambda: one.sweep("meanwhile")))
    assert apply(runtime, JOB, "t1") == "done"
    assert len(facts_of(one.ledger, "terminated")) == 1
    assert [wish.end for wish in one.record(JOB).terminations] == ["done"]


def _given_up_by_a_sweep(one: World) -> None:
    """``apply`` was so slow that its call counts as lost, and the wish is given again."""
    one.clock.advance(IN_FLIGHT)
    one.sweep("meanwhile")


def test_a_slow_apply_undoes_nothing_but_its_own() -> None:
    one = wanted()
    runtime, _ = watched(one.runtime, once(_call("commit"), "after", lambda: _given_up_by_a_sweep(one)))
    with pytest.raises(Unavailable, match="grew old"):
        apply(runtime, JOB, "t1")
    assert one.batch.terminations == []
    assert turn(one).count("done") == 1
    assert one.batch.terminations == [(JOB, TEXT)]


def test_a_late_refusal_counts_for_nothing() -> None:
    one = wanted()

    def refuse(_job: str, _reason: str) -> None:
        _given_up_by_a_sweep(one)
        raise Denied("TerminateServiceJob: AccessDeniedException: no")

    one.batch.terminate = refuse
    assert apply(one.runtime, JOB, "t1") == "refused"
    assert [wish.refusals for wish in one.record(JOB).terminations] == [0]


def test_a_termination_that_is_refused_is_given_up_and_told() -> None:
    one = wanted()
    tried: list[str] = []

    def refuse(_job: str, reason: str) -> None:
        tried.append(reason)
        raise Denied("TerminateServiceJob: AccessDeniedException: no")

    one.batch.terminate = refuse
    outcomes = one.apply_all()
    for _ in range(12):
        outcomes += turn(one)
        begins(one, kill())
    assert outcomes == ["refused"] * MOST_REFUSALS
    assert tried == [TEXT] * MOST_REFUSALS
    (dropped,) = facts_of(one.ledger, "wish-dropped")
    assert "AccessDeniedException" in dropped.reason
    assert not facts_of(one.ledger, "terminated")


def test_priority_and_termination_of_one_job_do_not_disturb_each_other() -> None:
    one = waiting()
    begins(one, lower())
    begins(one, kill())
    turn(one)
    assert one.batch.priorities == [(JOB, 150)]
    turn(one, GRACE)
    turn(one)
    assert one.batch.terminations == [(JOB, TEXT)]
    assert {fact.reason for fact in facts_of(one.ledger, "boost-ended")} == {
        "job-ended: asks for 9 instances"
    }


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ('{"job": "job-1", "termination": "t1"}', "done"),
        ('{"job": "job-1", "termination": "t2"}', "superseded"),
        ('{"job": "job-1", "version": 1}', "superseded"),  # as messages were before there were terminations
    ],
)
def test_a_message_names_its_wish(body: str, outcome: str) -> None:
    one = wanted()
    assert carry_out(one.runtime, body) == outcome


@pytest.mark.parametrize(
    "body",
    [
        '{"job": "job-1"}',
        '{"job": "job-1", "version": 1, "termination": "t1"}',
        '{"job": "job-1", "termination": ""}',
    ],
)
def test_a_message_that_does_not_name_one_wish_is_poison(body: str) -> None:
    with pytest.raises(Poison, match="not a wish"):
        carry_out(wanted().runtime, body)


def test_a_late_event_of_an_end_by_us_counts() -> None:
    """The job ended while nobody could read it: its event tells why."""
    one = wanted(running)
    _stopped(one, crash, "after")
    at = one.clock.now()
    one.take(state("FAILED", at, stoppedAt=at, statusReason=TEXT))
    assert len(facts_of(one.ledger, "terminated")) == 1
