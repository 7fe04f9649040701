"""A deployment in memory: the waiting for AWS is left out."""

from collections.abc import Iterator
from typing import TypeVar

from sharewarden.domain.observation import JobDescription, ShareDescription, Status
from sharewarden.domain.policy import Policy
from sharewarden.domain.stored import Stored
from sharewarden.ports import Runtime
from sharewarden_tools.memory import (
    MemoryBatch,
    MemoryClock,
    MemoryDeadLetters,
    MemoryLedger,
    MemoryNoticeQueue,
    MemoryPolicies,
    MemoryWishQueue,
)
from sharewarden_tools.memory_objects import MemoryCheckpoints

from . import QUEUE
from .pool import UNIT

T = TypeVar("T", bound=Stored)


class IndexedLedger(MemoryLedger):
    """Finds open items by kind and queue without going through all items, as the table's index does."""

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[tuple[str, str], dict[str, None]] = {}

    def open_items(self, kind: type[T], queue: str) -> Iterator[T]:
        for key in list(self._open.get((kind.item, queue), ())):
            item = self.load(kind, key)
            if item is not None and item.open_queue == queue:
                yield item

    def _put(self, item: Stored) -> None:
        super()._put(item)
        if item.open_queue is not None:
            self._open.setdefault((item.item, item.open_queue), {})[item.key] = None


def memory_runtime(clock: MemoryClock, batch: MemoryBatch, policy: Policy | None = None) -> Runtime:
    """All ports in memory, around this Batch."""
    ledger = IndexedLedger()
    return Runtime(
        batch=batch,
        ledger=ledger,
        audit=ledger,
        wishes=MemoryWishQueue(clock),
        notices=MemoryNoticeQueue(),
        dead_letters=MemoryDeadLetters(),
        checkpoints=MemoryCheckpoints(clock),
        policies=MemoryPolicies(policy),
        clock=clock,
        queues=frozenset({QUEUE}),
    )


def described(number: int, at: int, status: Status = "RUNNABLE", shares: int = 20) -> JobDescription:
    """A job that was submitted at that time, to one of so many shares."""
    job, share = f"job-{number:06}", f"share-{number % shares}"
    return JobDescription(
        job=job,
        arn=f"arn:aws:batch:us-east-1:123456789012:service-job/{job}",
        read_at=at,
        name=job,
        queue=QUEUE,
        status=status,
        created_at=at,
        scheduled_at=at if status == "RUNNING" else None,
        started_at=at if status == "RUNNING" else None,
        share=share,
        priority=0,
        tags=(("team", f"team-{number % shares}"), ("user", f"user-{number % 100}")),
        instance_type=UNIT,
        instance_count=1,
    )


def share(number: int) -> ShareDescription:
    """A share that lends and borrows."""
    return ShareDescription(
        arn=f"{QUEUE}/quota-share/share-{number}",
        name=f"share-{number}",
        queue=QUEUE,
        limits=((UNIT, 1_000_000),),
        strategy="LEND_AND_BORROW",
        borrow_limit=-1,
    )
