"""The resubmission of an exhausted job, as ``apply`` carries it out: never twice, whatever is lost.

The new job's name follows from the old job alone. It is looked for before the call, and after one that Batch
refused or whose outcome is not known: a repeated client token is rejected without the id of the first job
(Batch API reference, SubmitServiceJob). What is found is done.
"""

from dataclasses import dataclass, replace
from typing import Literal, Self

from sharewarden.domain.base import last_part
from sharewarden.domain.decide import Decision, decide_read, joined
from sharewarden.domain.observation import JobDescription
from sharewarden.domain.policy import Policy
from sharewarden.domain.priority import IN_FLIGHT
from sharewarden.domain.record import JobRecord
from sharewarden.domain.resubmission import (
    PREDECESSOR_TAG,
    Resubmission,
    find_open_resubmission,
    successor,
)
from sharewarden.domain.resubmitting import (
    TOO_LATE,
    done,
    given_up,
    looked_for,
    not_sent,
    objection,
    refused,
    sent,
)
from sharewarden.ports import Denied, Runtime, Unavailable

from .deed import Verdict


@dataclass(frozen=True)
class Resubmit:
    """Deed: one more job in place of the old one; ``made`` is its ARN, once it is there."""

    wish: Resubmission
    made: str | None = None

    @classmethod
    def wanted(cls, record: JobRecord, act: str) -> Self | None:
        """The deed, while that act is open."""
        wish = find_open_resubmission(record.resubmission, act)
        return None if wish is None else cls(wish)

    def waits(self, _record: JobRecord, policy: Policy) -> Literal["paused", "shadow"] | None:
        return policy.resubmission_stops

    def judge(
        self, record: JobRecord, description: JobDescription, policy: Policy, now: int
    ) -> tuple[Decision, Verdict]:
        decision = decide_read(record, description, policy)
        record = decision.record
        wish = find_open_resubmission(record.resubmission, self.wish.id)
        if wish is None:
            return decision, "settled"
        if wish.sent_at is not None and abs(now - wish.sent_at) < IN_FLIGHT:
            return decision, "busy"
        why = wish.withdrawn or _against(record, wish, description, policy, now)
        if why and not wish.in_doubt:
            return joined(decision, given_up(record, why, policy, now)), "settled"
        marked = looked_for(record, why, now) if why else sent(record, policy, now)
        return decision.model_copy(update={"record": marked}), "send"

    def do(self, runtime: Runtime, arn: str) -> Self:
        record = runtime.ledger.load(JobRecord, last_part(arn))
        wish = None if record is None else find_open_resubmission(record.resubmission, self.wish.id)
        if record is None or wish is None:
            raise Unavailable(f"job {last_part(arn)}: somebody else has settled the resubmission meanwhile")
        if found := _found(runtime, record, wish):
            return replace(self, made=found)
        if wish.withdrawn:
            raise Denied(wish.withdrawn)
        return replace(self, made=_submit(runtime, record, wish))

    def withdraw(self, record: JobRecord) -> Decision:
        return Decision(record=not_sent(record) if self._is_open(record) else record)

    def refused(self, record: JobRecord, why: str, policy: Policy, now: int) -> Decision:
        return refused(record, why, policy, now) if self._is_open(record) else Decision(record=record)

    def confirm(self, record: JobRecord, policy: Policy, now: int) -> Decision:
        if self.made is None or not self._is_open(record):
            return Decision(record=record)
        return done(record, self.made, policy, now)

    def drop(self, record: JobRecord, why: str, policy: Policy, now: int) -> Decision:
        wish = find_open_resubmission(record.resubmission, self.wish.id)
        if wish is None or wish.sent_at is not None:
            return Decision(record=record)
        return given_up(record, why, policy, now)

    def _is_open(self, record: JobRecord) -> bool:
        return find_open_resubmission(record.resubmission, self.wish.id) is not None


def _against(
    record: JobRecord, wish: Resubmission, description: JobDescription, policy: Policy, now: int
) -> str | None:
    """Why the job, as Batch just showed it, is not to be submitted again; None when it is."""
    if description.status != "FAILED":
        return f"Batch shows the job as {description.status}"
    if description.terminated:
        return "somebody has terminated the job"
    return TOO_LATE if now > wish.not_after else objection(record, wish, policy)


def _submit(runtime: Runtime, record: JobRecord, wish: Resubmission) -> str:
    old = runtime.batch.submission(record.arn)
    if old is None:
        raise Unavailable(f"job {record.job}: Batch has forgotten it since it was asked")
    try:
        return runtime.batch.submit(successor(old, wish), wish.token)
    except (Denied, Unavailable):
        if found := _found(runtime, record, wish):
            return found
        raise


def _found(runtime: Runtime, record: JobRecord, wish: Resubmission) -> str | None:
    """The ARN of the new job, if it is there. Raises Denied when the name is somebody else's, Unavailable."""
    rows = runtime.batch.named(record.queue, wish.name)
    for row in rows:
        if _is_ours(runtime, row.arn, record):
            return row.arn
    if rows:
        raise Denied(f"the name {wish.name} is taken by {rows[0].arn}, which is not ours")
    return None


def _is_ours(runtime: Runtime, arn: str, record: JobRecord) -> bool:
    """By the tag that names the old job, and by the share: nobody else has reason to give a job both."""
    description = runtime.batch.describe(arn)
    if description is None:
        raise Unavailable(f"job {last_part(arn)}: Batch lists it, and does not know it")
    told = dict(description.tags).get(PREDECESSOR_TAG)
    return (told, description.share) == (record.job, record.share)
