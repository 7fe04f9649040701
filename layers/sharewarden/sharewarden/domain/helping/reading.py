"""What Batch would do with a pool, in one reading of what its documentation leaves open.

Documented (Batch user guide, quota-shares and preemption): a share's first waiting job holds up the others;
a share fills its own capacity, takes back what it lent, borrows what is idle; where in-share preemption is
on, a higher priority pushes out a lower one of the same share. Left open are whom Batch chooses, and what the
members of ``Reading`` say. An answer holds when it is the same in every reading.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Literal, NamedTuple

from .capacity import Capacity, capacity_of
from .view import JobView, PoolView

How = Literal["room", "take-back", "push-out"]
Verdict = Literal["yes", "no", "open"]


class Way(NamedTuple):
    """How a first job starts. ``victims``: every job that may be pushed out for it.

    ``sure``: whichever of them Batch chooses, the job starts.
    """

    how: How
    victims: tuple[JobView, ...] = ()
    sure: bool = True


@dataclass(frozen=True)
class Reading:
    """The pool, and what a start of ``job`` comes up against.

    ``early``: the job has the better place among equals (whether a requeued job keeps its place is not
    documented). ``strict``: an earlier borrower that finds too little holds up later ones. ``lenders``:
    whether a disabled share lends is not documented.
    """

    pool: PoolView
    job: JobView
    early: bool
    strict: bool
    lenders: frozenset[str]

    @cached_property
    def waiting(self) -> dict[str, list[JobView]]:
        """The waiting jobs of each share, first ones first."""
        queues: dict[str, list[JobView]] = {}
        for job in self.pool.jobs:
            if job.waits:
                queues.setdefault(job.share or "", []).append(job)
        return {share: sorted(queue, key=self._order) for share, queue in queues.items()}

    @cached_property
    def _books(self) -> dict[str, Capacity]:
        return {}

    def book(self, unit: str | None) -> Capacity:
        """The books of an instance type."""
        name = unit or ""
        if name not in self._books:
            self._books[name] = capacity_of(self.pool, name, self.lenders)
        return self._books[name]

    def held(self, unit: str | None) -> Iterator[JobView]:
        """The dispatched jobs on that instance type that may be chosen as victims."""
        return (job for job in self.pool.jobs if job.holds and job.unit == unit and not job.stopping)

    def _place(self, job: JobView) -> tuple[int, int, str]:
        """FIFO: the place among equals."""
        if job.job == self.job.job:
            return (job.created_at, 0, job.job) if self.early else (job.queued_at, 2, job.job)
        return (job.queued_at if self.early else job.created_at, 1, job.job)

    def _order(self, job: JobView) -> tuple[int, int, int, str]:
        return (-(job.priority or 0), *self._place(job))

    def ahead(self, priority: int) -> list[JobView]:
        """The waiting jobs of its share that the job stands behind with that priority."""
        raised = self.job.model_copy(update={"priority": priority})
        mine = self._order(raised)
        others = (job for job in self.waiting.get(self.job.share or "", ()) if job.job != self.job.job)
        return [job for job in others if self._order(job) < mine]

    # Whether it starts.

    def verdict(self, priority: int) -> Verdict:
        """Whether the job starts with that priority, in a pool that is at rest without it."""
        way = None if self.ahead(priority) else self.way(self.job, priority)
        if way is None:
            return "no"
        return "yes" if way.sure and self._keeps(self.book(self.job.unit)) else "open"

    def has_room(self, book: Capacity) -> bool:
        """Whether the job starts without victims, with these books, as the first one of its share."""
        return self._room(self.job, book) and self._keeps(book)

    def way(self, job: JobView, priority: int) -> Way | None:
        """How the job would start as the first one of its share; None: it does not."""
        found = self.book(job.unit)
        if self._room(job, found):
            return Way("room")
        back = self._take_back(job, found)
        if back is not None and back.sure:
            return back
        out = self._push_out(job, priority, found)
        if back is None or out is None:
            return back or out
        return Way("take-back", tuple({one.job: one for one in back.victims + out.victims}.values()))

    def _room(self, job: JobView, book: Capacity) -> bool:
        share, asked = job.share or "", job.instances or 0
        return book.fits(share, asked) and (book.owns(share, asked) or self._may_borrow(job))

    def _keeps(self, book: Capacity) -> bool:
        """Whether what is free, or becomes free, is the job's for sure: no other share waits for its own."""
        waits = (book.owns(one.share or "", one.instances or 0) for one in self._fronts(self.job))
        return self.pool.environment is not None and not any(waits)

    def _take_back(self, job: JobView, book: Capacity) -> Way | None:
        """Cross-share: what the share lent out comes back, for jobs within its own capacity."""
        share, asked = job.share or "", job.instances or 0
        if not book.owns(share, asked):
            return None
        victims = tuple(one for one in self.held(job.unit) if book.over(one.share or ""))
        if not victims or not book.without(victims).fits(share, asked):
            return None
        return Way("take-back", victims, sure=book.without_borrowed(share).fits(share, asked))

    def _push_out(self, job: JobView, priority: int, book: Capacity) -> Way | None:
        """In-share: dispatched jobs of the same share with a lower priority."""
        victims = self._lower(job, priority)
        enough = victims and book.without(victims).fits(job.share or "", job.instances or 0)
        return Way("push-out", victims) if enough else None

    def _lower(self, job: JobView, priority: int) -> tuple[JobView, ...]:
        share = self.pool.share(job.share)
        if share is None or not share.in_share_preemption:
            return ()
        mine = (one for one in self.held(job.unit) if one.share == job.share)
        return tuple(one for one in mine if (one.priority or 0) < priority)

    def _may_borrow(self, job: JobView) -> bool:
        """Idle capacity goes to borrowers first in, first out."""
        if not self.strict:
            return True
        earlier = (one for one in self._fronts(job) if self._place(one) < self._place(job))
        return not any(self.book(one.unit).ever_fits(one.share or "", one.instances or 0) for one in earlier)

    def _fronts(self, job: JobView) -> Iterator[JobView]:
        """The first jobs of the other shares, of those that want the same instance type."""
        first = (queue[0] for share, queue in self.waiting.items() if share != job.share)
        return (one for one in first if one.unit == job.unit)

    # What a start sets off.

    def unblocked(self, priority: int) -> tuple[JobView, ...]:
        """Dispatched jobs that those held up behind the job may push out once it starts.

        Rather too many than too few: what several instances of a victim leave over may start any first job
        that wants the type, and then those behind that one.
        """
        way = self.way(self.job, priority)
        victims = way.victims if way else ()
        queues = [queue for share, queue in self.waiting.items() if share == self.job.share or victims]
        behind = (one for queue in queues for one in self._behind(queue, spare=bool(victims)))
        return (*behind, *self._taken_back_after(victims))

    def _taken_back_after(self, victims: tuple[JobView, ...]) -> tuple[JobView, ...]:
        """The borrowers, if the share's own capacity has room for one of its jobs beside this one.

        So it may once its victims, who have borrowed in part, have stopped and wait again.
        """
        share, asked = self.job.share or "", self.job.instances or 0
        book = self.book(self.job.unit)
        again = (*(one for one in victims if one.share == share), *self.waiting.get(share, ()))
        sizes = [one.instances or 0 for one in again if one.unit == self.job.unit and one is not self.job]
        if not victims or not book.without(victims).owns(share, asked + min(sizes, default=0)):
            return ()
        return tuple(one for one in self.held(self.job.unit) if book.over(one.share or ""))

    def _behind(self, queue: list[JobView], *, spare: bool) -> Iterator[JobView]:
        for job in queue:
            if job.job == self.job.job:
                continue
            way = self.way(job, job.priority or 0)
            if way is not None:
                yield from way.victims
            elif spare and job.unit == self.job.unit:
                yield from self._lower(job, job.priority or 0)
            else:
                return

    # Whether the pool is at rest.

    def moving(self, units: frozenset[str]) -> str | None:
        """What Batch is about to do on these instance types without any bump; None: nothing."""
        for unit in sorted(units):
            if not self.book(unit).in_order:
                return f"more {unit} is in use than the limits cover, so Batch takes some back"
        first = (queue[0] for queue in self.waiting.values() if queue and queue[0].unit in units)
        return next((_due(job) for job in first if self.way(job, job.priority or 0)), None)


def _due(job: JobView) -> str:
    return f"by the limits {job.name} of share {job.share} could start already, without a bump"


def readings(pool: PoolView, job: JobView) -> list[Reading]:
    """Every reading in which the answer must be the same, the most liberal one first."""
    lending = frozenset(share.name for share in pool.shares if share.strategy != "RESERVE")
    enabled = frozenset(share.name for share in pool.shares if share.enabled)
    choices = product((True, False), (False, True), dict.fromkeys((lending, lending & enabled)))
    return [Reading(pool, job, early, strict, lenders) for early, strict, lenders in choices]
