"""What a waiting job's SLA is: its class, since when it waits for it, and by when it has to start.

The clock of the first start begins with the submission, that of a restart with the requeue: never with the
first event that was seen (design law 11).
"""

from typing import Literal, NamedTuple

from .base import Frozen, last_part
from .facts import team
from .known import deadline_ahead, odd_tags, runtime_of, waiting_since
from .policy import Policy, SlaClass
from .record import JobRecord, steps_of
from .stored import SECOND

Epoch = Literal["start", "restart"]
"""A job waits for its first start until it was RUNNING once, and after that for a restart."""
Promise = Literal["start", "restart", "finish"]


class Sla(Frozen):
    """Of one waiting epoch. Times are epoch ms, durations ms."""

    name: str
    """The class."""
    team: str
    epoch: Epoch
    since: int
    """When the clock began."""
    due: int
    """By when it has to start; before ``since`` where its deadline could not be met from the beginning."""
    promise: Promise
    """The one that is due first."""
    deadline: int | None = None
    remaining: int | None = None
    """What is expected to be left of its runtime; given with ``deadline``."""
    ignored: tuple[str, ...] = ()
    """What its tags ask for and does not count, and why."""

    @property
    def limit(self) -> int:
        """How long it may wait."""
        return max(0, self.due - self.since)

    def used(self, now: int) -> int | None:
        """Whole percent of the limit that are over; None where there was no time from the beginning."""
        return max(0, now - self.since) * 100 // self.limit if self.limit else None

    def slack(self, now: int) -> int | None:
        """What would be left at the deadline if it started now; negative: so much too late."""
        if self.deadline is None or self.remaining is None:
            return None
        return self.deadline - now - self.remaining

    def late(self, now: int) -> bool:
        return now > self.due


class Untold(Frozen):
    """The job asks for an SLA, or may ask for one, and which one holds cannot be told."""

    why: str


def sla_of(record: JobRecord, policy: Policy) -> Sla | Untold | None:
    """The SLA of a job that waits; None: it asks for none."""
    name = record.tag(policy.tags.sla)
    if name is None:
        unread = Untold(why="Batch was not asked about its tags yet")
        return unread if record.snapshot is None else None
    promises, whose = policy.sla.get(name), team(record, policy)
    if promises is None:
        return Untold(why=f"the policy has no SLA class {name}")
    if whose is None:
        return Untold(why=f"it belongs to no team that could be granted SLA class {name}")
    if whose not in policy.teams or name not in policy.teams[whose].sla:
        return Untold(why=f"team {whose} is not granted SLA class {name}")
    clock = _clock(record)
    if clock is None:
        return Untold(why="since when it waits is not known")
    return _granted(record, policy, promises, name, whose, clock)


def late_when_first_seen(record: JobRecord, sla: Sla) -> bool:
    """It was late before Sharewarden looked: such a job is listed, and not escalated (design law 11)."""
    return record.adopted_at is not None and sla.late(record.adopted_at)


class _Clock(NamedTuple):
    epoch: Epoch
    since: int


class _Finish(NamedTuple):
    deadline: int | None
    remaining: int | None
    ignored: tuple[str, ...]


def _granted(
    record: JobRecord, policy: Policy, promises: SlaClass, name: str, whose: str, clock: _Clock
) -> Sla | Untold:
    finish = _finish(record, policy, promises, name)
    within = promises.start_within if clock.epoch == "start" else promises.restart_within
    dues: list[tuple[int, Promise]] = []
    if within is not None:
        dues.append((clock.since + within, clock.epoch))
    if finish.deadline is not None and finish.remaining is not None:
        dues.append((finish.deadline - finish.remaining, "finish"))
    if not dues:
        nothing = f"SLA class {name} promises it no {clock.epoch}"
        return Untold(why="; ".join((nothing, *finish.ignored)))
    due, promise = min(dues)
    return Sla(name=name, team=whose, due=due, promise=promise, **clock._asdict(), **finish._asdict())


def _clock(record: JobRecord) -> _Clock | None:
    """None where its requeue is not known: what Batch only counts as preempted tells no time."""
    waiting = waiting_since(record)
    if waiting is None:
        return None
    requeued = waiting > record.created_at
    if _has_started(record):
        return _Clock("restart", waiting) if requeued else None
    return None if record.preempted_count and not requeued else _Clock("start", record.created_at)


def _has_started(record: JobRecord) -> bool:
    told = any(step.status == "RUNNING" for step in steps_of(record))
    read = record.snapshot is not None and record.snapshot.started_at is not None
    return told or read or any(one.started_at is not None for one in record.attempts)


def _finish(record: JobRecord, policy: Policy, promises: SlaClass, name: str) -> _Finish:
    """The deadline with what is left to train, if both are known, and what does not count."""
    names, odd = policy.tags, odd_tags(dict(record.tags), policy, record.created_at)
    ignored = tuple(f"{tag} {odd[tag]}" for tag in (names.deadline, names.expected_runtime) if tag in odd)
    deadline = deadline_ahead(record.tag(names.deadline), record.created_at)
    if deadline is None:
        return _Finish(None, None, ignored)
    if not promises.finish_by:
        return _Finish(None, None, (*ignored, f"{names.deadline}: SLA class {name} promises no finish"))
    expected = _expected_runtime(record, policy, promises)
    if expected is None:
        why = f"{names.deadline}: its runtime is not known, it takes a tag {names.expected_runtime}"
        return _Finish(None, None, (*ignored, why))
    return _Finish(deadline, max(0, expected - _saved_work(record)), ignored)


def _expected_runtime(record: JobRecord, policy: Policy, promises: SlaClass) -> int | None:
    told = runtime_of(record.tag(policy.tags.expected_runtime))
    return promises.expected_runtime if told is None else told * SECOND


def _saved_work(record: JobRecord) -> int:
    """How long its attempts trained until its newest complete checkpoint: what came after it is lost.

    What an attempt lost before that is not told apart, so this is the most that can be done already.
    """
    saved = record.saves.newest_at if _is_ours(record) else 0
    times = ((one.started_at, one.stopped_at) for one in record.attempts)
    return sum(max(0, min(stop, saved) - start) for start, stop in times if start and stop)


def _is_ours(record: JobRecord) -> bool:
    """Whether the newest save may be of the job itself: another one may save at the same place."""
    save = record.saves.newest
    if save is None:
        return False
    return save.training_job in {None, *(last_part(one.training_job) for one in record.attempts)}
