"""When a boost ends, what holds it, and how a wish dies."""

from __future__ import annotations

import pytest
from sharewarden.domain.audit import AuditFact
from sharewarden.domain.boosts import (
    demotion_from,
    drop_wish,
    end_due_boosts,
    hold_until,
    lowering_waits,
)
from sharewarden.domain.checkpoints import Save
from sharewarden.domain.observation import JobDescription
from sharewarden.domain.policy import Policy, QueuePolicy, SharePolicy
from sharewarden.domain.priority import Boost, PriorityLedger, Suspect, intend, revoke, wish_for
from sharewarden.domain.record import JobRecord, absorb
from sharewarden.domain.saves import Saves
from sharewarden.domain.stored import MINUTE

QUEUE = "arn:aws:batch:us-east-1:123456789012:job-queue/q"
POLICY = Policy(
    hold=30 * MINUTE,
    queues={"q": QueuePolicy(bumps="enforce", shares={"slow": SharePolicy(min_runtime=40 * MINUTE)})},
)
BANDS = POLICY.queue(QUEUE).bands
BUMP = Boost(id="b1", kind="human", amount=100, by="U1", reason="r", since=10 * MINUTE, until=60 * MINUTE)


def job(dispatched_at: int | None = None, share: str = "background", *boosts: Boost) -> JobRecord:
    record = JobRecord(job="j", arn="a", name="n", queue=QUEUE, created_at=0, share=share)
    seen = JobDescription(
        job="j",
        arn="a",
        read_at=90 * MINUTE,
        name="n",
        queue=QUEUE,
        status="RUNNABLE" if dispatched_at is None else "RUNNING",
        created_at=0,
        scheduled_at=dispatched_at,
        share=share,
    )
    ledger = PriorityLedger(base=200, confirmed=300, boosts=boosts or (BUMP,))
    return absorb(record, seen).model_copy(update={"priority": ledger})


@pytest.mark.parametrize(
    ("dispatched_at", "share", "expected"),
    [
        (None, "background", None),
        (5 * MINUTE, "background", None),  # it ran before
        (20 * MINUTE, "background", 50 * MINUTE),  # the stated hold
        (20 * MINUTE, "slow", 60 * MINUTE),  # never less than the share's minimum runtime
        (10 * MINUTE - 1000, "background", None),
        (10 * MINUTE - 999, "background", 40 * MINUTE - 999),  # an event's second may hide it
    ],
)
def test_law_05_a_boost_that_started_the_job_is_held(
    dispatched_at: int | None, share: str, expected: int | None
) -> None:
    assert hold_until(job(dispatched_at, share), BUMP, POLICY) == expected


def saved(at: int, seen_at: int | None = None, training_job: str | None = None) -> Saves:
    save = Save(name="s", step=1, saved_at=at, size=1, files=1, layout="manifest", training_job=training_job)
    first_seen = at if seen_at is None else seen_at
    return Saves(newest=save, newest_at=min(at, first_seen), looked_at=first_seen, answer="whole")


@pytest.mark.parametrize(
    ("saves", "share", "expected"),
    [
        (Saves(), "background", 50),  # none is known: the stated hold
        (Saves(looked_at=30 * MINUTE, answer="whole"), "background", 50),  # there is none
        (saved(25 * MINUTE), "background", 30),  # what is left is the minimum runtime, ten minutes by default
        (saved(25 * MINUTE), "slow", 60),  # never less than that
        (saved(15 * MINUTE), "background", 50),  # from before the dispatch
        (saved(20 * MINUTE + 999), "background", 50),  # a dispatch may look a second older than it was
        (saved(20 * MINUTE + 1000), "background", 30),
        (saved(80 * MINUTE, seen_at=25 * MINUTE), "background", 50),  # from the future
        (saved(25 * MINUTE + 59_000, seen_at=25 * MINUTE), "background", 30),  # two clocks
        (saved(25 * MINUTE, training_job="AWSBatch1"), "background", 30),
        (saved(25 * MINUTE, training_job="AWSBatch2"), "background", 50),  # of another one
        (
            saved(25 * MINUTE).model_copy(update={"answer": "partial"}),
            "background",
            30,
        ),  # complete all the same
    ],
)
def test_law_05_only_a_complete_checkpoint_saved_since_the_dispatch_ends_the_hold(
    saves: Saves, share: str, expected: int
) -> None:
    record = job(20 * MINUTE, share)
    attempt = record.snapshot.model_copy(update={"attempt": "arn:x:training-job/AWSBatch1"})  # type: ignore[union-attr]
    record = record.model_copy(update={"saves": saves, "snapshot": attempt})
    assert hold_until(record, BUMP, POLICY) == expected * MINUTE


@pytest.mark.parametrize("known", [False, True])
def test_law_05_a_guardrail_lowers_a_dispatched_job_no_sooner_than_the_same_hold(known: bool) -> None:
    lower = Boost(id="g1", kind="guardrail", amount=-50, by="guardrail:x", reason="r", since=21 * MINUTE)
    record = job(20 * MINUTE, "background", lower)
    record = record.model_copy(update={"saves": saved(25 * MINUTE) if known else Saves()})
    assert demotion_from(record, POLICY) == (30 if known else 50) * MINUTE


