"""What the State table keeps: versioned values that are replaced whole."""

from typing import ClassVar

from .base import Frozen

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

#: How long a finished thing is remembered: longer than the 14 days a dead-letter queue keeps a message.
KEEP_AFTER_END = 30 * DAY


class Stored(Frozen):
    """An item of the State table. ``version`` 0 means it was never written.

    A commit replaces the item only if the stored version is still the one read, and raises it by one.
    """

    item: ClassVar[str]
    version: int = 0

    @property
    def key(self) -> str:
        """The item's key among its kind."""
        raise NotImplementedError

    @property
    def expires_at(self) -> int | None:
        """When the item may be forgotten; None: never."""
        return None

    @property
    def open_queue(self) -> str | None:
        """The queue under which the sweep still looks at the item; None: no longer."""
        return None


class Closing(Stored):
    """An item that the sweeps of its queue look at until it is closed."""

    queue: str
    closed_at: int | None = None
    """When nothing was left to do: it leaves the open index, and is forgotten some time after."""

    @property
    def expires_at(self) -> int | None:
        return None if self.closed_at is None else self.closed_at + KEEP_AFTER_END

    @property
    def open_queue(self) -> str | None:
        return self.queue if self.closed_at is None else None
