"""What preemptions cost, share by share, from their audit records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple, get_args

from sharewarden.domain.audit import AuditRecord
from sharewarden.domain.base import Frozen, last_part
from sharewarden.domain.facts import HOST_RECLAIMED
from sharewarden.domain.gaps import is_preemption
from sharewarden.domain.preemption.inference import Cause
from sharewarden.domain.stored import HOUR, SECOND

KINDS = frozenset({"preemption", "preemption-measure", "preemptor", "resume", "gap"})
CAUSES: tuple[Cause, ...] = get_args(Cause)
#: What is only guessed is charged to nobody.
_SURE = ("high", "medium")


class Cost(Frozen):
    """Of the jobs of one share, or of all (``share`` None).

    GPU-hours of instance types whose GPUs are not known are in no sum: ``unsized`` counts those preemptions.
    """

    queue: str
    share: str | None
    preemptions: int
    causes: dict[Cause, int]
    lost_gpu_hours: float
    """Where it is known what was lost."""
    lost_at_most_gpu_hours: float
    """With the whole attempt where it is not."""
    held_gpu_hours: float
    """From the dispatch until the training began: to be done again, and no training."""
    bounded: int
    """Preemptions whose loss has a bound only."""
    unsized: int
    unmeasured: int
    """Their measure is not there (yet), or nobody told when they stopped."""
    without_details: int
    """Beside these, known by number alone."""
    pause: float | None
    """Median seconds from the stop until the job ran again; None: of none is it known."""
    owners_wait: float | None
    """Median seconds that the owner of lent capacity waited for it, from the submission to RUNNING."""
    by: dict[str, int]
    """How often jobs of which share were behind it, as far as that is likely."""

    def as_json(self) -> dict[str, Any]:
        return self.model_dump() | {"queue": last_part(self.queue)}


class Told(NamedTuple):
    """All that is on record of one preemption."""

    happened: AuditRecord
    """Its own record; of one whose stop was never told the measure."""
    measure: AuditRecord | None
    preemptor: AuditRecord | None
    resume: AuditRecord | None

    @property
    def cause(self) -> Cause:
        """What was inferred; else Batch's words."""
        inferred = None if self.preemptor is None else self.preemptor.figures["kind"]
        told: Cause = self.happened.figures["kind"]
        return told if inferred in (None, "unknown") else inferred


def costs(facts: Iterable[AuditRecord]) -> tuple[Cost, ...]:
    """A row for each share that lost something, then one for each queue with several."""
    known = [fact for fact in facts if fact.figures.get("kind") != HOST_RECLAIMED]  # no share lost anything
    told, gaps = _joined(known), [fact for fact in known if is_preemption(fact)]
    places = {_place(one.happened) for one in told} | {_place(gap) for gap in gaps}
    return tuple(row for queue in sorted({queue for queue, _ in places}) for row in _rows(queue, told, gaps))


def _rows(queue: str, told: Sequence[Told], gaps: Sequence[AuditRecord]) -> Iterator[Cost]:
    mine = [one for one in told if one.happened.queue == queue]
    lost = [gap for gap in gaps if gap.queue == queue]
    shares = sorted({one.happened.share or "" for one in mine} | {gap.share or "" for gap in lost})
    for share in shares:
        of_share = [one for one in mine if (one.happened.share or "") == share]
        yield _cost(queue, share, of_share, sum((gap.share or "") == share for gap in lost))
    if len(shares) > 1:
        yield _cost(queue, None, mine, len(lost))


def _place(fact: AuditRecord) -> tuple[str, str]:
    return fact.queue or "", fact.share or ""


def _joined(facts: Iterable[AuditRecord]) -> list[Told]:
    """By attempt. Of several records of a resumption the first that knows the pause counts."""
    by_kind: dict[str, dict[str, AuditRecord]] = {}
    for fact in facts:
        attempt = fact.figures.get("attempt")
        if attempt is not None and (fact.kind != "resume" or fact.figures.get("pause_seconds") is not None):
            by_kind.setdefault(fact.kind, {}).setdefault(attempt, fact)
    measures, preemptors, resumes = (
        by_kind.get(kind, {}) for kind in ("preemption-measure", "preemptor", "resume")
    )
    happened = measures | by_kind.get("preemption", {})
    return [
        Told(fact, measures.get(attempt), preemptors.get(attempt), resumes.get(attempt))
        for attempt, fact in happened.items()
    ]


def _cost(queue: str, share: str | None, told: Sequence[Told], gaps: int) -> Cost:
    measures = [one.measure.figures for one in told if one.measure is not None]
    stopped = [figures for figures in measures if figures["seconds"] is not None]
    sized = [figures for figures in stopped if figures["gpu_seconds"] is not None]
    lost = [figures for figures in sized if figures["lost_gpu_seconds"] is not None]
    bounded = [figures for figures in sized if figures["lost_gpu_seconds"] is None]
    causes = Counter(one.cause for one in told)
    return Cost(
        queue=queue,
        share=share,
        preemptions=len(told),
        causes={cause: causes[cause] for cause in CAUSES},
        lost_gpu_hours=_hours(lost, "lost_gpu_seconds"),
        lost_at_most_gpu_hours=_hours(lost, "lost_gpu_seconds") + _hours(bounded, "gpu_seconds"),
        held_gpu_hours=_hours(sized, "held_gpu_seconds"),
        bounded=len(bounded),
        unsized=len(stopped) - len(sized),
        unmeasured=len(told) - len(stopped),
        without_details=gaps,
        pause=_median(one.resume.figures["pause_seconds"] for one in told if one.resume is not None),
        owners_wait=_median(
            one.preemptor.figures["waited_seconds"] for one in told if one.preemptor is not None
        ),
        by=_by(told),
    )


def _by(told: Iterable[Told]) -> dict[str, int]:
    figures = [one.preemptor.figures for one in told if one.preemptor is not None]
    sure = [one["preemptor_share"] for one in figures if one["confidence"] in _SURE and one["preemptor"]]
    return dict(Counter(sure).most_common())


def _hours(figures: Iterable[Mapping[str, Any]], name: str) -> float:
    return sum(one[name] or 0 for one in figures) * SECOND / HOUR


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
