"""Can a bump help? Yes at once, yes from a time on, no and what would, or not known.

A bump helps only inside the job's own share: it passes those ahead, and may push out lower ones where the
share's in-share preemption is on; what the share lent out comes back for its first job. The answer holds for
whichever victims Batch chooses and whatever it leaves undocumented (``reading``), or it is ``unknown``.
"""

from bisect import bisect_left
from typing import Any

from sharewarden.domain.fits import Misfit, misfit
from sharewarden.domain.observation import TERMINAL
from sharewarden.domain.priority import HIGHEST
from sharewarden.domain.rules.facts import ShareFacts, UnitFacts
from sharewarden.domain.stored import SECOND

from .answer import Answer, Figures, Kind, Lever
from .levers import Why, levers, why_not
from .reading import How, Reading, readings
from .unread import unknown
from .victims import described, eligible, old_enough_at
from .view import JobView, PoolView, ShareView


def can_help(pool: PoolView, job: str, priority: int, now: int) -> Answer:
    """Whether the job starts when its priority is raised to that, and nothing else happens. Pure."""
    found = pool.job(job)
    if found is None:
        text = "it is not among the queue's jobs that could be read"
        return Answer(kind="unknown", reason="not-seen", text=text, job=job, name=job, asked=priority)
    asked = _Asked(pool, found, priority, now)
    if found.status in TERMINAL:
        return asked.answer("no", Why("ended", "it has ended"))
    if found.holds:
        return asked.answer("no", Why("dispatched", "it is dispatched already"))
    return asked.of_a_waiting_job()


class _Asked:
    """One question about one job."""

    def __init__(self, pool: PoolView, job: JobView, priority: int, now: int) -> None:
        self._pool = pool
        self._job = job
        self._priority = priority
        self._now = now

    def answer(self, kind: Kind, why: Why, **more: Any) -> Answer:
        return Answer(
            kind=kind,
            reason=why.reason,
            text=why.text,
            job=self._job.job,
            name=self._job.name,
            share=self._job.share,
            priority=self._job.priority,
            asked=self._priority,
            **more,
        )

    def of_a_waiting_job(self) -> Answer:
        share = self._pool.share(self._job.share)
        if share is not None and (never := _never(self._pool, self._job, share)):
            return self.answer("no", Why("never-fits", never))
        why = unknown(self._pool, self._job)
        if share is None or why is not None:
            return self.answer("unknown", why or Why("unread", "its share could not be read"))
        return self._of_a_known_pool(share)

    def _of_a_known_pool(self, share: ShareView) -> Answer:
        job, base = self._job, readings(self._pool, self._job)
        places = {
            "position": max(len(reading.ahead(job.priority or 0)) for reading in base) + 1,
            "position_after": max(len(reading.ahead(self._priority)) for reading in base) + 1,
            "figures": _figures(base[0]),
        }
        if self._priority <= (job.priority or 0):
            return self.answer("no", Why("not-a-raise", f"its priority is {job.priority} already"), **places)
        more = places | {"needs": self._needs(base)}
        verdicts = {reading.verdict(self._priority) for reading in base}
        if verdicts == {"yes"}:
            return self._yes(base, more)
        return (
            self._no(base, share, more)
            if verdicts == {"no"}
            else self.answer("unknown", _open(self._pool), **more)
        )

    def _needs(self, base: list[Reading]) -> int | None:
        """The smallest priority with which it starts for sure: what helps, helps at a higher one as well."""
        steps = _steps(self._pool, self._job)
        first = bisect_left(steps, True, key=lambda one: all(r.verdict(one) == "yes" for r in base))
        return steps[first] if first < len(steps) else None

    def _yes(self, base: list[Reading], more: dict[str, Any]) -> Answer:
        jobs = eligible(base, self._priority)
        more = more | {"victims": tuple(described(self._pool, one, self._now) for one in jobs)}
        ages = [old_enough_at(self._pool, one.job) for one in jobs]
        if None in ages:
            why = Why("ages-unknown", "since when a possible victim is dispatched is not known")
            return self.answer("unknown", why, **more)
        at = max((age for age in ages if age is not None), default=self._now)
        why = self._how(base)
        if at <= self._now:
            return self.answer("yes-now", why, **more)
        young = f"{why.text}; some of them have not had their share's minimum runtime"
        return self.answer("yes-at", Why(why.reason, young), at=at, **more)

    def _how(self, base: list[Reading]) -> Why:
        """The way that asks most of others, where the readings differ."""
        ways = (reading.way(self._job, self._priority) for reading in base)
        how = max((way.how for way in ways if way), key=list(_HOW).index)
        return Why(how, _HOW[how])

    def _no(self, base: list[Reading], share: ShareView, more: dict[str, Any]) -> Answer:
        needs = more["needs"]
        if needs is not None:
            why = Why("priority-too-low", f"{self._priority} is too low: it takes {needs}")
            lever = Lever(change="priority", share=share.name, value=needs, text=f"bump it to {needs}")
            return self.answer("no", why, levers=(lever,), **more)
        first = _first(base, self._priority)
        if first is None:
            why = Why("outranked", f"jobs with the priority {HIGHEST} are ahead, and there is none higher")
            return self.answer("no", why, **more)
        found = levers(self._pool, self._job, share, first)
        return self.answer("no", why_not(base[0], share, first), levers=found, **more)


