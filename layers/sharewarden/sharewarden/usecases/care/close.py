"""The last step of a case: everything that there is to say of it is on record."""

from .frame import Care, Taken


def close(care: Care) -> Taken:
    """The case closed; it is forgotten some time after the job."""
    return Taken(care.case.model_copy(update={"closed_at": care.now}))
