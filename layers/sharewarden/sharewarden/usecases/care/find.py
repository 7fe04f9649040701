"""The step that looks for the newest complete checkpoint that the attempt left."""

from sharewarden.domain.checkpoints import Save
from sharewarden.domain.preemption.before_stop import saved_before_next
from sharewarden.domain.preemption.case import Sight
from sharewarden.domain.preemption.holding import stay_of
from sharewarden.ports import Denied
from sharewarden.usecases.checkpoints import Looked, newest

from .frame import Care, Taken
from .neighbours import may_be_of


def find(care: Care) -> Taken:
    """One look below the job's S3Uri. What S3 refuses is not known. Raises Unavailable."""
    case, uri = care.case, care.record.checkpoint_uri
    if uri is None or case.sight is not None:
        return Taken(case)
    try:
        looked = look(care, uri)
    except Denied:
        return Taken(case.model_copy(update={"sight": "unknown"}))
    known = case.save if looked.partial and case.save and not _is_doubtful(care, case.save) else None
    save = looked.save or known
    return Taken(case.model_copy(update={"save": save, "sight": _sight(looked)}))


def look(care: Care, uri: str) -> Looked:
    """What is below ``uri``, without what later attempts saved. Raises Unavailable, Denied.

    A save that may be another job's leaves open what this one had saved.
    """
    counts = saved_before_next(care.record, care.case.attempt)
    looked = newest(care.runtime, uri, care.policy.checkpoints.patterns, care.now, counts)
    if looked.save is None or not _is_doubtful(care, looked.save):
        return looked
    return looked.model_copy(update={"save": None, "partial": True})


def _is_doubtful(care: Care, save: Save) -> bool:
    own = stay_of(care.record, care.case.attempt)
    since = care.record.created_at if own is None else own.since
    return may_be_of(care.runtime, care.record, save, since) is not None


def _sight(looked: Looked) -> Sight:
    if looked.save is not None:
        return "found"
    return "unknown" if looked.partial else "none"