@pytest.mark.parametrize(
    ("dispatched_at", "now", "ends"),
    [
        (None, 59, False),
        (None, 60, True),
        (5, 60, True),
        (20, 60, True),
        (45, 60, False),  # held until 75
        (45, 74, False),
        (45, 75, True),
    ],
)
def test_law_05_a_boost_ends_when_its_time_is_over_and_nothing_holds_it(
    dispatched_at: int | None, now: int, ends: bool
) -> None:
    record = job(None if dispatched_at is None else dispatched_at * MINUTE)
    decision = end_due_boosts(record, POLICY, now * MINUTE)
    ledger = decision.record.priority
    assert [fact.kind for fact in decision.facts] == ["boost-ended"] * ends
    assert (ledger.wish and ledger.wish.value) == (200 if ends else None)


def test_law_05_a_job_that_starts_again_and_again_does_not_keep_its_boost() -> None:
    record, now = job(45 * MINUTE), 45 * MINUTE
    facts: tuple[AuditFact, ...] = ()
    while not facts and now < 600 * MINUTE:
        now += 20 * MINUTE  # always younger than the hold
        again = job(now).snapshot
        record = record.model_copy(update={"snapshot": again})
        decision = end_due_boosts(record, POLICY, now + 5 * MINUTE)
        record, facts = decision.record, decision.facts
    assert [fact.kind for fact in facts] == ["boost-ended"]
    assert now + 5 * MINUTE <= 60 * MINUTE + POLICY.hold + 40 * MINUTE
    assert record.priority.wish
    assert not lowering_waits(record, record.priority.wish, POLICY, now + 20 * MINUTE)


def test_a_boost_taken_back_says_so() -> None:
    record = job()
    record = record.model_copy(update={"priority": revoke(record.priority, "u1", 20 * MINUTE)})
    (fact,) = end_due_boosts(record, POLICY, 20 * MINUTE).facts
    assert fact.reason == "revoked: r"


def test_a_boost_without_an_end_stays() -> None:
    record = job(None, "background", BUMP.model_copy(update={"until": None}))
    assert end_due_boosts(record, POLICY, 10**12).facts == ()


@pytest.mark.parametrize(
    "update",
    [{"suspect": Suspect(value=7, first_seen=1)}, {"base": None}],
)
def test_nothing_ends_while_the_priority_is_not_settled(update: dict[str, object]) -> None:
    record = job()
    record = record.model_copy(update={"priority": record.priority.model_copy(update=update)})
    assert end_due_boosts(record, POLICY, 10**12).record == record


def test_a_wish_that_died_is_made_again() -> None:
    """Else a boost that was never done, or a restore, would be forgotten."""
    ledger = PriorityLedger(base=200, confirmed=200, boosts=(BUMP,), version=4)
    decision = end_due_boosts(job().model_copy(update={"priority": ledger}), POLICY, 0)
    wish = decision.record.priority.wish
    assert wish
    assert (wish.value, wish.version, wish.actor) == (300, 5, "sharewarden")


def _wishing(value: int, confirmed: int, dispatched_at: int | None) -> JobRecord:
    record = job(dispatched_at)
    boosts = (BUMP.model_copy(update={"end": "revoked", "ended_at": 15 * MINUTE}),)
    ledger = PriorityLedger(base=value, confirmed=confirmed, boosts=boosts)
    ledger = wish_for(ledger, BANDS, actor="U1", reason="r", now=15 * MINUTE, life=10)
    return record.model_copy(update={"priority": ledger})


@pytest.mark.parametrize(
    ("value", "confirmed", "dispatched_at", "now", "waits"),
    [
        (200, 300, 20, 25, True),  # dispatched after the boost had ended, and before it was lowered
        (200, 300, 20, 50, False),
        (200, 300, 5, 25, False),
        (200, 300, None, 25, False),
        (300, 200, 20, 25, False),  # raising makes no victim
    ],
)
def test_law_05_a_job_dispatched_while_raised_is_not_lowered_at_once(
    value: int, confirmed: int, dispatched_at: int | None, now: int, waits: bool
) -> None:
    record = _wishing(value, confirmed, None if dispatched_at is None else dispatched_at * MINUTE)
    assert record.priority.wish
    assert lowering_waits(record, record.priority.wish, POLICY, now * MINUTE) == waits


def test_a_wish_is_dropped_once_and_only_while_it_stands() -> None:
    record = _wishing(200, 300, None)
    wish = record.priority.wish
    assert wish
    dropped = drop_wish(record, wish, "why", POLICY, 5)
    assert [(fact.kind, fact.reason) for fact in dropped.facts] == [("wish-dropped", "why")]
    assert drop_wish(dropped.record, wish, "why", POLICY, 5).facts == ()


def test_law_01_a_wish_under_way_is_not_told_to_have_had_no_effect() -> None:
    record = _wishing(200, 300, None)
    wish = record.priority.wish
    assert wish
    sent = record.model_copy(update={"priority": intend(record.priority, 5)})
    assert drop_wish(sent, wish, "why", POLICY, 5).record == sent
