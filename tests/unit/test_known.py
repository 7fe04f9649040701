"""What rules may know of a job, from its record: each figure told, not told, and at its edge."""

from __future__ import annotations

from typing import Any

import pytest
from sharewarden.domain.decide import decide_read
from sharewarden.domain.known import ENDLESS, TAGS_SETTLE, KnownShares, facts_of, odd_tags
from sharewarden.domain.observation import (
    AttemptSeen,
    JobDescription,
    JobObservation,
    ShareDescription,
    Status,
)
from sharewarden.domain.policy import Policy
from sharewarden.domain.record import JobRecord, absorb, fold, new_record
from sharewarden.domain.rules.facts import JobFacts

from tests.simulation.samples import ARN, FIRST, JOB, SECOND, described
from tests.simulation.world import NOW, QUEUE

S = 1000
POLICY = Policy.model_validate(
    {
        "queues": {"ml-train-qm": {"shares": {"urgent": {"team": "serving", "protected": True}}}},
        "teams": {"research": {"sla": ["gold"]}},
        "sla": {"gold": {"start_within": "30m"}, "silver": {"restart_within": "1h"}},
    }
)


def told(after: int, state: Status, **more: Any) -> JobObservation:
    """A change of state so many seconds after ``NOW``."""
    seen = JobObservation(job=JOB, arn=ARN, queue=QUEUE, at=NOW + after * S, what="status", status=state)
    return seen.model_copy(update=more)


def read(after: int, **more: Any) -> JobDescription:
    return described(read_at=NOW + after * S, **more)


def running(dispatched: int, started: int) -> JobDescription:
    times = {"scheduled_at": NOW + dispatched * S, "started_at": NOW + started * S}
    return read(60, status="RUNNING", **times)


def blocked(after: int, reason: str) -> JobObservation:
    return told(after, "RUNNABLE", what="queue-blocked", reason=reason)


def known(*steps: JobObservation | JobDescription) -> JobRecord:
    record = new_record(told(0, "SUBMITTED"))
    for step in steps:
        record = fold(record, step) if isinstance(step, JobObservation) else absorb(record, step)
    return record


def job(record: JobRecord, after: int, policy: Policy = POLICY) -> JobFacts:
    """What is known of it so many seconds after ``NOW``."""
    return facts_of(record, KnownShares(), policy, NOW + after * S).job


def gone(at: int) -> AttemptSeen:
    return AttemptSeen(training_job=FIRST, started_at=NOW + 30 * S, stopped_at=NOW + at * S, preempted=True)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (known(told(5, "RUNNABLE")), (100, 95, None)),
        (known(read(5)), (100, 100, None)),  # nobody told since when it is RUNNABLE
        (known(told(5, "RUNNABLE"), told(20, "SCHEDULED")), (None, 80, None)),
        (known(told(20, "SCHEDULED"), told(30, "RUNNING")), (None, 70, 70)),
        (known(told(30, "RUNNING", attempt=FIRST), told(80, "RUNNING", attempt=SECOND)), (None, 20, 20)),
        (known(told(30, "RUNNING"), told(60, "RUNNABLE")), (40, 40, None)),
        (known(told(30, "RUNNING"), told(60, "RUNNABLE"), told(61, "RUNNABLE")), (40, 40, None)),
        (known(told(5, "RUNNABLE"), told(30, "RUNNING"), told(60, "SUCCEEDED")), (None, 40, None)),
        # the event of the requeue was lost: the end of the attempt counts
        (known(told(30, "RUNNING"), read(60, attempts=(gone(50),))), (50, 50, None)),
        # the events of the start were lost: Batch's word counts, unless it is of an attempt before
        (known(read(60, status="SCHEDULED", scheduled_at=NOW + 40 * S)), (None, 60, None)),
        (known(read(60, status="STARTING", scheduled_at=NOW + 40 * S)), (None, None, None)),
        (known(running(40, 45)), (None, 55, 55)),
        (known(running(40, 30)), (None, None, None)),
    ],
)
def test_how_long_a_job_waits_and_runs(record: JobRecord, expected: tuple[int | None, ...]) -> None:
    facts = job(record, 100)
    assert (facts.waiting, facts.in_status, facts.running) == expected


