"""The queue around one preemption, from its records: what ``preemptor.infer`` looks at."""

from collections.abc import Iterable, Iterator

from sharewarden.domain.attempts import Attempt
from sharewarden.domain.facts import preemption_kind
from sharewarden.domain.observation import ShareDescription
from sharewarden.domain.record import JobRecord
from sharewarden.domain.share import Lowered, ShareRecord
from sharewarden.domain.stored import MINUTE, SECOND

from .case import Case
from .holding import Stay, stays
from .inference import Cause
from .preemptor import GRACE, REACTION, WINDOW, Bump, Contender, Held, Look, Victim

#: A preemption that is said to have begun so long before the stop began by another event than that.
LONGEST_STOP = GRACE + MINUTE

_SAID: dict[str, Cause] = {"cross-share": "cross-share", "in-share": "in-share"}


def victim_of(record: JobRecord, attempt: Attempt, stopped_at: int, case: Case) -> Victim | None:
    """The attempt as a victim; None where its share, its instance type or their number is not known."""
    if record.share is None or record.instance_type is None or record.instance_count is None:
        return None
    told = any(entry.what == "preemption-started" and entry.at == case.opened_at for entry in record.timeline)
    began_told = told and 0 <= stopped_at - case.opened_at + SECOND <= LONGEST_STOP
    return Victim(
        job=record.job,
        attempt=attempt.training_job,
        share=record.share,
        unit=record.instance_type,
        instances=record.instance_count,
        priority=record.priority.confirmed,
        began_at=min(case.opened_at, stopped_at) if began_told else stopped_at,
        stopped_at=stopped_at,
        began_told=began_told,
        said=_SAID.get(preemption_kind(attempt.preemption_reason), "unknown"),
    )


def look_around(victim: Victim, records: Iterable[JobRecord], shares: Iterable[ShareRecord]) -> Look:
    """``records``: all of the queue that are kept open; those of jobs that are long over do not matter."""
    contenders: list[Contender] = []
    held: list[Held] = []
    for record in records:
        if record.instance_type != victim.unit:
            continue
        near = [stay for stay in stays(record) if _is_near(stay, victim)]
        held += _held(record, near)
        contenders += _contenders(record, near, victim)
    known = list(shares)
    return Look(
        contenders=tuple(contenders),
        held=tuple(held),
        shares=_described(known),
        lowered=_lowered(known, victim.unit),
    )


def _is_near(stay: Stay, victim: Victim) -> bool:
    """It may matter; a record may know hundreds of others."""
    first = victim.stopped_at - LONGEST_STOP - REACTION
    return stay.since <= victim.stopped_at + WINDOW and (stay.until is None or stay.until >= first)


def _held(record: JobRecord, near: Iterable[Stay]) -> Iterator[Held]:
    preempted = {one.training_job for one in record.attempts if one.preempted}
    for stay in near:
        yield Held(
            job=record.job,
            share=record.share or "",
            unit=record.instance_type or "",
            instances=record.instance_count or 0,
            since=stay.since,
            until=stay.until,
            preempted=stay.attempt in preempted,
            attempt=stay.attempt,
        )


def _contenders(record: JobRecord, near: Iterable[Stay], victim: Victim) -> Iterator[Contender]:
    for stay in near:
        if record.job == victim.job or record.share is None:
            continue
        yield Contender(
            job=record.job,
            share=record.share,
            unit=record.instance_type or "",
            instances=record.instance_count,
            priority=record.priority.confirmed,
            waited_since=stay.waited_since,
            dispatched_at=stay.since,
            attempt=stay.attempt,
            bump=_bump(record, stay.since),
        )


def _bump(record: JobRecord, at: int) -> Bump | None:
    """The boost of ours that counted then."""
    then = [
        boost
        for boost in record.priority.boosts
        if boost.amount > 0 and boost.since <= at and (boost.ended_at is None or boost.ended_at > at)
    ]
    best = max(then, key=lambda boost: (boost.amount, boost.id), default=None)
    return None if best is None else Bump(id=best.id, kind=best.kind, amount=best.amount, by=best.by)


def _described(shares: Iterable[ShareRecord]) -> tuple[ShareDescription, ...]:
    return tuple(share.description for share in shares if share.description is not None)


def _lowered(shares: Iterable[ShareRecord], unit: str) -> tuple[Lowered, ...]:
    found = (one for share in shares for one in share.lowered if one.unit == unit)
    return tuple(sorted(found, key=lambda one: (one.at, one.share)))
