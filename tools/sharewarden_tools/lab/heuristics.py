"""Which jobs lose. AWS names what it looks at (instances borrowed and their type, relative priority, job
duration) and keeps the formula to itself (preemption.html), so the choice is a plug-in.

A heuristic is given the jobs that may be preempted and returns them with the first victim first.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from .book import Book, PoolJob

Heuristic = Callable[[Sequence[PoolJob], Book, int], list[PoolJob]]


def documented(candidates: Sequence[PoolJob], book: Book, now_ms: int) -> list[PoolJob]:
    """More borrowed instances, then lower priority relative to the share's other jobs, then shorter run."""
    rank = _relative_priorities(candidates)

    def key(job: PoolJob) -> tuple[int, float, int, int]:
        return (-book.over_own(job), rank[job.id], now_ms - _started(job, now_ms), -job.order)

    return sorted(candidates, key=key)


def adversarial(candidates: Sequence[PoolJob], _book: Book, now_ms: int) -> list[PoolJob]:
    """Worst for the victim: the one that has gone longest without a save."""

    def unsaved(job: PoolJob) -> int:
        return now_ms - (job.saved_at if job.saved_at is not None else _started(job, now_ms))

    return sorted(candidates, key=lambda job: (-unsaved(job), job.order))


def seeded(seed: int) -> Heuristic:
    """Any job, the same one for the same seed, moment and candidates."""

    def choose(candidates: Sequence[PoolJob], _book: Book, now_ms: int) -> list[PoolJob]:
        shuffled = sorted(candidates, key=lambda job: job.order)
        random.Random(f"{seed}/{now_ms}/{len(shuffled)}").shuffle(shuffled)
        return shuffled

    return choose


def _started(job: PoolJob, now_ms: int) -> int:
    return job.dispatched_at if job.dispatched_at is not None else now_ms


def _relative_priorities(candidates: Sequence[PoolJob]) -> dict[str, float]:
    """Per job the part of its share's candidates that have a lower priority, from 0 to below 1."""
    by_share: dict[str, list[int]] = {}
    for job in candidates:
        by_share.setdefault(job.share, []).append(job.priority)
    first_of: dict[str, dict[int, float]] = {}
    for share, priorities in by_share.items():
        ordered = sorted(priorities)
        first_of[share] = {p: ordered.index(p) / len(ordered) for p in set(ordered)}
    return {job.id: first_of[job.share][job.priority] for job in candidates}


def by_name(seed: int) -> Mapping[str, Heuristic]:
    return {"documented": documented, "random": seeded(seed), "adversarial": adversarial}
