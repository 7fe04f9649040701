"""When a job's checkpoints are looked at, and what S3's refusal of a look leads to."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from .audit import subject_key
from .checkpoints import place_of
from .decide import Decision
from .facts import job_fact
from .findings import notice_of
from .known import running_since
from .policy import Policy
from .record import JobRecord, status
from .saves import due_since, refused


def is_watched(record: JobRecord, buckets: Iterable[str]) -> bool:
    """Whether the job runs and saves to one of the buckets, given as ARNs in which ``*`` is anything."""
    if record.checkpoint_uri is None or record.closed_at is not None or status(record) != "RUNNING":
        return False
    try:
        bucket = place_of(record.checkpoint_uri).bucket
    except ValueError:
        return False
    return any(fnmatchcase(bucket, arn.rpartition(":")[2]) for arn in buckets)


def look_due(record: JobRecord) -> int:
    """Since when, or from when on, the next look at the job's checkpoints is due."""
    return due_since(record.saves, running_since(record))


def refused_look(record: JobRecord, why: str, began_at: int, policy: Policy) -> Decision:
    """The record after S3 refused. People are told with the first one, once a job."""
    after = record.model_copy(update={"saves": refused(record.saves, why, began_at)})
    if record.saves.refusal is not None:
        return Decision(record=after)
    fact = job_fact(
        record,
        policy,
        key=subject_key("checkpoint-unreadable", record.job),
        kind="checkpoint-unreadable",
        at=began_at,
        actor="sharewarden",
        reason=f"its checkpoints cannot be read: {after.saves.refusal}",
        figures={"uri": record.checkpoint_uri},
    )
    text = (
        f"{fact.reason}. Whether it still saves is not known; let the role of Watch list and read its S3Uri"
    )
    return Decision(
        record=after,
        facts=(fact,),
        notices=(notice_of(fact, f"checkpoints of {record.name} cannot be read", text),),
    )
