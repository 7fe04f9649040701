"""Jobs whose events nobody could place: a record takes them in, or the sweep gives them up."""

from collections.abc import Iterator, Sequence

from sharewarden.domain.audit import AuditFact
from sharewarden.domain.decide import decide
from sharewarden.domain.observation import SETTLE, JobDescription, JobObservation
from sharewarden.domain.record import JobRecord, fold, new_record
from sharewarden.domain.stored import Stored
from sharewarden.domain.untraced import NOWHERE, UntracedJob, untraceable_fact
from sharewarden.ports import Conflict, Runtime

from .care.start import unopened


def begin(runtime: Runtime, seen: JobObservation | JobDescription) -> tuple[JobRecord, list[Stored]]:
    """A record for a job that has none, with the events that waited for it, and what to commit beside it.

    The only way to make one. A job that is older than events may be late was there before us, whoever tells
    of it. Raises ValueError when ``seen`` does not name the queue, and Unavailable.
    """
    record, waiting = new_record(seen), runtime.ledger.load(UntracedJob, seen.job)
    now = runtime.clock.now()
    if now - record.created_at >= SETTLE:
        record = record.model_copy(update={"adopted": True, "adopted_at": now})
    return (record, []) if waiting is None else _placed(record, waiting, now)


def untraced_for_long(runtime: Runtime, now: int) -> Iterator[UntracedJob]:
    """The jobs of which no event has come for ``SETTLE``. Raises Unavailable."""
    for waiting in runtime.ledger.open_items(UntracedJob, NOWHERE):
        if now - waiting.heard_at >= SETTLE:
            yield waiting


def give_up_untraced(runtime: Runtime, waiting: UntracedJob, now: int) -> None:
    """One gap for a job that nobody will place any more. Raises Unavailable."""
    items: Sequence[Stored] = [_closed(waiting, now)]
    facts: Sequence[AuditFact] = [untraceable_fact(waiting)]
    record = runtime.ledger.load(JobRecord, waiting.job)
    if record is not None:  # it was made while the last event came in
        record, items = _placed(record, waiting, now)
        decision = decide(record, runtime.policies.current())
        items, facts = [decision.record, *items, *unopened(runtime, decision.cases)], decision.facts
    try:
        runtime.ledger.commit(items, facts, now)
    except Conflict:
        return  # an event came in at this moment


def _placed(record: JobRecord, waiting: UntracedJob, now: int) -> tuple[JobRecord, list[Stored]]:
    for event in waiting.events:
        record = fold(record, event)
    return record, [_closed(waiting, now)]


def _closed(waiting: UntracedJob, now: int) -> UntracedJob:
    return waiting.model_copy(update={"closed_at": now})
