"""The laws of guardrails: found once however it is told, shadow as enforce, nothing on a guess."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
from sharewarden.domain.decide import Decision
from sharewarden.domain.known import KnownShares
from sharewarden.domain.marks import standing
from sharewarden.domain.notice import Notice
from sharewarden.domain.policy import Policy
from sharewarden.domain.pool import pool_of
from sharewarden.domain.record import JobRecord, status
from sharewarden.ports import Unavailable
from sharewarden.usecases.guarding import Around, FailedRules, guarded_in

from tests.simulation.faults import Crash, Hook, When, crash, lose, nothing, once, watched
from tests.simulation.pool import story
from tests.simulation.samples import JOB, described, share, state
from tests.simulation.test_loop_order import Live, shuffled
from tests.simulation.world import (
    MINUTE,
    NOW,
    QUEUE,
    TickingClock,
    World,
    facts_of,
    records,
    reproduce,
    seeds,
    stored,
    world,
)

#: Rules whose word about a job never changes, of which each job of the stories breaks the first.
STATIC = (
    {"rule": "allowed-instance-types", "types": ["ml.p5.*"], "action": "notify"},
    {"rule": "bounded-retries", "limit": 3, "action": "record"},
)
#: Rules about how things stand, with every action.
CHANGING = (
    {"rule": "max-queued-jobs-per-team", "limit": 1, "action": "lower-priority"},
    {"rule": "max-running-instances-per-team", "limit": 1, "action": "terminate", "grace": "0s"},
    {"rule": "runtime-limit", "attempt": "10m", "action": "notify"},
    {"rule": "required-tags", "tags": ["project"], "action": "lower-priority", "points": 50},
    {"rule": "queue-blocked", "action": "record"},
)


def policy(*entries: Any, mode: str = "enforce", **more: Any) -> Policy:
    shares = {"background": {"team": "research", "min_runtime": "1m"}}
    queues = {"ml-train-qm": {"mode": mode, "bumps": "shadow", "shares": shares}}
    return Policy.model_validate({"queues": queues, "guardrails": entries} | more)


def found(one: World) -> Counter[tuple[Any, ...]]:
    """Who was found to break what."""
    return Counter(
        (fact.job, fact.figures["label"], fact.figures["subject"]) for fact in facts_of(one.ledger, "finding")
    )


def _is_told_once(one: World, where: str) -> None:
    """Each finding is one fact, and those that people are told of are one notice that was asked for once."""
    assert set(found(one).values()) <= {1}, where
    told = {fact.key for fact in facts_of(one.ledger, "finding") if fact.figures["action"] != "record"}
    assert {notice.key for notice in stored(one.ledger, Notice) if notice.kind == "finding"} == told, where  # type: ignore[attr-defined]
    cleared = {fact.figures["finding"] for fact in facts_of(one.ledger, "finding-cleared")}
    assert cleared <= {fact.key for fact in facts_of(one.ledger, "finding")}, where


def test_law_01_order_and_number_of_events_change_no_finding() -> None:
    for seed in seeds(4):
        pool = story(seed % 7, jobs=25)
        events = [event for _, event in pool.events]
        straight, mixed = pool.world(), pool.world()
        for one, delivered in ((straight, events), (mixed, shuffled(events, random.Random(seed)))):
            one.policies.policy = policy(*STATIC)
            one.take(*delivered)
            one.settle()
        where = reproduce("change_no_finding", seed)
        assert found(straight) == found(mixed), where
        jobs = {item.key for item in stored(mixed.ledger, JobRecord)}
        assert {job for job, label, _ in found(mixed) if label == "allowed-instance-types"} == jobs, where
        _is_told_once(mixed, where)


def test_law_01_what_events_do_not_tell_the_sweep_finds() -> None:
    """Most events are lost, the others come late and twice; sweeps run all the time."""
    for seed in seeds(6):
        rng = random.Random(seed)
        script = story(seed % 50, jobs=25).events
        live = Live(seed)
        one = live.pool.world()
        one.policies.policy = policy(*STATIC)
        arrivals = sorted(
            (at + rng.randint(0, 8 * MINUTE), number, event)
            for number, (at, event) in enumerate(each for each in script for _ in range(2))
            if rng.random() < 0.2
        )
        for at, _, event in arrivals:
            live.advance_to(at)
            one.take(event)
            one.sweep(f"sweep-{at}")
        live.advance_to(script[-1][0] + 100 * MINUTE)
        one.settle()
        where = reproduce("events_do_not_tell", seed)
        seen = {item.key for item in stored(one.ledger, JobRecord)}
        assert {job for job, label, _ in found(one) if label == "allowed-instance-types"} == seen, where
        _is_told_once(one, where)


# --- stopped anywhere -----------------------------------------------------------------------------------


class Life:
    """A job that breaks rules of every kind, is swept and acted on, and is dealt with in the end."""

    ENTRIES = (
        {"rule": "max-instances-per-job", "limit": 1, "action": "lower-priority"},
        {"rule": "max-queued-jobs-per-team", "limit": 1, "action": "notify"},
        {"rule": "required-tags", "tags": ["project"], "action": "terminate", "grace": "40m"},
    )

    def __init__(self, hook: Hook) -> None:
        self.one = world(clock=TickingClock(NOW), policy=policy(*self.ENTRIES))
        self.one.runtime, self.calls = watched(self.one.runtime, hook)
        self.one.batch.quota_shares[QUEUE] = [share(8)]
        for job in (JOB, "job-2"):
            self.one.batch.tell(
                described(job=job, arn=f"arn:aws:batch:us-east-1:123456789012:service-job/{job}")
            )

    def does(self, step: Callable[[], object]) -> None:
        for _ in range(5):
            try:
                step()
            except (Crash, Unavailable):
                self.one.clock.advance(6 * MINUTE)
            else:
                return
        raise AssertionError("the step never came to its end")

    def sweeps(self, minutes: int) -> None:
        self.one.clock.advance(minutes * MINUTE)
        holder = f"sweep-{self.one.clock.now()}"
        self.does(lambda: self._swept(holder))
        self.does(self.one.apply_until_done)

    def _swept(self, holder: str) -> None:
        if self.one.sweep(holder).unread:
            raise Unavailable("the sweep could not read all")

    def lives(self) -> Life:
        first = state("RUNNABLE", self.one.clock.now())
        arn = "arn:aws:batch:us-east-1:123456789012:service-job/job-2"
        second = state("RUNNABLE", self.one.clock.now() + 1000, jobArn=arn)
        for told in (first, second):
            self.does(lambda told=told: self.one.take(told))
        for _ in range(3):
            self.sweeps(11)
        self.one.policies.policy = policy(*self.ENTRIES[1:])
        for _ in range(6):
            self.sweeps(11)
        return self


@cache
def undisturbed() -> Life:
    return Life(nothing).lives()


def test_the_life_is_what_it_should_be() -> None:
    one = undisturbed().one
    kinds = Counter(fact.kind for fact in one.ledger.facts.values())
    assert (kinds["finding"], kinds["terminated"], kinds["gap"]) == (5, 2, 0)
    assert Counter(job for job, _ in one.batch.terminations) == {JOB: 1, "job-2": 1}
    assert [value for job, value in one.batch.priorities if job == JOB] == [100, 200]


@pytest.mark.parametrize(
    ("when", "fault"), [("before", crash), ("after", crash), ("before", lose), ("after", lose)]
)
def test_law_10_any_call_may_be_the_last_and_each_finding_is_one(
    when: When, fault: Callable[[], None]
) -> None:
    whole = undisturbed()
    for number in range(1, len(whole.calls.names) + 1):
        one = Life(once(number, when, fault)).lives().one
        where = f"{fault.__name__} {when} call {number}, {whole.calls.names[number - 1]}"
        assert found(one) == found(whole.one), where
        _is_told_once(one, where)
        assert Counter(one.batch.terminations) == Counter(whole.one.batch.terminations), where
        assert {fact.job for fact in facts_of(one.ledger, "terminated")} == {JOB, "job-2"}, where


# --- shadow and enforce ---------------------------------------------------------------------------------


ENTRIES = pytest.mark.parametrize("entries", [CHANGING, STATIC], ids=["changing", "static"])


@ENTRIES
def test_law_09_shadow_and_enforce_make_the_same_plan(entries: Any) -> None:
    """Two watchers of one pool; nothing of what either wishes is carried out, so both see the same events."""
    for seed in seeds(4):
        shadow, enforce = (_watched(seed, policy(*entries, mode=mode)) for mode in ("shadow", "enforce"))
        assert _plan(shadow) == _plan(enforce), reproduce("make_the_same_plan", seed)


@ENTRIES
def test_law_09_shadow_changes_nothing_but_what_is_remembered_of_it(entries: Any) -> None:
    for seed in seeds(4):
        where = reproduce("changes_nothing_but", seed)
        shadow, plain = (
            _watched(seed, policy(*rules, mode="shadow"), sweeps=True) for rules in (entries, ())
        )
        shadow.apply_all()
        assert not shadow.wishes.sent, where
        assert (shadow.batch.priorities, shadow.batch.terminations) == ([], []), where
        assert _without_marks(shadow) == _without_marks(plain), where
        others = {key for key, fact in shadow.ledger.facts.items() if not fact.kind.startswith("finding")}
        assert others == plain.ledger.facts.keys(), where


def test_law_09_on_whatever_a_sweep_sees_both_modes_decide_the_same() -> None:
    """Each record of a watched pool, after each event, as one look at the whole pool shows it."""
    shadow, enforce = (policy(*CHANGING, mode=mode) for mode in ("shadow", "enforce"))
    compared = 0
    for seed in seeds(3):
        for jobs, now in _looks(seed, shadow):
            around = [
                Around(rules, now, KnownShares(), pool_of([(one, status(one)) for one in jobs], rules))
                for rules in (shadow, enforce)
            ]
            for record in jobs:
                one, other = (
                    guarded_in(each, Decision(record=_in_mode(record, each.policy)), FailedRules())
                    for each in around
                )
                assert _told(one) == _told(other), reproduce("both_modes_decide", seed)
                assert _kept(one) == _kept(other), reproduce("both_modes_decide", seed)
                compared += len(one.facts)
    assert compared


def _looks(seed: int, rules: Policy) -> Iterator[tuple[list[JobRecord], int]]:
    live = Live(seed)
    one = live.pool.world()
    one.policies.policy = rules
    for at, event in story(seed % 50, jobs=25).events[::4]:
        live.advance_to(at)
        one.take(event)
        yield [item for item in stored(one.ledger, JobRecord) if isinstance(item, JobRecord)], at


def _in_mode(record: JobRecord, rules: Policy) -> JobRecord:
    """The record with what it would remember under that policy."""
    mode = rules.queue(record.queue).mode
    marks = tuple(mark.model_copy(update={"mode": mode}) for mark in record.marks)
    return record.model_copy(update={"marks": marks})


def _told(decision: Decision) -> list[dict[str, Any]]:
    return [fact.model_dump(exclude={"mode", "policy"}) for fact in decision.facts if fact.kind in KINDS]


def _kept(decision: Decision) -> list[dict[str, Any]]:
    return sorted(
        (mark.model_dump(exclude={"mode", "act"}) for mark in decision.record.marks),
        key=lambda mark: str(mark["fact"]),
    )


def _watched(seed: int, rules: Policy, *, sweeps: bool = False) -> World:
    live = Live(seed)
    one = live.pool.world()
    one.policies.policy = rules
    for at, event in story(seed % 50, jobs=25).events:
        live.advance_to(at)
        one.take(event)
        if sweeps and at % 3 == 0:
            one.sweep(f"sweep-{at}")
    return one


def _without_marks(one: World) -> dict[str, Any]:
    return {
        key: {name: value for name, value in item.items() if name != "marks"}
        for key, item in records(one.ledger).items()
    }


KINDS = ("finding", "finding-cleared")


def _plan(one: World) -> list[dict[str, Any]]:
    """What was found and what is to follow, in the order of finding, but for the mode and its policy."""
    return [
        fact.model_dump(exclude={"mode", "policy", "recorded_at"})
        for fact in one.ledger.facts.values()
        if fact.kind in KINDS
    ]


def test_law_10_two_sweeps_later_the_marks_say_what_the_rules_say() -> None:
    """Whatever was lost: another look finds nothing more to do."""
    for seed in seeds(4):
        live = Live(seed)
        one = live.pool.world()
        one.policies.policy = policy(*CHANGING, mode="shadow")
        events = story(seed % 50, jobs=25).events
        for at, event in events[: len(events) // 2 : 3]:
            live.advance_to(at)
            one.take(event)
        for number in range(3):
            live.advance_to(at + number)
            one.sweep(f"sweep-{number}")
        marks = {item.key: standing(item.marks) for item in stored(one.ledger, JobRecord)}
        facts = len(one.ledger.facts)
        one.sweep("one more")
        where = reproduce("marks_say_what", seed)
        assert {item.key: standing(item.marks) for item in stored(one.ledger, JobRecord)} == marks, where
        assert len(one.ledger.facts) == facts, where


# --- unknown is not failed ------------------------------------------------------------------------------


def test_law_02_while_no_describe_answers_nothing_is_written_and_one_alarm_is_due() -> None:
    """For an hour: acts that were begun wait, none is sent; each sweep counts as ``unread`` (UnreadAlarm)."""
    one = world(
        policy=policy({"rule": "max-instances-per-job", "limit": 1, "action": "terminate", "grace": "0s"})
    )
    one.batch.quota_shares[QUEUE] = [share(8)]
    one.batch.tell(described())
    one.take(state("RUNNABLE", NOW))
    assert len(one.record(JOB).terminations) == 1
    answers, one.batch.describe = one.batch.describe, _no_answer
    reports = []
    for _ in range(12):
        one.clock.advance(5 * MINUTE)
        reports.append(one.sweep(f"sweep-{one.clock.now()}"))
        one.apply_all()
    assert (one.batch.terminations, one.batch.priorities) == ([], [])
    assert all(report.unread and not report.failed for report in reports)
    assert len(facts_of(one.ledger, "finding")) == 1
    one.batch.describe = answers
    one.settle(3)
    assert len(one.batch.terminations) == 1


def _no_answer(job: str) -> None:
    raise Unavailable("throttled")


def test_law_04_300_violations_are_found_capped_and_none_is_lost() -> None:
    rules = policy(
        {"rule": "max-instances-per-job", "limit": 1, "action": "terminate", "grace": "0s"},
        blast_radius={"acts": 40, "percent": 100},
    )
    one = world(policy=rules)
    one.batch.quota_shares[QUEUE] = [share(8)]
    for number in range(300):
        job = f"job-{number:03}"
        one.batch.tell(described(job=job, arn=f"arn:aws:batch:us-east-1:123456789012:service-job/{job}"))
    before = 0
    for _ in range(12):
        one.clock.advance(5 * MINUTE)
        one.sweep(f"sweep-{one.clock.now()}")
        one.apply_all()
        assert len(one.batch.terminations) - before <= 40
        before = len(one.batch.terminations)
    assert len(set(one.batch.terminations)) == before == 300
    assert len(found(one)) == 300
    assert facts_of(one.ledger, "cap-hit")
