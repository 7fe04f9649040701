"""The safety net: what it adopts, repairs, gives up, leaves alone, and survives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from sharewarden.domain.audit import AuditFact
from sharewarden.domain.observation import SETTLE, AttemptSeen, JobDescription
from sharewarden.domain.policy import BlastRadius, Policy, QueuePolicy
from sharewarden.domain.priority import confirm, intend
from sharewarden.domain.record import JobRecord
from sharewarden.domain.share import ShareRecord
from sharewarden.domain.stored import Stored
from sharewarden.domain.sweeping import GAP_AFTER, SweepState
from sharewarden.ports import Conflict, Unavailable
from sharewarden.usecases.bump import BumpRequest, bump
from sharewarden.usecases.sweep import LEASE, sweep
from sharewarden.usecases.walk import Limits, Report
from sharewarden_tools.memory import MemoryClock, MemoryLedger

from tests.simulation.faults import Crash, Hook, crash, once, watched
from tests.simulation.samples import ARN, FIRST, HOUR, JOB, SHARE, described, event, share, state
from tests.simulation.world import ENFORCE, MINUTE, NOW, QUEUE, World, facts_of, world


def jobs(count: int, **update: object) -> list[JobDescription]:
    return [
        described(job=f"job-{n:03}", arn=f"{ARN[:-1]}{n:03}", name=f"name-{n:03}", **update)
        for n in range(count)
    ]


def pool(*known: JobDescription, at: int = NOW + HOUR) -> World:
    one = world(clock=MemoryClock(at))
    for description in known or (described(),):
        one.batch.tell(description)
    return one


def test_law_11_what_was_there_before_is_listed_once_and_not_escalated() -> None:
    one = pool(*jobs(150))
    report = one.sweep()
    assert (report.adopted, report.queues) == (150, 1)
    (digest,) = facts_of(one.ledger, "adoption")
    assert digest.figures["count"] == 150
    assert digest.figures["jobs"][:2] == ["name-000", "name-001"]
    assert one.wishes.sent == []
    one.clock.advance(5 * MINUTE)
    one.sweep()
    assert len(facts_of(one.ledger, "adoption")) == 1


def test_a_job_younger_than_late_events_is_not_called_adopted() -> None:
    one = pool(described(created_at=NOW + HOUR - SETTLE + 1))
    one.sweep()
    record = one.record(JOB)
    assert (record.share, record.adopted, record.adopted_at) == ("background", False, None)
    assert not facts_of(one.ledger, "adoption")


def test_law_11_when_a_job_was_adopted_is_kept() -> None:
    one = pool(described())
    one.sweep()
    one.clock.advance(5 * MINUTE)
    one.sweep()
    record = one.record(JOB)
    assert (record.adopted, record.adopted_at) == (True, NOW + HOUR)


@pytest.mark.parametrize("number", range(1, 40))
def test_law_10_adoption_is_told_once_wherever_a_sweep_crashes(number: int) -> None:
    one = pool(*jobs(3))
    _crashing(one, once(number, "after", crash))
    one.clock.advance(LEASE + 1)
    one.sweep("next")
    told = [name for digest in facts_of(one.ledger, "adoption") for name in digest.figures["jobs"]]
    assert sorted(told) == ["name-000", "name-001", "name-002"]


def _crashing(one: World, hook: Hook) -> None:
    runtime, _ = watched(one.runtime, hook)
    try:
        sweep(runtime, "crashes", Limits())
    except Crash:
        return


def test_a_second_sweep_leaves_while_the_first_holds_the_lease() -> None:
    one = pool()
    seen: list[Report] = []
    runtime, _ = watched(one.runtime, once(6, "before", lambda: seen.append(one.sweep("second"))))
    first = sweep(runtime, "first", Limits())
    assert (first.leased_elsewhere, first.adopted) == (False, 1)
    assert [report.leased_elsewhere for report in seen] == [True]


def test_a_lease_left_by_a_crash_runs_out() -> None:
    one = pool()
    _crashing(one, once(5, "before", crash))
    assert one.sweep("next").leased_elsewhere
    one.clock.advance(LEASE + 1)
    assert not one.sweep("next").leased_elsewhere


def test_two_sweeps_that_start_at_once_share_one_lease() -> None:
    """Both find the lease free; the second to commit it meets a conflict."""
    one = pool()
    reports: list[Report] = []
    runtime, _ = watched(one.runtime, once(3, "before", lambda: reports.append(one.sweep("second"))))
    reports.append(sweep(runtime, "first", Limits()))
    assert sorted(report.leased_elsewhere for report in reports) == [False, True]
    assert len(facts_of(one.ledger, "adoption")) == 1


class Lagging(MemoryLedger):
    """The index of open items shows nothing yet."""

    def open_items(self, kind: type[Stored], queue: str):  # type: ignore[no-untyped-def,override]
        return iter(())


def test_an_index_that_lags_adopts_nothing_twice() -> None:
    one = pool()
    one.take(state("RUNNABLE", NOW))
    before = one.record(JOB)
    lagging = Lagging()
    lagging.items, lagging.facts = one.ledger.items, one.ledger.facts
    report = sweep(replace(one.runtime, ledger=lagging), "lagging", Limits())
    assert report.adopted == 0
    assert one.record(JOB) == before
    assert not facts_of(one.ledger, "adoption")


def test_law_02_an_unreadable_pool_changes_no_record() -> None:
    one = pool()
    one.take(state("RUNNING", NOW))
    bump(one.runtime, BumpRequest(id="b1", job=JOB, actor="U1", reason="r", by=5, lasts=1))
    before, sent = one.record(JOB), len(one.wishes.sent)
    one.batch.down = "throttled"
    one.clock.advance(MINUTE)
    report = one.sweep()
    assert report.unread == 3  # shares, jobs, and the job itself
    assert one.record(JOB) == before
    assert len(one.wishes.sent) == sent
    assert one.batch.priorities == []


def test_a_job_that_vanished_is_believed_gone_only_when_batch_says_so_again() -> None:
    one = pool()
    one.take(state("RUNNABLE", NOW))
    bump(one.runtime, BumpRequest(id="b1", job=JOB, actor="U1", reason="r", by=5))
    del one.batch.descriptions[JOB]
    one.sweep()
    assert one.record(JOB).missing_since == NOW + HOUR
    assert not facts_of(one.ledger, "gap")
    one.clock.advance(SETTLE)
    one.sweep()
    (gap,) = facts_of(one.ledger, "gap")
    assert gap.key == f"gap#{JOB}#vanished"
    assert [fact.figures["boost"] for fact in facts_of(one.ledger, "boost-ended")] == ["b1"]
    record = one.record(JOB)
    assert (record.closed_at, record.priority.wish) == (one.clock.now(), None)


def test_a_job_that_was_missing_once_and_is_back_is_not_missing() -> None:
    one = pool()
    one.take(state("RUNNABLE", NOW))
    del one.batch.descriptions[JOB]
    one.sweep()
    one.batch.tell(described())
    one.clock.advance(SETTLE)
    one.sweep()
    assert one.record(JOB).missing_since is None
    del one.batch.descriptions[JOB]
    one.clock.advance(MINUTE)
    one.sweep()
    assert not facts_of(one.ledger, "gap")


def test_law_01_a_late_end_of_a_job_that_was_given_up_is_still_told() -> None:
    one = pool()
    one.take(state("RUNNABLE", NOW))
    del one.batch.descriptions[JOB]
    for _ in range(2):
        one.sweep()
        one.clock.advance(SETTLE)
    one.take(state("FAILED", NOW + MINUTE, stoppedAt=NOW + MINUTE, statusReason="by hand"))
    assert one.record(JOB).closed_at is None
    one.sweep()
    assert len(facts_of(one.ledger, "job-ended")) == 1
    assert len(facts_of(one.ledger, "job-timeline")) == 1
    assert one.record(JOB).closed_at is not None


def test_law_01_preemptions_that_batch_only_counts_are_gaps_after_a_while() -> None:
    one = pool(described(preempted_count=3, attempts=(_preempted(FIRST),)))
    one.take(state("RUNNABLE", NOW + HOUR))
    assert len(facts_of(one.ledger, "preemption")) == 1
    one.sweep()
    one.clock.advance(GAP_AFTER - 1)
    one.sweep()
    assert not facts_of(one.ledger, "gap")
    one.clock.advance(1)
    for _ in range(2):
        one.sweep()
    told = sorted((fact.key, fact.reason) for fact in facts_of(one.ledger, "gap"))
    why = "details unknown: Batch counts it and tells no more"
    assert told == [(f"gap#{JOB}#preemption-{n}", f"preemption {n}, {why}") for n in (1, 2)]


def test_law_01_a_preempted_attempt_without_a_stop_time_is_a_gap_and_not_forgotten() -> None:
    one = pool(described(preempted_count=1, attempts=(_preempted(FIRST, stopped_at=None),)))
    one.take(state("RUNNABLE", NOW + HOUR))
    one.clock.advance(GAP_AFTER)
    one.sweep()
    assert [fact.key for fact in facts_of(one.ledger, "gap")] == [f"gap#{JOB}#{FIRST}"]
    assert not facts_of(one.ledger, "preemption")


def _preempted(training_job: str, **update: object) -> AttemptSeen:
    seen = AttemptSeen(
        training_job=training_job, started_at=NOW, stopped_at=NOW + 1, reason="Cross-share", preempted=True
    )
    return seen.model_copy(update=update)


@pytest.mark.parametrize(("known", "unknown"), [(120, 0), (0, 150), (100, 60)])
def test_a_much_preempted_job_fits_into_commits(known: int, unknown: int) -> None:
    """One commit holds a hundred actions: the rest is due again, until all is on record."""
    attempts = tuple(_preempted(f"{FIRST}-{n:03}") for n in range(known))
    ended = {"status": "FAILED", "stopped_at": NOW + MINUTE, "reason": "r"}
    one = pool(described(preempted_count=known + unknown, attempts=attempts))
    one.take(state("RUNNING", NOW))
    bumps = [BumpRequest(id=f"b{n}", job=JOB, actor="U1", reason="r", by=10 + n) for n in range(10)]
    for request in bumps:
        bump(one.runtime, request)
    one.batch.tell(described(preempted_count=known + unknown, attempts=attempts, **ended))
    one.clock.advance(GAP_AFTER)
    for _ in range(40):
        one.clock.advance(SETTLE)
        one.sweep()
    assert len(facts_of(one.ledger, "preemption")) == known
    assert len(facts_of(one.ledger, "gap")) == unknown
    assert len(facts_of(one.ledger, "boost-ended")) == len(bumps)
    assert len(facts_of(one.ledger, "job-timeline")) == 1
    assert one.record(JOB).closed_at is not None


def test_law_05_an_end_that_batch_denies_leaves_the_boost_and_its_restore() -> None:
    one = pool(described(status="RUNNING", scheduled_at=NOW))
    one.take(state("RUNNING", NOW))
    bump(one.runtime, BumpRequest(id="b", job=JOB, actor="U1", reason="r", by=100, lasts=HOUR))
    one.apply_all()
    one.take(state("FAILED", NOW + HOUR))
    one.settle(10)
    assert not facts_of(one.ledger, "job-ended")
    assert one.batch.priorities == [(JOB, 300), (JOB, 200)]


def test_an_end_that_batch_has_forgotten_is_the_events_after_a_while() -> None:
    one = pool()
    one.batch.descriptions.clear()
    one.take(state("FAILED", NOW + HOUR))
    assert not facts_of(one.ledger, "job-ended")
    one.settle()
    assert [fact.after for fact in facts_of(one.ledger, "job-ended")] == ["FAILED"]
    assert not facts_of(one.ledger, "gap")


def test_an_end_without_details_waits_for_its_event() -> None:
    """Batch may know no stop time of a job that never ran: the event's time is the better one."""
    ended = described(status="FAILED", reason="by hand")
    one = pool(described(), at=NOW + MINUTE)
    one.take(state("RUNNABLE", NOW))
    one.batch.tell(ended)
    one.sweep()
    assert not facts_of(one.ledger, "job-ended")
    one.take(state("FAILED", NOW + 30_000))
    (fact,) = facts_of(one.ledger, "job-ended")
    assert (fact.at, fact.reason) == (NOW + 30_000, "by hand")


