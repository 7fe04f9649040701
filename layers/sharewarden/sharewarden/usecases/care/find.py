"""The step that looks for the newest complete checkpoint that the attempt left."""

from sharewarden.domain.preemption.before_stop import saved_before_next
from sharewarden.domain.preemption.case import Sight
from sharewarden.ports import Denied
from sharewarden.usecases.checkpoints import Looked, newest

from .frame import Care, Taken


def find(care: Care) -> Taken:
    """One look below the job's S3Uri. What S3 refuses is not known. Raises Unavailable."""
    case, uri = care.case, care.record.checkpoint_uri
    if uri is None or case.sight is not None:
        return Taken(case)
    try:
        looked = look(care, uri)
    except Denied:
        return Taken(case.model_copy(update={"sight": "unknown"}))
    save = looked.save or (case.save if looked.partial else None)
    return Taken(case.model_copy(update={"save": save, "sight": _sight(looked)}))


def look(care: Care, uri: str) -> Looked:
    """What is below ``uri``, without what later attempts saved. Raises Unavailable, Denied."""
    counts = saved_before_next(care.record, care.case.attempt)
    return newest(care.runtime, uri, care.policy.checkpoints.patterns, care.now, counts)


def _sight(looked: Looked) -> Sight:
    if looked.save is not None:
        return "found"
    return "unknown" if looked.partial else "none"
