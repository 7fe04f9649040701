"""The ports in memory, as far as no other suite holds them (the ledger: tests/contract/test_ledger.py)."""

from typing import Any

import pytest
from sharewarden.domain.observation import JobDescription, ShareDescription
from sharewarden.domain.policy import Policy
from sharewarden.ports import Unavailable
from sharewarden_tools.memory import (
    MemoryBatch,
    MemoryClock,
    MemoryDeadLetters,
    MemoryPolicies,
    MemoryWishQueue,
)

QUEUE = "arn:aws:batch:us-east-1:123456789012:job-queue/ml-train-qm"


def described(job: str, **members: Any) -> JobDescription:
    base = {"job": job, "arn": f"arn:aws:batch:::service-job/{job}", "name": job, "queue": QUEUE}
    return JobDescription(
        **base | {"status": "RUNNING", "created_at": 1, "read_at": 0, "priority": 5} | members
    )


@pytest.fixture
def clock() -> MemoryClock:
    return MemoryClock(1_000_000)


@pytest.fixture
def batch(clock: MemoryClock) -> MemoryBatch:
    return MemoryBatch(clock)


@pytest.mark.parametrize(("later", "times"), [(0, 1), (299_999, 1), (300_000, 2)])
def test_a_wish_sent_again_within_five_minutes_comes_once(clock: MemoryClock, later: int, times: int) -> None:
    queue = MemoryWishQueue(clock)
    queue.send("job-1", 7, "once")
    clock.advance(later)
    queue.send("job-1", 7, "once")
    assert queue.sent == [("job-1", 7)] * times


def test_wishes_are_handed_out_in_order_and_once(clock: MemoryClock) -> None:
    queue = MemoryWishQueue(clock)
    queue.send("a", 1, "1")
    queue.send("b", 2, "2")
    handled = []
    for message in queue.drain():
        handled.append(message.job)
        if message.job == "a":
            queue.send("c", 3, "3")
    assert handled == ["a", "b", "c"]
    assert list(queue.drain()) == []


def test_a_job_is_described_as_told_at_the_time_of_asking(clock: MemoryClock, batch: MemoryBatch) -> None:
    batch.tell(described("a"))
    assert batch.describe("arn:aws:batch:::service-job/a") == described("a", read_at=clock.now())
    assert batch.describe("b") is None
    assert batch.described == ["a", "b"]


def test_jobs_are_listed_by_queue_and_state_in_pages(batch: MemoryBatch) -> None:
    for number in range(101):
        batch.tell(described(f"job-{number}"))
    batch.tell(described("done", status="SUCCEEDED"))
    batch.tell(described("other", queue="other"))
    first = batch.jobs(QUEUE, "RUNNING", None)
    last = batch.jobs(QUEUE, "RUNNING", first.next_token)
    assert [job.job for job in (*first.jobs, *last.jobs)] == [f"job-{number}" for number in range(101)]
    assert (len(first.jobs), last.next_token) == (100, None)


def test_a_priority_that_was_set_is_shown(batch: MemoryBatch) -> None:
    batch.tell(described("a"))
    batch.set_priority("arn:aws:batch:::service-job/a", 9)
    assert batch.describe("a") == described("a", priority=9, read_at=1_000_000)
    assert batch.priorities == [("a", 9)]


def test_the_priority_of_an_unknown_job_is_refused(batch: MemoryBatch) -> None:
    with pytest.raises(Unavailable, match="no job a"):
        batch.set_priority("a", 9)


@pytest.mark.parametrize(
    ("status", "after"), [("RUNNABLE", "FAILED"), ("RUNNING", "RUNNING"), ("SUCCEEDED", "SUCCEEDED")]
)
def test_a_waiting_job_that_is_terminated_has_failed_and_a_dispatched_one_is_stopping(
    batch: MemoryBatch, status: Any, after: str
) -> None:
    batch.tell(described("a", status=status))
    for reason in ("enough", "enough again"):
        batch.terminate("arn:aws:batch:::service-job/a", reason)
    found = batch.describe("a")
    assert found is not None
    assert (found.status, found.terminated) == (after, status != "SUCCEEDED")
    assert found.reason == ("enough" if after == "FAILED" else None)
    assert batch.terminations == [("a", "enough"), ("a", "enough again")]


def test_an_unknown_job_cannot_be_terminated(batch: MemoryBatch) -> None:
    with pytest.raises(Unavailable, match="no job a"):
        batch.terminate("a", "r")


def test_shares_are_those_of_the_queue(batch: MemoryBatch) -> None:
    share = ShareDescription(arn="a", name="n", queue=QUEUE, limits=(), strategy="LEND")
    batch.quota_shares[QUEUE] = [share]
    assert (batch.shares(QUEUE).shares, batch.shares("other").shares) == ((share,), ())


@pytest.mark.parametrize(
    "call",
    [
        lambda batch: batch.describe("a"),
        lambda batch: batch.jobs(QUEUE, "RUNNING", None),
        lambda batch: batch.shares(QUEUE),
        lambda batch: batch.set_priority("a", 9),
        lambda batch: batch.terminate("a", "r"),
    ],
)
def test_while_batch_is_down_nothing_is_known(batch: MemoryBatch, call: Any) -> None:
    batch.tell(described("a"))
    batch.down = "throttled"
    with pytest.raises(Unavailable, match="throttled"):
        call(batch)
    assert (batch.priorities, batch.terminations) == ([], [])


def test_dead_letters_and_policies_are_kept() -> None:
    letters, policies = MemoryDeadLetters(), MemoryPolicies()
    letters.bury("body", "reason", "origin")
    assert letters.buried == [("body", "reason", "origin")]
    assert policies.current() == Policy()
    policies.policy = Policy(paused=True)
    assert policies.current().paused
