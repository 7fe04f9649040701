"""The ports in memory: for ``sharewarden react FILE``, the simulation, the bench and the tests.

The ledger keeps the promises of ``sharewarden.ports`` by the same suite as the one on DynamoDB
(``tests/contract/test_ledger.py``). Stored values are frozen, so nothing is copied.
"""

import json
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Literal, NamedTuple, TypeVar

from sharewarden.aws.rows import audit_row, state_row
from sharewarden.domain.audit import AuditFact, AuditRecord
from sharewarden.domain.base import last_part
from sharewarden.domain.observation import (
    DISPATCHED,
    TERMINAL,
    JobDescription,
    JobSummary,
    ShareDescription,
    Status,
)
from sharewarden.domain.policy import Policy
from sharewarden.domain.policy_version import PolicyEntry, PolicyVersion
from sharewarden.domain.resubmission import Submission
from sharewarden.domain.stored import MINUTE, Stored
from sharewarden.domain.telling import Message as Telling
from sharewarden.ports import MAX_ACTIONS, Clock, Conflict, Denied, Page, Shares, Unavailable

from .memory_jobs import job_of, submission_of, summary_of

T = TypeVar("T", bound=Stored)

PAGE_SIZE = 100


class MemoryClock:
    """A clock that stands still until it is set; epoch milliseconds."""

    def __init__(self, now: int = 0) -> None:
        self.at = now

    def now(self) -> int:
        return self.at

    def advance(self, ms: int) -> None:
        """Let ``ms`` milliseconds pass."""
        self.at += ms


class MemoryLedger:
    """Ledger and AuditReader. ``items`` by (kind, key) and ``facts`` by key lie open to tests."""

    def __init__(self) -> None:
        self.items: dict[tuple[str, str], Stored] = {}
        self.facts: dict[str, AuditRecord] = {}
        self._lock = Lock()

    def load(self, kind: type[T], key: str) -> T | None:
        item = self.items.get((kind.item, key))
        return item if isinstance(item, kind) else None

    def commit(self, items: Sequence[Stored], facts: Sequence[AuditFact], now: int) -> None:
        if len(items) + len(facts) > MAX_ACTIONS:
            raise ValueError(f"a commit has at most {MAX_ACTIONS} items and facts")
        with self._lock:
            for item in items:
                self._check(item)
                state_row(item)  # raises ValueError when it is too big for DynamoDB
            for fact in facts:
                audit_row(fact, now)
            for item in items:
                self._put(item)
            for fact in facts:
                if fact.key not in self.facts:
                    self.facts[fact.key] = AuditRecord(**dict(fact), recorded_at=now)

    def open_items(self, kind: type[T], queue: str) -> Iterator[T]:
        for item in list(self.items.values()):
            if isinstance(item, kind) and item.open_queue == queue:
                yield item

    def by_job(self, job: str, since: int) -> Iterator[AuditRecord]:
        yield from _oldest_first(fact for fact in self.facts.values() if fact.job == job and fact.at >= since)

    def by_share(self, queue: str, share: str, since: int, until: int) -> Iterator[AuditRecord]:
        yield from _oldest_first(
            fact
            for fact in self.facts.values()
            if fact.queue == queue and (fact.share or "") == share and since <= fact.at <= until
        )

    def _check(self, item: Stored) -> None:
        known = self.items.get((item.item, item.key))
        if item.version != (known.version if known else 0):
            raise Conflict(f"{item.item}#{item.key} is no longer at version {item.version}")

    def _put(self, item: Stored) -> None:
        self.items[(item.item, item.key)] = item.model_copy(update={"version": item.version + 1})


class Message(NamedTuple):
    """What ``apply`` is asked to look at."""

    job: str
    wish: int | str


class MemoryWishQueue:
    """WishQueue. ``sent`` holds all messages ever sent, ``drain`` hands out those not yet handled."""

    KEPT_APART = 5 * MINUTE
    """How long SQS FIFO queues remember a de-duplication id (SQS developer guide)."""

    def __init__(self, clock: Clock) -> None:
        self.sent: list[Message] = []
        self._clock = clock
        self._handled = 0
        self._once: dict[str, int] = {}

    def send(self, job: str, wish: int | str, once: str) -> None:
        now = self._clock.now()
        if now - self._once.get(once, now - self.KEPT_APART) < self.KEPT_APART:
            return
        self._once[once] = now
        self.sent.append(Message(job, wish))

    def drain(self) -> Iterator[Message]:
        """The messages in the order of sending, also those sent while earlier ones are handled."""
        while self._handled < len(self.sent):
            self._handled += 1
            yield self.sent[self._handled - 1]


