"""The last step of a case: everything that there is to say of it is on record."""

from sharewarden.domain.preemption.case import without_mistake

from .frame import Care, Taken


def close(care: Care) -> Taken:
    """The case closed; it is forgotten some time after. A mistaken one leaves room for a real one."""
    closed = care.case.model_copy(update={"closed_at": care.now})
    if closed.outcome != "mistaken":
        return Taken(closed)
    return Taken(closed, record=without_mistake(care.record, closed))
