"""A preempted job whose checkpoints lie in a bucket that keeps versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sharewarden.domain.checkpoints import Save
from sharewarden.domain.pins import Pin, PinPart
from sharewarden.domain.policy import Policy
from sharewarden.domain.record import JobRecord, new_record
from sharewarden.usecases.pins import Pinned, pin_save

from tests.simulation.samples import FIRST, described
from tests.simulation.world import World, stored
from tests.unit.checkpoint_kit import URI, look, place, store

BUCKET = "ckpt"


def job(**update: Any) -> JobRecord:
    record = new_record(described())
    return record.model_copy(update={"checkpoint_uri": URI, "share": "background", **update})


def versioned(objects: Mapping[str, bytes], policy: Policy | None = None) -> World:
    """A world with these objects in a bucket that keeps versions."""
    made = place({}, policy)
    store(made).versioned.add(BUCKET)
    for key, body in objects.items():
        made.runtime.checkpoints.put(URI, key, body)
    return made


def newest(made: World, *patterns: str) -> Save:
    save = look(made, *patterns).save
    assert save is not None
    return save


def pin(made: World, attempt: str = FIRST, save: Save | None = None) -> Pinned:
    """Pin the newest set, and commit it as the step does."""
    policy, now = made.runtime.policies.current(), made.clock.now()
    save = save or newest(made, *policy.checkpoints.patterns)
    pinned = pin_save(made.runtime, job(), attempt, save, policy, now)
    made.ledger.commit([pinned.pin] if pinned.pin else [], pinned.facts, now)
    return pinned


def pins(made: World) -> list[Pin]:
    return [item for item in stored(made.ledger, Pin) if isinstance(item, Pin)]


def parts(made: World) -> list[PinPart]:
    return [item for item in stored(made.ledger, PinPart) if isinstance(item, PinPart)]


def content(made: World) -> dict[str, bytes]:
    """What a training would find."""
    port = made.runtime.checkpoints
    keys = [seen.key for page in port.pages(URI) for seen in page]
    return {key: port.read(URI, key, 10**9) or b"" for key in keys}
