"""``sharewarden audit list``."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from sharewarden.domain.audit import AuditRecord
from sharewarden.domain.base import last_part
from sharewarden.domain.durations import parse_duration
from sharewarden.ports import AuditReader, Unavailable

from .deployment import Deployment
from .output import OK, BadInput, full_time, note, print_json, record_line, say

#: What can be written as a time again, in epoch milliseconds.
EARLIEST, LATEST = 0, 253_402_300_799_999


def list_audit(
    deployment: Deployment, *, share: str | None, job: str | None, since: str, as_json: bool
) -> int:
    """Print the records of one share or one job, oldest first. Raises BadInput, Unavailable."""
    if (share is None) == (job is None):
        raise BadInput("give either --share NAME or --job JOB")
    now = deployment.runtime.clock.now()
    start = parse_since(since, now)
    if job is not None:
        found = list(deployment.runtime.audit.by_job(last_part(deployment.job(job)), start))
    else:
        found = list(_of_share(deployment, share or "", start, now))
    if not found:
        note(_nothing(deployment, share, job, start))
    return _printed(found, as_json=as_json)


def list_lineage(deployment: Deployment, job: str, *, as_json: bool) -> int:
    """Print the records of the job and of those that it replaces or was submitted again as, oldest first.

    Raises BadInput, Unavailable.
    """
    audit, key = deployment.runtime.audit, last_part(deployment.job(job))
    found = sorted((fact for one in _lineage(audit, key) for fact in audit.by_job(one, 0)), key=_at)
    if not found:
        note(f"no records of job {job}")
    return _printed(found, as_json=as_json)


def _printed(found: list[AuditRecord], *, as_json: bool) -> int:
    if as_json:
        print_json([fact.model_dump() for fact in found])
        return OK
    say(*(record_line(fact, full_time(fact.at)) for fact in found))
    return OK


def _at(fact: AuditRecord) -> int:
    return fact.at


def parse_since(text: str, now: int, option: str = "--since") -> int:
    """``2h`` before ``now``, or an RFC 3339 time, in epoch milliseconds. Raises BadInput."""
    moment = _moment(text, now, option)
    if not EARLIEST <= moment <= LATEST:
        raise BadInput(f"{option}: {text!r} is not a time between 1970 and 9999")
    return moment


def _moment(text: str, now: int, option: str) -> int:
    try:
        return now - parse_duration(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadInput(
            f"{option}: {text!r} is neither a duration (2h) nor a time (2026-09-14T08:00:00Z)"
        ) from error
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _nothing(deployment: Deployment, share: str | None, job: str | None, since: int) -> str:
    """What to say of an empty list. Raises BadInput when Batch knows no such share."""
    about = f"share {share}" if share is not None else f"job {job}"
    known = _shares(deployment) if share is not None else None
    if known is not None and share not in known:
        raise BadInput(
            f"no records of {about}, and no quota share has that name; there are {', '.join(known)}"
        )
    return f"no records of {about} since {full_time(since)}"


def _shares(deployment: Deployment) -> list[str] | None:
    """Names of the quota shares; None when not all could be read: an auditor may not ask Batch."""
    runtime = deployment.runtime
    try:
        answers = [runtime.batch.shares(queue) for queue in runtime.queues]
    except Unavailable:
        return None
    if any(answer.odd for answer in answers):
        return None
    return sorted({share.name for answer in answers for share in answer.shares})


def _lineage(audit: AuditReader, job: str) -> list[str]:
    """The jobs of the lineage, the first one first: it is called after that one, unless people named it."""
    named = next((fact.lineage for fact in audit.by_job(job, 0) if fact.lineage), job)
    jobs = [named if next(iter(audit.by_job(named, 0)), None) else job]
    while (following := _next_job(audit, jobs[-1])) is not None and following not in jobs:
        jobs.append(following)
    return jobs if job in jobs else [job]


def _next_job(audit: AuditReader, job: str) -> str | None:
    made = (fact.figures["next_job"] for fact in audit.by_job(job, 0) if fact.kind == "resubmitted")
    return next((last_part(arn) for arn in made), None)


def _of_share(deployment: Deployment, share: str, since: int, until: int) -> Iterator[AuditRecord]:
    for queue in sorted(deployment.runtime.queues):
        yield from deployment.runtime.audit.by_share(queue, share, since, until)