class MemoryNoticeQueue:
    """NoticeQueue. ``sent`` holds the keys of all notices that were ever sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def send(self, key: str) -> None:
        self.sent.append(key)


class Look(NamedTuple):
    """A job whose checkpoints are to be looked at, or the saves before a wish of it, not before ``at``."""

    job: str
    at: int
    asked: int | None = None

    @property
    def body(self) -> str:
        """The message as SQS would hand it over."""
        told: dict[str, object] = {"job": self.job}
        return json.dumps(told if self.asked is None else told | {"asked": self.asked})


class MemoryLookQueue:
    """LookQueue. ``sent`` holds all messages ever sent, ``take_due`` hands out those that are due."""

    def __init__(self, clock: Clock) -> None:
        self.sent: list[Look] = []
        self._waiting: list[Look] = []
        self._clock = clock

    def send(self, job: str, delay: int, asked: int | None = None) -> None:
        look = Look(job, self._clock.now() + delay, asked)
        self.sent.append(look)
        self._waiting.append(look)

    def next_due(self) -> int | None:
        return min((look.at for look in self._waiting), default=None)

    def take_due(self) -> list[Look]:
        now = self._clock.now()
        due = sorted((look for look in self._waiting if look.at <= now), key=lambda look: look.at)
        self._waiting = [look for look in self._waiting if look.at > now]
        return due


class Started(NamedTuple):
    """An execution that takes care of an attempt."""

    attempt: str
    job: str
    generation: int


class MemoryWorkflows:
    """Workflows whose executions do nothing. ``started`` holds them all; those in ``over`` have ended.

    While ``down`` holds a text, every call raises Unavailable with it.
    """

    def __init__(self) -> None:
        self.started: list[Started] = []
        self.over: set[Started] = set()
        self.down: str | None = None

    def start(self, attempt: str, job: str, generation: int) -> Literal["started", "running", "over"]:
        if self.down is not None:
            raise Unavailable(self.down)
        one = Started(attempt, job, generation)
        if one in self.started:
            return "over" if one in self.over else "running"
        self.started.append(one)
        return "started"


class MemoryChannel:
    """Notifier. ``sent`` holds what went out; while ``fault`` holds an error, each send raises it."""

    def __init__(self) -> None:
        self.sent: list[Telling] = []
        self.fault: Exception | None = None

    def send(self, message: Telling) -> None:
        if self.fault is not None:
            raise self.fault
        self.sent.append(message)


class Buried(NamedTuple):
    """A message for a person."""

    body: str
    reason: str
    origin: str


class MemoryDeadLetters:
    """DeadLetters, as a list."""

    def __init__(self) -> None:
        self.buried: list[Buried] = []

    def bury(self, body: str, reason: str, origin: str) -> None:
        self.buried.append(Buried(body, reason, origin))


class MemoryPolicies:
    """Policies; set ``policy`` to push another one."""

    def __init__(self, policy: Policy | None = None) -> None:
        self.policy = policy or Policy()

    def current(self) -> Policy:
        return self.policy


class MemoryPolicyStore:
    """PolicyStore over a ledger's audit. ``in_force`` and ``kept`` (by number) lie open to tests."""

    def __init__(self, ledger: MemoryLedger) -> None:
        self.in_force: PolicyVersion | None = None
        self.kept: dict[int, PolicyVersion] = {}
        self._ledger = ledger
        self._lock = Lock()

    def current(self) -> PolicyVersion | None:
        return self.in_force

    def version(self, number: int) -> PolicyVersion | None:
        return self.kept.get(number)

    def history(self) -> Iterator[PolicyEntry]:
        newest_first = sorted(self.kept.values(), key=lambda version: -version.number)
        by_hand = [self.in_force] if self.in_force and self.in_force.author is None else []
        for version in (*by_hand, *newest_first):
            yield PolicyEntry(**version.model_dump(include=set(PolicyEntry.model_fields)))

    def put(self, version: PolicyVersion, seen: PolicyVersion | None, fact: AuditFact, now: int) -> None:
        with self._lock:
            if self.in_force != seen or version.number in self.kept or fact.key in self._ledger.facts:
                raise Conflict("another policy was put")
            if seen is not None and seen.author is None:
                self.kept[seen.number] = seen
            self.kept[version.number] = version
            self.in_force = version.model_copy(update={"text": ""})
            self._ledger.commit([], [fact], now)


