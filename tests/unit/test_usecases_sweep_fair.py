"""The sweep's fairness: no job, queue, row or wish is left for ever because of others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from sharewarden.domain.audit import AuditFact
from sharewarden.domain.observation import SETTLE, AttemptSeen, JobDescription, Status
from sharewarden.domain.policy import BlastRadius, Policy, QueuePolicy
from sharewarden.domain.priority import live_boosts
from sharewarden.domain.record import End, JobRecord
from sharewarden.domain.stored import DAY, Stored
from sharewarden.domain.sweeping import SILENT, SweepState, portions
from sharewarden.domain.untraced import UntracedJob
from sharewarden.ports import Page, Shares, Unavailable
from sharewarden.usecases.bump import BumpRequest, bump
from sharewarden.usecases.drain import DrainRequest, drain
from sharewarden.usecases.sweep import LEASE, sweep
from sharewarden.usecases.walk import Limits
from sharewarden_tools.memory import MemoryBatch, MemoryLedger

from tests.simulation.samples import ARN, HOUR, JOB, described, event, share, state
from tests.simulation.world import ENFORCE, MINUTE, NOW, QUEUE, World, facts_of, world

SECOND_QUEUE = QUEUE.replace("ml-train-qm", "z-second")
BOTH = Policy(queues={name: QueuePolicy(bumps="enforce") for name in ("ml-train-qm", "z-second")})


def job(name: str, **update: object) -> JobDescription:
    return described(job=name, arn=ARN.replace(JOB, name), name=name, **update)


def pool(*known: JobDescription, ledger: MemoryLedger | None = None) -> World:
    one = world(policy=BOTH)
    for description in known:
        one.batch.tell(description)
    ledger = ledger or one.ledger
    runtime = replace(one.runtime, queues=frozenset({QUEUE, SECOND_QUEUE}), ledger=ledger, audit=ledger)
    return replace(one, runtime=runtime, ledger=ledger)


def sweeps(one: World, number: int, limits: Limits, pause: int = 5 * MINUTE) -> None:
    for _ in range(number):
        one.clock.advance(pause)
        sweep(one.runtime, f"sweep-{one.clock.now()}", limits)
        one.apply_all()


def known(one: World, name: str) -> bool:
    return one.ledger.load(JobRecord, name) is not None


@pytest.mark.parametrize(
    ("budget", "sizes", "granted"),
    [
        (500, [3, 2, 900], [3, 2, 495]),
        (500, [600, 0, 0], [500, 0, 0]),
        (500, [600, 600, 600], [400, 50, 50]),
        (500, [600, 600, 7], [443, 50, 7]),
        (3, [5, 5], [3, 0]),
        (0, [5, 5], [0, 0]),
    ],
)
def test_a_budget_goes_to_the_most_important_and_leaves_a_tenth_to_each_other(
    budget: int, sizes: list[int], granted: list[int]
) -> None:
    assert portions(budget, sizes) == granted


def test_a_large_queue_does_not_keep_another_from_being_swept() -> None:
    quiet = [job(f"a-{n:02}", status="RUNNING", scheduled_at=NOW, started_at=NOW) for n in range(30)]
    one = pool(*quiet, job("b-1", queue=SECOND_QUEUE))
    sweeps(one, 4, Limits(describes=20))
    bump(one.runtime, BumpRequest(id="b", job="b-1", actor="U1", reason="r", by=100, lasts=HOUR))
    one.apply_all()
    one.batch.tell(job("b-2", queue=SECOND_QUEUE, created_at=one.clock.now()))
    sweeps(one, 15, Limits(describes=20))
    assert one.batch.descriptions["b-1"].priority == 200
    assert known(one, "b-2")


def test_boosts_without_end_do_not_keep_others_from_ending() -> None:
    """More boosted jobs than Describes: the newest are read in their turn."""
    one = pool(*(job(f"a-{n:02}") for n in range(13)))
    for n in range(13):
        lasts = HOUR if n > 10 else 100 * DAY
        request = BumpRequest(id=f"b{n}", job=f"a-{n:02}", actor="U1", reason="r", by=10, lasts=lasts)
        bump(one.runtime, request)
    one.apply_all()
    sweeps(one, 20, Limits(describes=10))
    assert [one.batch.descriptions[f"a-{n:02}"].priority for n in (10, 11, 12)] == [210, 200, 200]


class SlowLedger(MemoryLedger):
    clock = None

    def load(self, kind, key):  # type: ignore[no-untyped-def]
        if self.clock:
            self.clock.advance(10)
        return super().load(kind, key)


def test_a_sweep_that_never_has_the_time_for_all_gets_round_nevertheless() -> None:
    ledger = SlowLedger()
    quiet = [job(f"a-{n:02}", status="RUNNING", scheduled_at=NOW, started_at=NOW) for n in range(40)]
    one = pool(*quiet, job("b-1", queue=SECOND_QUEUE), ledger=ledger)
    ledger.clock = one.clock  # type: ignore[assignment]
    for _ in range(20):
        one.clock.advance(5 * MINUTE)
        sweep(one.runtime, f"s-{one.clock.now()}", Limits(stop_at=one.clock.now() + 150))
    assert known(one, "b-1")
    assert all(known(one, one_job.job) for one_job in quiet)


def test_each_sweep_begins_with_another_queue() -> None:
    one = pool()
    begins = []
    for _ in range(3):
        sweeps(one, 1, Limits())
        state_now = one.ledger.load(SweepState, "all")
        assert state_now is not None
        begins.append(state_now.next_queue)
    assert begins == [1, 0, 1]


class Refusing(MemoryLedger):
    """The index cannot be read for one queue; another item cannot be written."""

    def __init__(self, queue: str = "", key: str = "") -> None:
        super().__init__()
        self.queue, self.key = queue, key

    def open_items(self, kind: type[Stored], queue: str) -> Iterator[Stored]:  # type: ignore[override]
        if queue == self.queue:
            raise Unavailable("Query: throttled")
        return super().open_items(kind, queue)

    def commit(self, items: Sequence[Stored], facts: Sequence[AuditFact], now: int) -> None:
        if any(item.key == self.key for item in items):
            raise ValueError(f"{self.key} is too big")
        super().commit(items, facts, now)


def test_a_queue_whose_records_cannot_be_read_does_not_keep_the_other_waiting() -> None:
    one = pool(job("a-1"), job("b-1", queue=SECOND_QUEUE), ledger=Refusing(QUEUE))
    report = one.sweep()
    assert (report.queues, report.unread > 0) == (2, True)
    assert known(one, "b-1")
    state_now = one.ledger.load(SweepState, "all")
    assert state_now is not None
    assert state_now.holder is None


def test_an_untraced_job_that_cannot_be_written_does_not_keep_the_others_waiting() -> None:
    ledger = Refusing()
    one = pool(ledger=ledger)
    for lost in ("lost-1", "lost-2"):
        detail = {"preemptedJobArn": ARN.replace(JOB, lost), "status": "RUNNING"}
        one.take(event("Batch Service Job Preemption Started", detail, NOW))
    ledger.key = "lost-1"
    one.clock.advance(SETTLE)
    report = one.sweep()
    assert report.failed == 1
    closed = {name: one.ledger.load(UntracedJob, name) for name in ("lost-1", "lost-2")}
    assert {name: item and item.closed_at is not None for name, item in closed.items()} == {
        "lost-1": False,
        "lost-2": True,
    }


def test_a_record_that_cannot_be_stored_does_not_keep_a_drain_from_the_others() -> None:
    ledger = Refusing()
    one = pool(job("a-1"), job("a-2"), ledger=ledger)
    for name in ("a-1", "a-2"):
        bump(one.runtime, BumpRequest(id=name, job=name, actor="U1", reason="r", by=100))
    one.apply_all()
    ledger.key = "a-1"
    remaining = drain(one.runtime, DrainRequest(id="d", actor="root", reason="r"))
    assert "too big" in {row.job: row.why for row in remaining}["a-1"]
    one.apply_all()
    assert one.batch.descriptions["a-2"].priority == 200


class OddBatch(MemoryBatch):
    """Some rows of its answers cannot be read."""

    hidden: frozenset[str] = frozenset()
    odd_share = False

    def jobs(self, queue: str, status: Status, token: str | None) -> Page:
        page = super().jobs(queue, status, token)
        shown = tuple(row for row in page.jobs if row.job not in self.hidden)
        return page.model_copy(update={"jobs": shown, "odd": len(page.jobs) - len(shown)})

    def shares(self, queue: str) -> Shares:
        return Shares(shares=(), odd=1) if self.odd_share else super().shares(queue)


def odd(*known_jobs: JobDescription) -> tuple[World, OddBatch]:
    one = world()
    batch = OddBatch(one.clock)
    for description in known_jobs:
        batch.tell(description)
    return replace(one, batch=batch, runtime=replace(one.runtime, batch=batch)), batch


def test_an_odd_row_of_a_listing_keeps_no_other_job_from_its_sweep() -> None:
    one, batch = odd(job("a-1"), job("a-2"))
    batch.hidden = frozenset({"a-2"})
    bump(one.runtime, BumpRequest(id="b", job="a-1", actor="U1", reason="r", by=100, lasts=HOUR))
    one.apply_all()
    sweeps(one, 15, Limits())
    assert batch.descriptions["a-1"].priority == 200
    assert one.sweep().odd == 1


def test_a_job_that_an_odd_row_may_hide_is_not_taken_for_gone() -> None:
    one, batch = odd(job("a-1"), job("a-2"))
    one.sweep("first")
    batch.hidden = frozenset({"a-2"})
    del batch.descriptions["a-1"]
    sweeps(one, 8, Limits())
    assert not facts_of(one.ledger, "gap")
    batch.hidden = frozenset()
    sweeps(one, 8, Limits())
    assert [fact.key for fact in facts_of(one.ledger, "gap")] == ["gap#a-1#vanished"]


def test_a_share_that_an_odd_row_may_hide_is_not_taken_for_deleted() -> None:
    one, batch = odd()
    batch.quota_shares[QUEUE] = [share(1)]
    one.sweep("first")
    batch.odd_share = True
    assert one.sweep("second").odd == 1
    assert not facts_of(one.ledger, "quota-share-change")


class Forgetful(MemoryBatch):
    """Lists jobs that it says it does not know."""

    forgot = ""

    def describe(self, job: str) -> JobDescription | None:
        return None if self.forgot and job.endswith(self.forgot) else super().describe(job)


def test_a_job_that_batch_lists_is_not_gone_whatever_describe_says() -> None:
    one = world()
    batch = Forgetful(one.clock)
    batch.tell(job("a-1"))
    one = replace(one, batch=batch, runtime=replace(one.runtime, batch=batch))
    bump(one.runtime, BumpRequest(id="b", job="a-1", actor="U1", reason="r", by=100, lasts=HOUR))
    one.apply_all()
    batch.forgot = "a-1"
    sweeps(one, 20, Limits())
    assert one.record("a-1").closed_at is None
    batch.forgot = ""
    sweeps(one, 2, Limits())
    assert batch.descriptions["a-1"].priority == 200


def test_a_closed_record_of_a_job_that_batch_lists_is_asked_about_and_opened_again() -> None:
    one = pool(described())
    one.take(state("RUNNABLE", NOW))
    bump(one.runtime, BumpRequest(id="b", job=JOB, actor="U1", reason="r", by=100, lasts=HOUR))
    one.apply_all()
    truth = one.batch.descriptions.pop(JOB)
    sweeps(one, 4, Limits())
    assert one.record(JOB).closed_at is not None
    one.batch.tell(truth)
    sweeps(one, 20, Limits())
    assert one.record(JOB).closed_at is None
    assert one.batch.descriptions[JOB].priority == 200


def test_a_record_ended_by_a_hint_alone_is_asked_about_while_batch_lists_the_job() -> None:
    one = pool(described(status="RUNNING", scheduled_at=NOW))
    one.take(state("RUNNING", NOW))
    hinted = one.record(JOB).model_copy(update={"end": End(status="FAILED", at=NOW), "end_audited": True})
    one.ledger.commit([hinted], [], NOW)
    before = len(one.batch.described)
    one.sweep()
    assert one.batch.described[before:] == [JOB]


class NoUpdates(MemoryBatch):
    """Some jobs may not be changed; others may."""

    def set_priority(self, job: str, priority: int) -> None:
        if "/a-" in job:
            raise Unavailable("UpdateServiceJob: AccessDeniedException")
        super().set_priority(job, priority)


def test_wishes_that_are_refused_do_not_keep_others_from_being_tried() -> None:
    one = world(policy=ENFORCE.model_copy(update={"blast_radius": BlastRadius(acts=5, percent=100)}))
    batch = NoUpdates(one.clock)
    one = replace(one, batch=batch, runtime=replace(one.runtime, batch=batch))
    names = [*(f"a-{n}" for n in range(6)), "b-1"]
    for name in names:
        batch.tell(job(name))
        bump(one.runtime, BumpRequest(id=name, job=name, actor="U1", reason="r", by=100))
    list(one.wishes.drain())  # all of these messages are lost
    sweeps(one, 2, Limits())
    assert batch.descriptions["b-1"].priority == 300
    assert live_boosts(one.record("b-1").priority)


def test_a_lease_longer_than_any_is_not_kept() -> None:
    """It was taken by a clock a day ahead."""
    one = pool()
    far = SweepState(holder="astray", until=NOW + DAY)
    one.ledger.commit([far], [], NOW)
    assert not one.sweep().leased_elsewhere
    one.ledger.commit([SweepState(version=3, holder="other", until=NOW + LEASE)], [], NOW)
    assert one.sweep("third").leased_elsewhere


def test_an_event_from_a_far_future_does_not_keep_a_record_open() -> None:
    one = pool(described())
    one.take(state("RUNNABLE", NOW), state("RUNNING", 253_370_764_800_000))
    one.batch.tell(described(status="FAILED", reason="r", stopped_at=NOW + MINUTE))
    one.clock.advance(HOUR)
    for _ in range(3):
        one.sweep()
        one.clock.advance(SETTLE)
    assert one.record(JOB).closed_at is not None


def test_a_classic_job_of_which_nothing_is_heard_is_given_up_and_taken_up_again() -> None:
    classic = QUEUE.replace("ml-train-qm", "classic")
    one = world(classic=frozenset({classic}))
    detail = {"jobArn": ARN, "jobId": JOB, "jobName": "n", "jobQueue": classic, "createdAt": NOW}
    one.take(event("Batch Job State Change", detail | {"status": "RUNNING"}, NOW))
    one.clock.advance(SILENT - 1)
    one.sweep()
    assert one.record(JOB).closed_at is None
    one.clock.advance(1)
    one.sweep()
    assert one.record(JOB).closed_at is not None
    assert [fact.key for fact in facts_of(one.ledger, "gap")] == [f"gap#{JOB}#silent"]
    ended = {"status": "SUCCEEDED", "stoppedAt": NOW + HOUR, "statusReason": "done"}
    one.take(event("Batch Job State Change", detail | ended, NOW + HOUR))
    one.sweep("after")
    assert len(facts_of(one.ledger, "job-ended")) == 1


@pytest.mark.parametrize(("count", "forgotten"), [(150, 0), (700, 500)])
def test_law_01_preemptions_beyond_the_kept_attempts_are_one_gap_with_a_number(
    count: int, forgotten: int
) -> None:
    attempts = tuple(
        AttemptSeen(training_job=f"t-{n:04}", started_at=NOW, stopped_at=NOW + n, preempted=True)
        for n in range(count)
    )
    one = pool(described(attempts=attempts, status="FAILED", stopped_at=NOW + MINUTE, reason="r"))
    one.take(state("RUNNING", NOW))
    sweeps(one, 40, Limits())
    assert len(facts_of(one.ledger, "preemption")) == count - forgotten
    gaps = [fact.reason.split()[0] for fact in facts_of(one.ledger, "gap")]
    assert gaps == ([str(forgotten)] if forgotten else [])
    assert one.record(JOB).closed_at is not None
