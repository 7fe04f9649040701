"""How often a job should save, by what its saves take and how often jobs of its share are preempted."""

from collections.abc import Iterable

from .base import Frozen
from .checkpoints import Save, best_interval
from .preemption.holding import stays
from .record import JobRecord


class Experience(Frozen):
    """What jobs of a share have met: how long attempts of theirs ran in all (ms), how many were preempted."""

    ran: int = 0
    preemptions: int = 0


class Advice(Frozen):
    """The interval between saves that costs least, and what it follows from; times in milliseconds."""

    interval: int
    took: int
    between_preemptions: int
    preemptions: int


def experience(records: Iterable[JobRecord], share: str, now: int) -> Experience:
    """Of the records of one queue, by their share. What ran without anybody telling when is left out."""
    found = [_of_one(record, now) for record in records if record.share == share]
    return Experience(ran=sum(one.ran for one in found), preemptions=sum(one.preemptions for one in found))


def advise(save: Save | None, met: Experience) -> Advice | None:
    """None where the save does not tell what it took, or nobody was preempted: then nothing is known."""
    if save is None or not save.took or not met.preemptions:
        return None
    between = met.ran // met.preemptions
    return Advice(
        interval=best_interval(save.took, between),
        took=save.took,
        between_preemptions=between,
        preemptions=met.preemptions,
    )


def _of_one(record: JobRecord, now: int) -> Experience:
    preempted = {one.training_job for one in record.attempts if one.preempted}
    ran = [(stay, stay.running_at) for stay in stays(record) if stay.running_at is not None]
    return Experience(
        ran=sum(max(0, (stay.until or now) - since) for stay, since in ran),
        preemptions=sum(stay.attempt in preempted for stay, _ in ran),
    )
