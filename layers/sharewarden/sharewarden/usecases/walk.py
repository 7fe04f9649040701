"""One sweep under way: what it may spend, what it has found, and whether it may go on."""

from collections.abc import Callable
from dataclasses import dataclass, field
from logging import getLogger

from sharewarden.domain.decide import Decision
from sharewarden.domain.policy import Policy
from sharewarden.domain.record import JobRecord
from sharewarden.domain.sweeping import SweepState
from sharewarden.ports import Runtime, Unavailable

from .guarding import Around, FailedRules, guarded_in

logger = getLogger(__name__)


@dataclass
class Report:
    """What one sweep did, and how it found things.

    ``behind``: jobs that had moved on without an event; ``unread``: Batch or a table would not tell; ``odd``:
    rows of an answer that could not be read; ``failed``: jobs that the sweep could not do its work on, and
    guardrails whose rule raised; ``left``: the caps left it to the next sweep, ``capped`` of it the blast
    radius; ``cases``: workflows of preempted attempts that were started; ``oldest_wish_ms``: how long the
    oldest wish could have been carried out.
    """

    queues: int = 0
    records: int = 0
    behind: int = 0
    described: int = 0
    adopted: int = 0
    repaired: int = 0
    woken: int = 0
    reminded: int = 0
    looks: int = 0
    cases: int = 0
    closed: int = 0
    shares_changed: int = 0
    unread: int = 0
    odd: int = 0
    failed: int = 0
    left: int = 0
    capped: int = 0
    oldest_wish_ms: int = 0
    leased_elsewhere: bool = False


@dataclass(frozen=True)
class Limits:
    """What one sweep may spend: Describes (Batch does not publish their rate), and when it must stop."""

    describes: int = 500
    stop_at: int | None = None


class MustStop(Exception):
    """The time is over, or the lease went to another sweep: what is left waits for the next one."""


@dataclass
class Walk:
    """One sweep under way."""

    runtime: Runtime
    policy: Policy
    limits: Limits
    holder: str
    started_at: int
    report: Report = field(default_factory=Report)
    read: dict[str, JobRecord] = field(default_factory=dict)
    """Records, by job, about which Batch has answered: what ``apply`` may be asked to do is in them."""
    whole: bool = False
    """Everything was looked at in time."""
    around: dict[str, Around] = field(default_factory=dict)
    """What guardrails may know around the jobs of each queue that was looked at."""
    failed_rules: FailedRules = field(default_factory=FailedRules)

    def guarded(self, decision: Decision) -> Decision:
        """The decision with what the guardrails make of its record."""
        around = self.around.get(decision.record.queue, Around(self.policy, self.started_at))
        return guarded_in(around, decision, self.failed_rules)

    def check_time(self) -> None:
        """Raises MustStop when the time is over."""
        if self.limits.stop_at is not None and self.runtime.clock.now() >= self.limits.stop_at:
            raise MustStop

    def own_state(self) -> SweepState:
        """Our state as it stands; nobody else writes it while we hold the lease. Raises MustStop if we don't.

        Read anew before each use: a write whose answer was lost may have been done.
        """
        state = self.runtime.ledger.load(SweepState, "all")
        if state is None or state.holder != self.holder:
            raise MustStop
        return state

    def apart(self, what: str, work: Callable[[], None]) -> None:
        """Do one piece of work; what goes wrong with it does not keep the others waiting."""
        try:
            work()
        except MustStop:
            raise
        except Unavailable as error:
            self.report.unread += 1
            logger.warning("the sweep left %s to the next one: %s", what, error)
        except Exception:  # a record that cannot be decided on or stored: a fault of ours, for a person
            self.report.failed += 1
            logger.exception("the sweep left %s as it stands", what)
