"""What a preemption cost: the training since the newest complete save, times the GPUs that did it.

Lost work is ``stop - newest complete save of the attempt``, or all since the attempt's start where it saved
nothing. What is not known is told as not known, with a bound; it is never 0.
"""

from typing import Any, Literal

from sharewarden.domain.accelerators import gpu_seconds, gpus_per_instance
from sharewarden.domain.attempts import Attempt
from sharewarden.domain.audit import AuditFact, attempt_key
from sharewarden.domain.base import Frozen, last_part
from sharewarden.domain.checkpoints import Save
from sharewarden.domain.durations import format_duration
from sharewarden.domain.facts import job_fact, preemption_kind
from sharewarden.domain.policy import Policy
from sharewarden.domain.record import JobRecord
from sharewarden.domain.saves import SKEW
from sharewarden.domain.stored import HOUR, SECOND

from .case import Sight

#: ``save``: since the save; ``start``: the attempt had saved nothing; ``no-checkpoints``: the job has no
#: CheckpointConfig; ``not-started``: it held instances and had not begun to train. The others are not known:
#: ``unseen`` is what was saved, ``odd-save`` a save dated after the stop, ``no-stop`` when it stopped.
Basis = Literal["save", "start", "no-checkpoints", "not-started", "unseen", "odd-save", "no-stop"]


class Loss(Frozen):
    """Times in milliseconds. ``lost`` None: not known, no more than ``ran``."""

    basis: Basis
    ran: int | None
    """From the start of the training to its stop; None: not known."""
    lost: int | None
    held: int | None
    """From the dispatch to the start of the training, or to the stop without one; None: nobody told."""


def loss_of(attempt: Attempt, save: Save | None, sight: Sight | None, dispatched_at: int | None) -> Loss:
    """What was lost with the attempt, whose ``started_at`` is None if it never trained.

    ``save`` and ``sight`` are what was found below its S3Uri. A save of an earlier attempt is no loss of this
    one: it lost all that it did. One dated after the stop, or by another attempt in this one's time, proves
    nothing of it.
    """
    if attempt.stopped_at is None:
        return Loss(basis="no-stop", ran=None, lost=None, held=None)
    started, stopped = attempt.started_at, attempt.stopped_at
    held = None if dispatched_at is None else max(0, (started or stopped) - dispatched_at)
    if started is None:
        return Loss(basis="not-started", ran=0, lost=0, held=held)
    ran = max(0, stopped - started)
    basis = _basis(attempt, started, stopped, save, sight)
    lost = {"start": ran, "no-checkpoints": ran}.get(basis)
    if basis == "save" and save is not None:
        lost = max(0, stopped - save.saved_at)
    return Loss(basis=basis, ran=ran, lost=lost, held=held)


def _basis(attempt: Attempt, started: int, stopped: int, save: Save | None, sight: Sight | None) -> Basis:
    if sight == "nowhere":
        return "no-checkpoints"
    if sight is None or sight == "unknown" or (sight == "found" and save is None):
        return "unseen"
    if save is None or save.saved_at < started or _is_of_another(save, attempt):
        return "start"
    return "odd-save" if save.saved_at > stopped + SKEW else "save"


def _is_of_another(save: Save, attempt: Attempt) -> bool:
    return save.training_job is not None and save.training_job != last_part(attempt.training_job)


def measure_fact(
    record: JobRecord, attempt: Attempt, loss: Loss, save: Save | None, policy: Policy, at: int
) -> AuditFact:
    """What the preemption of that attempt cost. ``at``: when it stopped, or began to be preempted."""
    unit, count = record.instance_type, record.instance_count
    figures: dict[str, Any] = {
        "kind": preemption_kind(attempt.preemption_reason),
        "attempt": attempt.training_job,
        "basis": loss.basis,
        "instance_type": unit,
        "instances": count,
    }
    for name, ms in (("", loss.ran), ("lost_", loss.lost), ("held_", loss.held)):
        figures[f"{name}seconds"] = None if ms is None else ms / SECOND
        figures[f"{name}gpu_seconds"] = None if ms is None else gpu_seconds(unit, count, ms)
    if save is not None and loss.basis in ("save", "start", "odd-save"):
        figures |= {"step": save.step, "saved_at": save.saved_at, "save": save.name}
    return job_fact(
        record,
        policy,
        key=attempt_key("preemption-measure", record.job, attempt.training_job),
        kind="preemption-measure",
        at=at,
        reason=_text(record, loss, save),
        figures=figures,
    )


def _text(record: JobRecord, loss: Loss, save: Save | None) -> str:
    if loss.basis == "no-stop":
        return "what was lost is not known: Batch never told when the attempt stopped"
    if loss.basis == "not-started":
        return f"no training lost: it had not started to train{_held(record, loss)}"
    if loss.lost is None:
        why = "its newest save is dated after the stop" if loss.basis == "odd-save" else _UNSEEN
        return f"lost {_cost(record, loss.ran or 0)} at most: {why}"
    return f"lost {_cost(record, loss.lost)}: {_since(loss, save)}"


_UNSEEN = "what it had saved could not be read"


def _held(record: JobRecord, loss: Loss) -> str:
    return f", and had held its instances for {_cost(record, loss.held)}" if loss.held else ""


def _since(loss: Loss, save: Save | None) -> str:
    if loss.basis == "no-checkpoints":
        return "all of the attempt, the job has no CheckpointConfig"
    step = "" if save is None or save.step is None else f" of step {save.step}"
    if loss.basis == "save":
        return f"since the save{step}"
    earlier = f", the newest save{step} is from before it" if save else ""
    return f"all of the attempt, it had saved nothing{earlier}"


def _cost(record: JobRecord, ms: int) -> str:
    """``4 min 22 s (0.07 GPU-hours)``."""
    gpus = gpu_seconds(record.instance_type, record.instance_count, ms)
    time = format_duration(ms // SECOND * SECOND)
    if gpus is not None:
        return f"{time} ({gpus * SECOND / HOUR:.2f} GPU-hours)"
    known = gpus_per_instance(record.instance_type) is not None
    what = "number of instances" if known else f"GPUs of {record.instance_type or 'its instance type'}"
    return f"{time} ({what} unknown)"
