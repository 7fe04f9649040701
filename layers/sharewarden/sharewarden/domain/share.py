"""The share record: what a quota share was last seen to be."""

import hashlib
from typing import ClassVar

from .observation import ShareDescription
from .stored import Stored


class ShareRecord(Stored):
    """One quota share. ``told_at`` is the newest CloudTrail event about it that was put on record."""

    item: ClassVar[str] = "SHARE"

    arn: str
    queue: str
    description: ShareDescription | None = None
    """None: deleted, or known only from CloudTrail so far."""
    read_at: int = 0
    told_at: int = 0
    changed_between: tuple[int, int] | None = None
    """The reads around the last change that no CloudTrail event had told of, for its late attribution."""
    change_key: str | None = None
    """The audit key of that change."""

    @property
    def key(self) -> str:
        return self.arn

    @property
    def open_queue(self) -> str | None:
        """Found by queue as long as the share exists."""
        return None if self.read_at and self.description is None else self.queue


def content_hash(description: ShareDescription | None) -> str:
    """Names the exact settings of a share; ``deleted`` when there is none."""
    if description is None:
        return "deleted"
    return hashlib.sha256(description.model_dump_json().encode()).hexdigest()[:16]
