"""``sharewarden checkpoints list``: what a job could resume from."""

from __future__ import annotations

from sharewarden.domain.advice import Advice, advise, experience
from sharewarden.domain.base import last_part
from sharewarden.domain.checkpoints import SetSeen
from sharewarden.domain.durations import format_duration
from sharewarden.domain.record import JobRecord
from sharewarden.domain.stored import SECOND
from sharewarden.ports import Denied, Runtime, Unavailable
from sharewarden.usecases.checkpoints import Looked, listed

from .deployment import Deployment
from .output import OK, UNAVAILABLE, BadInput, full_time, note, print_json, say

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def list_checkpoints(deployment: Deployment, job: str, *, as_json: bool) -> int:
    """Print the newest sets. Raises BadInput, and Unavailable when Batch or the tables could not be asked."""
    runtime = deployment.runtime
    uri, now = checkpoint_uri(runtime, deployment.job(job)), runtime.clock.now()
    patterns = runtime.policies.current().checkpoints.patterns
    try:
        looked = listed(runtime, uri, patterns, now)
    except (Denied, Unavailable) as error:
        if as_json:
            print_json({"uri": uri, "newest": "unknown", "why": str(error)})
        note(f"{uri}: what is saved there is unknown: {error}")
        return UNAVAILABLE
    advice = _advice(runtime, deployment.job(job), looked, now)
    if as_json:
        print_json(_as_json(uri, looked) | {"advice": advice and advice.model_dump()})
    else:
        _show(uri, looked, now)
        _show_advice(advice, looked)
    return UNAVAILABLE if looked.save is None and looked.partial else OK


def checkpoint_uri(runtime: Runtime, job: str) -> str:
    """Where the job saves, also after Batch has forgotten it. Raises BadInput, Unavailable."""
    described = runtime.batch.describe(job)
    known = described or runtime.ledger.load(JobRecord, last_part(job))
    if known is None:
        raise BadInput(f"{job}: neither AWS Batch nor Sharewarden knows this job")
    if known.checkpoint_uri is None:
        raise BadInput(f"{job}: it has no CheckpointConfig, so nothing that it saves outlives an attempt")
    return known.checkpoint_uri


def _advice(runtime: Runtime, job: str, looked: Looked, now: int) -> Advice | None:
    """By the open records of the queue. Raises Unavailable."""
    record = runtime.ledger.load(JobRecord, last_part(job))
    if record is None or record.share is None or looked.save is None or not looked.save.took:
        return None
    met = experience(runtime.ledger.open_items(JobRecord, record.queue), record.share, now)
    return advise(looked.save, met)


def _show_advice(advice: Advice | None, looked: Looked) -> None:
    if advice is None:
        return
    usual = looked.save.interval if looked.save else None
    between, known = _time(advice.between_preemptions), f"{advice.preemptions} known"
    now = f"; it saves every {_time(usual)}" if usual else ""
    say(
        f"saving every {_time(advice.interval)} would cost least: a save takes {_time(advice.took)}, and"
        f" jobs of this share run {between} between preemptions ({known}){now}"
    )


def _time(ms: int) -> str:
    """Whole seconds, one at least."""
    return format_duration(max(1, round(ms / SECOND)) * SECOND)


def _as_json(uri: str, looked: Looked) -> dict[str, object]:
    unknown = looked.save is None and looked.partial
    newest = "unknown" if unknown else looked.save and looked.save.model_dump()
    return {"uri": uri, "newest": newest, **looked.model_dump(exclude={"save"})}


def _show(uri: str, looked: Looked, now: int) -> None:
    say(f"{uri}: {_headline(looked, now)}")
    for seen in looked.sets:
        newest = looked.save is not None and (seen.layout, seen.name) == (
            looked.save.layout,
            looked.save.name,
        )
        say(_line(seen, newest=newest))
    if looked.partial:
        note("not everything was looked at: there may be newer sets")
    if looked.skipped:
        note(f"{looked.skipped} of {looked.objects} objects belong to no layout that is known")


def _headline(looked: Looked, now: int) -> str:
    if looked.save is None:
        return (
            "unknown whether there is a complete checkpoint" if looked.partial else "no complete checkpoint"
        )
    step = "step unknown" if looked.save.step is None else f"step {looked.save.step}"
    return f"newest complete checkpoint: {step}, {format_duration(max(0, now - looked.save.saved_at))} ago"


def _line(seen: SetSeen, *, newest: bool) -> str:
    step = "-" if seen.step is None else str(seen.step)
    why = f": {seen.why}" if seen.why else ""
    size = size_text(seen.size)
    row = f"{full_time(seen.saved_at)}  {step:>10}  {size:>9}  {seen.layout:<12}  {seen.state:<10}"
    return f"{'*' if newest else ' '} {row}  {seen.name}{why}"


def size_text(size: int) -> str:
    """``14.2 GiB``."""
    power = min(max(0, size.bit_length() - 1) // 10, len(_UNITS) - 1)
    return f"{size / 1024**power:.1f} {_UNITS[power]}" if power else f"{size} B"
