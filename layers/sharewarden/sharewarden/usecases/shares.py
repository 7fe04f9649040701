"""The sweep's look at the quota shares: a change that CloudTrail did not tell of is found here."""

from sharewarden.domain.audit import AuditFact, subject_key
from sharewarden.domain.observation import ShareDescription
from sharewarden.domain.share import KEPT_CHANGES, FoundChange, ShareRecord, content_hash
from sharewarden.ports import Conflict, Runtime


def sweep_shares(runtime: Runtime, queue: str) -> int:
    """Compare the queue's shares with their records; the number of changes nobody had told of.

    Raises Unavailable. A share that CloudTrail tells of at this moment is left to the next sweep.
    """
    now = runtime.clock.now()
    seen = {share.arn: share for share in runtime.batch.shares(queue)}
    known = {record.arn: record for record in runtime.ledger.open_items(ShareRecord, queue)}
    # A share without a record was not there at the last look; before the first look nobody can tell.
    looked_at = max((record.read_at for record in known.values()), default=0)
    return sum(
        _look(runtime, ShareRecord(arn=arn, queue=queue, read_at=looked_at), seen.get(arn), now)
        for arn in sorted(seen.keys() | known.keys())
    )


def _look(runtime: Runtime, new: ShareRecord, seen: ShareDescription | None, now: int) -> int:
    stored = runtime.ledger.load(ShareRecord, new.arn)
    record = stored or new
    changed = seen != record.description
    if stored is not None and not changed and not record.told:
        return 0
    update: dict[str, object] = {"description": seen, "read_at": now, "told": False}
    facts: list[AuditFact] = []
    if record.read_at and changed and not record.told:
        facts = [_found(record, seen, now)]
        found = FoundChange(after=record.read_at, before=now, key=facts[0].key)
        update["found"] = (*record.found, found)[-KEPT_CHANGES:]
    try:
        runtime.ledger.commit([record.model_copy(update=update)], facts, now)
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
