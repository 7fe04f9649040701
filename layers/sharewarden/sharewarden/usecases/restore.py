"""A person copies a pinned set back, or lets go of it.

A restore that breaks off is taken up by the next one: what is back already is told by its version or content,
and the set becomes complete with its last file only.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple

from sharewarden.domain.pin_facts import named, restored_fact, unpinned_fact
from sharewarden.domain.pins import Begun, Pin, PinPart, Restorable, ToCopy, part_key, restorable
from sharewarden.ports import Conflict, Runtime, Unavailable

from .bump import Refused
from .pins import TRIES

#: Copies whose ids are kept together.
KEPT_TOGETHER = 20

Together = Callable[[Callable[[ToCopy], str], Iterable[ToCopy]], Iterable[str]]
"""As ``map``: it may make several copies at a time."""


class Plan(NamedTuple):
    """What a restore of the pin would do now."""

    pin: Pin
    parts: tuple[PinPart, ...]
    todo: Restorable


def pins_of(runtime: Runtime, job: str, attempt: str | None = None) -> list[Pin]:
    """The job's pins, the latest first; those of one attempt, by its ARN or name. Raises Unavailable."""
    now = runtime.clock.now()
    found = [pin for pin in runtime.ledger.open_items(Pin, job) if pin.keep_until > now]
    if attempt is not None:
        name = attempt.rpartition("/")[2]
        found = [pin for pin in found if any(arn.rpartition("/")[2] == name for arn in pin.attempts)]
    return sorted(found, key=lambda pin: (pin.pinned_at, pin.digest), reverse=True)


def plan(runtime: Runtime, pin: Pin) -> Plan:
    """What is missing or changed. Raises Refused when it cannot be made whole, Denied, Unavailable."""
    parts, todo = _compared(runtime, pin)
    if todo.gone:
        more = f" (nor of {len(todo.gone) - 1} more)" if len(todo.gone) > 1 else ""
        raise Refused(
            f"{named(pin.save)} cannot be restored: no version of {pin.uri.rstrip('/')}/{todo.gone[0]} is "
            f"left{more}. Nothing was changed"
        )
    return Plan(pin, parts, todo)


def restore(runtime: Runtime, planned: Plan, actor: str, together: Together = map) -> None:
    """Copy back what the plan says. Raises Denied, Unavailable: then the next call goes on from there.

    A training may write to the same place meanwhile: only a set that is as it was pinned counts as restored.
    """
    if not planned.todo.number and planned.pin.begun is None:
        return
    _begin(runtime, planned, actor)
    copies = _Copies(runtime, planned.parts)

    def copy(one: ToCopy) -> str:
        return runtime.checkpoints.restore(planned.pin.uri, one.file.key, one.version)

    try:
        for wave in (planned.todo.files, planned.todo.last):
            for one, copy_id in zip(wave, together(copy, wave), strict=True):
                copies.add(one.file.key, copy_id)
    finally:
        copies.keep()
    _check(runtime, planned.pin)
    _end(runtime, planned.pin, actor)


def unpin(runtime: Runtime, pin: Pin, actor: str) -> None:
    """Let go of the pin. Raises Unavailable."""
    for _ in range(TRIES):
        known, now = runtime.ledger.load(Pin, pin.key), runtime.clock.now()
        if known is None or known.keep_until <= now:
            return
        after = known.model_copy(update={"keep_until": now})
        with suppress(Conflict):
            runtime.ledger.commit([after], [unpinned_fact(known, actor, now)], now)
            return
    raise _raced(pin)


def _compared(runtime: Runtime, pin: Pin) -> tuple[tuple[PinPart, ...], Restorable]:
    """The files of the pin, and what differs from them in S3 now. Raises Refused, Denied, Unavailable."""
    parts = tuple(_part(runtime, pin, number) for number in range(pin.parts))
    files = [file for part in parts for file in part.files]
    versions = runtime.checkpoints.versions(pin.uri, [file.key for file in files])
    return parts, restorable(pin, files, versions)


def _check(runtime: Runtime, pin: Pin) -> None:
    _, left = _compared(runtime, pin)
    if number := left.number + len(left.gone):
        raise Unavailable(
            f"{named(pin.save)} is not whole: {number} of its files were deleted or overwritten while it was "
            f"restored. Stop what writes below {pin.uri}, and restore it again"
        )


def _part(runtime: Runtime, pin: Pin, number: int) -> PinPart:
    part = runtime.ledger.load(PinPart, part_key(pin.key, number))
    if part is None:
        raise Refused(f"{named(pin.save)} cannot be restored: a part of its pin is gone, it is too old")
    return part


def _begin(runtime: Runtime, planned: Plan, actor: str) -> None:
    """On record before the first copy, so that one that never ends is known."""
    begun = Begun(by=actor, at=runtime.clock.now(), files=planned.todo.number, size=planned.todo.size)
    for _ in range(TRIES):
        known = runtime.ledger.load(Pin, planned.pin.key)
        if known is None:
            raise Refused(f"{named(planned.pin.save)} is no longer pinned")
        if known.begun is not None:
            return
        with suppress(Conflict):
            runtime.ledger.commit([known.model_copy(update={"begun": begun})], [], begun.at)
            return
    raise _raced(planned.pin)


def _end(runtime: Runtime, pin: Pin, actor: str) -> None:
    for _ in range(TRIES):
        known, now = runtime.ledger.load(Pin, pin.key), runtime.clock.now()
        if known is None or known.begun is None:
            return
        after = known.model_copy(update={"begun": None})
        with suppress(Conflict):
            runtime.ledger.commit([after], [restored_fact(known, actor, now)], now)
            return
    raise _raced(pin)


class _Copies:
    """The ids of the copies made, kept with their files now and then: they tell that these are back.

    What is lost of them is copied once more where the content alone does not tell.
    """

    def __init__(self, runtime: Runtime, parts: Iterable[PinPart]) -> None:
        self._runtime = runtime
        self._part_of = {file.key: part.key for part in parts for file in part.files}
        self._made: dict[str, str] = {}

    def add(self, key: str, copy_id: str) -> None:
        self._made[key] = copy_id
        if len(self._made) >= KEPT_TOGETHER:
            self.keep()

    def keep(self) -> None:
        for part in sorted({self._part_of[key] for key in self._made}):
            with suppress(Conflict, Unavailable):
                self._write(part)
        self._made = {}

    def _write(self, key: str) -> None:
        part = self._runtime.ledger.load(PinPart, key)
        if part is None:
            return
        files = tuple(
            file.model_copy(update={"copy_id": self._made.get(file.key, file.copy_id)}) for file in part.files
        )
        after = part.model_copy(update={"files": files})
        self._runtime.ledger.commit([after], [], self._runtime.clock.now())


def _raced(pin: Pin) -> Unavailable:
    return Unavailable(f"pin {pin.key}: {TRIES} commits in a row met another writer")
