"""Jobs that save to one place: what lies there without the name of a training job may be of any of them."""

from sharewarden.domain.checkpoints import Save, place_of
from sharewarden.domain.record import JobRecord
from sharewarden.ports import Runtime


def may_be_of(runtime: Runtime, record: JobRecord, save: Save, since: int) -> str | None:
    """Name of another job of the queue that may have made the save; None: nobody else saves there.

    Only a save that does not name its training job raises the question, and only jobs that had not ended by
    ``since``. Raises Unavailable.
    """
    if save.training_job is not None or record.checkpoint_uri is None:
        return None
    others = runtime.ledger.open_items(JobRecord, record.queue)
    found = (
        one.name
        for one in others
        if one.job != record.job
        and (one.end is None or one.end.at >= since)
        and _overlap(record.checkpoint_uri, one.checkpoint_uri)
    )
    return next(found, None)


def _overlap(one: str, other: str | None) -> bool:
    """Whether one of the two places lies in the other."""
    try:
        here, there = place_of(one), place_of(other or "")
    except ValueError:
        return False
    inside = here.prefix.startswith(there.prefix) or there.prefix.startswith(here.prefix)
    return here.bucket == there.bucket and inside
