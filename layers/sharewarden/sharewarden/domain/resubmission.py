"""The job to submit in place of one whose preemption retries ran out, as the old job's record keeps it.

Its name and client token follow from the old job alone: whoever carries the wish out, however often, asks
Batch for the same job. ``apply`` alone does; what is decided about a record is in ``resubmitting.py``.
"""

import hashlib
import re
from typing import Any, Literal

from pydantic import Field

from .base import Frozen
from .stored import DAY

#: Tags of a job that we submitted: its number in the lineage, and the job that it replaces.
NUMBER_TAG = "sharewarden-resubmission"
PREDECESSOR_TAG = "sharewarden-resubmission-of"
#: A resubmission that could not be done for so long is given up: later it would surprise people.
LIFE = DAY
#: Characters of a job name, and tags of a job (Batch user guide, service_limits; API_SubmitServiceJob).
LONGEST_NAME = 128
MOST_TAGS = 50

_OUR_SUFFIX = re.compile(r"-r\d{1,4}-[0-9a-f]{10}$")
_NUMBER = re.compile(r"[0-9]{1,4}")

Tags = tuple[tuple[str, str], ...]
ResubmissionEnd = Literal["done", "refused"]


class Submission(Frozen):
    """What a job was submitted with, as DescribeServiceJob shows it: enough to submit it once more.

    The payload may hold secrets, so it is never part of a text.
    """

    name: str
    queue: str
    kind: str
    payload: str = Field(repr=False)
    share: str | None = None
    priority: int | None = None
    retry: dict[str, Any] | None = None
    time_limit: dict[str, Any] | None = None
    preemption: dict[str, Any] | None = None
    tags: Tags = ()


class Resubmission(Frozen):
    """A wish for one more job of the lineage. A job has one at most, for ever."""

    id: str
    name: str
    """Of the new job."""
    token: str
    number: int
    """1: the first resubmission of the lineage."""
    tags: Tags
    """What the new job has beside the old one's tags."""
    attempt: str
    """ARN of the old job's last attempt: the key of its case."""
    save: str | None
    """The checkpoint set that the new job can go on from; None: there is none, and the policy allows that."""
    step: int | None
    created_at: int
    not_after: int
    released_at: int = 0
    """When a sweep last gave it to ``apply``; 0: never."""
    refusals: int = 0
    unsure: bool = False
    """What came of an earlier call was never known."""
    sent_at: int | None = None
    """Since when it is under way: committed before the call, and its outcome is not known yet."""
    priority: int | None = None
    """The base, as of ``sent_at``."""
    retries: int | None = None
    """The most preemption retries that the policy allows, as of ``sent_at``."""
    withdrawn: str = ""
    """Why it is not wanted any more: it is looked for, and not submitted."""
    end: ResubmissionEnd | None = None
    ended_at: int | None = None
    next_job: str | None = None
    """ARN of the new job."""

    @property
    def in_doubt(self) -> bool:
        """The new job may be there: before the wish is given up it has to be looked for."""
        return self.unsure or self.sent_at is not None


def find_open_resubmission(wish: Resubmission | None, act: str) -> Resubmission | None:
    """The wish, if it has that id and has not ended."""
    return wish if wish is not None and wish.id == act and wish.end is None else None


def is_open(wish: Resubmission | None) -> bool:
    return wish is not None and wish.end is None


def number_of(tags: Tags) -> int | None:
    """The number of the resubmission that the job is: 0 for one of people; None: the tag makes no sense."""
    text = dict(tags).get(NUMBER_TAG)
    if text is None:
        return 0
    return int(text) if _NUMBER.fullmatch(text) else None


def with_our_tags(tags: Tags, ours: Tags) -> Tags:
    """The old job's tags with ours; AWS keeps those that begin with ``aws:`` to itself."""
    kept = {name: value for name, value in tags if not name.lower().startswith("aws:")}
    return tuple(sorted((kept | dict(ours)).items()))


def new_name(old: str, job: str, number: int) -> str:
    """The old name with a suffix that no other job's resubmission has; one of ours is replaced."""
    suffix = f"-r{number}-{_digest(job, number)[:10]}"
    kept = _OUR_SUFFIX.sub("", old) if number > 1 else old
    return kept[: LONGEST_NAME - len(suffix)] + suffix


def new_token(job: str, number: int) -> str:
    """The client token: 64 characters, which is the most there may be."""
    return _digest(job, number)


def successor(old: Submission, wish: Resubmission) -> Submission:
    """What to submit: all as it was, under the wish's name, at the base priority, within its retries."""
    return old.model_copy(
        update={
            "name": wish.name,
            "priority": old.priority if wish.priority is None else wish.priority,
            "preemption": _bounded(old.preemption, wish.retries),
            "tags": with_our_tags(old.tags, wish.tags),
        }
    )


def _bounded(preemption: dict[str, Any] | None, most: int | None) -> dict[str, Any] | None:
    retries = (preemption or {}).get("preemptionRetriesBeforeTermination")
    if most is None or (retries is not None and 0 <= retries <= most):
        return preemption
    return {**(preemption or {}), "preemptionRetriesBeforeTermination": most}


def _digest(job: str, number: int) -> str:
    return hashlib.sha256(f"resubmission {number} of {job}".encode()).hexdigest()
