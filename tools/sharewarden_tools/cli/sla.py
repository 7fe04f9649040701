"""``sharewarden sla forecast``: time used, the next step, whether it helps, who may lose what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sharewarden.domain.base import last_part
from sharewarden.domain.durations import format_duration
from sharewarden.domain.hints import hint
from sharewarden.domain.ladder import Step
from sharewarden.domain.rules.base import counted
from sharewarden.usecases.forecast import Forecast, QueueForecast, forecast

from sharewarden_tools.operations.progress import progress

from .can_help import consequences, headline, rows
from .deployment import Deployment
from .output import OK, BadInput, full_time, print_json, say

ONLY_SHOWN = "forecast only: this version carries out no step of a ladder"
_TOLD = {"team": "the team is told", "oncall": "whoever is on call is told"}
_PROMISES = {"start": "first start", "restart": "restart", "finish": "deadline"}


def show_forecast(deployment: Deployment, queue: str | None, share: str | None, *, as_json: bool) -> int:
    """Print the forecast of the queues. Raises BadInput, Unavailable."""
    found = []
    with progress() as tell:
        for arn in _queues(deployment, queue):
            tell(f"reading {last_part(arn)}")
            found.append(forecast(deployment.runtime, arn, share))
    known = {name for one in found for name in one.shares}
    if share is not None and share not in known:
        raise BadInput(f"--share: no quota share {share!r} there: {hint(share, known)}")
    if as_json:
        print_json(_as_json(found))
    else:
        say(*lines(found))
    return OK


def lines(found: Iterable[QueueForecast]) -> Iterator[str]:
    """The forecast for people."""
    yield ONLY_SHOWN
    for one in found:
        yield f"{last_part(one.queue)} at {full_time(one.at)}, policy {one.policy}"
        for job in one.jobs:
            yield from _job(job, one.at)
        for untold in one.untold:
            where = untold.share or "no share"
            yield f"{untold.name} ({where}): its SLA cannot be told: {untold.why}"
        yield from (f"not all could be read: {gap}" for gap in one.gaps)
        yield f"{counted(one.without_sla, 'waiting job')} without an SLA"


def _queues(deployment: Deployment, queue: str | None) -> list[str]:
    arns = sorted(deployment.runtime.queues - deployment.runtime.classic_queues)
    named = [arn for arn in arns if queue in (None, arn, last_part(arn))]
    if queue is not None and not named:
        names = hint(queue, map(last_part, arns))
        raise BadInput(f"--queue: {queue!r} is no queue with shares of this deployment: {names}")
    return named


def _as_json(found: Iterable[QueueForecast]) -> dict[str, Any]:
    return {"carried_out": False, "queues": [one.model_dump() for one in found]}


def _job(job: Forecast, now: int) -> Iterator[str]:
    sla = job.sla
    yield f"{job.name} ({job.share or 'no share'}, team {sla.team}): SLA {sla.name}, {_time(job, now)}"
    yield from rows("due", [f"{full_time(sla.due)}, for its {_PROMISES[sla.promise]}"])
    yield from rows("slack", _slack(job))
    yield from rows("ignored", sla.ignored)
    yield from rows("steps", map(_step, job.due[-1:]))
    yield from rows("next", [_next(job)])
    if job.help is not None:
        yield from rows(f"step {job.asked}", [headline(job.help)])
        yield from consequences(job.help)


def _time(job: Forecast, now: int) -> str:
    sla, waits = job.sla, f"waits {format_duration(job.waited)}"
    if job.used is None:
        return f"{waits}; there was no time to wait from the beginning"
    late = f", LATE by {format_duration(now - sla.due)}" if job.late else ""
    return f"{waits} of {format_duration(sla.limit)} ({job.used}%) for a {sla.epoch}{late}"


def _slack(job: Forecast) -> Iterator[str]:
    sla, slack = job.sla, job.slack
    if slack is None or sla.deadline is None or sla.remaining is None:
        return
    told = f"{format_duration(slack)} left" if slack >= 0 else f"{format_duration(slack)} too late"
    left = format_duration(sla.remaining)
    yield f"{told} if it started now: {left} to train until {full_time(sla.deadline)}"


def _next(job: Forecast) -> str:
    if not job.escalated:
        return "none: it was late already when Sharewarden first saw it: listed, not escalated"
    return "no step" if job.next is None else _step(job.next)


def _step(step: Step) -> str:
    boost = None if step.boost is None else f"+{step.boost}"
    told = None if step.notify is None else _TOLD[step.notify]
    what = ", ".join(filter(None, (boost, told)))
    return f"step {step.number} ({step.percent}%) at {full_time(step.at)}: {what}"
