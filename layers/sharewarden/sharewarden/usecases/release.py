"""What the sweep gives to ``apply``: the wishes that wait, as many as the blast radius lets through (law 4).

What lowers goes first, for restores are among it; terminations go last. Within a kind, the one that was given
longest ago goes first, then the older one: what is left over is first in the next sweep, and none is lost.
``apply`` takes ten at a time in two functions at most, so what is given at once is done one by one.
"""

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Literal, NamedTuple

from sharewarden.domain.audit import AuditFact, subject_key
from sharewarden.domain.boosts import OURSELVES, lowering_from, lowering_waits, waits
from sharewarden.domain.decide import Decision, with_ledger
from sharewarden.domain.notice import Notice
from sharewarden.domain.policy import Policy
from sharewarden.domain.record import JobRecord
from sharewarden.domain.resubmitting import released, waits_for_release
from sharewarden.domain.rules.base import counted
from sharewarden.domain.stored import Stored
from sharewarden.domain.sweeping import portions
from sharewarden.domain.termination import changed, due_terminations, find_open

from .change import change
from .tell import send
from .wake import wake, wake_act
from .walk import MustStop, Walk

Kind = Literal["lower", "raise", "resubmit", "terminate"]
KINDS: tuple[Kind, ...] = ("lower", "raise", "resubmit", "terminate")


class Waiting(NamedTuple):
    """A wish that may be carried out now, and ``since`` when. They go in the order of the first three.

    ``wish`` as ``WishQueue.send`` takes it.
    """

    released_at: int
    since: int
    job: str
    wish: int | str
    kind: Kind
    queue: str


def release(walk: Walk) -> None:
    """Bring open wishes to ``apply``. What the cap leaves over is told, and waits for the next sweep."""
    policy, now = walk.policy, walk.started_at
    found = (one for record in walk.read.values() for one in _waiting(record, policy, now))
    waiting = sorted(found, key=lambda one: one[:3])
    kinds = [[one for one in waiting if one.kind == kind] for kind in KINDS]
    cap = policy.blast_radius.of(walk.report.records)
    sizes = portions(cap, [len(kind) for kind in kinds])
    given = [one for kind, size in zip(kinds, sizes, strict=True) for one in kind[:size]]
    left = [one for kind, size in zip(kinds, sizes, strict=True) for one in kind[size:]]
    walk.report.oldest_wish_ms = max((now - one.since for one in waiting), default=0)
    walk.report.capped = len(left)
    walk.report.left += len(left)
    if left:
        with suppress(MustStop):
            walk.apart("the backlog", partial(_tell, walk, cap, len(given), left))
    for one in given:
        walk.apart(one.job, partial(_give, walk, one))


def _waiting(record: JobRecord, policy: Policy, now: int) -> Iterator[Waiting]:
    wish = record.priority.wish
    if wish and waits(record, policy) is None and not lowering_waits(record, wish, policy, now):
        raises = wish.value > (record.priority.confirmed or 0)
        free = wish.created_at if raises else max(wish.created_at, lowering_from(record, policy) or 0)
        kind: Kind = "raise" if raises else "lower"
        yield Waiting(record.woken_at, free, record.job, wish.version, kind, record.queue)
    if policy.stops(record.queue) is None and not policy.share(record.queue, record.share).protected:
        yield from _terminations(record, now)
    if policy.resubmission_stops is None and (one := waits_for_release(record, now)):
        yield Waiting(one.released_at, one.created_at, record.job, one.id, "resubmit", record.queue)


def _terminations(record: JobRecord, now: int) -> Iterator[Waiting]:
    for one in due_terminations(record.terminations, now):
        since = max(one.created_at, one.not_before)
        yield Waiting(one.released_at, since, record.job, one.id, "terminate", record.queue)


def _give(walk: Walk, one: Waiting) -> None:
    """It is marked first: from then on its time runs."""
    step = partial(_released, wish=one.wish, policy=walk.policy, now=walk.started_at)
    record, again = change(walk.runtime, one.job, step).record, str(walk.started_at)
    if isinstance(one.wish, int):
        wake(walk.runtime, record, again)
    else:
        wake_act(walk.runtime, record, one.wish, again)
    walk.report.woken += 1


def _released(record: JobRecord, wish: int | str, policy: Policy, now: int) -> Decision:
    until = now + policy.wish_life
    if isinstance(wish, int):
        return Decision(record=_released_priority(record, wish, until, now))
    if find_open(record.terminations, wish) is None:
        return Decision(record=released(record, wish, now))
    wishes = changed(record.terminations, wish, released_at=now, not_after=until)
    return Decision(record=record.model_copy(update={"terminations": wishes}))


def _released_priority(record: JobRecord, version: int, until: int, now: int) -> JobRecord:
    wish = record.priority.wish
    if wish is None or wish.version != version:
        return record
    if wish.paced:
        later = wish.model_copy(update={"not_after": until})
        record = with_ledger(record, record.priority.model_copy(update={"wish": later}))
    return record.model_copy(update={"woken_at": now})


def _tell(walk: Walk, cap: int, given: int, left: list[Waiting]) -> None:
    """One record for each sweep that hit the cap; one notice for a backlog, until it has been empty."""
    state, now = walk.own_state(), walk.started_at
    since = state.backlog_since or now
    fact = AuditFact(
        key=subject_key("cap-hit", now),
        kind="cap-hit",
        at=now,
        actor=OURSELVES,
        mode="enforce",
        reason=f"the blast radius lets {counted(cap, 'act')} of one sweep through; {len(left)} have to wait",
        figures={
            "cap": cap,
            "given": given,
            "left": len(left),
            "open_jobs": walk.report.records,
            "since": since,
        },
        policy=walk.policy.hash,
    )
    notices = [] if state.backlog_since else [_notice(fact, left)]
    items: list[Stored] = [state.model_copy(update={"backlog_since": since}), *notices]
    walk.runtime.ledger.commit(items, [fact], walk.runtime.clock.now())
    send(walk.runtime, notices)


def _notice(fact: AuditFact, left: list[Waiting]) -> Notice:
    return Notice(
        fact=fact.key,
        kind=fact.kind,
        at=fact.at,
        title=f"{len(left)} acts wait: the blast radius was reached",
        text=f"{fact.reason}. None is lost: each sweep goes on with the oldest ones. If so many are not what "
        "you want, pause the policy, or set rules to shadow: sharewarden shadow report says what each found.",
        queue=left[0].queue,
        policy=fact.policy,
        mode="enforce",
    )