def test_an_end_without_details_or_event_is_settled_by_the_sweep() -> None:
    one = pool(described(), at=NOW + MINUTE)
    one.take(state("RUNNABLE", NOW))
    one.batch.tell(described(status="FAILED", reason="by hand"))
    for _ in range(2):
        one.sweep()
        one.clock.advance(SETTLE)
    (fact,) = facts_of(one.ledger, "job-ended")
    assert (fact.at, fact.after, fact.reason) == (NOW + MINUTE, "FAILED", "by hand")


def test_law_04_one_sweep_acts_on_no_more_than_the_blast_radius_and_restores_first() -> None:
    policy = ENFORCE.model_copy(update={"blast_radius": BlastRadius(acts=3, percent=100)})
    one = pool(*jobs(8))
    one.policies.policy = policy
    for n in range(4):
        bump(one.runtime, BumpRequest(id=f"up-{n}", job=f"job-{n:03}", actor="U1", reason="r", by=50))
    for n in range(4, 8):
        request = BumpRequest(id=f"down-{n}", job=f"job-{n:03}", actor="U1", reason="r", by=50, lasts=MINUTE)
        bump(one.runtime, request)
    for job, _ in list(one.wishes.drain())[4:]:
        one.batch.tell(one.batch.descriptions[job].model_copy(update={"priority": 250}))
        _landed(one, job)
    one.clock.advance(10 * MINUTE)
    report = one.sweep()
    assert (report.woken, report.left) == (3, 5)
    assert {job for job, _ in one.wishes.drain()} <= {f"job-{n:03}" for n in range(4, 8)}


