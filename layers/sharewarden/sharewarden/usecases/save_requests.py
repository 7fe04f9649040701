"""Saves are asked for ahead of a wish that may push running jobs out: who waits for them, and until when.

``apply`` begins a request and waits; ``watch``, which alone reaches S3, asks and looks for the answers
(``save_answers.py``); the sweep puts on record what nobody settled. The wait ends at its time, whatever
becomes of the rest, so nothing here can keep a wish for longer.
"""

from contextlib import suppress

from sharewarden.domain.observation import JobDescription
from sharewarden.domain.policy import Policy
from sharewarden.domain.priority import Wish
from sharewarden.domain.record import JobRecord
from sharewarden.domain.save_request import (
    SaveRequest,
    can_wait,
    raises_waiting,
    request_fact,
    request_key,
    settled,
    share_arn,
)
from sharewarden.domain.share import ShareRecord
from sharewarden.domain.stored import MINUTE
from sharewarden.ports import Conflict, Runtime, Unavailable

#: The last step of a request may come so much later than its time; what is open then, the sweep settles.
LATE = 2 * MINUTE


def saves_awaited(
    runtime: Runtime, record: JobRecord, wish: Wish, description: JobDescription, policy: Policy
) -> bool:
    """Whether the wish is to wait for saves; they are asked for if that was not begun yet.

    Raises Unavailable when the ledger could not be asked. A queue of looks that does not answer costs the
    answers, not the wish.
    """
    wait = policy.checkpoints.ask_before_bump
    if wait is None or not raises_waiting(record, wish, description):
        return False
    now = runtime.clock.now()
    request = runtime.ledger.load(SaveRequest, request_key(record.job, wish.version))
    if request is None and can_wait(wish, wait, now):
        request = _begun(runtime, record, wish, now, now + wait)
    if request is None or request.settled_at is not None or now >= request.until:
        return False
    with suppress(Unavailable):
        runtime.looks.send(record.job, 0, wish.version)  # also when it was sent before: that may be lost
    return True


def _begun(runtime: Runtime, record: JobRecord, wish: Wish, now: int, until: int) -> SaveRequest | None:
    """The request, kept; None where no job of the share can be pushed out, or none can be asked."""
    share = runtime.ledger.load(ShareRecord, share_arn(record))
    if share is None or share.description is None or not share.description.in_share_preemption:
        return None
    if not runtime.checkpoint_buckets:
        return None
    request = SaveRequest(
        job=record.job, wish=wish.version, queue=record.queue, value=wish.value, asked_at=now, until=until
    )
    with suppress(Conflict):  # another delivery of the wish has begun it
        runtime.ledger.commit([request], [], now)
    return runtime.ledger.load(SaveRequest, request.key)


def settle_overdue(runtime: Runtime, queue: str, policy: Policy, now: int) -> None:
    """Put on record what was asked for and not settled in time. Raises Unavailable."""
    for request in runtime.ledger.open_items(SaveRequest, queue):
        if request.until + LATE <= now:
            with suppress(Conflict):  # or the index lags behind: then it is settled
                settle(runtime, request, policy)


def settle(runtime: Runtime, request: SaveRequest, policy: Policy) -> JobRecord | None:
    """End the request with its one audit record. Returns the record of the job that waits for it.

    Raises Conflict when somebody else has changed it, and Unavailable.
    """
    now = runtime.clock.now()
    record, after = runtime.ledger.load(JobRecord, request.job), settled(request, now)
    facts = () if record is None else request_fact(after, record, policy)
    runtime.ledger.commit([after], facts, now)
    return record
