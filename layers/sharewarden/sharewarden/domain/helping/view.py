"""One queue's pool at a moment. What is not known is None, and never guessed (design law 2)."""

from typing import Literal

from sharewarden.domain.base import Frozen
from sharewarden.domain.observation import DISPATCHED, TERMINAL, Status

Strategy = Literal["RESERVE", "LEND", "LEND_AND_BORROW"]


class JobView(Frozen):
    """A job of the queue that has not ended. Times are epoch ms."""

    job: str
    name: str
    share: str | None
    status: Status
    unit: str | None
    """Instance type."""
    instances: int | None
    priority: int | None
    created_at: int
    queued_at: int
    """Since when it waits: later than ``created_at`` once it was requeued."""
    dispatched_at: int | None = None
    started_at: int | None = None
    """Of the running attempt."""
    saved_at: int | None = None
    """The newest complete checkpoint that the running attempt is known to have."""
    expected_end: int | None = None
    stopping: bool = False
    """It is being preempted or terminated: it holds its instances and is no victim any more."""
    team: str | None = None
    sla: str | None = None
    """Its own SLA class."""

    @property
    def waits(self) -> bool:
        return self.status not in DISPATCHED | TERMINAL

    @property
    def holds(self) -> bool:
        """Whether it holds capacity (Batch user guide, preemption)."""
        return self.status in DISPATCHED


class ShareView(Frozen):
    """A quota share, and what the policy says of it."""

    name: str
    limits: dict[str, int]
    """maxCapacity by instance type."""
    strategy: Strategy
    borrow_limit: int | None = None
    """As in ``ShareDescription``."""
    in_share_preemption: bool = False
    enabled: bool = True
    min_runtime: int = 0
    """Milliseconds."""
    protected: bool = False
    """No act of ours may expose its jobs."""

    def most(self, unit: str) -> int | None:
        """What its limits let it use of the type, own and borrowed; None: as much as there is.

        The borrow limit is a percentage of the own limit, per instance type (create-quota-shares).
        """
        own = self.limits.get(unit, 0)
        if self.strategy != "LEND_AND_BORROW" or self.borrow_limit is None or unit not in self.limits:
            return own
        return None if self.borrow_limit < 0 else own + own * self.borrow_limit // 100


class PoolView(Frozen):
    """Everything of one queue that a start depends on."""

    queue: str
    shares: tuple[ShareView, ...]
    jobs: tuple[JobView, ...]
    environment: dict[str, int] | None = None
    """What the service environment holds by instance type; None: not known."""
    gaps: tuple[str, ...] = ()
    """What could not be read. If there is anything, jobs or shares may be missing here."""

    def share(self, name: str | None) -> ShareView | None:
        """The share of that name, or None."""
        return next((share for share in self.shares if share.name == name), None)

    def job(self, key: str) -> JobView | None:
        """The job of that key, or None."""
        return next((job for job in self.jobs if job.job == key), None)

    def linked(self, unit: str) -> frozenset[str]:
        """The instance types whose moves can reach this one.

        Types are apart, but the first job of a share holds up those behind it, whatever they ask for.
        """
        queues: dict[str, set[str]] = {}
        for job in self.jobs:
            if job.waits and job.share is not None and job.unit is not None:
                queues.setdefault(job.share, set()).add(job.unit)
        found, grown = {unit}, True
        while grown:
            more = set().union(*(units for units in queues.values() if units & found)) - found
            found, grown = found | more, bool(more)
        return frozenset(found)
