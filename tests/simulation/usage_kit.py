"""Random jobs whose truth is known, their events, and what they used, counted second by second."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

from sharewarden.domain.decide import Decision
from sharewarden.domain.observation import AttemptSeen, JobDescription, JobObservation, ShareDescription
from sharewarden.domain.record import JobRecord, absorb, fold, new_record
from sharewarden.domain.share import ShareRecord
from sharewarden.domain.stored import DAY
from sharewarden.domain.usage import DayOfTeam
from sharewarden.ports import Conflict, Unavailable
from sharewarden.usecases.change import change
from sharewarden_tools.lab import Lab

from tests.simulation.faults import Crash
from tests.simulation.pool import UNIT
from tests.simulation.world import QUEUE, World

SECOND = 1000
UNITS = {"ml.g5.xlarge": 2, "ml.g5.12xlarge": 1}
"""Instance types and their limits in each share."""
TEAMS = {"background": "research", "medium": "vision"}
"""Shares that the policy gives to a team; `urgent` has none."""

Used = Counter[tuple[str, int, str, str]]
"""(team, day number, instance type, owned or borrowed) -> instance-milliseconds."""


@dataclass
class Job:
    """``runs``: start and stop of each attempt, in seconds from the beginning."""

    name: str
    share: str
    unit: str
    instances: int
    runs: list[tuple[int, int]]
    created_at: int
    told: list[JobObservation] = field(default_factory=list)

    @property
    def arn(self) -> str:
        return f"arn:aws:batch:us-east-1:123456789012:service-job/{self.name}"

    def description(self) -> JobDescription:
        """Read before anything happened: all that matters later comes by events."""
        return JobDescription(
            job=self.name,
            arn=self.arn,
            read_at=self.created_at,
            name=self.name,
            queue=QUEUE,
            status="RUNNABLE",
            created_at=self.created_at,
            share=self.share,
            tags=(("team", "tagged"),) if self.share == "medium" or self.name.endswith("7") else (),
            instance_type=self.unit,
            instance_count=self.instances,
        )


def pool(seed: int, start: int, seconds: int, jobs: int = 12) -> list[Job]:
    """Jobs with up to four attempts each, somewhere in so many seconds after ``start``."""
    rng = random.Random(seed)
    return [_job(rng, number, start, seconds) for number in range(jobs)]


def _job(rng: random.Random, number: int, start: int, seconds: int) -> Job:
    times = sorted(rng.sample(range(seconds), 2 * rng.randint(1, 4)))
    job = Job(
        name=f"job-{number}",
        share=rng.choice([*TEAMS, "urgent"]),
        unit=rng.choice([*UNITS]),
        instances=rng.randint(1, 3),
        runs=list(zip(times[::2], times[1::2], strict=True)),
        created_at=start,
    )
    for place, (begin, end) in enumerate(job.runs):
        last = place == len(job.runs) - 1
        job.told += _events(job, place, start + begin * SECOND, start + end * SECOND, last=last)
    return job


def _events(job: Job, place: int, begin: int, end: int, *, last: bool) -> list[JobObservation]:
    training_job = f"arn:aws:sagemaker:us-east-1:123456789012:training-job/{job.name}-{place}"
    about = {"job": job.name, "arn": job.arn, "queue": QUEUE}
    row = AttemptSeen(
        training_job=training_job, started_at=begin, stopped_at=end, reason="told", preempted=not last
    )
    running = JobObservation(**about, at=begin, what="status", status="RUNNING", attempt=training_job)
    if not last:
        return [running, JobObservation(**about, at=end, what="preemption-completed", attempts=(row,))]
    over = {"status": "SUCCEEDED", "reason": "done", "stopped_at": end}
    return [running, JobObservation(**about, at=end, what="status", attempts=(row,), **over)]


def second_by_second(jobs: list[Job], start: int, since: int, until: int) -> Used:
    """The definition, with nothing clever: every second, who runs, and what of it is above the limit."""
    used: Used = Counter()
    for now in range(since, until, SECOND):
        free: dict[tuple[str, str], int] = {}
        running = sorted(
            (begin, job.name, f"{job.name}-{place}", job)
            for job in jobs
            for place, (begin, end) in enumerate(job.runs)
            if start + begin * SECOND <= now < start + end * SECOND
        )
        for *_, job in running:
            left = free.setdefault((job.share, job.unit), UNITS[job.unit])
            owned = min(left, job.instances)
            free[job.share, job.unit] = left - owned
            key = (team_of(job), now // DAY, job.unit)
            used[*key, "owned"] += owned * SECOND
            used[*key, "borrowed"] += (job.instances - owned) * SECOND
    return +used


def team_of(job: Job) -> str:
    return TEAMS.get(job.share) or dict(job.description().tags).get("team") or "(no team)"


def counted(days: tuple[DayOfTeam, ...]) -> Used:
    used: Used = Counter()
    for day in days:
        for unit, time in day.usage.units.items():
            used[day.team, day.day, unit, "owned"] += time.owned
            used[day.team, day.day, unit, "borrowed"] += time.borrowed
    assert all(value >= 0 for value in used.values())
    return +used


def put_shares(one: World) -> None:
    """The shares as a sweep would have recorded them."""
    for name in (*TEAMS, "urgent"):
        arn = f"{QUEUE}/quota-share/{name}"
        limits = tuple(UNITS.items())
        share = ShareDescription(arn=arn, name=name, queue=QUEUE, limits=limits, strategy="LEND_AND_BORROW")
        one.ledger.commit([ShareRecord(arn=arn, queue=QUEUE, description=share, read_at=1)], [], 1)


def hear(one: World, job: Job, seen: JobObservation) -> None:
    """One event into the record, as ``react`` does it."""
    again(lambda: change(one.runtime, job.name, lambda record: Decision(record=fold(record, seen))))


def begin(one: World, job: Job) -> None:
    described = job.description()
    one.ledger.commit([absorb(new_record(described), described)], [], one.clock.now())


def close(one: World, job: Job) -> None:
    """As the sweep does it, only that it does not wait for late events."""
    again(lambda: change(one.runtime, job.name, lambda record: _closed(record, one.clock.now())))


def _closed(record: JobRecord, now: int) -> Decision:
    over = record.end is not None and record.closed_at is None
    return Decision(record=record.model_copy(update={"closed_at": now}) if over else record)


def again(work: Callable[[], object]) -> None:
    """Until it comes to its end, as the queue or the next sweep would."""
    for _ in range(20):
        try:
            work()
        except (Crash, Unavailable, Conflict):
            continue
        return
    raise AssertionError("it never came to its end")


def forget_records(one: World) -> None:
    """The time to live of closed records is over."""
    for kind, key in [name for name, item in one.ledger.items.items() if isinstance(item, JobRecord)]:
        del one.ledger.items[kind, key]


def by_definition(lab: Lab, limit: int) -> Used:
    """The same for the attempts in a lab, of one instance each, by share: between any two of its times."""
    jobs, used = lab.state.jobs, Used()
    runs = sorted(
        (one.started_at, one.owner, one.ended_at, jobs[one.owner].share)
        for one in lab.state.trainings.values()
        if jobs[one.owner].queue_arn == QUEUE and one.started_at and one.ended_at
    )
    for since, until in pairwise(sorted({at for start, _, stop, _ in runs for at in (start, stop)})):
        running: Counter[str] = Counter()
        for start, _, stop, share in runs:
            if start <= since < stop:
                running[share] += 1
                kind = "owned" if running[share] <= limit else "borrowed"
                used[share, since // DAY, UNIT, kind] += until - since
    return used
