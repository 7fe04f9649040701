"""The facts that a record makes due, once each."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sharewarden.domain.accelerators import gpu_seconds
from sharewarden.domain.audit import AuditFact
from sharewarden.domain.decide import PREEMPTIONS_AT_ONCE, decide, decide_read
from sharewarden.domain.facts import ended_fact, preemption_kind, team, timeline_fact
from sharewarden.domain.observation import AttemptSeen, JobDescription
from sharewarden.domain.policy import Policy, QueuePolicy, SharePolicy
from sharewarden.domain.priority import Boost, PriorityLedger, Suspect, Wish
from sharewarden.domain.record import End, JobRecord
from sharewarden.domain.stored import MINUTE

QUEUE = "arn:aws:batch:us-east-1:123456789012:job-queue/q"
POLICY = Policy(queues={"q": QueuePolicy(shares={"background": SharePolicy(team="research")})})


def truth(**update: object) -> JobDescription:
    known = JobDescription(
        job="j",
        arn="a/j",
        read_at=100_000,
        name="n",
        queue=QUEUE,
        status="RUNNABLE",
        created_at=1000,
        share="background",
        instance_type="ml.g5.12xlarge",
        instance_count=2,
    )
    return known.model_copy(update=update)


def preempted(name: str, **update: object) -> AttemptSeen:
    seen = AttemptSeen(
        training_job=name,
        started_at=10_000,
        stopped_at=70_000,
        reason="Cross-share preemption triggered to reclaim borrowed capacity",
        preempted=True,
    )
    return seen.model_copy(update=update)


EMPTY = JobRecord(job="j", arn="a/j", name="n", queue=QUEUE, created_at=1000)


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("Cross-share preemption triggered to reclaim borrowed capacity", "cross-share"),
        ("IN-SHARE preemption", "in-share"),
        (None, "unknown"),
    ],
)
def test_a_preemption_is_told_once(reason: str | None, kind: str) -> None:
    """What it cost is for its case to tell."""
    attempts = (preempted("t1", reason=reason),)
    first = decide_read(EMPTY, truth(attempts=attempts, preempted_count=1), POLICY)
    (told,) = first.facts
    assert (told.key, told.kind, told.at) == ("preemption#j#t1", "preemption", 70_000)
    assert told.figures == {"kind": kind, "attempt": "t1", "started_at": 10_000}
    assert [case.attempt for case in first.cases] == ["t1"]
    assert decide(first.record, POLICY).facts == ()


def test_law_01_a_preemption_without_a_stop_time_is_not_told_yet() -> None:
    decision = decide_read(EMPTY, truth(attempts=(preempted("t1", stopped_at=None),)), POLICY)
    assert decision.facts == ()


def test_many_preemptions_are_told_a_few_at_a_time() -> None:
    many = tuple(preempted(f"t{n:03}") for n in range(PREEMPTIONS_AT_ONCE + 1))
    first = decide_read(EMPTY, truth(attempts=many), POLICY)
    second = decide(first.record, POLICY)
    assert (len(first.facts), len(second.facts)) == (PREEMPTIONS_AT_ONCE, 1)


def test_the_end_of_a_job_ends_its_boosts_and_its_wish() -> None:
    ledger = PriorityLedger(
        base=1,
        confirmed=1,
        boosts=tuple(Boost(id=name, kind="human", amount=5, by="U1", reason="r", since=0) for name in "ab"),
        wish=Wish(version=1, value=6, actor="U1", reason="r", created_at=0, not_after=9),
    )
    record = EMPTY.model_copy(update={"priority": ledger})
    decision = decide_read(record, truth(status="SUCCEEDED", stopped_at=90_000, reason="done"), POLICY)
    assert [fact.kind for fact in decision.facts] == ["job-ended", "boost-ended", "boost-ended"]
    assert decision.record.priority.wish is None
    assert decision.facts[0].figures == {"created_at": 1000, "seconds": 89.0}
    assert decide(decision.record, POLICY).facts == ()


def test_drift_is_told_with_what_it_superseded() -> None:
    boost = Boost(id="b", kind="human", amount=5, by="U1", reason="r", since=0)
    ledger = PriorityLedger(base=1, confirmed=6, boosts=(boost,), suspect=Suspect(value=77, first_seen=2000))
    decision = decide_read(EMPTY.model_copy(update={"priority": ledger}), truth(priority=77), POLICY)
    drift, ended = decision.facts
    assert (drift.key, drift.before, drift.after) == ("drift#j#77#2000", "6", "77")
    assert drift.figures == {"superseded": ["b"], "unknown": None}
    assert ended.reason == "superseded: r"


def test_without_a_priority_nothing_is_concluded_about_it() -> None:
    assert decide_read(EMPTY, truth(), POLICY).record.priority == PriorityLedger()


@pytest.mark.parametrize(
    ("share", "tags", "expected"),
    [
        ("background", (("team", "nlp"),), "research"),
        ("other", (("team", "nlp"),), "nlp"),
        ("other", (), None),
        (None, (), None),
    ],
)
def test_the_team_of_the_share_wins_over_the_tag(
    share: str | None, tags: tuple[tuple[str, str], ...], expected: str | None
) -> None:
    assert team(EMPTY.model_copy(update={"share": share, "tags": tags}), POLICY) == expected


@pytest.mark.parametrize("fact", [ended_fact, timeline_fact])
def test_an_end_is_needed_to_tell_of_it(fact: Callable[[JobRecord, Policy], AuditFact]) -> None:
    with pytest.raises(ValueError, match="j has not ended"):
        fact(EMPTY, POLICY)


def test_facts_name_the_policy_and_the_owner() -> None:
    record = EMPTY.model_copy(
        update={"share": "background", "tags": (("lineage", "l1"),), "end": End(status="FAILED", at=5000)}
    )
    fact = ended_fact(record, POLICY)
    assert (fact.team, fact.lineage, fact.policy, fact.reason) == (
        "research",
        "l1",
        POLICY.hash,
        "Batch gave no reason",
    )


def test_unknown_text_is_no_kind() -> None:
    assert preemption_kind(None) == preemption_kind("moved") == "unknown"


def test_unknown_instances_are_unknown_and_not_zero() -> None:
    assert gpu_seconds("ml.unknown", 1, 1000) is None
    assert gpu_seconds("ml.g5.xlarge", None, 1000) is None


def test_law_01_an_end_that_proves_false_is_told_and_the_true_one_too() -> None:
    wrong = decide_read(
        JobRecord(job="j", arn="a/j", name="n", queue=QUEUE, created_at=1000), truth(), POLICY
    )
    ended = wrong.record.model_copy(
        update={"end": End(status="FAILED", at=150_000, hinted=True), "missing_since": 160_000}
    )
    first = decide(ended, POLICY)
    back = decide_read(first.record, truth(status="RUNNING", read_at=200_000), POLICY)
    truly = truth(status="SUCCEEDED", read_at=200_000 + MINUTE, stopped_at=200_000 + MINUTE)
    last = decide_read(back.record, truly, POLICY)
    assert [fact.key for fact in (*first.facts, *back.facts, *last.facts)] == [
        "job-ended#j",
        "gap#j#reopened-1",
        "job-ended#j#1",
    ]
    assert "ended (FAILED)" in back.facts[0].reason
