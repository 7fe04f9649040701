"""Play a workload on the lab: its scheduler and its training jobs, in one process, in virtual time."""

from __future__ import annotations

from collections.abc import Callable

from sharewarden.domain.base import last_part

from sharewarden_tools.lab import Options
from sharewarden_tools.lab.model import TERMINAL
from sharewarden_tools.lab.world import Json

from .controller import Controller, Hand, Native
from .outcome import Outcome, played_jobs
from .pool import QUEUE, START, make_lab, submit
from .workload import Workload

HEURISTICS = ("documented", "random", "adversarial")
DAY = 86_400_000
#: How long after the workload's span its jobs may go on; those that have not ended then are unfinished.
DRAIN = 14 * DAY
NATIVE = Native()

Tell = Callable[[str], None]


def replay(
    workload: Workload,
    options: Options,
    seed: int = 0,
    controller: Controller = NATIVE,
    tell: Tell = lambda _: None,
) -> Outcome:
    """What became of the workload. The same arguments give the same outcome; ``seed`` is the lab's."""
    return _Replay(workload, options, seed, controller).run(tell)


class _Replay:
    def __init__(self, workload: Workload, options: Options, seed: int, controller: Controller) -> None:
        self._workload = workload
        self._heuristic = options.heuristic
        self._controller = controller
        self._lab = make_lab(workload, options, seed)
        self._lab.subscribe(self._hear)
        self._ids: list[str] = []  # of the jobs that were submitted, in order
        self._open = 0
        controller.begin(Hand(self._lab, QUEUE))

    def run(self, tell: Tell) -> Outcome:
        limit = START + self._workload.span + DRAIN
        while (due := self._next_due()) is not None and due <= limit:
            self._lab.advance_to(due)
            self._submit_due(due)
            self._ask_controller(due)
            tell(self._progress())
        ended_at = (limit if self._open else self._lab.now()) - START
        jobs = played_jobs(self._lab, self._workload, self._ids, ended_at)
        return Outcome(self._workload, self._heuristic, self._controller.name, jobs, ended_at)

    def _next_due(self) -> int | None:
        """The next moment at which something happens; None when nothing will change any more.

        Jobs that wait while none runs or comes wait for ever, whatever a controller does.
        """
        moments = [moment for moment in (self._lab.next_due(), self._next_arrival()) if moment is not None]
        wanted = self._controller.next_due()
        if moments and wanted is not None:
            moments.append(max(wanted, self._lab.now() + 1))
        return min(moments, default=None)

    def _next_arrival(self) -> int | None:
        jobs, sent = self._workload.jobs, len(self._ids)
        return START + jobs[sent].submitted_at if sent < len(jobs) else None

    def _submit_due(self, now: int) -> None:
        while (arrival := self._next_arrival()) is not None and arrival <= now:
            self._open += 1
            self._ids.append(submit(self._lab, self._workload.jobs[len(self._ids)]))

    def _ask_controller(self, now: int) -> None:
        wanted = self._controller.next_due()
        if wanted is not None and wanted <= now:
            self._controller.due()

    def _hear(self, event: Json) -> None:
        if event["detail-type"] == "Batch Service Job State Change":
            status = event["detail"]["status"]
            self._open -= status in TERMINAL
            self._controller.changed(last_part(event["resources"][0]), status)

    def _progress(self) -> str:
        day, whole = (self._lab.now() - START) // DAY + 1, len(self._workload.jobs)
        return f"day {day}: {len(self._ids)} of {whole} jobs submitted, {self._open} not ended"
