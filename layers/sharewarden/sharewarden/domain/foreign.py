"""Jobs of other queues: preemption events are account-wide and name no queue."""

from typing import ClassVar

from .stored import DAY, Stored


class ForeignJob(Stored):
    """A job that Describe showed to be in a queue that is not ours: remembered briefly, never audited."""

    item: ClassVar[str] = "FOREIGN"

    job: str
    seen_at: int

    @property
    def key(self) -> str:
        return self.job

    @property
    def expires_at(self) -> int | None:
        return self.seen_at + DAY
