"""Who is behind a preemption, and of what sort it was: inferred from what started on the returned capacity.

Batch's events name no preemptor and no share, and only the words of cross-share preemption are documented.
What may have been behind it is a job of the queue that waited before the preemption began, and was dispatched
soon after the victim had stopped, on instances of the same type:

- cross-share: of another share, and within that share's own capacity (only that is given back), while the
  victim's share borrowed;
- in-share: of the same share, with a higher priority.

A lowered limit has no preemptor: then the shares as they are now do not cover what was used when it began.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from sharewarden.domain.base import Frozen
from sharewarden.domain.observation import ShareDescription
from sharewarden.domain.share import Lowered
from sharewarden.domain.stored import MINUTE, SECOND

from .inference import Cause, Confidence, Inferred

#: A training job has 120 s to stop (SageMaker developer guide, stopping): so much earlier, at most, did a
#: preemption begin whose beginning was not told.
GRACE = 2 * MINUTE
#: Who is dispatched later than so long after the stop did not wait for it: other victims of the same
#: preemptor may take the whole of their grace.
WINDOW = GRACE + 30 * SECOND
#: A limit is lowered for at most so long before Batch acts on it.
REACTION = 2 * MINUTE


class Bump(Frozen):
    """The boost of ours that the preemptor had when it rose."""

    id: str
    kind: str
    amount: int
    by: str


class Held(NamedTuple):
    """One job's time on instances; ``until`` None: still. ``preempted``: it was stopped for somebody."""

    job: str
    share: str
    unit: str
    instances: int
    since: int
    until: int | None
    preempted: bool
    attempt: str | None = None


class Contender(Frozen):
    """A job that was dispatched in the window. ``priority`` is the effective one; None: nobody told."""

    job: str
    share: str
    unit: str
    instances: int | None
    priority: int | None
    waited_since: int
    dispatched_at: int
    attempt: str | None = None
    bump: Bump | None = None


class Victim(Frozen):
    """The preempted attempt."""

    job: str
    attempt: str
    share: str
    unit: str
    instances: int
    priority: int | None
    began_at: int
    """When it began to be preempted: told by an event if ``began_told``, else when it had stopped."""
    stopped_at: int
    began_told: bool = True
    said: Cause = "unknown"
    """By Batch's words."""

    @property
    def held_at(self) -> int:
        """A time at which it and those that were preempted with it held their instances still."""
        return min(self.began_at, self.stopped_at - 1)


class Look(Frozen):
    """The queue around the preemption."""

    contenders: tuple[Contender, ...]
    held: tuple[Held, ...]
    """Of the victim's instance type, all that overlap the time from its end on, and its own."""
    shares: tuple[ShareDescription, ...]
    lowered: tuple[Lowered, ...] = ()

    def used(self, share: str, at: int) -> int:
        """Instances that the share held at ``at``, those of the second included."""
        return sum(
            one.instances
            for one in self.held
            if one.share == share and one.since <= at and (one.until is None or one.until > at)
        )

    def own(self, share: str, unit: str) -> int | None:
        """What the share may use without borrowing; None: not known."""
        found = self.share(share)
        return None if found is None else dict(found.limits).get(unit)

    def share(self, name: str) -> ShareDescription | None:
        return next((one for one in self.shares if one.name == name), None)


def infer(victim: Victim, look: Look) -> Inferred:
    """The cause and the preemptor, as far as the look tells."""
    lowered = None if victim.said == "in-share" else lowered_before(victim, look)
    if lowered is not None:
        return _by_limit(victim, look, lowered)
    found = {
        kind: fits
        for kind, test in _TESTS.items()
        if victim.said in (kind, "unknown") and (fits := _fits(victim, look, test))
    }
    if not found:
        return Inferred(kind=victim.said, why=_NOBODY)
    kind = min(found, key=lambda one: (_rank(victim, look, found[one]), one))
    return _named(victim, look, kind, found[kind], sum(map(len, found.values())))


def lowered_before(victim: Victim, look: Look) -> Lowered | None:
    """The limit that was lowered just before, if what was used then was more than the shares allow since."""
    began = victim.held_at
    first = began - REACTION - (0 if victim.began_told else GRACE)
    near = [
        one
        for one in look.lowered
        if one.unit == victim.unit and one.not_before <= began + SECOND and one.at >= first
    ]
    own = [one for one in near if one.share == victim.share]
    if own and _passes_what_it_may(victim, look, began):
        return own[-1]
    return near[-1] if near and _is_uncovered(victim, look, began) else None


def _passes_what_it_may(victim: Victim, look: Look, began: int) -> bool:
    share = look.share(victim.share)
    own = look.own(victim.share, victim.unit) or 0
    if share is None or share.strategy != "LEND_AND_BORROW":
        return look.used(victim.share, began) > own
    percent = -1 if share.borrow_limit is None else share.borrow_limit
    return percent >= 0 and look.used(victim.share, began) > own + own * percent // 100


def _is_uncovered(victim: Victim, look: Look, began: int) -> bool:
    """More is borrowed than others lend of what they leave idle."""
    idle = [
        ((look.own(share.name, victim.unit) or 0) - look.used(share.name, began), share)
        for share in look.shares
    ]
    borrowed = sum(-spare for spare, _ in idle if spare < 0)
    return borrowed > sum(spare for spare, share in idle if spare > 0 and share.strategy != "RESERVE")