def _landed(one: World, job: str) -> None:
    """As if ``apply`` had done it."""
    record = one.record(job)
    ledger, _ = confirm(intend(record.priority, one.clock.now()), one.clock.now())
    one.ledger.commit([record.model_copy(update={"priority": ledger})], [], one.clock.now())


@pytest.mark.parametrize("policy", [Policy(), ENFORCE.model_copy(update={"paused": True})])
def test_law_09_shadow_and_pause_wake_nobody(policy: Policy) -> None:
    one = pool()
    bump(one.runtime, BumpRequest(id="b1", job=JOB, actor="U1", reason="r", by=5, lasts=MINUTE))
    one.policies.policy = policy
    sent = len(one.wishes.sent)
    one.clock.advance(10 * MINUTE)
    report = one.sweep()
    assert (report.woken, len(one.wishes.sent)) == (0, sent)
    assert not facts_of(one.ledger, "boost-ended")
    one.policies.policy = ENFORCE
    one.sweep()
    assert len(facts_of(one.ledger, "boost-ended")) == 1


def test_law_09_nothing_changed_means_no_fact_and_only_the_time_of_reading() -> None:
    one = pool()
    one.batch.quota_shares[QUEUE] = [share(1)]
    one.sweep()
    facts, shares = dict(one.ledger.facts), one.ledger.load(ShareRecord, SHARE)
    for _ in range(3):
        one.clock.advance(MINUTE)
        one.sweep()
    assert one.ledger.facts == facts
    assert one.ledger.load(ShareRecord, SHARE) == shares


