"""What is played: shares, and jobs with what they would do. Times are ms since the workload's start."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Share:
    """A team's quota share, ``LEND_AND_BORROW`` without a borrow limit."""

    name: str
    gpus: int
    in_share: bool


@dataclass(frozen=True, slots=True)
class Sla:
    """What was promised to a job. Durations in ms; what is None was not promised."""

    name: str
    start_within: int | None = None  # from the submission to RUNNING
    restart_within: int | None = None  # from a requeue to RUNNING
    finish_by: int | None = None  # a time, not a duration
    expected_runtime: int | None = None  # as people told it beforehand


@dataclass(frozen=True, slots=True)
class Job:
    """One service job. Its run time is the training that it needs in all, however often it is interrupted."""

    name: str
    share: str
    user: str
    submitted_at: int
    gpus: int
    runtime: int
    fails_after: int | None = None  # of training; None: it does not fail
    priority: int = 0
    save_every: int | None = None  # of training; None: it saves nothing
    load: int = 0  # before it goes on from a checkpoint
    stop_save: int | None = None  # what saving on SIGTERM takes; None: it does not hear it
    sla: Sla | None = None

    @property
    def trains(self) -> int:
        """The training until it ends, well or not."""
        return self.runtime if self.fails_after is None else self.fails_after


@dataclass(frozen=True, slots=True)
class Workload:
    """Jobs in the order of submission. ``span`` is the time that use is measured over."""

    title: str
    shares: tuple[Share, ...]
    jobs: tuple[Job, ...]
    span: int
    assumed: tuple[str, ...]  # what stands in for what nobody knows, in words

    @property
    def gpus(self) -> int:
        return sum(share.gpus for share in self.shares)

    @property
    def offered(self) -> float:
        """The part of the pool that the jobs would use if none waited and nothing was lost."""
        return sum(job.gpus * job.trains for job in self.jobs) / (self.gpus * self.span)
