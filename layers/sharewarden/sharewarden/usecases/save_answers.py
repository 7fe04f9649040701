"""What ``watch`` does for a request to save: ask the likely victims, look who has answered, wake the wish.

One message takes one step and sends the next. A step is claimed by a commit before S3 is asked, so a message
that came twice costs a read. What a crash leaves undone is done by the next message, or not at all: the wish
waits no longer than its time.
"""

from contextlib import suppress
from typing import Literal

from sharewarden.domain.boosts import waits
from sharewarden.domain.observation import DISPATCHED, TERMINAL
from sharewarden.domain.policy import Policy
from sharewarden.domain.record import JobRecord, running_attempt, status
from sharewarden.domain.save_request import (
    CLAIMED,
    MOST_BYTES,
    POLL,
    SaveRequest,
    Victim,
    ack_object,
    acknowledged,
    body,
    is_answered,
    is_its_own,
    open_request,
    request_key,
    request_object,
    share_arn,
    victim_of,
    with_state,
)
from sharewarden.domain.saves import EARLY
from sharewarden.domain.share import ShareRecord
from sharewarden.domain.victims import likely_victims
from sharewarden.domain.watching import is_watched
from sharewarden.ports import Conflict, Denied, Runtime, Unavailable

from .change import ATTEMPTS
from .checkpoints import whole
from .save_requests import settle
from .wake import wake

#: Jobs that are asked ahead of one wish at most, the likeliest victims.
MOST_ASKED = 20

#: ``over``: it is settled; ``early``: another step was begun, or has just been taken.
Outcome = Literal["saves_gone", "saves_over", "saves_early", "saves_waiting", "saves_settled"]


def follow_saves(runtime: Runtime, job: str, wish: int) -> Outcome:
    """Take one step for that version of the job's wish.

    Raises Unavailable when the ledger could not be asked.
    """
    claimed = _claim(runtime, job, wish)
    if not isinstance(claimed, SaveRequest):
        return claimed
    request = _with_answers(runtime, claimed)
    try:
        return _go_on(runtime, request)
    except Conflict:
        return "saves_over"  # nobody else changes a request that is claimed, but to settle it


def _claim(runtime: Runtime, job: str, wish: int) -> SaveRequest | Outcome:
    for _ in range(ATTEMPTS):
        request, now = runtime.ledger.load(SaveRequest, request_key(job, wish)), runtime.clock.now()
        if request is None:
            return "saves_gone"
        if request.settled_at is not None:
            return "saves_over"
        if request.next_at > now + EARLY:
            return "saves_early"
        chosen = request if request.victims is not None else _chosen(runtime, request, now)
        claimed = chosen.model_copy(update={"next_at": now + CLAIMED})
        with suppress(Conflict):
            runtime.ledger.commit([claimed], [], now)
            return claimed.model_copy(update={"version": claimed.version + 1})
    raise Unavailable(f"job {job}: {ATTEMPTS} commits in a row met another writer")


def _chosen(runtime: Runtime, request: SaveRequest, now: int) -> SaveRequest:
    """The request with the jobs to be asked: those of the likely victims that seem to use the helper."""
    victims, unasked = list[Victim](), 0
    for record in _likely(runtime, request, now):
        attempt, newest = running_attempt(record), record.saves.newest
        helped = newest is not None and newest.layout == "manifest"
        asked = helped and attempt is not None and is_watched(record, runtime.checkpoint_buckets)
        if asked and attempt and len(victims) < MOST_ASKED:
            victims.append(victim_of(record, attempt, request))
        else:
            unasked += status(record) == "RUNNING"
    return request.model_copy(update={"victims": tuple(victims), "unasked": unasked})


def _likely(runtime: Runtime, request: SaveRequest, now: int) -> tuple[JobRecord, ...]:
    """Nobody, once the wish is not to be carried out any more or need not wait for it."""
    record, policy = runtime.ledger.load(JobRecord, request.job), runtime.policies.current()
    if record is None or now >= request.until or not _is_wanted(request, record, policy):
        return ()
    share = runtime.ledger.load(ShareRecord, share_arn(record))
    if share is None or share.description is None:
        return ()
    others = runtime.ledger.open_items(JobRecord, record.queue)
    return likely_victims(record, request.value, others, share.description)


def _is_wanted(request: SaveRequest, record: JobRecord, policy: Policy) -> bool:
    wish = record.priority.wish
    open_still = wish is not None and wish.version == request.wish
    waiting = status(record) not in DISPATCHED | TERMINAL
    asked_for = policy.checkpoints.ask_before_bump is not None and waits(record, policy) is None
    return open_still and waiting and asked_for


def _with_answers(runtime: Runtime, request: SaveRequest) -> SaveRequest:
    """The request with what S3 says now. Where it does not answer, the rest is left to the next step."""
    victims = list(request.victims or ())
    with suppress(Unavailable):
        for place, victim in enumerate(victims):
            victims[place] = _asked_or_answered(runtime, request, victim)
    return request.model_copy(update={"victims": tuple(victims)})


def _asked_or_answered(runtime: Runtime, request: SaveRequest, victim: Victim) -> Victim:
    if victim.state == "planned" and runtime.clock.now() < request.until:
        try:
            return _asked(runtime, request, victim)
        except Denied as error:
            return with_state(victim, "refused", str(error))
    if victim.state in ("asked", "uploading"):
        try:
            return _answered(runtime, victim)
        except Denied as error:
            return with_state(victim, "unreadable", str(error))
    return victim


def _asked(runtime: Runtime, request: SaveRequest, victim: Victim) -> Victim:
    """Write the request. One object is there for all: another wish's that is open is not overwritten."""
    other = open_request(_read(runtime, victim, request_object(victim)), runtime.clock.now())
    if other is not None and _read(runtime, victim, ack_object(victim, other)) is None:
        return with_state(victim, "asked").model_copy(update={"request_id": other})
    runtime.checkpoints.put(victim.uri, request_object(victim), body(victim, request))
    return with_state(victim, "asked")


def _answered(runtime: Runtime, victim: Victim) -> Victim:
    """Has it saved, and is the save in S3? What is not there is lost with the job."""
    ack = acknowledged(_read(runtime, victim, ack_object(victim, victim.request_id)), victim.request_id)
    if ack is None:
        return victim
    save = whole(runtime, victim.uri, ack.set, runtime.clock.now())
    saved = save is not None and is_its_own(victim, save)
    return victim.model_copy(update={"state": "saved" if saved else "uploading", **dict(ack)})


def _read(runtime: Runtime, victim: Victim, key: str) -> bytes | None:
    return runtime.checkpoints.read(victim.uri, key, MOST_BYTES)


def _go_on(runtime: Runtime, request: SaveRequest) -> Outcome:
    """Settle what is answered or has run out of time, and wake the wish; else look again soon."""
    now = runtime.clock.now()
    if is_answered(request) or now >= request.until:
        if record := settle(runtime, request, runtime.policies.current()):
            with suppress(Unavailable):  # the next sweep wakes it
                wake(runtime, record, again="saves")
        return "saves_settled"
    after = request.model_copy(update={"next_at": min(now + POLL, request.until)})
    runtime.ledger.commit([after], [], now)
    with suppress(Unavailable):  # then the sweep wakes the wish, which waits no longer than its time
        runtime.looks.send(request.job, after.next_at - now, request.wish)
    return "saves_waiting"
