"""The sweep's look at the quota shares: a change that CloudTrail did not tell of is found here."""

from typing import NamedTuple

from sharewarden.domain.audit import AuditFact, subject_key
from sharewarden.domain.known import KnownShares
from sharewarden.domain.observation import ShareDescription
from sharewarden.domain.share import KEPT_CHANGES, FoundChange, ShareRecord, content_hash
from sharewarden.ports import Conflict, Runtime


class Compared(NamedTuple):
    """Changes that nobody had told of, rows of Batch's answer that could not be read, and the others."""

    changes: int
    odd: int
    shares: KnownShares


class _Look(NamedTuple):
    """When Batch was asked, and when its answer had come: a change in between may be in it or not."""

    asked_at: int
    answered_at: int


def sweep_shares(runtime: Runtime, queue: str) -> Compared:
    """Compare the queue's shares with their records.

    Raises Unavailable. A share that CloudTrail tells of at this moment is left to the next sweep.
    """
    asked_at = runtime.clock.now()
    answer = runtime.batch.shares(queue)
    when = _Look(asked_at, runtime.clock.now())
    seen = {share.arn: share for share in answer.shares}
    known = {record.arn: record for record in runtime.ledger.open_items(ShareRecord, queue)}
    # A share without a record was not there at the last look; before the first look nobody can tell.
    looked_at = max((record.read_at for record in known.values()), default=0)
    arns = seen.keys() if answer.odd else seen.keys() | known.keys()
    changes = sum(
        _compare(runtime, ShareRecord(arn=arn, queue=queue, read_at=looked_at), seen.get(arn), when)
        for arn in sorted(arns)
    )
    return Compared(changes, answer.odd, KnownShares(shares=answer.shares, whole=answer.odd == 0))


def _compare(runtime: Runtime, new: ShareRecord, seen: ShareDescription | None, when: _Look) -> int:
    stored = runtime.ledger.load(ShareRecord, new.arn)
    record = stored or new
    changed = seen != record.description
    if stored is not None and not changed and not record.told:
        return 0
    update: dict[str, object] = {"description": seen, "read_at": when.asked_at, "told": False}
    facts: list[AuditFact] = []
    if record.read_at and changed and not record.told:
        facts = [_found(record, seen, when.asked_at)]
        found = FoundChange(after=record.read_at, before=when.answered_at, key=facts[0].key)
        update["found"] = (*record.found, found)[-KEPT_CHANGES:]
    try:
        runtime.ledger.commit([record.model_copy(update=update)], facts, when.answered_at)
    except Conflict:
        return 0
    return len(facts)


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
