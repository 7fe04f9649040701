"""Guardrails on one job: gather what rules may know, let them decide."""

from dataclasses import dataclass, field
from logging import getLogger
from typing import NamedTuple

from sharewarden.domain.decide import Decision, joined
from sharewarden.domain.guardrails import Failed, concerned, guard, is_guarded
from sharewarden.domain.known import KnownShares, facts_of
from sharewarden.domain.policy import Policy
from sharewarden.domain.pool import Pool, seen_in
from sharewarden.domain.record import JobRecord
from sharewarden.domain.rules.base import Guardrail
from sharewarden.domain.rules.facts import Facts
from sharewarden.domain.share import ShareRecord
from sharewarden.ports import MAX_ACTIONS, Runtime

logger = getLogger(__name__)

#: Room that a commit keeps for the record and for what goes in beside it.
BESIDE = 10


@dataclass
class FailedRules:
    """The guardrails whose rule raised instead of deciding; each is logged once."""

    labels: set[str] = field(default_factory=set)

    def __call__(self, entry: Guardrail, error: Exception) -> None:
        if entry.label not in self.labels:
            logger.error("guardrail %s could not be decided", entry.label, exc_info=error)
        self.labels.add(entry.label)


class Around(NamedTuple):
    """What is known around the jobs of one queue; ``pool`` only after a look at all of it."""

    policy: Policy
    now: int
    shares: KnownShares = KnownShares()
    pool: Pool | None = None

    def facts(self, record: JobRecord) -> Facts:
        """What rules may know of the job."""
        return seen_in(self.pool, facts_of(record, self.shares, self.policy, self.now), self.policy)


def known_shares(runtime: Runtime, queue: str) -> KnownShares:
    """The shares of the queue that are on record: one query. Raises Unavailable."""
    records = runtime.ledger.open_items(ShareRecord, queue)
    found = [record.description for record in records if not record.deleted]
    shares = tuple(share for share in found if share is not None)
    return KnownShares(shares=shares, whole=0 < len(shares) == len(found))


def guarded(runtime: Runtime, decision: Decision, policy: Policy, failed: Failed) -> Decision:
    """The decision on an event with what the guardrails make of its record: of the pool nothing is known.

    A queue that no guardrail concerns costs nothing. Raises Unavailable.
    """
    record = decision.record
    if not is_guarded(record, policy):
        return decision
    shares = known_shares(runtime, record.queue) if concerned(policy, record.queue) else KnownShares()
    return guarded_in(Around(policy, runtime.clock.now(), shares), decision, failed)


def guarded_in(around: Around, decision: Decision, failed: Failed) -> Decision:
    """The decision with what the guardrails make of its record, as far as the commit has room for it."""
    record, policy = decision.record, around.policy
    if not is_guarded(record, policy):
        return decision
    room = MAX_ACTIONS - BESIDE - len(decision.facts) - len(decision.notices) - len(decision.cases)
    more = guard(record, policy, around.facts(record), around.now, room=room, failed=failed)
    return joined(decision, more)
