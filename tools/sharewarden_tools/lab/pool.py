"""The scheduler's picture of one queue: shares, what they use, who waits, who runs.

Kept up to date change by change, so that neither a pass nor a change costs more with more jobs:
queues are sorted lists, use is kept as running totals. Quantities are instances per capacity unit
(an instance type). Rules: Batch user guide, quota-shares.html and preemption.html.
"""

from __future__ import annotations

import heapq
import itertools
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from .book import Book, PoolJob, ShareRules


@dataclass(eq=False, slots=True)
class ShareState:
    name: str
    rules: ShareRules
    waiting: list[tuple[tuple[int, int, str], PoolJob]] = field(default_factory=list)
    running: dict[str, PoolJob] = field(default_factory=dict)
    stopping: dict[str, PoolJob] = field(default_factory=dict)
    priorities: Counter[int] = field(default_factory=Counter)

    def lowest_running_priority(self) -> int | None:
        return min(self.priorities, default=None)


class Pool:
    """One queue. `now` counts every instance in use, `stay` leaves out jobs that are being stopped."""

    def __init__(self, environment: Mapping[str, int]) -> None:
        self.environment = dict(environment)
        self.shares: dict[str, ShareState] = {}
        self.claims: dict[str, int] = {}  # waiting jobs per share whose capacity is on its way
        self.verdicts: dict[PoolJob, str | None] = {}  # the scheduler's memory of what can never fit
        self._recount()

    def configure_environment(self, limits: Mapping[str, int]) -> None:
        self.environment = dict(limits)
        self._recount()

    def configure_share(self, name: str, rules: ShareRules) -> None:
        if name in self.shares:
            self.shares[name].rules = rules
        else:
            self.shares[name] = ShareState(name, rules)
        self._recount()

    def remove_share(self, name: str) -> None:
        del self.shares[name]
        self.claims.pop(name, None)
        self._recount()

    def _recount(self) -> None:
        """Books from scratch; a unit stays known while a job uses it."""
        self.verdicts.clear()
        rules = {name: share.rules for name, share in self.shares.items()}
        shares = self.shares.values()
        held = [job for share in shares for job in (*share.running.values(), *share.stopping.values())]
        units = {*self.environment, *(unit for job in held for unit, _ in job.demand)}
        units.update(unit for share in rules.values() for unit in share.own)
        self.now, self.stay = (Book(self.environment, rules, sorted(units)) for _ in range(2))
        for job in held:
            self.now.add(job)
            if job.id in self.shares[job.share].running:
                self.stay.add(job)

    def enqueue(self, job: PoolJob) -> None:
        job.dispatched_at = job.saved_at = None
        insort(self.shares[job.share].waiting, (job.key, job))

    def withdraw(self, job: PoolJob) -> None:
        """Take a waiting job out of its queue; nothing happens when it does not wait."""
        waiting = self.shares[job.share].waiting
        index = bisect_left(waiting, job.key, key=lambda entry: entry[0])
        if index < len(waiting) and waiting[index][1] is job:
            del waiting[index]
            self.verdicts.pop(job, None)

    def dispatch(self, job: PoolJob, now_ms: int) -> None:
        self.withdraw(job)
        share = self.shares[job.share]
        job.dispatched_at = now_ms
        share.running[job.id] = job
        share.priorities[job.priority] += 1
        self.now.add(job)
        self.stay.add(job)

    def stop(self, job: PoolJob) -> None:
        """The job is on its way out: it holds its instances, but can be chosen no more."""
        share = self.shares[job.share]
        if share.running.pop(job.id, None) is None:
            return
        share.stopping[job.id] = job
        self._forget_priority(share, job.priority)
        self.stay.remove(job)

    def release(self, job: PoolJob) -> None:
        """The job's instances are free."""
        self.stop(job)
        if self.shares[job.share].stopping.pop(job.id, None):
            self.now.remove(job)

    def reprioritise(self, job: PoolJob, priority: int) -> None:
        share = self.shares[job.share]
        before = len(share.waiting)
        self.withdraw(job)
        waited = len(share.waiting) < before
        if job.id in share.running:
            self._forget_priority(share, job.priority)
            share.priorities[priority] += 1
        job.priority = priority
        if waited:
            insort(share.waiting, (job.key, job))

    def in_dispatch_order(self) -> Iterator[PoolJob]:
        """Waiting jobs: each share in its own order, among the shares' fronts the longest waiting first."""
        queues = {name: iter(share.waiting) for name, share in self.shares.items()}
        fronts = [
            (job.order, job.id, job) for queue in queues.values() for _, job in itertools.islice(queue, 1)
        ]
        heapq.heapify(fronts)
        while fronts:
            job = heapq.heappop(fronts)[-1]
            yield job
            for _, follower in itertools.islice(queues[job.share], 1):
                heapq.heappush(fronts, (follower.order, follower.id, follower))

    @staticmethod
    def _forget_priority(share: ShareState, priority: int) -> None:
        share.priorities[priority] -= 1
        if not share.priorities[priority]:
            del share.priorities[priority]