def test_all_attempts_count_as_trained() -> None:
    record = known(read(60, attempts=(gone(50),), preempted_count=1), told(70, "RUNNING", attempt=SECOND))
    facts = job(record, 100)
    assert (facts.trained, facts.running, facts.preemptions) == (20 + 30, 30, 1)


def test_a_time_ahead_is_no_negative_duration() -> None:
    assert job(known(told(50, "RUNNING")), 20).running == 0


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((), None),
        ((told(5, "RUNNABLE"), blocked(9, "A"), blocked(30, "B")), "B"),
        ((told(9, "RUNNABLE"), blocked(9, "A")), "A"),
        ((blocked(9, "A"), told(20, "SCHEDULED")), None),
        ((blocked(9, "A"), told(20, "SCHEDULED"), told(40, "RUNNABLE")), None),
    ],
)
def test_a_job_is_blocked_until_it_moves(steps: tuple[JobObservation, ...], expected: str | None) -> None:
    assert job(known(*steps), 100).blocked == expected


def test_before_batch_was_asked_hardly_anything_is_known() -> None:
    facts = job(known(told(5, "RUNNABLE")), 100)
    unknown = ("share", "team", "tags", "instances", "gpus", "preemption_retries", "max_runtime", "priority")
    assert {name: getattr(facts, name) for name in unknown} == dict.fromkeys(unknown)
    assert facts.odd_tags == {}


def test_what_batch_says_of_the_job() -> None:
    facts = job(known(read(1, preemption_retries=2, max_runtime=90_000)), 1)
    assert (facts.preemption_retries, facts.max_runtime, facts.instances, facts.gpus) == (2, 90, 2, 2)
    assert job(known(read(1)), 1).preemption_retries == ENDLESS
    assert job(known(read(1, instance_type="ml.new.large")), 1).gpus is None


@pytest.mark.parametrize(("age", "settled"), [(TAGS_SETTLE - 1, False), (TAGS_SETTLE, True)])
def test_that_a_tag_is_absent_is_believed_of_a_job_old_enough(age: int, settled: bool) -> None:
    facts = job(known(described(read_at=NOW + age)), 9999)
    assert (facts.tags is not None) == settled
    assert facts.team == "research"


def test_tags_go_by_the_names_that_the_policy_gives() -> None:
    names = {"team": "squad", "user": "who", "project": "p", "sla": "class", "lineage": "line"}
    names |= {"deadline": "until", "expected_runtime": "lasts"}
    policy = Policy.model_validate({"tags": names, "sla": {"gold": {}}})
    tags = {"squad": "nlp", "who": "ada", "p": "x", "class": "gold", "line": "l1", "lasts": "6h"}
    tags["until"] = "2026-09-14T10:00:00+02:00"
    facts = job(known(read(1, tags=tuple(tags.items()))), 1, policy)
    assert (facts.team, facts.tag_team, facts.user, facts.project) == ("nlp", "nlp", "ada", "x")
    assert (facts.sla, facts.lineage, facts.expected_runtime, facts.deadline) == ("gold", "l1", 21600, NOW)


def test_the_team_of_the_share_wins_over_the_tag() -> None:
    facts = job(known(read(1, share="urgent")), 1)
    assert (facts.team, facts.tag_team) == ("serving", "research")


