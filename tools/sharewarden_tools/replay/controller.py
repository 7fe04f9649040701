"""What may stand beside Batch during a replay: it may set priorities, as Sharewarden does in an account."""

from __future__ import annotations

from typing import Protocol

from sharewarden_tools.lab import Lab
from sharewarden_tools.lab.world import Json


class Hand:
    """What a controller reaches of the pool, by Batch's own operations. Jobs are named by their ids."""

    def __init__(self, lab: Lab, queue: str) -> None:
        self.lab = lab
        self.queue = queue

    def now(self) -> int:
        """Epoch ms, of the replay."""
        return self.lab.now()

    def describe(self, job: str) -> Json:
        """What DescribeServiceJob answers: priority, share, tags, payload, attempts."""
        return self.lab.operations["batch"]["DescribeServiceJob"]({"jobId": job})

    def set_priority(self, job: str, priority: int) -> None:
        """UpdateServiceJob. Raises ApiError for a job that has ended."""
        self.lab.operations["batch"]["UpdateServiceJob"]({"jobId": job, "schedulingPriority": priority})


class Controller(Protocol):
    """Asked when the state of a job has changed, and at the times that it names."""

    name: str

    def begin(self, hand: Hand) -> None:
        """The pool is there, no job was submitted yet."""

    def changed(self, job: str, status: str) -> None:
        """The job is in that state of Batch now; a submission makes no event, so the first is RUNNABLE."""

    def next_due(self) -> int | None:
        """When it wants to be asked next, epoch ms; None: with the next change."""

    def due(self) -> None:
        """That time has come. It has to name a later one, or none."""


class Native:
    """Batch alone."""

    name = "native"

    def begin(self, hand: Hand) -> None:
        """Nothing is needed."""

    def changed(self, job: str, status: str) -> None:
        """Nothing is done."""

    def next_due(self) -> int | None:
        return None

    def due(self) -> None:
        """Never asked."""
