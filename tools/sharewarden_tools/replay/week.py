"""The seeded synthetic week: five teams that share 64 GPUs, as published traces describe such teams."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from math import log

from .draws import log_normal, one_of, poisson, priority, promise, sla_class, stream
from .numbers import Team, numbers
from .workload import Job, Share, Workload

SECOND, HOUR = 1_000, 3_600_000
HOURS = 7 * 24
ASSUMED = (
    "a GPU is an instance of its own: no placement on nodes, and no node fails",
    "10/70/20 % of the sessions have a high, normal or low priority",
    "which sessions have an SLA, and what it promises: see week.yaml",
    "in-share preemption is on for foundation, posttrain and vision, off for eval and sweeps",
    "40 % of the users' jobs ignore SIGTERM; the others save on it if that takes 120 s at most",
)


@dataclass(frozen=True, slots=True)
class _User:
    name: str
    saves: bool
    hears_sigterm: bool


def synthetic_week(seed: int, *, stormy: bool = False, load: float = 1.0) -> Workload:
    """One week from Monday 00:00. ``load`` is a factor on the number of sessions."""
    rates = list(_hourly_rates(seed, stormy))
    teams = numbers().teams
    jobs = chain.from_iterable(_Sessions(seed, name, team, load).jobs(rates) for name, team in teams.items())
    return Workload(
        title=f"synthetic week{', stormy' if stormy else ''}",
        shares=tuple(Share(name, team.gpus, team.in_share_preemption) for name, team in teams.items()),
        jobs=tuple(sorted(jobs, key=lambda job: job.submitted_at)),
        span=HOURS * HOUR,
        assumed=ASSUMED,
    )


def _hourly_rates(seed: int, stormy: bool) -> Iterator[float]:
    """The factor on the mean rate of each hour: by the hour of the week, and by how the day happens to be."""
    arrivals, rng = numbers().arrivals, stream(seed, "days")
    variation = arrivals.stormy_day_variation if stormy else arrivals.day_variation
    for rates in _profile():
        busy = rng.gammavariate(variation**-2, variation**2)
        yield from (rate * busy for rate in rates)


def _profile() -> list[list[float]]:
    """Hour of the week, mean 1."""
    arrivals = numbers().arrivals
    shapes = [arrivals.weekday] * 5 + [arrivals.weekend] * 2
    rows = [
        [factor * 24 * hour / sum(shape) for hour in shape]
        for factor, shape in zip(arrivals.days, shapes, strict=True)
    ]
    mean = sum(map(sum, rows)) / HOURS
    return [[rate / mean for rate in row] for row in rows]


class _Sessions:
    """What one team sends in a week."""

    def __init__(self, seed: int, name: str, team: Team, load: float) -> None:
        self._name, self._team, self._load = name, team, load
        self._rng = stream(seed, name)
        self._users = list(_users(self._rng, name, team))
        self._weights = [rank ** -numbers().arrivals.zipf for rank in range(1, len(self._users) + 1)]
        self._sent = 0

    def jobs(self, rates: Iterable[float]) -> Iterator[Job]:
        mean = self._load * self._team.sessions / HOURS
        for hour, rate in enumerate(rates):
            for _ in range(poisson(self._rng, mean * rate)):
                yield from self._session(round(HOUR * (hour + self._rng.random())))

    def _session(self, at: int) -> Iterator[Job]:
        """One batch: a user, a size, a priority, a class; the run times differ."""
        rng, team = self._rng, self._team
        user = rng.choices(self._users, self._weights)[0]
        gpus = one_of(rng, team.sizes.items())
        first = priority(rng, team.priorities)
        sla = sla_class(rng, team.sla)
        for place in range(_batch_size(rng, team.batch)):
            yield self._job(user, at + place * numbers().arrivals.gap, gpus, first, sla)

    def _job(self, user: _User, at: int, gpus: int, first: int, sla: str | None) -> Job:
        team, rng = self._team, self._rng
        whole = _whole_seconds(min(team.longest, max(numbers().shortest, log_normal(rng, team.run))))
        saves, moved = user.saves, _time_to_move(team, gpus)
        self._sent += 1
        return Job(
            name=f"{self._name}-{self._sent:03}",
            share=self._name,
            user=user.name,
            submitted_at=at,
            gpus=gpus,
            runtime=whole,
            fails_after=_fails_after(rng, gpus, whole),
            priority=first,
            save_every=team.save_every if saves else None,
            load=moved if saves else 0,
            stop_save=moved if saves and user.hears_sigterm else None,
            sla=promise(rng, sla, at, whole) if sla else None,
        )


def _users(rng: random.Random, name: str, team: Team) -> Iterator[_User]:
    fewest, most = numbers().arrivals.users
    for number in range(rng.randint(fewest, most)):
        saves = team.save_every is not None and rng.random() >= team.users_without_saves
        hears = rng.random() >= numbers().checkpoints.ignore_sigterm
        yield _User(f"{name}-user-{number + 1}", saves, hears)


def _batch_size(rng: random.Random, law: str) -> int:
    fewest, most = one_of(rng, [((low, high), weight) for weight, low, high in numbers().batches[law]])
    return rng.randint(fewest, most)


def _fails_after(rng: random.Random, gpus: int, whole: int) -> int | None:
    """After how much of its run time the job fails; None for most.

    One that its user cancels ends as well, when its run time is over: the published run times include those.
    """
    outcomes, failures = numbers().outcomes, numbers().failures
    row = outcomes[max(least for least in outcomes if least <= gpus)]
    if one_of(rng, zip((False, False, True), row, strict=True)):
        early = rng.random() < failures.early
        longest = min(whole, failures.early_within) if early else whole
        return _whole_seconds(max(SECOND, longest * rng.random()))
    return None


def _time_to_move(team: Team, gpus: int) -> int:
    """A whole checkpoint over the bandwidth of the job's nodes, in ms; larger jobs train larger models."""
    if team.parameters is None:
        return 0
    smallest, largest = team.parameters
    least, most = min(team.sizes), max(team.sizes)
    place = log(gpus / least) / log(most / least) if most > least else 0.5
    parameters = smallest * (largest / smallest) ** place
    facts = numbers().checkpoints
    nodes = -(-gpus // facts.gpus_per_node)
    return _whole_seconds(
        SECOND * parameters * facts.bytes_per_parameter / (facts.bytes_per_second_and_node * nodes)
    )


def _whole_seconds(ms: float) -> int:
    """The lab counts training in steps of a second."""
    return SECOND * round(ms / SECOND)
