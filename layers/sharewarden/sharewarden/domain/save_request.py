"""A request to save: what running jobs are asked for before a wish of ours may push them out.

The objects are those of docs/checkpoint-format.md. A request belongs to one version of a job's priority wish,
and is kept beside the job's record: it is asked for once, whatever crashes.
"""

import hashlib
import json
import re
from typing import Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator

from .audit import AuditFact, version_key
from .base import Frozen, last_part, shortened
from .boosts import OURSELVES
from .checkpoints import Save
from .durations import format_duration
from .facts import job_fact
from .layouts import SET_NAME
from .observation import DISPATCHED, TERMINAL, JobDescription
from .policy import Policy
from .priority import Wish
from .record import JobRecord
from .rules.base import counted
from .stored import KEEP_AFTER_END, MINUTE, SECOND, Stored

#: Between two looks for acknowledgements.
POLL = 10 * SECOND
#: A step that was begun and did not end is lost after this time; it takes seconds.
CLAIMED = 1 * MINUTE
#: Left of a wish's life once the wait is over: two sweeps and a retry, as the policy keeps for every wish.
SPARE = 10 * MINUTE
#: An earlier request that is open for less is not seen in time: the helper looks every 15 seconds.
SOON = 30 * SECOND
#: The most bytes of a request or of an acknowledgement.
MOST_BYTES = 65_536
#: The last time that a calendar has, in epoch ms: a later one cannot be shown to people.
LATEST = 253_402_300_799_999
_REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")

#: ``planned``: S3 has not answered yet, so it may be asked or not; ``uploading``: it has saved, and not all
#: of that is in S3; ``saved``: it is; ``refused``: S3 refused the request; ``unreadable``: it was asked, and
#: S3 refuses to show what came of it.
State = Literal["planned", "asked", "uploading", "saved", "refused", "unreadable"]
WAITED_FOR: tuple[State, ...] = ("planned", "asked", "uploading")


class Victim(Frozen):
    """A running job that the wish may push out."""

    job: str
    name: str
    attempt: str
    """ARN of its training job."""
    uri: str
    request_id: str
    """The one whose acknowledgement is waited for: our own, or one that was open already."""
    state: State = "planned"
    why: str | None = None
    step: int | None = None
    saved_at: int | None = None
    set: str | None = None


class SaveRequest(Stored):
    """What is asked for ahead of one wish. Times are epoch ms."""

    item: ClassVar[str] = "SAVEREQUEST"

    job: str
    """The one that the wish raises."""
    wish: int
    """Its version."""
    queue: str
    value: int
    asked_at: int
    until: int
    """The wish waits no longer."""
    victims: tuple[Victim, ...] | None = None
    """None: not chosen yet."""
    unasked: int = 0
    """Running jobs that it may push out as well, and that are not known to look for requests."""
    next_at: int = 0
    """When the next step is due."""
    settled_at: int | None = None

    @property
    def key(self) -> str:
        return request_key(self.job, self.wish)

    @property
    def expires_at(self) -> int | None:
        return None if self.settled_at is None else self.settled_at + KEEP_AFTER_END

    @property
    def open_queue(self) -> str | None:
        return self.queue if self.settled_at is None else None


class Acknowledgement(Frozen):
    """What the helper says of a save that began after it saw the request."""

    model_config = ConfigDict(strict=True)

    step: int = Field(ge=0)
    saved_at: int = Field(ge=0, le=LATEST)
    set: str = Field(pattern=SET_NAME)
    """Name of its folder, which has the step as well."""

    @model_validator(mode="after")
    def _of_one_step(self) -> Self:
        if int(self.set.split("-")[1]) != self.step:
            raise ValueError(f"{self.set} is not of step {self.step}")
        return self


def request_key(job: str, wish: int) -> str:
    return f"{job}#v{wish}"


def raises_waiting(record: JobRecord, wish: Wish, description: JobDescription) -> bool:
    """Whether the wish raises a job that waits, from the priority that it is known to have."""
    confirmed = record.priority.confirmed
    if confirmed is None or wish.value <= confirmed or description.priority != confirmed:
        return False
    return description.status not in DISPATCHED | TERMINAL