class MemoryBatch:
    """Batch without a scheduler: it says what it was told.

    ``descriptions`` by job key, ``quota_shares`` and ``environments`` by queue ARN. While ``down`` holds a
    text, every call raises Unavailable with it. ``described``, ``priorities``, ``terminations`` and
    ``submitted`` record the calls; ``payloads`` are what jobs were submitted with, by job key.
    """

    def __init__(self, clock: Clock) -> None:
        self.descriptions: dict[str, JobDescription] = {}
        self.quota_shares: dict[str, list[ShareDescription]] = {}
        self.environments: dict[str, dict[str, int]] = {}
        self.down: str | None = None
        self.described: list[str] = []
        self.priorities: list[tuple[str, int]] = []
        self.terminations: list[tuple[str, str]] = []
        self.payloads: dict[str, str] = {}
        self.submitted: list[tuple[Submission, str]] = []
        self._clock = clock

    def tell(self, description: JobDescription) -> None:
        """Make ``description`` the truth about its job."""
        self.descriptions[description.job] = description

    def describe(self, job: str) -> JobDescription | None:
        self._reach()
        self.described.append(last_part(job))
        known = self.descriptions.get(last_part(job))
        return known.model_copy(update={"read_at": self._clock.now()}) if known else None

    def jobs(self, queue: str, status: Status, token: str | None) -> Page:
        self._reach()
        found = [job for job in self.descriptions.values() if job.queue == queue and job.status == status]
        start = int(token or 0)
        end = start + PAGE_SIZE
        rows = tuple(map(summary_of, found[start:end]))
        return Page(jobs=rows, next_token=str(end) if end < len(found) else None)

    def shares(self, queue: str) -> Shares:
        self._reach()
        return Shares(shares=tuple(self.quota_shares.get(queue, ())))

    def environment(self, queue: str) -> dict[str, int] | None:
        self._reach()
        return self.environments.get(queue)

    def set_priority(self, job: str, priority: int) -> None:
        self._reach()
        known = self.descriptions.get(last_part(job))
        if known is None:
            raise Unavailable(f"UpdateServiceJob: no job {job}")
        self.priorities.append((known.job, priority))
        self.tell(known.model_copy(update={"priority": priority}))

    def terminate(self, job: str, reason: str) -> None:
        """A waiting job fails at once; of a dispatched one the request is noted; its end is yours to tell."""
        self._reach()
        known = self.descriptions.get(last_part(job))
        if known is None:
            raise Unavailable(f"TerminateServiceJob: no job {job}")
        self.terminations.append((known.job, reason))
        if known.status in TERMINAL or known.terminated:
            return
        update: dict[str, object] = {"terminated": True}
        if known.status not in DISPATCHED:
            update |= {"status": "FAILED", "reason": reason, "stopped_at": self._clock.now()}
        self.tell(known.model_copy(update=update))

    def submission(self, job: str) -> Submission | None:
        self._reach()
        known = self.descriptions.get(last_part(job))
        return None if known is None else submission_of(known, self.payloads.get(known.job, "{}"))

    def named(self, queue: str, name: str) -> tuple[JobSummary, ...]:
        self._reach()
        found = [job for job in self.descriptions.values() if (job.queue, job.name) == (queue, name)]
        return tuple(map(summary_of, found))

    def submit(self, submission: Submission, token: str) -> str:
        self._reach()
        if token in {used for _, used in self.submitted}:
            raise Denied("SubmitServiceJob: ClientException: the token was used before")
        self.submitted.append((submission, token))
        job = f"submitted-{len(self.submitted)}"
        self.payloads[job] = submission.payload
        new = job_of(submission, job, self._clock.now())
        self.tell(new)
        return new.arn

    def _reach(self) -> None:
        if self.down is not None:
            raise Unavailable(self.down)


def _oldest_first(facts: Iterator[AuditRecord]) -> list[AuditRecord]:
    return sorted(facts, key=lambda fact: fact.at)