@pytest.mark.parametrize(
    ("tags", "odd"),
    [
        ({}, ()),
        ({"deadline": "2026-09-14T08:00:00Z", "expected-runtime": "90m", "sla": "gold"}, ()),
        ({"deadline": "2026-09-14T10:00:00.5+02:00"}, ()),
        ({"deadline": "2026-09-14T08:59:59+01:00"}, ("deadline",)),
        ({"deadline": "2026-09-14T08:00:00"}, ("deadline",)),
        ({"deadline": "2026-09-14"}, ("deadline",)),
        ({"deadline": "2026-13-14T08:00:00Z"}, ("deadline",)),
        ({"deadline": "20260914T080000Z"}, ("deadline",)),
        ({"expected-runtime": "6"}, ("expected-runtime",)),
        ({"expected-runtime": ""}, ("expected-runtime",)),
        ({"expected-runtime": "0h"}, ("expected-runtime",)),
        ({"sla": "bronze"}, ("sla",)),
    ],
)
def test_tags_that_say_nothing_understandable(tags: dict[str, str], odd: tuple[str, ...]) -> None:
    assert tuple(odd_tags(tags, POLICY, NOW)) == odd


def test_a_deadline_that_was_over_at_the_submission_is_none() -> None:
    def given(at: str) -> JobFacts:
        return job(known(read(1, tags=(("deadline", at),))), 86_400)

    past, met = given("2026-09-14T07:59:59Z"), given("2026-09-14T08:00:00Z")
    assert (past.deadline, past.odd_tags) == (None, {"deadline": "was over when the job was submitted"})
    assert (met.deadline, met.odd_tags) == (NOW, {})


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ((("team", "research"), ("sla", "gold")), ("gold", True, 1800, None)),
        ((("team", "research"), ("sla", "silver")), ("silver", False, None, 3600)),
        ((("team", "nobody"), ("sla", "gold")), ("gold", False, 1800, None)),
        ((("sla", "gold"),), ("gold", None, 1800, None)),
    ],
)
def test_the_sla_class_and_whether_the_team_has_it(tags: Any, expected: tuple[Any, ...]) -> None:
    sla = facts_of(known(read(1, tags=tags)), KnownShares(), POLICY, NOW).sla
    assert sla is not None
    assert (sla.name, sla.granted, sla.start_within, sla.restart_within) == expected


def test_a_class_that_the_policy_lacks_is_none() -> None:
    assert facts_of(known(read(1, tags=(("sla", "x"),))), KnownShares(), POLICY, NOW).sla is None


def a_share(name: str, limit: int, strategy: str, **more: Any) -> ShareDescription:
    told: Any = {"arn": f"{QUEUE}/quota-share/{name}", "name": name, "queue": QUEUE, "strategy": strategy}
    return ShareDescription(limits=(("ml.g5.xlarge", limit),), **told | more)


SHARES = (
    a_share("background", 1, "LEND_AND_BORROW", borrow_limit=50, in_share_preemption=True),
    a_share("lender", 2, "LEND"),
    a_share("borrower", 4, "LEND_AND_BORROW"),
    a_share("reserved", 8, "RESERVE"),
    a_share("off", 16, "LEND", enabled=False),
)


@pytest.mark.parametrize(("whole", "others"), [(True, 6), (False, None)])
def test_the_share_and_what_the_others_lend(whole: bool, others: int | None) -> None:
    share = facts_of(known(read(1)), KnownShares(shares=SHARES, whole=whole), POLICY, NOW).share
    assert share is not None
    assert (share.borrow_limit, share.in_share_preemption, share.protected) == (50, True, False)
    assert share.min_runtime == 600
    unit = share.units["ml.g5.xlarge"]
    assert (unit.limit, unit.others, unit.used, unit.borrowed) == (1, others, None, None)


def test_a_share_that_is_not_known_is_none() -> None:
    shares = KnownShares(shares=SHARES[1:], whole=True)
    assert facts_of(known(read(1)), shares, POLICY, NOW).share is None


def test_drift_is_known_for_good() -> None:
    policy = Policy()
    record = decide_read(known(), read(1, priority=100), policy).record
    for after, value in ((10, 300), (200, 300), (300, 300)):
        assert not job(record, after).drifted or after > 200
        record = decide_read(record, read(after, priority=value), policy).record
    facts = job(record, 300)
    assert (facts.priority, facts.base, facts.drifted) == (300, 300, True)
