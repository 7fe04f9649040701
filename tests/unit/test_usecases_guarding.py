"""Guardrails where jobs, shares and training jobs come in: what is read, what is committed, who is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sharewarden.domain.notice import Notice
from sharewarden.domain.observation import Status
from sharewarden.domain.other_scopes import guard_training
from sharewarden.domain.policy import Policy
from sharewarden.domain.record import JobRecord
from sharewarden.domain.rules.base import Guardrail, Verdict
from sharewarden.domain.rules.facts import Facts, TrainingFacts
from sharewarden.domain.share import PATIENCE, FoundChange, ShareRecord
from sharewarden.domain.stored import MINUTE, Stored
from sharewarden.ports import Page, Shares, Unavailable
from sharewarden.usecases.guarding import FailedRules, known_shares
from sharewarden.usecases.sweep import sweep
from sharewarden.usecases.walk import Limits

from tests.simulation.faults import When, nothing, watched
from tests.simulation.samples import FIRST, JOB, SHARE, api_call, described, share, state
from tests.simulation.world import ENFORCE, NOW, QUEUE, Json, World, facts_of, stored, world

STARTED_BY_HAND = json.loads(
    (
        Path(__file__).parents[2] / "events" / "sagemaker_training_job_state_change__started_by_hand.json"
    ).read_text()
)
LIMIT = {"rule": "max-instances-per-job", "limit": 1}
BY_HAND = {"rule": "share-changed-by-hand", "by": ["arn:aws:iam::*:role/pipeline"], "action": "notify"}
AROUND = {"rule": "training-outside-queue", "action": "notify"}
UNJUDGED = FoundChange(after=NOW, before=NOW, key="k", judged=False)


def policy(*entries: Any) -> Policy:
    return Policy.model_validate(ENFORCE.model_dump() | {"guardrails": entries})


def pool(*entries: Any, jobs: int = 1, **update: Any) -> World:
    one = world(policy=policy(*entries))
    for number in range(1, jobs + 1):
        one.batch.tell(described(job=f"job-{number}", arn=f"a/job-{number}", **update))
    one.batch.quota_shares[QUEUE] = [share(8)]
    return one


def found(one: World, kind: str = "finding") -> list[str]:
    return [fact.reason for fact in facts_of(one.ledger, kind)]


# --- events ---------------------------------------------------------------------------------------------


def test_an_event_brings_the_finding_with_its_notice_in_one_commit() -> None:
    one = pool(LIMIT | {"action": "notify"})
    one.take(state("RUNNABLE", NOW), state("SCHEDULED", NOW + 2000))
    (fact,) = facts_of(one.ledger, "finding")
    (notice,) = stored(one.ledger, Notice)
    assert (fact.job, fact.team, fact.mode) == (JOB, "research", "enforce")
    assert (notice.key, one.runtime.notices.sent) == (fact.key, [fact.key])  # type: ignore[attr-defined]


@pytest.mark.parametrize("entries", [(), (LIMIT | {"queues": ["other"]},)], ids=["none", "of another queue"])
def test_a_queue_that_no_guardrail_is_about_costs_two_calls_an_event(entries: tuple[Any, ...]) -> None:
    one = pool(*entries)
    one.take(state("RUNNABLE", NOW))
    runtime, calls = watched(one.runtime, nothing)
    one.runtime = runtime
    one.take(state("SCHEDULED", NOW + 2000))
    assert [name for name in calls.names if name != "current"] == ["load", "commit"]


def test_a_guarded_queue_costs_one_query_more() -> None:
    one = pool(LIMIT)
    one.take(state("RUNNABLE", NOW))
    one.runtime, calls = watched(one.runtime, nothing)
    one.take(state("SCHEDULED", NOW + 2000))
    assert [name for name in calls.names if name != "current"] == ["load", "open_items", "commit"]


def test_an_act_is_recorded_and_left_to_the_sweep() -> None:
    one = pool(LIMIT | {"action": "lower-priority"})
    one.take(state("RUNNABLE", NOW))
    assert one.record(JOB).priority.wish is not None
    assert one.wishes.sent == []


def test_on_an_event_nothing_is_known_of_the_pool() -> None:
    one = pool({"rule": "max-queued-jobs-per-team", "limit": 1}, jobs=2)
    one.take(_of("job-1"), _of("job-2"))
    assert found(one) == []


def test_a_notice_that_could_not_be_asked_for_is_committed_all_the_same() -> None:
    class Down:
        def send(self, key: str) -> None:
            raise Unavailable("throttled")

    one = pool(LIMIT | {"action": "notify"})
    object.__setattr__(one.runtime, "notices", Down())
    one.take(state("RUNNABLE", NOW))
    assert (len(found(one)), len(stored(one.ledger, Notice))) == (1, 1)


class Broken(Guardrail):
    rule: str = "broken"

    def decide(self, facts: Facts) -> Verdict:
        raise ZeroDivisionError


def test_a_rule_that_raises_costs_no_event_and_is_counted() -> None:
    one = pool()
    one.policies.policy = Policy(queues=ENFORCE.queues, guardrails=(Broken(), *policy(LIMIT).guardrails))
    one.take(state("RUNNABLE", NOW))
    assert len(found(one)) == 1
    one.clock.advance(MINUTE)
    assert one.sweep().failed == 1


def test_each_decision_names_the_policy_that_it_was_made_under() -> None:
    """The policy is swapped between any two calls of a batch of events."""
    policies = [policy(LIMIT | {"name": name}) for name in ("one", "two")]
    for at in range(1, 12):
        one = pool(LIMIT | {"name": "one"}, jobs=3)

        def swap(number: int, name: str, when: When, one: World = one, at: int = at) -> None:
            if (number, when) == (at, "after"):
                one.policies.policy = policies[1]

        one.policies.policy = policies[0]
        one.runtime, _ = watched(one.runtime, swap)
        one.take(*(_of(f"job-{n}") for n in (1, 2, 3)))
        hashes = {rules.guardrails[0].label: rules.hash for rules in policies}
        facts = facts_of(one.ledger, "finding")
        assert {fact.job for fact in facts} == {"job-1", "job-2", "job-3"}
        assert all(fact.policy == hashes[fact.figures["label"]] for fact in facts)


def _of(job: str, at: int = NOW, status: Status = "RUNNABLE") -> Json:
    return state(status, at, jobArn=f"arn:aws:batch:us-east-1:123456789012:service-job/{job}")


# --- the sweep ------------------------------------------------------------------------------------------


def test_a_sweep_decides_on_the_whole_queue() -> None:
    one = pool({"rule": "max-queued-jobs-per-team", "limit": 2}, jobs=4)
    one.take(*(_of(f"job-{n}") for n in range(1, 5)))
    one.clock.advance(MINUTE)
    one.sweep()
    assert sorted(fact.job or "" for fact in facts_of(one.ledger, "finding")) == ["job-3", "job-4"]


@pytest.mark.parametrize("lost", ["jobs", "open_items"])
def test_law_02_a_look_at_half_of_the_queue_is_none(lost: str) -> None:
    """Neither begins anything nor ends what was found before."""
    one = pool({"rule": "max-queued-jobs-per-team", "limit": 1}, jobs=3)
    one.take(_of("job-1"), _of("job-2"))
    one.clock.advance(MINUTE)
    one.sweep()
    before = found(one)
    assert len(before) == 1
    one.take(_of("job-3"))
    whole, looks = one.runtime, 0

    def fail(number: int, name: str, when: When) -> None:
        nonlocal looks
        looks += (name, when) == (lost, "before")
        if when == "before" and name == lost and looks == {"jobs": 3, "open_items": 5}[lost]:
            raise Unavailable("throttled")

    one.clock.advance(MINUTE)
    one.runtime, _ = watched(whole, fail)
    assert one.sweep("half").unread
    assert (found(one), found(one, "finding-cleared")) == (before, [])
    one.runtime = whole
    one.clock.advance(MINUTE)
    one.sweep("whole")
    assert len(found(one)) == 2


def test_law_02_the_job_whose_dispatch_nobody_told_is_not_taken_for_the_last() -> None:
    """It was dispatched first, and the event of it is lost: to end the other would be as wrong."""
    one = pool({"rule": "max-running-instances-per-team", "limit": 2, "action": "notify"}, jobs=2)
    one.take(_of("job-1"), _of("job-2"))
    for number, at in ((1, NOW + 1000), (2, NOW + 2000)):
        told = described(job=f"job-{number}", arn=f"a/job-{number}", status="RUNNING", scheduled_at=at)
        one.batch.tell(told)
    one.take(_of("job-2", NOW + 2000, "SCHEDULED"))
    for holder in ("sees", "finds"):
        one.clock.advance(MINUTE)
        one.sweep(holder)
    assert [fact.job for fact in facts_of(one.ledger, "finding")] == ["job-2"]


def test_law_02_without_the_shares_nobody_knows_what_was_borrowed() -> None:
    """All would count as owned."""
    one = pool({"rule": "gpu-hour-budget", "period": "day", "owned": 3}, jobs=0)
    one.batch.tell(described(status="RUNNING", scheduled_at=NOW, started_at=NOW, attempt=FIRST))
    one.batch.quota_shares[QUEUE] = [share(1)]
    one.sweep()
    answer = one.batch.shares
    for down, expected in ((True, 0), (False, 1)):
        one.clock.advance(100 * MINUTE)
        one.batch.shares = _throttled if down else answer
        one.sweep(f"{one.clock.now()}")
        assert len(found(one)) == expected, found(one)


def _throttled(queue: str) -> Shares:
    raise Unavailable(queue)


def test_law_02_half_a_listing_ends_nothing() -> None:
    """The second page is lost, and with it jobs that count before the one that was found."""
    one = pool({"rule": "max-queued-jobs-per-team", "limit": 101}, jobs=0)
    for number in range(102, 0, -1):  # listed newest first
        told = described(job=f"job-{number}", arn=f"a/job-{number}", created_at=NOW + number)
        one.batch.tell(told)
    for holder in ("adopts", "finds"):
        one.sweep(holder)
        one.clock.advance(MINUTE)
    assert [fact.job for fact in facts_of(one.ledger, "finding")] == ["job-102"]
    listed = one.batch.jobs

    def first_page(queue: str, status: Status, token: str | None) -> Page:
        if token is not None:
            raise Unavailable("throttled")
        return listed(queue, status, token)

    one.batch.jobs = first_page
    assert one.sweep("half").unread
    assert found(one, "finding-cleared") == []


def test_law_02_half_of_the_records_are_no_pool_and_are_looked_at_all_the_same() -> None:
    queued = {"rule": "max-queued-jobs-per-team", "limit": 1}
    one = pool(queued, {"rule": "runtime-limit", "total": "1h"}, jobs=3)
    one.take(*(_of(f"job-{n}") for n in (1, 2, 3)))
    whole = one.ledger.open_items

    def torn(kind: type[Stored], queue: str) -> Iterator[Stored]:
        for number, item in enumerate(whole(kind, queue)):
            if kind is JobRecord and number == 2:
                raise Unavailable("throttled")
            yield item

    one.ledger.open_items = torn
    one.clock.advance(MINUTE)
    report = one.sweep()
    assert (report.records, report.unread, found(one)) == (2, 1, [])


def test_what_a_sweep_has_no_describe_left_for_is_decided_on_the_record() -> None:
    one = pool({"rule": "runtime-limit", "attempt": "1h"}, status="RUNNING")
    one.take(state("RUNNING", NOW))
    one.clock.advance(61 * MINUTE)
    sweep(one.runtime, "s", Limits(describes=0))
    assert len(found(one)) == 1


def test_law_02_a_job_that_batch_does_not_know_is_not_judged() -> None:
    one = pool({"rule": "runtime-limit", "attempt": "1h"}, status="RUNNING")
    one.take(state("RUNNING", NOW))
    one.batch.descriptions.clear()
    one.clock.advance(61 * MINUTE)
    one.sweep()
    assert found(one) == []


def test_rules_about_something_else_are_not_asked_about_jobs() -> None:
    one = pool(BY_HAND, AROUND)
    one.take(state("RUNNABLE", NOW))
    one.clock.advance(MINUTE)
    assert one.sweep().failed == 0


def test_what_is_over_with_its_guardrail_costs_no_look_at_the_shares() -> None:
    one = pool(LIMIT)
    one.take(state("RUNNABLE", NOW))
    one.policies.policy = ENFORCE
    one.runtime, calls = watched(one.runtime, nothing)
    one.take(state("SCHEDULED", NOW + 2000))
    assert "open_items" not in calls.names
    assert len(found(one, "finding-cleared")) == 1


@pytest.mark.parametrize(
    ("update", "shares", "whole"),
    [
        ({}, 2, True),
        ({"description": None}, 1, False),  # CloudTrail alone has told of it
        ({"description": None, "read_at": NOW, "found": (UNJUDGED,)}, 1, True),  # deleted, by somebody
    ],
)
def test_the_shares_on_record_and_whether_they_are_all(update: Json, shares: int, whole: bool) -> None:
    one = pool()
    kept = ShareRecord(arn=SHARE, queue=QUEUE, description=share(8), read_at=NOW)
    other = ShareRecord(arn=f"{SHARE}-2", queue=QUEUE, description=share(2))
    one.ledger.commit([kept, other.model_copy(update=update)], [], NOW)
    seen = known_shares(one.runtime, QUEUE)
    assert (len(seen.shares), seen.whole) == (shares, whole)


def test_a_training_job_is_found_under_one_queue_only() -> None:
    facts = TrainingFacts(now=NOW, name="t", arn="a", status="s", instance_type="x", pool_types=frozenset())
    types = {"q/2": frozenset({"x"}), "q/1": frozenset({"x"}), "q/0": frozenset({"y"})}
    (fact,) = guard_training(facts, types, policy(AROUND), FailedRules()).facts
    assert fact.queue == "q/1"


def test_jobs_that_no_event_told_of_are_guarded_too() -> None:
    one = pool(LIMIT | {"action": "notify"})
    one.sweep()
    assert (len(found(one)), len(stored(one.ledger, Notice))) == (1, 1)


@pytest.mark.parametrize("first", ["sweep", "event"])
@pytest.mark.parametrize(("age", "acts"), [(9, 1), (10, 0)])
def test_law_11_what_was_there_before_is_told_and_left_alone(age: int, acts: int, first: str) -> None:
    """Whoever sees it first: the sweep, or an event of a job that has waited there for long."""
    one = pool(LIMIT | {"action": "terminate"})
    one.clock.advance(age * MINUTE)
    if first == "event":
        one.take(state("RUNNABLE", one.clock.now()))
    one.sweep()
    assert (len(found(one)), len(stored(one.ledger, Notice))) == (1, 1)
    assert len(one.record(JOB).terminations) == acts


def test_what_time_makes_of_a_job_is_found_without_an_event() -> None:
    one = pool({"rule": "runtime-limit", "attempt": "1h"}, status="RUNNING")
    one.take(state("RUNNING", NOW))
    one.clock.advance(59 * MINUTE)
    one.sweep()
    assert found(one) == []
    one.clock.advance(2 * MINUTE)
    one.sweep("second")
    assert len(found(one)) == 1


def test_law_09_a_sweep_that_finds_nothing_new_changes_no_mark() -> None:
    queued = {"rule": "max-queued-jobs-per-team", "limit": 1}
    one = pool(LIMIT | {"action": "terminate", "grace": "1h"}, queued, jobs=2)
    one.take(_of("job-1"), _of("job-2"))
    for _ in range(2):
        one.clock.advance(MINUTE)
        one.sweep(f"s{one.clock.now()}")
    marks, facts = one.record("job-2").marks, dict(one.ledger.facts)
    one.clock.advance(MINUTE)
    one.sweep("last")
    assert len(marks) == 2
    assert (one.record("job-2").marks, one.ledger.facts) == (marks, facts)


def test_a_policy_without_the_guardrail_ends_what_it_found() -> None:
    one = pool(LIMIT | {"action": "lower-priority"})
    one.take(state("RUNNABLE", NOW))
    one.policies.policy = ENFORCE
    one.clock.advance(MINUTE)
    one.sweep()
    assert found(one, "finding-cleared") == ["no guardrail of that name concerns the job any longer"]
    assert one.record(JOB).priority.wish is None


# --- quota shares ---------------------------------------------------------------------------------------


def by(principal: str, at: int = NOW) -> Json:
    call = api_call("UpdateQuotaShare", {"quotaShareArn": SHARE}, at)
    return call | {"detail": call["detail"] | {"userIdentity": {"arn": principal}}}


ALICE, PIPELINE = "arn:aws:iam::123456789012:user/alice", "arn:aws:iam::123456789012:role/pipeline"


@pytest.mark.parametrize(("principal", "expected"), [(ALICE, 1), (PIPELINE, 0)])
def test_a_change_that_cloudtrail_tells_of_is_decided_at_once(principal: str, expected: int) -> None:
    one = pool(BY_HAND)
    one.take(by(principal), by(principal))
    assert len(found(one)) == len(stored(one.ledger, Notice)) == expected


def changed_unseen(one: World) -> None:
    """The first sweep knows the share; the second finds it changed."""
    for limit in (8, 9):
        one.batch.quota_shares[QUEUE] = [share(limit)]
        one.clock.advance(MINUTE)
        one.sweep(f"s{limit}")
    assert len(facts_of(one.ledger, "quota-share-change")) == 1


@pytest.mark.parametrize(("principal", "expected"), [(ALICE, 1), (PIPELINE, 0)])
def test_law_10_who_made_a_change_that_a_sweep_found_is_waited_for(principal: str, expected: int) -> None:
    one = pool(BY_HAND)
    changed_unseen(one)
    assert found(one) == []
    late = by(principal, one.clock.now() - 30_000)
    one.take(late, late)
    one.clock.advance(PATIENCE + MINUTE)
    one.sweep("late")
    assert len(found(one)) == expected


@pytest.mark.parametrize("deleted", [False, True])
def test_a_change_that_nobody_is_known_to_have_made_is_decided_in_the_end(deleted: bool) -> None:
    one = pool(BY_HAND)
    changed_unseen(one)
    if deleted:
        one.batch.quota_shares[QUEUE] = []
        one.sweep("deleted")
    for _ in range(3):
        one.clock.advance(PATIENCE)
        one.sweep(f"s{one.clock.now()}")
    assert len(found(one)) == (2 if deleted else 1)
    assert all("whom only CloudTrail could name" in text for text in found(one))


def test_without_such_a_rule_a_change_waits_for_nobody() -> None:
    one = pool()
    changed_unseen(one)
    one.policies.policy = policy(BY_HAND)
    one.clock.advance(2 * PATIENCE)
    one.sweep("late")
    assert found(one) == []


# --- training jobs around the queues --------------------------------------------------------------------


def training(**more: Any) -> Json:
    config = {"InstanceType": "ml.g5.xlarge", "InstanceCount": 2}
    return STARTED_BY_HAND | {"detail": STARTED_BY_HAND["detail"] | {"ResourceConfig": config, **more}}


def test_a_training_job_on_the_pool_s_types_is_found_once() -> None:
    one = pool(AROUND)
    one.sweep()
    one.take(training(), training())
    (fact,) = facts_of(one.ledger, "finding")
    assert (fact.job, fact.job_name, fact.queue) == (None, "AWS-notebook-experiment-12", QUEUE)
    assert fact.key.startswith("finding#AWS-notebook-experiment-12#training-outside-queue#")
    assert len(stored(one.ledger, Notice)) == 1


@pytest.mark.parametrize(
    ("entries", "more"),
    [
        ((AROUND,), {"ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1}}),
        ((AROUND,), {"ResourceConfig": {}}),
        ((AROUND | {"queues": ["other"]},), {}),
        ((BY_HAND,), {}),
    ],
    ids=["another type", "unknown type", "another queue", "no such rule"],
)
def test_other_training_jobs_leave_nothing(entries: tuple[Any, ...], more: Json) -> None:
    one = pool(*entries)
    one.sweep()
    before = dict(one.ledger.items)
    one.take(training(**more))
    assert (found(one), one.ledger.items) == ([], before)


def test_without_such_a_rule_a_training_job_of_nobody_s_queue_costs_nothing() -> None:
    one = pool(LIMIT)
    one.runtime, calls = watched(one.runtime, nothing)
    one.take(training())
    assert set(calls.names) <= {"current"}
