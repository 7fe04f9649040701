"""What the ladders of SLA classes would do to the jobs that wait. Nothing is done here, or recorded."""

from sharewarden.domain.base import Frozen
from sharewarden.domain.helping.answer import Answer
from sharewarden.domain.helping.can_help import can_help
from sharewarden.domain.helping.view import JobView, PoolView
from sharewarden.domain.ladder import Step, due_steps, next_step
from sharewarden.domain.policy import Policy
from sharewarden.domain.priority import Boost, effective, with_boost
from sharewarden.domain.record import JobRecord
from sharewarden.domain.sla import Sla, Untold, late_when_first_seen, sla_of
from sharewarden.ports import Runtime

from .helping import view


class Forecast(Frozen):
    """A job with an SLA that waits. Times are epoch ms, durations ms."""

    job: str
    name: str
    share: str | None
    sla: Sla
    waited: int
    used: int | None
    """Percent of the time that it may wait; None where there was none from the beginning."""
    slack: int | None
    """Against its deadline; None without one that counts."""
    late: bool
    escalated: bool
    """False: it was late already when Sharewarden first saw it, and is only listed."""
    due: tuple[Step, ...] = ()
    """The steps whose time has come: a ladder that is carried out would have taken them."""
    next: Step | None = None
    asked: int | None = None
    """Number of the step that ``help`` is about: the next one with a boost, else the last due one."""
    help: Answer | None = None
    """Whether the priority of that step would start the job, in the pool as it is now; None: there is no
    such step, or the job's base is not known."""


class UntoldJob(Frozen):
    """A waiting job whose SLA cannot be told."""

    job: str
    name: str
    share: str | None
    why: str


class QueueForecast(Frozen):
    """One queue, as it was at ``at``."""

    queue: str
    at: int
    policy: str
    """Its hash."""
    shares: tuple[str, ...]
    jobs: tuple[Forecast, ...]
    """The most urgent first."""
    untold: tuple[UntoldJob, ...]
    without_sla: int
    """Waiting jobs that ask for no SLA."""
    gaps: tuple[str, ...]
    """What of the queue could not be read."""


def forecast(runtime: Runtime, queue: str, share: str | None = None) -> QueueForecast:
    """The jobs of the queue, or of one share of it, that wait for capacity. Raises Unavailable."""
    policy, pool = runtime.policies.current(), view(runtime, queue)
    records = {record.job: record for record in runtime.ledger.open_items(JobRecord, queue)}
    now = runtime.clock.now()
    waiting = [one for one in pool.jobs if one.waits and share in (None, one.share)]
    told = [(one, records.get(one.job), _sla(records.get(one.job), policy)) for one in waiting]
    jobs = [
        _forecast(pool, record, sla, policy, now)
        for _, record, sla in told
        if record is not None and isinstance(sla, Sla)
    ]
    return QueueForecast(
        queue=queue,
        at=now,
        policy=policy.hash,
        shares=tuple(one.name for one in pool.shares),
        jobs=tuple(sorted(jobs, key=lambda one: (one.sla.due, one.job))),
        untold=tuple(_untold(one, sla) for one, _, sla in told if isinstance(sla, Untold)),
        without_sla=sum(sla is None for _, _, sla in told),
        gaps=pool.gaps,
    )


def _sla(record: JobRecord | None, policy: Policy) -> Sla | Untold | None:
    return Untold(why="Sharewarden has no record of it yet") if record is None else sla_of(record, policy)


def _untold(one: JobView, sla: Untold) -> UntoldJob:
    return UntoldJob(job=one.job, name=one.name, share=one.share, why=sla.why)


def _forecast(pool: PoolView, record: JobRecord, sla: Sla, policy: Policy, now: int) -> Forecast:
    known = Forecast(
        job=record.job,
        name=record.name,
        share=record.share,
        sla=sla,
        waited=max(0, now - sla.since),
        used=sla.used(now),
        slack=sla.slack(now),
        late=sla.late(now),
        escalated=not late_when_first_seen(record, sla),
    )
    if not known.escalated:
        return known
    ladder = policy.sla[sla.name].ladder
    due, coming = due_steps(sla, ladder, now), next_step(sla, ladder, now)
    step = _boosting(due, coming)
    update = {"due": due, "next": coming, "asked": step and step.number}
    return known.model_copy(update=update | {"help": step and _help(pool, record, step, policy, now)})


def _boosting(due: tuple[Step, ...], coming: Step | None) -> Step | None:
    """The step to ask about."""
    candidates = (coming, *reversed(due))
    return next((step for step in candidates if step is not None and step.boost is not None), None)


def _help(pool: PoolView, record: JobRecord, step: Step, policy: Policy, now: int) -> Answer | None:
    """None: the job's base is not known, so no priority can be asked about."""
    if record.priority.base is None:
        return None
    boost = Boost(id="step", kind="automatic", amount=step.boost or 0, by="sla", reason="", since=now)
    asked = effective(with_boost(record.priority, boost), policy.queue(record.queue).bands)
    return can_help(pool, record.job, asked, now)
