"""What one sweep sets off: no more than the blast radius, the rest later, and people are told."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from sharewarden.domain.notice import Notice
from sharewarden.domain.policy import BlastRadius, Policy
from sharewarden.domain.sweeping import SweepState, needs_read
from sharewarden.usecases.bump import BumpRequest, bump
from sharewarden.usecases.wake import wake_act

from tests.simulation.acts_kit import BOTH, GRACE, PROTECTED, begins, capped, ends, kill, lower, turn
from tests.simulation.faults import Crash, crash, once, watched
from tests.simulation.samples import HOUR, described
from tests.simulation.world import MINUTE, NOW, QUEUE, World, facts_of, stored, world


def pool(count: int, policy: Policy, **update: object) -> World:
    """So many jobs, on record."""
    one = world(policy=policy)
    for number in range(count):
        job = f"job-{number:03}"
        arn = f"arn:aws:batch:us-east-1:123456789012:service-job/{job}"
        one.batch.tell(described(job=job, arn=arn, name=job, **update))
    one.sweep("adopts")
    one.clock.advance(1)
    return one


def broken(one: World, count: int) -> None:
    """So many jobs break a rule that asks for their end."""
    for number in range(count):
        begins(one, kill(f"t{number}", NOW), job=f"job-{number:03}")


def notices(one: World) -> list[Notice]:
    return [item for item in stored(one.ledger, Notice) if isinstance(item, Notice)]


def test_law_04_300_violations_are_capped_resumed_and_none_is_lost() -> None:
    one = pool(300, capped(50))
    broken(one, 300)
    done: list[int] = []
    while len(one.batch.terminations) < 300:
        before = len(one.batch.terminations)
        turn(one)
        done.append(len(one.batch.terminations) - before)
        assert len(done) < 20
    assert done == [50] * 6
    assert sorted(job for job, _ in one.batch.terminations) == [f"job-{n:03}" for n in range(300)]
    assert set(Counter(job for job, _ in one.batch.terminations).values()) == {1}
    assert len(facts_of(one.ledger, "terminated")) == 300
    assert not facts_of(one.ledger, "wish-dropped")
    hits = facts_of(one.ledger, "cap-hit")
    assert [(hit.figures["cap"], hit.figures["left"]) for hit in hits] == [
        (50, 250),
        (50, 200),
        (50, 150),
        (50, 100),
        (50, 50),
    ]
    (notice,) = notices(one)
    assert (notice.fact, notice.title) == (hits[0].key, "250 acts wait: the blast radius was reached")
    assert notice.text.startswith("the blast radius lets 50 acts of one sweep through; 250 have to wait.")
    assert notice.key in one.runtime.notices.sent  # type: ignore[attr-defined]


def test_law_04_the_cap_is_also_a_share_of_the_open_jobs() -> None:
    policy = capped(50).model_copy(update={"blast_radius": BlastRadius(acts=50, percent=10)})
    one = pool(40, policy)
    broken(one, 40)
    turn(one)
    assert len(one.batch.terminations) == 4


def test_what_waits_for_the_cap_does_not_run_out_of_time() -> None:
    one = pool(12, capped(1))
    for number in range(12):
        begins(one, lower(f"a{number}"), job=f"job-{number:03}")
    for _ in range(12):
        turn(one, 30 * MINUTE)
    assert len(one.batch.priorities) == 12
    assert not facts_of(one.ledger, "wish-dropped")


def test_a_backlog_is_told_of_once_and_another_one_again() -> None:
    one = pool(6, capped(2))
    broken(one, 3)
    turn(one)
    turn(one)
    assert len(notices(one)) == 1
    turn(one)
    for number in range(3, 6):
        begins(one, kill(f"t{number}", NOW), job=f"job-{number:03}")
    turn(one)
    turn(one)
    assert len(one.batch.terminations) == 6
    assert [hit.figures["left"] for hit in facts_of(one.ledger, "cap-hit")] == [1, 1]
    assert len(notices(one)) == 2


def test_a_sweep_that_could_not_read_says_nothing_of_a_backlog() -> None:
    one = pool(4, capped(1))
    broken(one, 4)
    turn(one)
    one.batch.down = "throttled"
    turn(one)
    one.batch.down = None
    turn(one)
    assert len(notices(one)) == 1
    turn(one)
    turn(one)
    state = one.ledger.load(SweepState, "all")
    assert state is not None
    assert state.backlog_since == 0


def test_no_backlog_is_no_record() -> None:
    one = pool(3, capped(3))
    broken(one, 3)
    turn(one)
    assert (facts_of(one.ledger, "cap-hit"), notices(one)) == ([], [])


def test_the_oldest_goes_first_and_what_was_given_goes_behind() -> None:
    one = pool(3, capped(1))
    for number in (2, 0, 1):
        begins(one, kill(f"t{number}", NOW), job=f"job-{number:03}")
        one.clock.advance(1)
    one.sweep("first")
    assert [message.job for message in one.wishes.drain()] == ["job-002"]  # and the message is lost
    for _ in range(3):
        turn(one)
    assert [job for job, _ in one.batch.terminations] == ["job-000", "job-001", "job-002"]


def test_what_lowers_goes_before_what_raises_and_terminations_go_last() -> None:
    policy = BOTH.model_copy(update={"blast_radius": BlastRadius(acts=2, percent=100)})
    one = pool(6, policy)
    for number in (0, 1):
        begins(one, kill(f"t{number}", NOW), job=f"job-{number:03}")
    for number in (2, 3):
        request = BumpRequest(id=f"b{number}", job=f"job-{number:03}", actor="U1", reason="r", by=50)
        bump(one.runtime, request)
    for number in (4, 5):
        begins(one, lower(f"a{number}"), job=f"job-{number:03}")
    list(one.wishes.drain())  # the bumps' messages are lost
    order = []
    for _ in range(3):
        one.clock.advance(5 * MINUTE)
        one.sweep(f"s{one.clock.now()}")
        messages = list(one.wishes.drain())
        order.append({message.job for message in messages})
        for message in messages:
            one.wishes.send(*message, once=f"again {message}")
        one.apply_all()
    assert order == [{"job-004", "job-005"}, {"job-002", "job-003"}, {"job-000", "job-001"}]


@pytest.mark.parametrize(
    "policy",
    [Policy(), PROTECTED, capped(9).model_copy(update={"paused": True})],
    ids=["shadow", "protected", "paused"],
)
def test_law_09_where_nothing_may_act_nothing_is_given(policy: Policy) -> None:
    one = pool(2, capped(9))
    broken(one, 2)
    one.policies.policy = policy
    turn(one, HOUR)
    assert one.wishes.sent == []
    assert facts_of(one.ledger, "cap-hit") == []


def test_law_10_a_sweep_that_dies_in_the_release_is_made_up_for() -> None:
    for number in range(1, 400):
        one = pool(4, capped(2))
        broken(one, 4)
        one.clock.advance(5 * MINUTE)
        runtime, calls = watched(one.runtime, once(number, "after", crash))
        try:
            replace(one, runtime=runtime).sweep("dies")
        except Crash:
            one.apply_all()
        for _ in range(4):
            turn(one, 10 * MINUTE)
        assert len(one.batch.terminations) == 4, f"crash after call {number}"
        assert len(facts_of(one.ledger, "terminated")) == 4, f"crash after call {number}"
        assert len(notices(one)) <= 1
        if calls.number < number:
            return
    raise AssertionError("it never came to its end")


def test_a_termination_withdrawn_meanwhile_is_not_given() -> None:
    one = pool(1, capped(9))
    broken(one, 1)
    ends(one, "t0", job="job-000")
    wake_act(one.runtime, one.record("job-000"), "t0", "again")
    assert one.wishes.sent == []


def test_an_open_termination_is_asked_about_in_every_sweep() -> None:
    """A quiet job has its turn at some time; this one is not quiet."""
    one = pool(1, capped(9))
    listed = one.batch.jobs(QUEUE, "RUNNABLE", None).jobs[0]
    assert not needs_read(one.record("job-000"), listed, whole=True)
    broken(one, 1)
    assert needs_read(one.record("job-000"), listed, whole=True)
    ends(one, "t0", job="job-000")
    assert not needs_read(one.record("job-000"), listed, whole=True)


def test_a_grace_that_runs_is_no_backlog_and_no_age() -> None:
    one = pool(3, capped(1))
    for number in range(3):
        begins(one, kill(f"t{number}", NOW + GRACE), job=f"job-{number:03}")
    report = one.sweep("early")
    assert (report.woken, report.capped, report.oldest_wish_ms) == (0, 0, 0)
    one.clock.advance(GRACE)
    report = one.sweep("due")
    assert (report.woken, report.capped, report.left, report.oldest_wish_ms) == (1, 2, 2, 1)
