"""``sharewarden checkpoints restore``, ``pins`` and ``unpin``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from sharewarden.domain.base import last_part
from sharewarden.domain.checkpoints import Save, place_of
from sharewarden.domain.pin_facts import named
from sharewarden.domain.pins import Pin, ToCopy
from sharewarden.ports import Denied, Runtime, Unavailable
from sharewarden.usecases.bump import Refused
from sharewarden.usecases.checkpoints import Looked, newest
from sharewarden.usecases.restore import Plan, Together, pins_of, plan, restore, unpin

from sharewarden_tools.operations.progress import Tell, progress

from .checkpoints import size_text
from .confirm import confirmed
from .deployment import Deployment
from .output import OK, REFUSED, BadInput, full_time, note, print_json, say

#: Copies at a time; boto3 keeps ten connections.
AT_ONCE = 8


class Asked(NamedTuple):
    """What the caller of ``restore`` wants, as typed."""

    attempt: str | None = None
    dry_run: bool = False
    yes: bool = False


def restore_checkpoint(deployment: Deployment, job: str, asked: Asked, *, as_json: bool) -> int:
    """Copy the latest pinned set back. Raises BadInput, Refused, Unavailable."""
    runtime = deployment.runtime
    pin = _pins(deployment, job, asked.attempt)[0]
    try:
        planned = plan(runtime, pin)
        doubts = tuple(_doubts(planned, _look(runtime, pin))) if planned.todo.number else ()
        note(deployment.where, _intention(planned), *doubts)
        if asked.dry_run:
            return _told(planned, _look(runtime, pin), restored=False, as_json=as_json)
        if doubts and not confirmed("restore it all the same?", yes=asked.yes):
            note("nothing was changed; --yes to restore")
            return REFUSED
        if doubts and plan(runtime, pin).todo != planned.todo:
            raise Refused(
                "what is there has changed while you were asked. Nothing was changed: restore again"
            )
        _restore(runtime, planned, deployment.actor)
    except Denied as error:
        raise Refused(f"{error}; --dry-run tells what is missing now") from error
    return _told(planned, _look(runtime, pin), restored=planned.todo.number > 0, as_json=as_json)


def list_pins(deployment: Deployment, job: str, *, as_json: bool) -> int:
    """Print the job's pins, the latest first. Raises BadInput, Unavailable."""
    found = pins_of(deployment.runtime, _key(deployment, job))
    if as_json:
        print_json([pin.model_dump(exclude={"version", "parts"}) for pin in found])
    else:
        say(*map(_line, found))
        if not found:
            note(f"{job}: nothing is pinned")
    return OK


def unpin_checkpoints(deployment: Deployment, job: str, attempt: str | None, *, yes: bool) -> int:
    """Let go of the job's pins. Raises BadInput, Unavailable."""
    found = _pins(deployment, job, attempt)
    note(deployment.where, *map(_line, found))
    if not confirmed(f"unpin {len(found)} sets? They can not be restored then", yes=yes):
        note("nothing was changed; --yes to unpin")
        return REFUSED
    for pin in found:
        unpin(deployment.runtime, pin, deployment.actor)
    say(f"{len(found)} sets are no longer pinned; their objects in S3 are as they were")
    return OK


def _pins(deployment: Deployment, job: str, attempt: str | None) -> list[Pin]:
    """At least one. Raises BadInput."""
    found = pins_of(deployment.runtime, _key(deployment, job), attempt)
    if not found:
        of = f" for attempt {attempt}" if attempt else ""
        raise BadInput(
            f"{job}: nothing is pinned{of}; `sharewarden audit list --job` tells why, if it was preempted"
        )
    return found


def _key(deployment: Deployment, job: str) -> str:
    """The job's key, also after Batch has forgotten it: then the caller has to give it."""
    name = deployment.job(job)
    described = deployment.runtime.batch.describe(name)
    return described.job if described else last_part(name)


