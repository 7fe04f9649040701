"""A pin: the S3 versions of every file of the newest complete set that a preempted attempt had saved.

A pin holds nothing in S3. It says which versions to copy back after the set was deleted or overwritten, and
that helps only where the bucket keeps them. A set may have thousands of files, and an item of DynamoDB ends
at 400 KB: the files are in parts of their own, and the pin, which is written last, says how many there are.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Literal, NamedTuple

from .base import Frozen
from .checkpoints import Protection, Save, Version
from .facts import team
from .layouts import MANIFEST, TRAINER_STATE
from .policy import Policy
from .record import JobRecord
from .stored import DAY, Stored

#: Of one set. More are not pinned.
MOST_FILES = 20_000
#: Bytes of the files in one part, as stored.
MOST_BYTES = 300_000
#: Attempts that a pin names, the latest.
MOST_ATTEMPTS = 50

#: Why a set is not safe: its bucket keeps no earlier versions; a lifecycle rule deletes for good before the
#: pin leaves; S3 refused to tell; it has too many files to pin them; it went before it was pinned.
Cause = Literal["unversioned", "expiring", "refused", "too-large", "gone"]
#: The file of a set without which it is not complete: it comes back last.
_LAST = {"manifest": MANIFEST, "hugging-face": TRAINER_STATE}


class PinnedFile(Frozen):
    """One file. ``key`` is below the URI; ``copy_id`` names the version that a restore made of it."""

    key: str
    version_id: str
    size: int
    etag: str
    copy_id: str | None = None


class PinPart(Stored):
    """Some of the files of a pin, counted from 0. A part of the same key always has the same files."""

    item: ClassVar[str] = "PINPART"

    pin: str
    number: int
    files: tuple[PinnedFile, ...]
    keep_until: int

    @property
    def key(self) -> str:
        return part_key(self.pin, self.number)

    @property
    def expires_at(self) -> int | None:
        return self.keep_until


class Begun(Frozen):
    """A restore that has begun and whose end is not on record."""

    by: str
    at: int
    files: int
    size: int


class Pin(Stored):
    """One set of one job, however many preemptions found it as it is."""

    item: ClassVar[str] = "PIN"

    job: str
    digest: str
    """Of the files and their versions."""
    uri: str
    save: Save
    parts: int
    attempts: tuple[str, ...]
    """ARNs of the attempts whose preemption found it, the latest last."""
    pinned_at: int
    """By the latest of them."""
    keep_until: int
    job_name: str
    queue: str
    share: str | None = None
    team: str | None = None
    begun: Begun | None = None

    @property
    def key(self) -> str:
        return f"{self.job}#{self.digest}"

    @property
    def expires_at(self) -> int | None:
        return self.keep_until

    @property
    def open_queue(self) -> str | None:
        """The pins of a job are listed under it."""
        return self.job


class Danger(Frozen):
    """What may take a checkpoint away for good; ``days`` after which a lifecycle rule does."""

    cause: Cause
    days: int | None = None
    why: str = ""


class ToCopy(NamedTuple):
    """A file, and the version that has its content."""

    file: PinnedFile
    version: Version


class Restorable(NamedTuple):
    """What a restore has to copy."""

    files: tuple[ToCopy, ...]
    last: tuple[ToCopy, ...]
    """Those without which the set is not complete: copied when all others are back."""
    missing: int
    """Of both, those that are not there at all; the others have another content."""
    gone: tuple[str, ...]
    """Files of which no version is left."""

    @property
    def number(self) -> int:
        return len(self.files) + len(self.last)

    @property
    def size(self) -> int:
        return sum(one.version.size for one in (*self.files, *self.last))


def part_key(pin: str, number: int) -> str:
    return f"{pin}#{number}"


def pin_of(
    record: JobRecord, attempt: str, save: Save, files: Sequence[PinnedFile], policy: Policy, now: int
) -> tuple[Pin, tuple[PinPart, ...]]:
    """The pin of a set, and its parts. Raises ValueError when the job has no URI."""
    if record.checkpoint_uri is None:
        raise ValueError(f"job {record.job} saves nowhere")
    keep_until = now + policy.checkpoints.keep_pins
    packed = tuple(_packed(sorted(files, key=lambda file: file.key)))
    pin = Pin(
        job=record.job,
        digest=_digest(record.checkpoint_uri, save, packed),
        uri=record.checkpoint_uri,
        save=save,
        parts=len(packed),
        attempts=(attempt,),
        pinned_at=now,
        keep_until=keep_until,
        job_name=record.name,
        queue=record.queue,
        share=record.share,
        team=team(record, policy),
    )
    parts = (
        PinPart(pin=pin.key, number=number, files=part, keep_until=keep_until)
        for number, part in enumerate(packed)
    )
    return pin, tuple(parts)


def found_again(known: Pin, pin: Pin) -> Pin:
    """The pin on record after another preemption found the same set as it is."""
    others = tuple(attempt for attempt in known.attempts if attempt not in pin.attempts)
    update = {
        "attempts": (*others, *pin.attempts)[-MOST_ATTEMPTS:],
        "pinned_at": pin.pinned_at,
        "keep_until": max(known.keep_until, pin.keep_until),
    }
    return known.model_copy(update=update)


def dangers(protection: Protection, policy: Policy) -> tuple[Danger, ...]:
    """Why what is saved there is not safe, or not for as long as a pin lasts."""
    days = protection.expires_after_days
    found: tuple[Danger, ...] = () if protection.versioned else (Danger(cause="unversioned"),)
    if days is not None and days * DAY < policy.checkpoints.keep_pins:
        found += (Danger(cause="expiring", days=days),)
    return found


def restorable(
    pin: Pin, files: Iterable[PinnedFile], versions: Mapping[str, Sequence[Version]]
) -> Restorable:
    """What has to be copied so that each file is as it was pinned; ``versions`` are those kept, by key."""
    found, gone, missing = list[ToCopy](), list[str](), 0
    for file in files:
        kept = versions.get(file.key, ())
        source = next((one for one in kept if _is_it(file, one)), None)
        if source is None:
            gone.append(file.key)
        elif not (kept[0].current and _is_it(file, kept[0])):
            missing += not kept[0].current
            found.append(ToCopy(file, source))
    last = _LAST.get(pin.save.layout)
    ends = [one.file.key.rpartition("/")[2] == last for one in found]
    return Restorable(
        files=tuple(one for one, is_last in zip(found, ends, strict=True) if not is_last),
        last=tuple(one for one, is_last in zip(found, ends, strict=True) if is_last),
        missing=missing,
        gone=tuple(gone),
    )


def _is_it(file: PinnedFile, version: Version) -> bool:
    """An ETag may be another one after a copy: by its parts, or by a key of KMS."""
    if version.id in (file.version_id, file.copy_id) and version.id != "null":
        return True
    return (version.size, version.etag) == (file.size, file.etag)


def _packed(files: Iterable[PinnedFile]) -> Iterator[tuple[PinnedFile, ...]]:
    part, size = list[PinnedFile](), 0
    for file in files:
        # with room for the id of a copy, which may be as long
        more = len(file.model_dump_json().encode()) + len(file.version_id.encode()) + 8
        if part and size + more > MOST_BYTES:
            yield tuple(part)
            part, size = [], 0
        part.append(file)
        size += more
    if part:
        yield tuple(part)


def _digest(uri: str, save: Save, parts: Iterable[tuple[PinnedFile, ...]]) -> str:
    named = hashlib.sha256(f"{uri}\n{save.layout}\n{save.name}\n".encode())
    for part in parts:
        for file in part:
            named.update(f"{file.key}\n{file.version_id}\n{file.size}\n{file.etag}\n".encode())
        named.update(b"\n")
    return named.hexdigest()[:16]
