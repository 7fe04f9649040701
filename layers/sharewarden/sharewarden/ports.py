"""What the use cases need from the world. ``aws/`` implements these over boto3; the tools hold fakes.

Errors: ``Unavailable`` when AWS could not be asked (throttled, timed out, refused): unknown is not failed, so
the caller defers. ``Conflict`` when somebody else committed in between: read again and decide again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeVar

from .domain.audit import AuditFact, AuditRecord
from .domain.base import Frozen
from .domain.checkpoints import ObjectSeen, Protection, Version
from .domain.notice import Channel
from .domain.observation import JobDescription, JobSummary, ShareDescription, Status
from .domain.policy import Policy
from .domain.policy_version import PolicyEntry, PolicyVersion
from .domain.resubmission import Submission
from .domain.stored import Stored
from .domain.telling import Message

T = TypeVar("T", bound=Stored)

#: The most items and facts in one commit (DynamoDB API, TransactWriteItems).
MAX_ACTIONS = 100


class Unavailable(Exception):
    """AWS could not be asked, or gave no usable answer. Nothing is known; try later."""


class Denied(Exception):
    """AWS refused the act itself: asking again helps only after a change of the permissions or of the job."""


class Unsure(Exception):
    """It was begun, and nobody knows whether it took effect: doing it again might do it twice."""


class Conflict(Exception):
    """The item changed since it was read."""


class Page(Frozen):
    """Job summaries and the token of the next page (None: the last one); ``odd`` rows could not be read."""

    jobs: tuple[JobSummary, ...]
    next_token: str | None = None
    odd: int = 0


class Shares(Frozen):
    """The quota shares of a queue; ``odd`` rows could not be read, so a share not in it may exist."""

    shares: tuple[ShareDescription, ...]
    odd: int = 0


class Clock(Protocol):
    def now(self) -> int:
        """The time in epoch milliseconds."""
        ...


class Batch(Protocol):
    """AWS Batch. Every method raises Unavailable; those that act tell a refusal (Denied) from it."""

    def describe(self, job: str) -> JobDescription | None:
        """The job by its ARN or id; None when Batch says that it knows no such job."""
        ...

    def jobs(self, queue: str, status: Status, token: str | None) -> Page:
        """One page of the queue's jobs in one state."""
        ...

    def shares(self, queue: str) -> Shares:
        """Every quota share of the queue."""
        ...

    def environment(self, queue: str) -> dict[str, int] | None:
        """What the queue's service environment holds, in instances by type; None: that is not told."""
        ...

    def set_priority(self, job: str, priority: int) -> None:
        """UpdateServiceJob with an absolute value. Only ``apply`` calls it. Raises Denied, too."""
        ...

    def terminate(self, job: str, reason: str) -> None:
        """TerminateServiceJob; ``reason`` stands on the job. Only ``apply`` calls it. Raises Denied, too."""
        ...

    def submission(self, job: str) -> Submission | None:
        """What the job was submitted with; None when Batch says that it knows no such job."""
        ...

    def named(self, queue: str, name: str) -> tuple[JobSummary, ...]:
        """The queue's jobs of exactly that name, in whatever state: names need not be unique."""
        ...

    def submit(self, submission: Submission, token: str) -> str:
        """SubmitServiceJob; the ARN of the new job. Only ``apply`` calls it. Raises Denied, too.

        A repeated token is refused, and does not tell of the job that was submitted with it.
        """
        ...


class Ledger(Protocol):
    """The State and Audit tables."""

    def load(self, kind: type[T], key: str) -> T | None:
        """The stored item, or None."""
        ...

    def commit(self, items: Sequence[Stored], facts: Sequence[AuditFact], now: int) -> None:
        """Write all items and facts, or nothing.

        Each item must still have the version it was read with (0: must not exist). A fact whose key is on
        record already is left as it stands. Raises Conflict, Unavailable, and ValueError for more than
        MAX_ACTIONS items and facts or an item that is too big to store.
        """
        ...

    def open_items(self, kind: type[T], queue: str) -> Iterator[T]:
        """The items of that kind whose ``open_queue`` it is; may lag behind the last commit."""
        ...


class AuditReader(Protocol):
    def by_job(self, job: str, since: int) -> Iterator[AuditRecord]:
        """The job's records from ``since`` on, oldest first."""
        ...

    def by_share(self, queue: str, share: str, since: int, until: int) -> Iterator[AuditRecord]:
        """The share's records between the two times, oldest first; an empty name: those that name none."""
        ...


class WishQueue(Protocol):
    def send(self, job: str, wish: int | str, once: str) -> None:
        """Ask ``apply`` to look at a wish of the job: a version of its priority, or the id of an act.

        Equal ``once`` within five minutes is sent once. Raises Unavailable.
        """
        ...


class DeadLetters(Protocol):
    def bury(self, body: str, reason: str, origin: str) -> None:
        """Keep a message that can never be processed, with the reason, for a person. Raises Unavailable."""
        ...


class Notifier(Protocol):
    """One channel on which people are told: an SNS topic, a webhook."""

    def send(self, message: Message) -> None:
        """Send it, once at most.

        Raises Unavailable or Denied when it certainly did not go out: the channel could not be reached, or it
        refused. Raises Unsure when it may have gone out.
        """
        ...