def _intention(planned: Plan) -> str:
    pin, todo = planned.pin, planned.todo
    which = f"{named(pin.save)}, saved {full_time(pin.save.saved_at)}"
    files = f"{todo.number} of {pin.save.files} files, {size_text(todo.size)}"
    why = f"{todo.missing} missing, {todo.number - todo.missing} changed"
    return f"bucket {place_of(pin.uri).bucket}: {files}, to copy back below {pin.uri} ({which}): {why}"


def _look(runtime: Runtime, pin: Pin) -> Looked | None:
    """None: it could not be asked, so what is newest is unknown."""
    patterns = runtime.policies.current().checkpoints.patterns
    try:
        return newest(runtime, pin.uri, patterns, runtime.clock.now())
    except (Denied, Unavailable):
        return None


def _doubts(planned: Plan, looked: Looked | None) -> Iterator[str]:
    """What a person should know before the set is restored."""
    pin, todo = planned.pin, planned.todo
    save = looked.save if looked else None
    if save is not None and save.name != pin.save.name and _rank(save) > _rank(pin.save):
        yield (
            f"{named(save)} is complete and newer: a training goes on from that, not from {named(pin.save)}"
        )
    elif looked is None or looked.partial:
        yield "whether there is a newer complete checkpoint is not known"
    if todo.number > todo.missing:
        yield (
            "the changed files are overwritten; what they hold now stays as an earlier version only if the "
            "bucket keeps versions still"
        )


def _rank(save: Save) -> tuple[bool, int]:
    return (save.step is not None, save.saved_at if save.step is None else save.step)


def _restore(runtime: Runtime, planned: Plan, actor: str) -> None:
    with progress() as tell, ThreadPoolExecutor(AT_ONCE) as pool:
        restore(runtime, planned, actor, _together(pool, tell, planned.todo.number))


def _together(pool: ThreadPoolExecutor, tell: Tell, number: int) -> Together:
    done = 0

    def copied(copy: Callable[[ToCopy], str], wave: Iterable[ToCopy]) -> Iterator[str]:
        nonlocal done
        for copy_id in pool.map(copy, wave):
            done += 1
            tell(f"{done} of {number} files are back")
            yield copy_id

    return copied


def _told(planned: Plan, looked: Looked | None, *, restored: bool, as_json: bool) -> int:
    pin, todo = planned.pin, planned.todo
    if as_json:
        save = looked.save if looked else None
        print_json(
            {
                "uri": pin.uri,
                "set": pin.save.name,
                "step": pin.save.step,
                "files": todo.number,
                "bytes": todo.size,
                "missing": todo.missing,
                "restored": restored,
                "newest": "unknown"
                if looked is None or (save is None and looked.partial)
                else save and save.name,
            }
        )
        return OK
    say(_outcome(planned, restored=restored), _resumes(looked))
    return OK


def _outcome(planned: Plan, *, restored: bool) -> str:
    which = named(planned.pin.save)
    if restored:
        return f"{which}: {planned.todo.number} files are back"
    return (
        f"{which}: nothing was changed" if planned.todo.number else f"{which}: every file is as it was pinned"
    )


def _resumes(looked: Looked | None) -> str:
    """What a training that starts now would find."""
    if looked is None or (looked.save is None and looked.partial):
        return "what the newest complete checkpoint is now is unknown: S3 did not tell"
    if looked.save is None:
        return "there is no complete checkpoint"
    return f"the newest complete checkpoint is {named(looked.save)}: an attempt that starts goes on from it"


def _line(pin: Pin) -> str:
    begun = f"; a restore by {pin.begun.by} has begun {full_time(pin.begun.at)}" if pin.begun else ""
    more = f" and {len(pin.attempts) - 1} more" if len(pin.attempts) > 1 else ""
    size = f"{pin.save.files:>6} files  {size_text(pin.save.size):>9}"
    return (
        f"{full_time(pin.pinned_at)}  {named(pin.save):<14}  {size}  "
        f"until {full_time(pin.keep_until)}  {last_part(pin.attempts[-1])}{more}{begun}"
    )
