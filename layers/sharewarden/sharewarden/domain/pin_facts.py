"""What is told of pins: the audit facts, and the notice of a checkpoint that nothing protects."""

from typing import Any

from .audit import AuditFact, attempt_key, subject_key
from .base import shortened
from .checkpoints import Save, place_of
from .durations import format_duration
from .facts import job_fact
from .findings import notice_of
from .notice import Notice
from .pins import Danger, Pin
from .policy import Policy
from .record import JobRecord
from .stored import DAY


def pinned_fact(record: JobRecord, attempt: str, pin: Pin, policy: Policy) -> AuditFact:
    """The set is pinned, for the sake of that attempt."""
    return job_fact(
        record,
        policy,
        key=attempt_key("checkpoint-pinned", record.job, attempt),
        kind="checkpoint-pinned",
        at=pin.pinned_at,
        actor="sharewarden",
        reason=f"{named(pin.save)}: the S3 versions of its {pin.save.files} files are on record",
        figures={"attempt": attempt, "keep_until": pin.keep_until, **_figures(pin)},
    )


def unprotected(
    record: JobRecord, attempt: str, danger: Danger, policy: Policy, now: int
) -> tuple[AuditFact, Notice]:
    """What the job saves is not safe: told once a job and cause."""
    fact = job_fact(
        record,
        policy,
        key=subject_key("checkpoint-unprotected", record.job, danger.cause),
        kind="checkpoint-unprotected",
        at=now,
        actor="sharewarden",
        reason=_danger(record, danger, policy),
        figures={
            "cause": danger.cause,
            "days": danger.days,
            "uri": record.checkpoint_uri,
            "attempt": attempt,
        },
    )
    text = f"{fact.reason}. {_what_helps(danger, policy)}"
    return fact, notice_of(fact, f"checkpoints of {record.name} are not protected", text)


def restored_fact(pin: Pin, actor: str, now: int) -> AuditFact:
    """Every file is back. Raises ValueError when no restore has begun."""
    if pin.begun is None:
        raise ValueError(f"pin {pin.key}: no restore has begun")
    begun = pin.begun
    return _pin_fact(
        pin,
        actor,
        key=subject_key("checkpoint-restored", pin.job, pin.digest, begun.at),
        kind="checkpoint-restored",
        at=now,
        reason=f"{named(pin.save)} is as it was pinned: {begun.files} of its files were copied back",
        figures={"files": begun.files, "bytes": begun.size, "begun_at": begun.at, "begun_by": begun.by},
    )


def unpinned_fact(pin: Pin, actor: str, now: int) -> AuditFact:
    """A person let go of it."""
    return _pin_fact(
        pin,
        actor,
        key=subject_key("checkpoint-unpinned", pin.job, pin.digest, pin.pinned_at),
        kind="checkpoint-unpinned",
        at=now,
        reason=f"{named(pin.save)} is no longer pinned",
        figures={},
    )


def named(save: Save) -> str:
    """How people call a set."""
    return save.name if save.step is None else f"step {save.step}"


def _pin_fact(pin: Pin, actor: str, *, figures: dict[str, Any], **rest: Any) -> AuditFact:
    """From the pin alone: the job's record may be gone by then."""
    return AuditFact(
        queue=pin.queue,
        share=pin.share,
        team=pin.team,
        job=pin.job,
        job_name=pin.job_name,
        actor=actor,
        mode="enforce",
        figures=figures | _figures(pin),
        **rest,
    )


def _figures(pin: Pin) -> dict[str, Any]:
    return {
        "pin": pin.digest,
        "uri": pin.uri,
        "set": pin.save.name,
        "step": pin.save.step,
        "saved_at": pin.save.saved_at,
        "set_files": pin.save.files,
        "set_bytes": pin.save.size,
    }


def _danger(record: JobRecord, danger: Danger, policy: Policy) -> str:
    bucket = place_of(record.checkpoint_uri or "").bucket
    if danger.cause == "unversioned":
        return (
            f"bucket {bucket} keeps no earlier versions: a checkpoint that is deleted or overwritten is "
            "lost, and none can be pinned"
        )
    if danger.cause == "expiring":
        keep = format_duration(policy.checkpoints.keep_pins)
        return (
            f"a lifecycle rule of bucket {bucket} deletes for good after {danger.days} days, "
            f"and a pin is kept for {keep}"
        )
    return f"its newest checkpoint could not be pinned: {shortened(danger.why)}"


def _what_helps(danger: Danger, policy: Policy) -> str:
    days = -(-policy.checkpoints.keep_pins // DAY)
    return {
        "unversioned": "Enable versioning on the bucket, and let a lifecycle rule delete noncurrent versions "
        f"after {days} days at the earliest",
        "expiring": f"Raise it to {days} days or more, or lower checkpoints.keep_pins in the policy",
        "refused": "Let the role of Care read the versions, versioning and lifecycle of the bucket",
        "too-large": "Save fewer and larger files",
        "gone": "Look whether the training, or a rule, deletes checkpoints too early",
    }[danger.cause]
