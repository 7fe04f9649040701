"""When to save, and saving: the one object that a training loop talks to.

with Saver("/opt/ml/checkpoints", every=600) as saver:
    start = load(saver.latest())
    for step in range(start, steps):
        train(step)
        if saver.should_save(step):
            with saver.save(step) as folder:
                write_everything_into(folder)
        if saver.stopping:
            break
"""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from . import sets
from .manifest import Manifest, sizes
from .requests import Requests
from .sets import Checkpoint, Shard
from .stop import Stop

#: The typical interval is the median of so many last ones.
MOST_INTERVALS = 20
#: SageMaker repeats a local deletion in S3, maybe before the newer set is there whole: one set is not enough.
LEAST_KEPT = 2


@dataclass(frozen=True)
class Clock:
    wall: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic

    def now(self) -> int:
        """Epoch ms."""
        return int(self.wall() * 1000)


class Asked(NamedTuple):
    """What there was to save for when a save began; what comes later is for the next one."""

    stops: int
    requests: frozenset[str]
    reason: str


class Saver:
    """Saves at least ``every`` seconds, on SIGTERM and on request; keeps the ``keep`` newest complete sets.

    Finding and saving need no more than the object; entered as a context manager, it also sees SIGTERM and
    save requests. One process, or one of each ``Shard``, writes into ``folder`` at a time.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] = "/opt/ml/checkpoints",
        *,
        every: float = 600.0,
        keep: int = 3,
        shard: Shard | None = None,
        requests: Requests | None = None,
        clock: Clock | None = None,
    ) -> None:
        if keep < LEAST_KEPT:
            raise ValueError(f"keep at least {LEAST_KEPT} sets: the older one is whole while one is uploaded")
        self.folder = Path(folder)
        self.shard = shard or Shard()
        self._every, self._keep = every, keep
        self._clock = clock or Clock()
        self._requests = requests or Requests()
        self._stop = Stop()
        self._stops_served = 0
        self._last_step: int | None = None
        self._last_steady = self._clock.steady()
        self._last_saved_at: int | None = None
        self._intervals: deque[int] = deque(maxlen=MOST_INTERVALS)
        self._resumed_from: int | None = None

    def __enter__(self) -> Saver:
        self._stop.install()
        self._requests.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._requests.close()
        self._stop.restore()

    @property
    def stopping(self) -> bool:
        """SIGTERM came: SageMaker kills the container 120 seconds after it."""
        return self._stop.count > 0

    def should_save(self, step: int) -> bool:
        """Is a save due after ``step``: for SIGTERM, a request, or the interval? Not twice for one step."""
        return step != self._last_step and self._asked().reason != "script"

    @contextmanager
    def save(self, step: int) -> Iterator[Path]:
        """Yields an empty folder to write into. The set is complete when the block ends, and not there at all
        if it ends by an exception or is killed. Raises OSError when the disk refuses; older sets stay.
        """
        asked, began = self._asked(), self._clock.now()
        name = self.shard.set_name(step)
        written = sets.start(self.folder, self.shard, name)
        try:
            yield written
            manifest = self._manifest(step, asked, began, sizes(written))
            sets.publish(written, manifest, self.shard.part(self.folder / name))
        except BaseException:
            shutil.rmtree(written, ignore_errors=True)
            raise
        self._remember(manifest, asked, name)
        sets.prune(self.folder, self.shard, self._keep, self._clock.now())

    def latest(self) -> Checkpoint | None:
        """The newest complete set: by step, of several of one step the one saved last. None if there is none.

        Skips what is half written, has another size than its manifest says, is from the future or is garbage.
        """
        found = sets.newest(self.folder, self._clock.now())
        self._resumed_from = found.step if found else None
        return found

    @contextmanager
    def reading(self) -> Iterator[Checkpoint | None]:
        """``latest``, kept from deletion while the block runs. Another process may be saving meanwhile."""
        while found := self.latest():
            with sets.held(found):
                if sets.complete(found.folder, self._clock.now()) is not None:
                    yield found
                    return
        yield None

    def _asked(self) -> Asked:
        stops, requests = self._stop.count, self._requests.pending()
        due = self._clock.steady() - self._last_steady >= self._every
        reasons = {"stop": stops > self._stops_served, "request": bool(requests), "interval": due}
        return Asked(stops, requests, next((name for name, holds in reasons.items() if holds), "script"))

    def _manifest(self, step: int, asked: Asked, began: int, files: dict[str, int]) -> Manifest:
        now = self._clock.now()
        gaps = [*self._intervals, now - self._last_saved_at] if self._last_saved_at is not None else []
        return Manifest(
            step=step,
            saved_at=now,
            files=files,
            rank=self.shard.rank,
            world_size=self.shard.world_size,
            save_ms=now - began,
            previous_saved_at=self._last_saved_at,
            typical_interval_ms=int(statistics.median(gaps)) if gaps else None,
            reason=asked.reason,
            training_job=os.environ.get("TRAINING_JOB_NAME"),
            resumed_from=self._resumed_from,
        )

    def _remember(self, manifest: Manifest, asked: Asked, name: str) -> None:
        if self._last_saved_at is not None:
            self._intervals.append(manifest.saved_at - self._last_saved_at)
        self._last_step, self._last_saved_at = manifest.step, manifest.saved_at
        self._last_steady = self._clock.steady()
        self._stops_served = asked.stops
        self._requests.saved(asked.requests, manifest.step, manifest.saved_at, name)