_HOW: dict[How, str] = {
    "room": "there is room for it once it is the first of its share",
    "take-back": "as the first of its share it takes back what the share lent out: borrowers may be stopped",
    "push-out": "it may push out jobs of its share that have a lower priority",
}


def _open(pool: PoolView) -> Why:
    if pool.environment is None:
        return Why("unread", "what the service environment holds is not known")
    return Why(
        "undocumented", "it depends on what AWS does not document: the order among equals or borrowers"
    )


def _steps(pool: PoolView, job: JobView) -> list[int]:
    """The priorities at which something changes: a job is passed, or may be pushed out."""
    near = (one.priority for one in pool.jobs if one.share == job.share and one is not job)
    known = {priority for priority in near if priority is not None} | {job.priority or 0}
    steps = known | {priority + 1 for priority in known}
    return sorted(step for step in steps if (job.priority or 0) < step <= HIGHEST)


def _first(base: list[Reading], priority: int) -> int | None:
    """The lowest priority, from this one on, with which the job is the first of its share for sure."""
    steps = [priority, *(step for step in _steps(base[0].pool, base[0].job) if step > priority)]
    return next((step for step in steps if not any(reading.ahead(step) for reading in base)), None)


def _never(pool: PoolView, job: JobView, share: ShareView) -> str | None:
    """Why the job can never start in its share; None: it can, or that is not known."""
    if job.unit is None or job.instances is None:
        return None
    found = misfit(_facts(pool, share), job.unit, job.instances)
    if isinstance(found, Misfit):
        return found.text
    limit = None if pool.environment is None else pool.environment.get(job.unit, 0)
    if limit is None or job.instances <= limit:
        return None
    return f"asks for {job.instances} {job.unit}, and the service environment has {limit}"


def _facts(pool: PoolView, share: ShareView) -> ShareFacts:
    """The share as ``fits`` reads it. Whether a disabled share lends is not documented: it may."""
    others = [one for one in pool.shares if one is not share and one.strategy != "RESERVE"]
    units = {
        unit: UnitFacts(
            limit=limit, others=None if pool.gaps else sum(one.limits.get(unit, 0) for one in others)
        )
        for unit, limit in share.limits.items()
    }
    return ShareFacts(
        name=share.name,
        strategy=share.strategy,
        borrow_limit=share.borrow_limit,
        in_share_preemption=share.in_share_preemption,
        min_runtime=share.min_runtime // SECOND,
        units=units,
    )


def _figures(reading: Reading) -> Figures:
    job, book = reading.job, reading.book(reading.job.unit)
    share, asked = job.share or "", job.instances or 0
    return Figures(
        unit=job.unit or "",
        asked=asked,
        used=book.used[share],
        own=book.own[share],
        most=book.most[share],
        borrowed=book.over(share),
        lent=book.borrowed,
        idle=book.idle,
        lack=book.lack(share, asked),
        environment=book.limit,
        environment_used=book.total,
    )