def can_wait(wish: Wish, wait: int, now: int) -> bool:
    """Whether the wish lives for so long and can still be done after it."""
    return now + wait + SPARE <= wish.not_after


def share_arn(record: JobRecord) -> str:
    """ARN of the job's quota share (Service Authorization Reference, AWS Batch, resource types)."""
    return f"{record.queue}/quota-share/{record.share}"


def victim_of(record: JobRecord, attempt: str, request: SaveRequest) -> Victim:
    """The running job as one to be asked, with the id that all requests of the wish to that attempt have."""
    subject = f"{request.key}#{attempt}"
    return Victim(
        job=record.job,
        name=record.name,
        attempt=attempt,
        uri=record.checkpoint_uri or "",
        request_id=f"bump-{hashlib.sha256(subject.encode()).hexdigest()[:24]}",
    )


def request_object(victim: Victim) -> str:
    """Key of the request below the victim's URI."""
    return f".sharewarden/requests/{last_part(victim.attempt)}.json"


def ack_object(victim: Victim, request_id: str) -> str:
    """Key of an acknowledgement below the victim's URI."""
    return f".sharewarden/acks/{last_part(victim.attempt)}/{request_id}.json"


def body(victim: Victim, request: SaveRequest) -> bytes:
    """The request as the helper reads it."""
    told = {"request_id": victim.request_id, "asked_at": request.asked_at, "deadline": request.until}
    return json.dumps({"format": 1, **told}).encode()


def open_request(text: bytes | None, now: int) -> str | None:
    """Id of the request that the text is, if the helper may still take it up."""
    told = _parsed(text)
    name, deadline = told.get("request_id"), told.get("deadline")
    if not isinstance(name, str) or not _REQUEST_ID.fullmatch(name) or type(deadline) is not int:
        return None
    return name if deadline >= now + SOON else None


def acknowledged(text: bytes | None, request_id: str) -> Acknowledgement | None:
    """What the text acknowledges; None for none of that request."""
    told = _parsed(text)
    if told.get("request_id") != request_id:
        return None
    try:
        return Acknowledgement.model_validate({name: told.get(name) for name in Acknowledgement.model_fields})
    except ValidationError:
        return None


def is_its_own(victim: Victim, save: Save) -> bool:
    """Whether the attempt itself has saved it, and not another job at the same place (design law 8)."""
    return save.training_job in (None, last_part(victim.attempt))


def with_state(victim: Victim, state: State, why: str | None = None) -> Victim:
    return victim.model_copy(update={"state": state, "why": shortened(why)})


def is_answered(request: SaveRequest) -> bool:
    """Nobody is left to wait for."""
    return not any(one.state in WAITED_FOR for one in request.victims or ())


def settled(request: SaveRequest, now: int) -> SaveRequest:
    return request.model_copy(update={"settled_at": now})


def request_fact(request: SaveRequest, record: JobRecord, policy: Policy) -> tuple[AuditFact, ...]:
    """What was asked for and what came of it, once it is settled; nothing where nobody was to be asked."""
    victims = request.victims or ()
    if not victims:
        return ()
    saved, name = sum(one.state == "saved" for one in victims), record.name
    waited = (request.settled_at or request.until) - request.asked_at
    fact = job_fact(
        record,
        policy,
        key=version_key("save-request", request.job, request.wish),
        kind="save-request",
        at=request.asked_at,
        actor=OURSELVES,
        mode="enforce",
        reason=f"{saved} of {counted(len(victims), 'job')} had a new save in S3 before {name} is raised "
        f"to {request.value}; it waited {format_duration(waited)}",
        figures={
            "version": request.wish,
            "value": request.value,
            "asked_at": request.asked_at,
            "until": request.until,
            "waited": waited / SECOND,
            "victims": [_told(one) for one in victims],
            "unasked": request.unasked,
        },
    )
    return (fact,)


def _told(victim: Victim) -> dict[str, Any]:
    return victim.model_dump(exclude={"uri"}, exclude_none=True)


def _parsed(text: bytes | None) -> dict[str, Any]:
    """The members of an object of format 1; none of anything else."""
    try:
        told = json.loads(text or b"")
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) and told.get("format") == 1 else {}
