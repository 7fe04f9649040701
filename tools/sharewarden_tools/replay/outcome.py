"""What became of a workload. Times are ms since its start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sharewarden_tools.lab import Lab
from sharewarden_tools.lab.model import TERMINAL, TrainingJob

from .pool import START
from .workload import Job, Workload


@dataclass(frozen=True, slots=True)
class Attempt:
    """One training job. It holds its GPUs from the dispatch on; ``trained`` counts what was lost, too."""

    dispatched_at: int
    started_at: int | None  # RUNNING
    ended_at: int | None
    trained: int
    lost: int  # trained since the last save, when it was stopped
    preempted: str | None  # cross-share, in-share or limit

    def held(self, until: int, since: int = 0) -> int:
        """For how long it held its GPUs in that window."""
        ended = until if self.ended_at is None else min(until, self.ended_at)
        return max(0, ended - max(since, self.dispatched_at))


@dataclass(frozen=True, slots=True)
class Played:
    """One job, whose attempts are in order."""

    job: Job
    status: str  # Batch's, at the end
    ended_at: int | None
    attempts: tuple[Attempt, ...]
    seen_until: int  # when the replay ended

    @property
    def runs(self) -> tuple[Attempt, ...]:
        """The attempts that came as far as RUNNING."""
        return tuple(attempt for attempt in self.attempts if attempt.started_at is not None)

    @property
    def waited(self) -> int:
        """From the submission to RUNNING; a job that never ran has waited at least so long."""
        end = self.seen_until if self.ended_at is None else self.ended_at
        starts = (attempt.started_at for attempt in self.attempts if attempt.started_at is not None)
        return next(starts, end) - self.job.submitted_at

    @property
    def restart_waits(self) -> tuple[int, ...]:
        """From the end of each attempt that ran to the next RUNNING, or for as long as it waits by now."""
        pairs = [(run.ended_at, follower.started_at) for run, follower in pairwise(self.runs)]
        if self.ended_at is None and self.runs:
            pairs.append((self.runs[-1].ended_at, self.seen_until))
        return tuple(again - ended for ended, again in pairs if ended is not None and again is not None)

    @property
    def preemptions(self) -> int:
        return sum(attempt.preempted is not None for attempt in self.attempts)

    @property
    def kept(self) -> int:
        """Training that was not lost, in ms; of a job that ended it is all that it needed."""
        return sum(attempt.trained - attempt.lost for attempt in self.attempts)

    @property
    def lost(self) -> int:
        return sum(attempt.lost for attempt in self.attempts)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A workload's jobs after a replay, in the order of submission."""

    workload: Workload
    heuristic: str
    controller: str
    jobs: tuple[Played, ...]
    ended_at: int


def played_jobs(lab: Lab, workload: Workload, ids: Sequence[str], ended_at: int) -> tuple[Played, ...]:
    """Read from what the lab keeps: every training job, and why Batch stopped it."""
    attempts: dict[str, list[Attempt]] = {}
    kinds = {stop.attempt: stop.kind for stop in lab.state.preemptions}
    for training in lab.state.trainings.values():
        attempts.setdefault(training.owner, []).append(_attempt(training, kinds, START + ended_at))
    return tuple(
        _played(lab, job, job_id, attempts.get(job_id, []), ended_at)
        for job, job_id in zip(workload.jobs, ids, strict=True)
    )


def _played(lab: Lab, job: Job, job_id: str, attempts: Sequence[Attempt], seen_until: int) -> Played:
    found = lab.state.jobs[job_id]
    ended = found.stopped_at if found.status in TERMINAL else None
    return Played(job, found.status, _since_start(ended), tuple(attempts), seen_until)


def _attempt(training: TrainingJob, kinds: Mapping[str | None, str], now: int) -> Attempt:
    began = 1_000 * (training.resumed_from or 0)
    kept = training.saved_ms // 1_000 * 1_000  # the lab saves whole seconds
    reached = _reached(training, now)
    return Attempt(
        dispatched_at=training.created_at - START,
        started_at=_since_start(training.started_at),
        ended_at=_since_start(training.ended_at),
        trained=reached - began,
        lost=reached - kept if training.status == "Stopped" else 0,
        preempted=kinds.get(training.arn),
    )


def _reached(training: TrainingJob, now: int) -> int:
    """Progress by now; the lab notes it down when something happens to the training job."""
    training_on = training.status == "InProgress" and training.secondary == "Training"
    return training.progress_ms + (max(0, now - training.progress_at) if training_on else 0)


def _since_start(time: int | None) -> int | None:
    return None if time is None else time - START
