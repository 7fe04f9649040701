"""Pin what a preempted attempt had saved, so that it can be copied back when it is deleted or overwritten."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from sharewarden.domain.audit import AuditFact
from sharewarden.domain.checkpoints import ObjectSeen, Save, Version
from sharewarden.domain.notice import Notice
from sharewarden.domain.pin_facts import pinned_fact, unprotected
from sharewarden.domain.pins import (
    MOST_FILES,
    Danger,
    Pin,
    PinnedFile,
    PinPart,
    dangers,
    found_again,
    pin_of,
)
from sharewarden.domain.policy import Policy
from sharewarden.domain.record import JobRecord
from sharewarden.ports import Conflict, Denied, Runtime, Unavailable

from .checkpoints import files

#: After so many lost races the work goes back to where it came from.
TRIES = 5


class Pinned(NamedTuple):
    """What is to be committed; the parts of the pin are there already. ``pin`` None: nothing was pinned."""

    pin: Pin | None
    facts: tuple[AuditFact, ...]
    notices: tuple[Notice, ...]


def pin_save(
    runtime: Runtime, record: JobRecord, attempt: str, save: Save, policy: Policy, now: int
) -> Pinned:
    """Pin the set as it is now, and tell what may take it away all the same.

    Raises Unavailable when AWS could not be asked, and when the set changed while it was looked at.
    """
    found, dangerous = _looked(runtime, record, save, policy)
    pin = _kept(runtime, *pin_of(record, attempt, save, found, policy, now), now) if found else None
    told = [unprotected(record, attempt, one, policy, now) for one in dangerous]
    facts = (pinned_fact(record, attempt, pin, policy),) if pin else ()
    return Pinned(pin, (*facts, *(fact for fact, _ in told)), tuple(notice for _, notice in told))


def _looked(
    runtime: Runtime, record: JobRecord, save: Save, policy: Policy
) -> tuple[tuple[PinnedFile, ...], tuple[Danger, ...]]:
    """The files with their versions, none where there are none to pin; and what endangers them."""
    uri = record.checkpoint_uri or ""
    try:
        protection = runtime.checkpoints.protection(uri)
        found = dangers(protection, policy)
        if not protection.versioned:
            return (), found
        seen = tuple(islice(files(runtime, uri, save, policy.checkpoints.patterns), MOST_FILES + 1))
        if len(seen) > MOST_FILES:
            return (), (*found, Danger(cause="too-large", why=f"it has more than {MOST_FILES} files"))
        _check(save, seen)
        versions = runtime.checkpoints.versions(uri, [one.key for one in seen])
        return tuple(_with_versions(seen, versions)), found
    except Denied as error:
        return (), (Danger(cause="refused", why=str(error)),)


def _check(save: Save, seen: tuple[ObjectSeen, ...]) -> None:
    if (len(seen), sum(one.size for one in seen)) != (save.files, save.size):
        raise Unavailable(f"{save.name}: its files changed since it was found complete")


def _with_versions(
    seen: tuple[ObjectSeen, ...], versions: dict[str, tuple[Version, ...]]
) -> Iterator[PinnedFile]:
    """Each file with the version that was listed: a later one may be another training's."""
    for one in seen:
        kept = versions.get(one.key, ())
        if not kept or not kept[0].current or (kept[0].size, kept[0].etag) != (one.size, one.etag):
            raise Unavailable(f"{one.key} changed while it was looked at")
        yield PinnedFile(key=one.key, version_id=kept[0].id, size=one.size, etag=one.etag)


def _kept(runtime: Runtime, pin: Pin, parts: tuple[PinPart, ...], now: int) -> Pin:
    """Write the parts, and return the pin that is to be committed after them."""
    for part in parts:
        _keep(runtime, part, now)
    known = runtime.ledger.load(Pin, pin.key)
    return pin if known is None else found_again(known, pin)


def _keep(runtime: Runtime, part: PinPart, now: int) -> None:
    for _ in range(TRIES):
        known = runtime.ledger.load(PinPart, part.key)
        if known is not None and known.keep_until >= part.keep_until:
            return
        after = known.model_copy(update={"keep_until": part.keep_until}) if known else part
        with suppress(Conflict):
            runtime.ledger.commit([after], [], now)
            return
    raise Unavailable(f"pin {part.pin}: {TRIES} commits in a row met another writer")