Test = Callable[[Victim, Contender, Look], bool]


def _fits(victim: Victim, look: Look, test: Test) -> tuple[Contender, ...]:
    """The contenders that it may have been, the first dispatched first."""
    fit = (one for one in look.contenders if _in_time(victim, one) and test(victim, one, look))
    return tuple(sorted(fit, key=lambda one: (one.dispatched_at, one.waited_since, one.job)))


def _in_time(victim: Victim, one: Contender) -> bool:
    """It waited before, and got what the victim had left. Events tell whole seconds."""
    dispatched = victim.stopped_at < one.dispatched_at + SECOND and one.dispatched_at <= (
        victim.stopped_at + WINDOW
    )
    waited = one.waited_since < victim.began_at + SECOND
    return dispatched and waited and one.unit == victim.unit and one.job != victim.job


def _cross_share(victim: Victim, one: Contender, look: Look) -> bool:
    own, mine = look.own(one.share, one.unit), look.own(victim.share, victim.unit)
    if one.share == victim.share or own is None:
        return False
    borrowed = mine is None or look.used(victim.share, victim.held_at) > mine
    return borrowed and look.used(one.share, one.dispatched_at) <= own


def _in_share(victim: Victim, one: Contender, look: Look) -> bool:
    share = look.share(victim.share)
    if one.share != victim.share or (share is not None and not share.in_share_preemption):
        return False
    return one.priority is None or victim.priority is None or one.priority > victim.priority


_TESTS: dict[Cause, Test] = {"cross-share": _cross_share, "in-share": _in_share}


def _named(victim: Victim, look: Look, kind: Cause, fits: Sequence[Contender], candidates: int) -> Inferred:
    best = fits[0]
    freed = _freed(victim, look, best)
    confidence = _confidence(victim, look, best, candidates, freed)
    return Inferred(
        kind=kind,
        confidence=confidence,
        job=best.job,
        attempt=best.attempt,
        waited_since=best.waited_since,
        why=_why(victim, best, candidates),
        figures=_evidence(victim, look, best, candidates, freed),
    )


def _rank(victim: Victim, look: Look, fits: Sequence[Contender]) -> int:
    best = fits[0]
    return _ORDER[_confidence(victim, look, best, len(fits), _freed(victim, look, best))]


_ORDER: dict[Confidence, int] = {"high": 0, "medium": 1, "low": 2}


def _confidence(victim: Victim, look: Look, best: Contender, candidates: int, freed: int) -> Confidence:
    """High: one job fits, all that counts of it is known, and preemption alone made room for it."""
    fits_freed = best.instances is not None and best.instances <= freed
    known = best.share != victim.share or None not in (best.priority, victim.priority)
    sure = fits_freed and known and victim.began_told and not _others_left(victim, look, best)
    if candidates == 1:
        return "high" if sure else "medium"
    return "medium" if fits_freed and candidates == 2 else "low"


def _freed(victim: Victim, look: Look, best: Contender) -> int:
    """Instances that preempted attempts left before that dispatch, and not long before it."""
    return victim.instances + sum(
        one.instances for one in _left(victim, look, best) if one.preempted and one.attempt != victim.attempt
    )


def _others_left(victim: Victim, look: Look, best: Contender) -> bool:
    """Whether others came to their own end meanwhile: their instances are free as well."""
    return any(not one.preempted for one in _left(victim, look, best))


def _left(victim: Victim, look: Look, best: Contender) -> Iterable[Held]:
    first = victim.began_at - (0 if victim.began_told else GRACE)
    return (
        one
        for one in look.held
        if one.until is not None and first <= one.until <= best.dispatched_at + SECOND
    )


def _by_limit(victim: Victim, look: Look, lowered: Lowered) -> Inferred:
    of = "its share" if lowered.share == victim.share else f"share {lowered.share}"
    rivals = len(_fits(victim, look, _cross_share))
    return Inferred(
        kind="lowered-limit",
        confidence="medium" if rivals or not victim.began_told else "high",
        why=f"just before, the limit of {of} for {victim.unit} was lowered to {lowered.after}",
        figures={
            "share": lowered.share,
            "limit_before": lowered.before,
            "limit": lowered.after,
            "lowered_at": lowered.at,
            "used": look.used(victim.share, victim.held_at),
            "candidates": rivals,
        },
    )


_NOBODY = "who was behind it is not known: nobody who had waited was dispatched on what it left"


def _why(victim: Victim, best: Contender, candidates: int) -> str:
    after = max(0, best.dispatched_at - victim.stopped_at) // SECOND
    alone = "alone" if candidates == 1 else f"first of {candidates}"
    return f"{alone} of those who had waited, it was dispatched {after} s after the stop"


def _evidence(victim: Victim, look: Look, best: Contender, candidates: int, freed: int) -> dict[str, Any]:
    return {
        "candidates": candidates,
        "dispatched_at": best.dispatched_at,
        "dispatched_after": (best.dispatched_at - victim.stopped_at) / SECOND,
        "waited_before": (victim.began_at - best.waited_since) / SECOND,
        "instances": best.instances,
        "freed": freed,
        "others_left": _others_left(victim, look, best),
        "share_used": look.used(best.share, best.dispatched_at),
        "share_limit": look.own(best.share, best.unit),
        "priority": best.priority,
        "victim_priority": victim.priority,
        "bump": None if best.bump is None else best.bump.model_dump(),
    }