def test_the_budget_of_describes_goes_round() -> None:
    """What one sweep has to leave, the next ones ask about."""
    one = pool(*jobs(7))
    one.sweep()
    for _ in range(4):
        one.clock.advance(MINUTE)
        assert sweep(one.runtime, "few", Limits(describes=2)).described == 2
    read = {item.snapshot.read_at for item in one.ledger.items.values() if isinstance(item, JobRecord)}  # type: ignore[union-attr]
    assert NOW + HOUR not in read


def test_a_sweep_that_runs_out_of_time_ends_in_order() -> None:
    one = pool(*jobs(3))
    report = sweep(one.runtime, "short", Limits(stop_at=NOW))
    assert (report.queues, report.adopted) == (0, 0)
    lease = one.ledger.load(SweepState, "all")
    assert lease is not None
    assert (lease.holder, lease.until, lease.next_queue) == (None, 0, 0)


def test_events_that_nobody_can_place_become_one_gap() -> None:
    one = pool()
    lost = f"{ARN}-lost"
    for kind, at in (("Started", NOW), ("Completed", NOW + 20_000), ("Started", NOW)):
        detail = {"preemptedJobArn": lost, "status": "RUNNING"}
        one.take(event(f"Batch Service Job Preemption {kind}", detail, at))
    one.sweep()
    assert not facts_of(one.ledger, "gap")
    one.clock.advance(SETTLE)
    for _ in range(2):
        one.sweep()
    (gap,) = facts_of(one.ledger, "gap")
    assert (gap.at, gap.reason.split(" of ")[0]) == (NOW, "preemption-completed, preemption-started")


def test_a_failing_store_ends_the_sweep_without_half_a_record() -> None:
    one = pool(*jobs(2))

    def refuse() -> None:
        raise Unavailable("the store is throttled")

    runtime, calls = watched(one.runtime, once(0, "before", refuse))
    sweep(runtime, "counts", Limits())
    for number in range(1, calls.number + 1):
        fresh = pool(*jobs(2))
        runtime, _ = watched(fresh.runtime, once(number, "before", refuse))
        try:
            sweep(runtime, "fails", Limits())
        except (Unavailable, Conflict):
            fresh.clock.advance(LEASE + 1)
        fresh.sweep("next")
        fresh.sweep("after that")
        assert {item.job for item in fresh.ledger.items.values() if isinstance(item, JobRecord)} == {
            "job-000",
            "job-001",
        }


def test_a_queue_that_no_policy_names_is_safe() -> None:
    one = pool()
    one.policies.policy = Policy(queues={"another": QueuePolicy(bumps="enforce")})
    one.sweep()
    assert one.wishes.sent == []


class NoRoomFor(MemoryLedger):
    """Refuses one job's record, as DynamoDB does one that is too big."""

    def __init__(self, job: str) -> None:
        super().__init__()
        self.job = job

    def commit(self, items: Sequence[Stored], facts: Sequence[AuditFact], now: int) -> None:
        if any(item.key == self.job for item in items):
            raise ValueError(f"{self.job} is too big")
        super().commit(items, facts, now)


def test_a_record_that_cannot_be_stored_does_not_keep_the_others_waiting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    one = pool(*jobs(3))
    ledger = NoRoomFor("job-001")
    one = replace(one, runtime=replace(one.runtime, ledger=ledger))
    report = sweep(one.runtime, "sweep", Limits())
    assert (report.adopted, report.failed) == (2, 1)
    assert "job-001" in caplog.text
    assert (ledger.load(SweepState, "all") or SweepState()).holder is None
