"""Dead letters back to where they came from: sent first, deleted after. None is lost; two are harmless."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sharewarden.aws.errors import asking
from sharewarden.domain.audit import AuditFact, subject_key
from sharewarden.ports import Runtime, Unavailable

from .letters import Letter, read_letter
from .progress import Tell
from .site import Site

QUEUES = ("EventsDeadLetters", "WishesDeadLetters", "NoticesDeadLetters", "LooksDeadLetters")
_HOMES = ("EventsQueue", "WishesQueue", "NoticesQueue", "LooksQueue")
#: How long the letters are hidden from others while a person decides, in seconds.
HIDDEN = 600
#: The most that one run takes up: what is beyond is for the next one.
MOST = 1000
_PAGE = 10  # of ReceiveMessage


@dataclass
class Outcome:
    """``moved`` and ``discarded`` left the dead-letter queue; ``kept`` lie there still."""

    moved: int = 0
    discarded: int = 0
    kept: int = 0


@dataclass(frozen=True)
class Discarding:
    """Who deletes letters, why, and where that is put on record."""

    runtime: Runtime
    actor: str
    reason: str


class Letters:
    """The dead letters of a site, taken up one after the other. Every method raises Unavailable."""

    def __init__(self, site: Site) -> None:
        self._sqs = site.client("sqs")
        self._gone: set[str] = set()
        self._urls = {name: site.queue_url(name) for name in (*QUEUES, *_HOMES)}

    def waiting(self) -> int:
        """About how many lie there, those that somebody looks at included."""
        return sum(map(self._count, QUEUES))

    def take(self, tell: Tell) -> list[Letter]:
        """Up to ``MOST`` letters, hidden for ``HIDDEN`` seconds; ten at most of one job's wishes."""
        found: list[Letter] = []
        for letter in self._all():
            found.append(letter)
            tell(f"read {len(found)} dead letters")
            if len(found) == MOST:
                break
        return found

    def release(self, letters: Iterable[Letter]) -> None:
        """Let others see those that still lie there; one that cannot be released shows up by itself."""
        for letter in letters:
            if letter.id in self._gone:
                continue
            with suppress(Unavailable), asking("ChangeMessageVisibility"):
                self._sqs.change_message_visibility(
                    QueueUrl=self._urls[letter.queue], ReceiptHandle=letter.receipt, VisibilityTimeout=0
                )

    def move(self, letter: Letter) -> None:
        """Back to where it came from, and away from here once that is done."""
        with asking("SendMessage"):
            self._sqs.send_message(
                QueueUrl=self._urls[letter.home], MessageBody=letter.body, **_in_order(letter)
            )
        self.remove(letter)

    def remove(self, letter: Letter) -> None:
        with asking("DeleteMessage"):
            self._sqs.delete_message(QueueUrl=self._urls[letter.queue], ReceiptHandle=letter.receipt)
        self._gone.add(letter.id)

    def _count(self, queue: str) -> int:
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        with asking("GetQueueAttributes"):
            found = self._sqs.get_queue_attributes(QueueUrl=self._urls[queue], AttributeNames=names)
            return sum(int(found["Attributes"][name]) for name in names)

    def _all(self) -> Iterator[Letter]:
        for queue in QUEUES:
            while page := self._page(queue):
                yield from page

    def _page(self, queue: str) -> list[Letter]:
        with asking("ReceiveMessage"):
            answer = self._sqs.receive_message(
                QueueUrl=self._urls[queue],
                MaxNumberOfMessages=_PAGE,
                VisibilityTimeout=HIDDEN,
                WaitTimeSeconds=1,  # a short poll asks some of the servers only and may miss what lies there
                MessageAttributeNames=["All"],
                AttributeNames=["All"],
            )
            return [read_letter(queue, message) for message in answer.get("Messages", ())]


def send_back(letters: Letters, chosen: list[Letter], tell: Tell) -> Outcome:
    """Move each one that this code can read; the others would only come back. Raises Unavailable."""
    outcome = Outcome()
    for letter in chosen:
        if letter.fault:
            outcome.kept += 1
            continue
        letters.move(letter)
        outcome.moved += 1
        tell(f"sent {outcome.moved} of {len(chosen)} again")
    return outcome


def discard(letters: Letters, chosen: list[Letter], why: Discarding, tell: Tell) -> Outcome:
    """Delete each one for good, once it is on record that it was. Raises Unavailable."""
    outcome = Outcome()
    for letter in chosen:
        why.runtime.ledger.commit([], [_gap(letter, why)], why.runtime.clock.now())
        letters.remove(letter)
        outcome.discarded += 1
        tell(f"deleted {outcome.discarded} of {len(chosen)}")
    return outcome


def _gap(letter: Letter, why: Discarding) -> AuditFact:
    """What is deleted unread is a gap in what the audit knows (design law 1)."""
    return AuditFact(
        key=subject_key("gap", "dead-letter", letter.id),
        kind="gap",
        at=letter.sent_at,
        job=letter.job,
        actor=why.actor,
        reason=f"a message was discarded unread: {why.reason}",
        figures={"queue": letter.queue, "from": letter.origin, "failed_because": letter.reason},
    )


def _in_order(letter: Letter) -> dict[str, Any]:
    """What a FIFO queue asks for: the job as group, and once per letter within five minutes."""
    if letter.home != "WishesQueue":
        return {}
    once = hashlib.sha256(f"redrive#{letter.id}".encode()).hexdigest()
    return {"MessageGroupId": letter.job, "MessageDeduplicationId": once}
