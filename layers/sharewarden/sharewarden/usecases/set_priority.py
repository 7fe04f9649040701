"""The wish for a priority, as ``apply`` carries it out."""

from dataclasses import dataclass
from typing import Literal, Self

from sharewarden.domain.boosts import (
    TOO_LATE,
    drop_wish,
    lowering_waits,
    refused_wish,
    waits,
    wish_again,
)
from sharewarden.domain.decide import Decision, decide_read, joined, ledger_facts, with_ledger
from sharewarden.domain.observation import TERMINAL, JobDescription
from sharewarden.domain.policy import Policy
from sharewarden.domain.priority import Wish, confirm, intend, withdraw
from sharewarden.domain.record import JobRecord, dispatched_since
from sharewarden.ports import Runtime

from .deed import Verdict


@dataclass(frozen=True)
class SetPriority:
    """Deed: one version of the job's priority."""

    wish: Wish

    @classmethod
    def wanted(cls, record: JobRecord, version: int) -> Self | None:
        """The deed, while that version is the job's open wish."""
        wish = record.priority.wish
        return cls(wish) if wish is not None and wish.version == version else None

    def waits(self, record: JobRecord, policy: Policy) -> Literal["paused", "shadow"] | None:
        return waits(record, policy)

    def judge(
        self, record: JobRecord, description: JobDescription, policy: Policy, now: int
    ) -> tuple[Decision, Verdict]:
        decision = decide_read(record, description, policy)
        ledger = decision.record.priority
        if ledger.wish is None or ledger.wish.version != self.wish.version or description.status in TERMINAL:
            return decision, "settled"
        if description.priority is None or ledger.suspect is not None:
            return decision, "drifting"
        if ledger.sent is not None or description.priority != ledger.confirmed:  # the latter by another clock
            return decision, "busy"
        return self._judge_settled(decision, policy, now)

    def _judge_settled(self, decision: Decision, policy: Policy, now: int) -> tuple[Decision, Verdict]:
        """If the wish still stands under this policy and may be done, its value is remembered as ours."""
        wish, record = self.wish, decision.record
        wanted = wish_again(record, policy, now, actor=wish.actor, reason=wish.reason, paced=wish.paced)
        if wanted != record:  # the policy has changed since
            return decision.model_copy(update={"record": wanted}), "superseded"
        if lowering_waits(record, wish, policy, now):
            return decision, "held"
        if now > wish.not_after:
            return joined(decision, drop_wish(record, wish, TOO_LATE, policy, now)), "expired"
        marked = intend(record.priority, now, dispatched=dispatched_since(record) is not None)
        return decision.model_copy(update={"record": with_ledger(record, marked)}), "send"

    def do(self, runtime: Runtime, arn: str) -> Self:
        runtime.batch.set_priority(arn, self.wish.value)
        return self

    def withdraw(self, record: JobRecord) -> Decision:
        return Decision(record=with_ledger(record, withdraw(record.priority, self.wish.version)))

    def refused(self, record: JobRecord, why: str, policy: Policy, now: int) -> Decision:
        return refused_wish(record, self.wish.version, why, policy, now)

    def confirm(self, record: JobRecord, policy: Policy, now: int) -> Decision:
        sent = record.priority.sent
        if sent is None or sent.version != self.wish.version:
            return Decision(record=record)
        ledger, done = confirm(record.priority, now)
        return Decision(record=with_ledger(record, ledger), facts=ledger_facts(record, done, policy))

    def drop(self, record: JobRecord, why: str, policy: Policy, now: int) -> Decision:
        return drop_wish(record, self.wish, why, policy, now)
