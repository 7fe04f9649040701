"""What one look at a whole queue shows: who holds what, and each job's place in its team and for its user."""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping

from pydantic import Field

from .accelerators import gpus_per_instance
from .base import Frozen
from .facts import team
from .observation import DISPATCHED, TERMINAL, Status
from .policy import Policy
from .record import JobRecord, dispatched_since
from .rules.facts import Facts, PartyFacts, ShareFacts, TeamFacts, UnitFacts


class GpuHours(Frozen):
    """A team's GPU-hours by the name of the current period."""

    owned: dict[str, float] = Field(default_factory=dict)
    borrowed: dict[str, float] = Field(default_factory=dict)


class _Row(Frozen):
    """What counts of one job. ``since``: its dispatch, or its submission while it waits; None: not known."""

    job: str
    dispatched: bool
    since: int | None
    team: str | None
    user: str | None
    share: str
    unit: str
    instances: int
    gpus: int


class Pool(Frozen):
    """One look. Instances that a job does not tell count as none: what is not known accuses nobody."""

    used: dict[tuple[str, str], int]
    """Instances by share and instance type."""
    dispatched: dict[str, bool]
    """Every job of the look, and whether it was dispatched."""
    teams: dict[str, PartyFacts]
    users: dict[str, PartyFacts]
    team_place: dict[str, int]
    """By job: instances of dispatched jobs, or number of waiting ones, of its team up to and with it.

    One whose dispatch nobody told has no place, and counts before no other."""
    user_place: dict[str, int]
    gpu_hours: dict[str, GpuHours]
    """By team."""


def pool_of(
    jobs: Iterable[tuple[JobRecord, Status]],
    policy: Policy,
    gpu_hours: Mapping[str, GpuHours] | None = None,
    behind: Container[str] = (),
) -> Pool:
    """The pool of these records, each in the state that Batch lists it in, in O(n log n).

    ``behind``: jobs that the listing shows elsewhere than their records have them.
    """
    rows = [_row(record, state, policy, behind) for record, state in jobs if state not in TERMINAL]
    rows.sort(key=lambda row: (row.since or 0, row.job))
    used: Counter[tuple[str, str]] = Counter()
    for row in rows:
        used[row.share, row.unit] += row.instances if row.dispatched else 0
    teams, team_place = _parties(rows, lambda row: row.team)
    users, user_place = _parties(rows, lambda row: row.user)
    return Pool(
        used=used,
        dispatched={row.job: row.dispatched for row in rows},
        teams=teams,
        users=users,
        team_place=team_place,
        user_place=user_place,
        gpu_hours=dict(gpu_hours or {}),
    )


def seen_in(pool: Pool | None, facts: Facts, policy: Policy) -> Facts:
    """The facts with what the look adds: nothing for a job that was not in it, or has moved on since."""
    job = facts.job
    dispatched = job.status in DISPATCHED
    if pool is None or job.status in TERMINAL or pool.dispatched.get(job.id) != dispatched:
        return facts
    return facts.model_copy(
        update={
            "share": None if facts.share is None else _with_use(facts.share, pool),
            "team": _team(pool, job.team, job.id, policy, dispatched=dispatched),
            "user": _placed(pool.users.get(job.user or ""), pool.user_place, job.id, dispatched=dispatched),
        }
    )


def _row(record: JobRecord, state: Status, policy: Policy, behind: Container[str]) -> _Row:
    dispatched, instances = state in DISPATCHED, record.instance_count or 0
    told = None if record.job in behind else dispatched_since(record)
    since = told if dispatched else record.created_at
    return _Row(
        job=record.job,
        dispatched=dispatched,
        since=since,
        team=team(record, policy),
        user=record.tag(policy.tags.user),
        share=record.share or "",
        unit=record.instance_type or "",
        instances=instances,
        gpus=instances * (gpus_per_instance(record.instance_type) or 0),
    )


def _parties(
    rows: Iterable[_Row], name: Callable[[_Row], str | None]
) -> tuple[dict[str, PartyFacts], dict[str, int]]:
    """What each party has in all, and each job's place in it."""
    running, gpus, queued = Counter[str](), Counter[str](), Counter[str]()
    before = Counter[tuple[str, bool]]()
    place: dict[str, int] = {}
    for row in rows:
        party = name(row)
        if party is None:
            continue
        running[party] += row.instances if row.dispatched else 0
        gpus[party] += row.gpus if row.dispatched else 0
        queued[party] += not row.dispatched
        if row.since is not None:
            before[party, row.dispatched] += row.instances if row.dispatched else 1
            place[row.job] = before[party, row.dispatched]
    facts = {
        party: PartyFacts(
            name=party,
            running_instances=running[party],
            running_gpus=gpus[party],
            queued_jobs=queued[party],
        )
        for party in {*running, *queued}
    }
    return facts, place


def _placed(
    party: PartyFacts | None, places: Mapping[str, int], job: str, *, dispatched: bool
) -> PartyFacts | None:
    if party is None or job not in places:
        return None
    which = "running_up_to_job" if dispatched else "queued_up_to_job"
    return party.model_copy(update={which: places[job]})


def _team(pool: Pool, name: str | None, job: str, policy: Policy, *, dispatched: bool) -> TeamFacts | None:
    party = _placed(pool.teams.get(name or ""), pool.team_place, job, dispatched=dispatched)
    if party is None:
        return None
    hours = pool.gpu_hours.get(party.name, GpuHours())
    return TeamFacts(
        **dict(party),
        granted_sla=policy.teams[party.name].sla if party.name in policy.teams else (),
        owned_gpu_hours=hours.owned,
        borrowed_gpu_hours=hours.borrowed,
    )


def _with_use(share: ShareFacts, pool: Pool) -> ShareFacts:
    units = {unit: _used(facts, pool.used.get((share.name, unit), 0)) for unit, facts in share.units.items()}
    return share.model_copy(update={"units": units})


def _used(unit: UnitFacts, used: int) -> UnitFacts:
    return unit.model_copy(update={"used": used, "borrowed": max(0, used - unit.limit)})
