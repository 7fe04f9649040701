"""The audit of whole queues, for commands that report on it."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple

from sharewarden.domain.audit import AuditRecord
from sharewarden.domain.base import last_part
from sharewarden.domain.share import ShareRecord, deleted_under
from sharewarden.ports import Runtime

from sharewarden_tools.operations.progress import Tell, progress

from .output import BadInput


class Wanted(NamedTuple):
    """Records of these kinds from ``since`` to ``until``; of all shares where none is named."""

    kinds: Container[str]
    since: int
    until: int
    share: str | None = None


def read_audit(runtime: Runtime, queues: Sequence[str], wanted: Wanted) -> list[AuditRecord]:
    """The records of these queues, share by share, oldest first. Raises Unavailable."""
    with progress() as tell:
        return [
            fact
            for queue in queues
            for share in _shares(runtime, queue, wanted.share)
            for fact in _found(runtime, queue, share, wanted, tell)
        ]


def queues_of(runtime: Runtime, wanted: str | None) -> Sequence[str]:
    """ARNs. Raises BadInput for a queue that the stack does not look after."""
    queues = sorted(runtime.queues)
    found = [arn for arn in queues if wanted in (None, arn, last_part(arn))]
    if not found:
        raise BadInput(f"--queue: {wanted} is not looked after; there is {', '.join(map(last_part, queues))}")
    return found


def _shares(runtime: Runtime, queue: str, wanted: str | None) -> Sequence[str]:
    """Every share that is or was, or that the policy names, and none: a fact may come before the share."""
    if wanted is not None:
        return [wanted]
    places = (queue, deleted_under(queue))
    recorded = {
        last_part(one.arn) for place in places for one in runtime.ledger.open_items(ShareRecord, place)
    }
    return sorted({"", *recorded, *runtime.policies.current().queue(queue).shares})


def _found(runtime: Runtime, queue: str, share: str, wanted: Wanted, tell: Tell) -> Iterator[AuditRecord]:
    tell(f"reading the audit of {share or 'no share'} in {last_part(queue)}")
    for fact in runtime.audit.by_share(queue, share, wanted.since, wanted.until):
        if fact.kind in wanted.kinds:
            yield fact
