"""Book the instance time of jobs that are closed, and read what teams used."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from sharewarden.domain.base import NO_TEAM, Frozen
from sharewarden.domain.booking import UsageDay, booking, day_key, rebooked, stints
from sharewarden.domain.borrowing import Stint
from sharewarden.domain.decide import Decision
from sharewarden.domain.facts import team
from sharewarden.domain.observation import ShareDescription
from sharewarden.domain.periods import Period, period_days
from sharewarden.domain.policy import Policy
from sharewarden.domain.pool import GpuHours
from sharewarden.domain.record import JobRecord
from sharewarden.domain.share import ShareRecord
from sharewarden.domain.stored import DAY
from sharewarden.domain.usage import DayOfTeam, Window, daily, limits_of, total
from sharewarden.ports import MAX_ACTIONS, Runtime

if TYPE_CHECKING:  # a rule is imported where a policy names it
    from sharewarden.domain.rules.gpu_hour_budget import Rule as Budget

BUDGET = "gpu-hour-budget"


class QueueUsage(Frozen):
    """What the teams of one queue used; ``no_limit`` names the shares and types whose limit is not known."""

    queue: str
    days: tuple[DayOfTeam, ...]
    no_limit: tuple[str, ...] = ()


def booked(runtime: Runtime, decision: Decision, beside: int) -> tuple[Decision, list[UsageDay]]:
    """The decision, and the days to commit with it: those of a record that it closes.

    ``beside``: items that the commit holds already. Days that it has no room for wait for the next sweep, and
    so long the record stays open. Raises Unavailable.
    """
    record = decision.record
    if record.closed_at is None:
        return decision, []
    wanted = booking(record, runtime.policies.current(), record.closed_at)
    due = [day for one in wanted if (day := _due(runtime, record, one)) is not None]
    update: dict[str, object]
    room = MAX_ACTIONS - 1 - beside - len(decision.facts) - len(decision.notices) - len(decision.cases)
    if len(due) <= room:
        update = {"booked_days": tuple(day.day for day in wanted if day.spans)}
    else:
        due = due[: max(0, room)]
        days = {*record.booked_days, *(day.day for day in due)}
        update = {"booked_days": tuple(sorted(days)), "closed_at": None}
    return decision.model_copy(update={"record": record.model_copy(update=update)}), due


def _due(runtime: Runtime, record: JobRecord, wanted: UsageDay) -> UsageDay | None:
    """The item to write; None when it is stored like that already."""
    stored = runtime.ledger.load(UsageDay, wanted.key)
    day = rebooked(stored, wanted, record)
    news = bool(day.spans) if stored is None else day != stored
    return day if news else None


def queue_usage(runtime: Runtime, queue: str, window: Window) -> QueueUsage:
    """What the teams of the queue used, by the records and limits as they are now. Raises Unavailable."""
    shares = [record.description for record in runtime.ledger.open_items(ShareRecord, queue)]
    records = list(runtime.ledger.open_items(JobRecord, queue))
    known = [share for share in shares if share is not None]
    return _usage(runtime, queue, records, known, runtime.policies.current(), window)


def team_gpu_hours(
    runtime: Runtime,
    queue: str,
    records: Sequence[JobRecord],
    shares: Iterable[ShareDescription],
    policy: Policy,
    now: int,
) -> dict[str, GpuHours]:
    """Each team's GPU-hours on the queue, for the current periods that its guardrails read.

    ``records``: all open ones of the queue; each of their teams is in the answer. Without any nothing is
    read, and the answer is empty. Raises Unavailable.
    """
    entries = (entry for entry in policy.guardrails if entry.covers(queue))
    periods = {period: period_days(period, now) for entry in entries for period in entry.gpu_periods}
    if not periods:
        return {}
    since = min(days.start for days in periods.values()) * DAY
    used = _usage(runtime, queue, records, shares, policy, Window(since, now))
    teams = {day.team for day in used.days} | {team(record, policy) or NO_TEAM for record in records}
    return {each: _gpu_hours(used.days, each, periods) for each in teams}


def budgets(policy: Policy, queue: str) -> tuple["Budget", ...]:
    """The policy's GPU-hour budgets that concern the queue."""
    return tuple(
        cast("Budget", entry) for entry in policy.guardrails if entry.rule == BUDGET and entry.covers(queue)
    )


def _gpu_hours(days: Iterable[DayOfTeam], team_name: str, periods: Mapping[Period, range]) -> GpuHours:
    own = [day for day in days if day.team == team_name]
    used = {period: total(day.usage for day in own if day.day in span) for period, span in periods.items()}
    return GpuHours(
        owned={period: usage.owned_gpu_hours for period, usage in used.items()},
        borrowed={period: usage.borrowed_gpu_hours for period, usage in used.items()},
    )


def _usage(
    runtime: Runtime,
    queue: str,
    records: Iterable[JobRecord],
    shares: Iterable[ShareDescription],
    policy: Policy,
    window: Window,
) -> QueueUsage:
    found, limits = _stints(runtime, queue, records, policy, window), limits_of(shares)
    teams = {name: share.team for name, share in policy.queue(queue).shares.items() if share.team}
    no_limit = {(stint.share, stint.unit) for stint in found} - limits.keys()
    return QueueUsage(
        queue=queue,
        days=daily(found, limits, teams, window),
        no_limit=tuple(sorted(f"{share or '(no share)'} {unit or '(no type)'}" for share, unit in no_limit)),
    )


def _stints(
    runtime: Runtime, queue: str, records: Iterable[JobRecord], policy: Policy, window: Window
) -> list[Stint]:
    """Each attempt once: of a job that is closed at this moment, or was opened again, its record counts."""
    found: dict[tuple[str, str], Stint] = {}
    for day in range(window.since // DAY, (window.until - 1) // DAY + 1):
        for item in runtime.ledger.open_items(UsageDay, day_key(queue, day)):
            found |= {(stint.job, stint.attempt): stint for stint in item.stints()}
    for record in records:
        found |= {(stint.job, stint.attempt): stint for stint in stints(record, policy, window.until)}
    return list(found.values())
