"""What was saved of a training: checkpoint sets under the ``S3Uri`` of its checkpoint configuration.

A *set* is what one save wrote; it is *complete* when a training can resume from it. The names and sizes of
objects tell so for the layouts of ``layouts.py``, for our own a manifest has to be read as well
(``manifests.py``). Which sets there are is folded from a listing by ``listing.py``.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from math import isqrt
from statistics import median
from typing import Literal, NamedTuple

from .base import Frozen
from .stored import HOUR

Layout = Literal["manifest", "pytorch", "hugging-face", "pattern"]
State = Literal["complete", "incomplete", "distrusted", "unverified"]

#: A set that is dated further ahead of our clock is distrusted: no skew between two clocks explains it, and
#: it would be the newest for ever. The training helper draws the same line (docs/checkpoint-format.md).
AHEAD = 1 * HOUR
#: So many of the last gaps between saves tell the usual one.
LAST_GAPS = 20

#: What botocore takes for the name of a bucket; an ARN of an access point has a slash, so SageMaker's
#: S3Uri cannot hold one.
_BUCKET = re.compile(r"[A-Za-z0-9._-]{3,255}")
_LONGEST_KEY = 1024


class ObjectSeen(NamedTuple):
    """One object of a listing. ``key`` is what follows the URI, ``modified_at`` S3's time of it, epoch ms."""

    key: str
    size: int
    modified_at: int
    etag: str = ""


class Version(NamedTuple):
    """One version of an object; ``current`` is what a reader gets who asks for none.

    An equal ``etag`` is an equal content; equal contents may have different ones (parts, keys of KMS).
    """

    id: str
    size: int
    etag: str
    current: bool


class Protection(Frozen):
    """What keeps an object from being lost for good once it is deleted or overwritten."""

    versioned: bool
    """Earlier versions are kept: versioning is enabled, not suspended."""
    expires_after_days: int | None = None
    """A lifecycle rule deletes for good so long after: noncurrent versions of a versioned bucket, objects of
    another one."""


class Save(Frozen):
    """A complete set. ``name`` is its folder, or its key, below the URI.

    The last four are told by our manifests alone; None: not known.
    """

    name: str
    step: int | None
    saved_at: int
    size: int
    """Bytes of all its files."""
    files: int
    layout: Layout
    took: int | None = None
    """How long the save took, in milliseconds."""
    interval: int | None = None
    """The usual distance between saves, in milliseconds, by the training itself."""
    training_job: str | None = None
    """Name of the training job (the attempt) that saved it."""
    resumed_from: int | None = None
    """The step from which the process that saved it had gone on."""


class SetSeen(Frozen):
    """A set, complete or not; ``why`` says what keeps it from being complete."""

    name: str
    step: int | None
    saved_at: int
    size: int
    files: int
    layout: Layout
    state: State
    why: str | None = None


class Place(NamedTuple):
    """A bucket and the prefix of every key that belongs there: empty, or with a slash at its end."""

    bucket: str
    prefix: str


def place_of(uri: str) -> Place:
    """The place that ``s3://bucket/prefix`` names: ``prefix-2`` beside it is another one.

    Raises ValueError for anything else, and for a path with ``.`` or ``..``: S3 takes these literally, and
    software between it and us may not.
    """
    scheme, _, rest = uri.partition("://")
    bucket, _, prefix = rest.partition("/")
    if scheme != "s3" or not _BUCKET.fullmatch(bucket):
        raise ValueError(f"{uri!r} is not of the form s3://bucket/prefix")
    if {".", ".."} & set(prefix.split("/")):
        raise ValueError(f"{uri!r} has . or .. in its path")
    if len(prefix.encode(errors="replace")) > _LONGEST_KEY:
        raise ValueError(f"the path of {uri[:60]!r}... is longer than a key can be")
    return Place(bucket, f"{prefix}/" if prefix and not prefix.endswith("/") else prefix)


def inside(uri: str, folder: str) -> str:
    """The URI of a folder below ``uri``; of ``uri`` itself for an empty name."""
    return f"{uri if uri.endswith('/') else uri + '/'}{folder}"


def learn_interval(saved_ats: Sequence[int]) -> int | None:
    """The usual distance between saves in milliseconds: the median of the last gaps; None below two saves.

    The times, epoch ms, in any order; equal ones are one save.
    """
    times = sorted(set(saved_ats))[-(LAST_GAPS + 1) :]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    return int(median(gaps)) if gaps else None


def best_interval(took: int, between_preemptions: int) -> int:
    """How often to save, in milliseconds, so that saving and losing cost least: sqrt(2 x save time x mean
    time between preemptions) (J. W. Young, 1974, CACM 17(9); J. T. Daly, 2006, FGCS 22(3), to first order).

    Never more often than a save takes.
    """
    return max(took, isqrt(2 * took * between_preemptions))
