"""The sweep's look at the quota shares: a change that CloudTrail did not tell of is found here."""

from collections.abc import Sequence
from typing import NamedTuple

from sharewarden.domain.audit import AuditFact, subject_key
from sharewarden.domain.base import last_part
from sharewarden.domain.guardrails import Failed
from sharewarden.domain.known import KnownShares
from sharewarden.domain.observation import ShareDescription
from sharewarden.domain.other_scopes import Found, guard_change, has_scope
from sharewarden.domain.policy import Policy
from sharewarden.domain.rules.facts import ShareChangeFacts
from sharewarden.domain.share import (
    KEPT_CHANGES,
    FoundChange,
    ShareRecord,
    content_hash,
    judged,
    unjudged,
    with_lowered,
)
from sharewarden.ports import Conflict, Runtime

from .outside import commit_found


class Compared(NamedTuple):
    """Changes that nobody had told of, rows of Batch's answer that could not be read, and the others."""

    changes: int
    odd: int
    shares: KnownShares


class _Look(NamedTuple):
    """When Batch was asked, and when its answer had come: a change in between may be in it or not."""

    policy: Policy
    failed: Failed
    asked_at: int
    answered_at: int


def sweep_shares(runtime: Runtime, queue: str, policy: Policy, failed: Failed) -> Compared:
    """Compare the queue's shares with their records, and what changed with the policy.

    Raises Unavailable. A share that CloudTrail tells of at this moment is left to the next sweep.
    """
    asked_at = runtime.clock.now()
    answer = runtime.batch.shares(queue)
    look = _Look(policy, failed, asked_at, runtime.clock.now())
    seen = {share.arn: share for share in answer.shares}
    known = {record.arn: record for record in runtime.ledger.open_items(ShareRecord, queue)}
    # A share without a record was not there at the last look; before the first look nobody can tell.
    looked_at = max((record.read_at for record in known.values()), default=0)
    arns = seen.keys() if answer.odd else seen.keys() | known.keys()
    changes = sum(
        _compare(runtime, ShareRecord(arn=arn, queue=queue, read_at=looked_at), seen.get(arn), look)
        for arn in sorted(arns)
    )
    return Compared(changes, answer.odd, KnownShares(shares=answer.shares, whole=answer.odd == 0))


def _compare(runtime: Runtime, new: ShareRecord, seen: ShareDescription | None, look: _Look) -> int:
    stored = runtime.ledger.load(ShareRecord, new.arn)
    record = stored or new
    changed = seen != record.description
    waiting = unjudged(record, look.asked_at)
    if stored is not None and not changed and not record.told and not waiting:
        return 0
    facts = [_found(record, seen, look.asked_at)] if record.read_at and changed and not record.told else []
    update = {"description": seen, "read_at": look.asked_at, "told": False}
    known = with_lowered(_with_found(record, facts, look), seen, look.answered_at)
    after = judged(known, waiting).model_copy(update=update)
    more = _judged(record.queue, waiting, record.arn.rpartition("/")[2], look)
    try:
        commit_found(runtime, [after], facts, more)
    except Conflict:
        return 0
    return len(facts)


def _with_found(record: ShareRecord, facts: Sequence[AuditFact], look: _Look) -> ShareRecord:
    """The record that remembers the changes, for who made them."""
    found = tuple(
        FoundChange(
            after=record.read_at,
            before=look.answered_at,
            key=fact.key,
            change=f"from {fact.before} to {fact.after}",
            judged=not has_scope(look.policy, "share-change"),
        )
        for fact in facts
    )
    return record.model_copy(update={"found": (*record.found, *found)[-KEPT_CHANGES:]})


def _judged(queue: str, waiting: Sequence[FoundChange], name: str, look: _Look) -> Found:
    """What guardrails find in changes that nobody is known to have made."""
    found = Found()
    for one in waiting:
        facts = ShareChangeFacts(now=one.before, queue=last_part(queue), share=name, change=one.change)
        more = guard_change(one.key, queue, facts, look.policy, look.failed)
        found = Found(found.facts + more.facts, found.notices + more.notices)
    return found


def _found(record: ShareRecord, seen: ShareDescription | None, now: int) -> AuditFact:
    name = record.arn.rpartition("/")[2]
    return AuditFact(
        key=subject_key("quota-share-change", record.queue, name, content_hash(seen), record.read_at),
        kind="quota-share-change",
        at=now,
        queue=record.queue,
        share=name,
        actor="unknown",
        before=_shown(record.description),
        after=_shown(seen),
        reason="found by the sweep: no CloudTrail event has told of it",
        figures={"not_before": record.read_at},
    )


def _shown(description: ShareDescription | None) -> str:
    return "absent" if description is None else description.model_dump_json(exclude={"arn", "queue"})