class NoticeQueue(Protocol):
    def send(self, key: str) -> None:
        """Ask ``notify`` to deliver the notice of that key. Raises Unavailable.

        The notice is committed already, so the sweep brings it back if this fails.
        """
        ...


class LookQueue(Protocol):
    def send(self, job: str, delay: int, asked: int | None = None) -> None:
        """Ask ``watch`` to look at the job's checkpoints after ``delay`` ms, 15 minutes at most.

        With ``asked``, to go on with the save request of that version of the job's wish. Raises Unavailable.
        A look that was lost is brought back by the sweep; a save request is waited for only so long.
        """
        ...


class Unwatched:
    """LookQueue of a process that watches no bucket, so nothing is ever sent."""

    def send(self, job: str, delay: int, asked: int | None = None) -> None:
        what = f"{job} is not looked at" if asked is None else f"nobody is asked to save before {job}"
        raise Unavailable(f"no queue of looks is set up: in {delay} ms {what}")


class Nowhere:
    """Notifier of a channel that was not set up."""

    def send(self, message: Message) -> None:
        raise Denied(f"no such channel is set up; not told: {message.subject}")


class Checkpoints(Protocol):
    """The objects below the ``S3Uri`` of a checkpoint configuration. Keys are what follows the URI.

    Every method raises Unavailable when S3 could not be asked, and Denied when it refuses, when there is no
    such bucket, and when ``uri`` names no place in S3.
    """

    def pages(self, uri: str) -> Iterator[tuple[ObjectSeen, ...]]:
        """Every object, page by page, at most a thousand each; a page is asked for when it is wanted."""
        ...

    def read(self, uri: str, key: str, most: int) -> bytes | None:
        """The object's bytes; None when it is not there, or has more than ``most``."""
        ...

    def versions(self, uri: str, keys: Sequence[str]) -> dict[str, tuple[Version, ...]]:
        """Every version of each of ``keys`` that is kept, the newest first. A deletion is none.

        An object of a bucket that keeps no versions has one. Raises Denied, too, when there are too many.
        """
        ...

    def protection(self, uri: str) -> Protection:
        """What keeps the objects from being lost."""
        ...

    def put(self, uri: str, key: str, body: bytes) -> None:
        """Write the object whole."""
        ...

    def restore(self, uri: str, key: str, version: Version) -> str:
        """Make a copy of that version the current one, and return the id of the copy.

        Raises Denied, too, when the version is gone or its content is another one.
        """
        ...


class Workflows(Protocol):
    """The executions that take care of preempted attempts (``statemachines/preemption.asl.yaml``)."""

    def start(self, attempt: str, job: str, generation: int) -> Literal["started", "running", "over"]:
        """Start the execution of that generation for the attempt, if there never was one.

        ``running``: there is, and it goes on; ``over``: it has come to its end, whichever way. Raises
        Unavailable.
        """
        ...


class NoWorkflows:
    """Workflows of a process that starts none: the sweep does."""

    def start(self, attempt: str, job: str, generation: int) -> Literal["started", "running", "over"]:
        raise Unavailable(f"no workflow is set up: {attempt} of job {job} waits for its care ({generation})")


class Policies(Protocol):
    def current(self) -> Policy:
        """The policy in force, at most a minute old; the safe defaults when none was ever pushed."""
        ...


class PolicyStore(Protocol):
    """The versions of the policy, for the commands that push one. Every method raises Unavailable."""

    def current(self) -> PolicyVersion | None:
        """What is in force, whether it loads or not; None when nothing was ever put."""
        ...

    def version(self, number: int) -> PolicyVersion | None:
        """The version of that number, or None."""
        ...

    def history(self) -> Iterator[PolicyEntry]:
        """Every version, newest first."""
        ...

    def put(self, version: PolicyVersion, seen: PolicyVersion | None, fact: AuditFact, now: int) -> None:
        """Keep the version, put it in force and record the fact, or do nothing.

        Raises Conflict when ``seen`` is not what is in force any longer, or the number is taken, and
        ValueError for what is too big to store.
        """
        ...


@dataclass(frozen=True)
class Runtime:
    """The ports of one deployment, and the ARNs of the queues that it looks after.

    ``bootstrap.aws_runtime`` makes the real one; the use cases take it as their first argument.
    """

    batch: Batch
    ledger: Ledger
    audit: AuditReader
    wishes: WishQueue
    notices: NoticeQueue
    dead_letters: DeadLetters
    checkpoints: Checkpoints
    policies: Policies
    clock: Clock
    queues: frozenset[str]
    classic_queues: frozenset[str] = frozenset()
    looks: LookQueue = field(default_factory=Unwatched)
    workflows: Workflows = field(default_factory=NoWorkflows)
    checkpoint_buckets: frozenset[str] = frozenset()
    """ARNs of the buckets whose checkpoints are watched; ``*`` is anything."""
    own_role: str | None = None
    """Name of the role that ``apply`` acts as: CloudTrail's echo of our own calls is not news."""
    channels: frozenset[Channel] = frozenset()
    """Where people are told. Only ``notify`` knows: it alone has the channels' addresses."""
    topic: Notifier = field(default_factory=Nowhere)
    webhook: Notifier = field(default_factory=Nowhere)
