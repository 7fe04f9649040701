"""The life of a service job in Batch, from SUBMITTED to SUCCEEDED or FAILED.

Sources: service-job-status.html (mapping from SageMaker's statuses), service-job-retries.html,
preemption.html, sm_job_stuck_in_runnable_time_limit_actions.html.
"""

from __future__ import annotations

import re

from . import events, heuristics
from .errors import ApiError
from .model import DISPATCHED, TERMINAL, Job, JobQueue, Preemption, State, Stop, TrainingJob
from .scheduler import Blocked, Preempt, Rules, plan
from .training import CAPACITY_ERROR, TrainingService
from .views import resource_id
from .world import Json, World

FROM_SAGEMAKER = "Received status from SageMaker: "
CAPACITY = "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY"
CAPACITY_BLOCKED = f"{CAPACITY} - Unable to provision requested compute resources"
CROSS_SHARE = "Cross-share preemption triggered to reclaim borrowed capacity"
TIMED_OUT = "Job attempt duration exceeded timeout"
_RUNNING_AS = {"Downloading": "STARTING", "Training": "RUNNING"}


class Lifecycle:
    """Moves jobs, and runs the scheduler when something changed."""

    def __init__(self, world: World, state: State, trainings: TrainingService) -> None:
        self._world = world
        self._state = state
        self._trainings = trainings
        options = world.options
        self._heuristic = heuristics.by_name(world.seed)[options.heuristic]
        self._rules = Rules(
            borrow_backfill=options.borrow_backfill,
            blocked_share_holds_queue=options.blocked_share_holds_queue,
            reclaim_uncovered=options.reclaim_uncovered,
        )
        self._reasons = {
            "cross-share": CROSS_SHARE,
            "in-share": options.in_share_reason,
            "limit": options.limit_reason,
        }
        self._loud = {"in-share": options.in_share_sends_events, "limit": options.limit_sends_events}
        trainings.on_change = self._on_training
        trainings.on_save = self._on_save

    # What the API asks for.

    def submit(self, job: Job) -> None:
        queue = self._queue(job)
        queue.jobs.append(job)
        queue.by_status[job.status][job.id] = job
        self._state.jobs[job.id] = job
        delay = self._world.draw(self._world.options.runnable_delay_ms, f"{job.id}/runnable")
        self._world.after(delay, lambda: self._accept(job))

    def reprioritise(self, job: Job, priority: int) -> None:
        queue = self._queue(job)
        queue.pool.reprioritise(job.slot, priority)
        self.request_pass(queue)

    def terminate(self, job: Job, reason: str) -> None:
        """A waiting job fails at once, a dispatched one when its training job has stopped."""
        if job.status in TERMINAL or job.is_terminated:
            return
        job.is_terminated = True
        if job.status in DISPATCHED:
            self._stop(job, Stop("terminated", reason))
        else:
            self._fail(job, reason)

    def request_pass(self, queue: JobQueue) -> None:
        """Let the scheduler look at the queue soon; requests in between share one pass."""
        if queue.pass_timer:
            return
        period, now = self._world.options.scheduler_period_ms, self._world.now()
        due = now if queue.last_pass is None else max(now, queue.last_pass + period)
        queue.pass_timer = self._world.timers.at(due, lambda: self._run_pass(queue))

    # Scheduling.

    def _accept(self, job: Job) -> None:
        if job.status == "SUBMITTED":
            self._to_runnable(job, None)

    def _run_pass(self, queue: JobQueue) -> None:
        queue.pass_timer, queue.last_pass = None, self._world.now()
        decided = plan(queue.pool, self._heuristic, self._world.now(), self._rules)
        for preemption in decided.preemptions:
            self._preempt(preemption)
        for dispatch in decided.dispatches:
            self._dispatch(self._state.jobs[dispatch.job.id])
        queue.pool.claims = decided.claims
        self._note_blocked(queue, decided.blocked)

    def _dispatch(self, job: Job) -> None:
        queue, now = self._queue(job), self._world.now()
        queue.pool.dispatch(job.slot, now)
        self._unblock(queue, job)
        job.scheduled_at = now
        try:
            job.training = self._trainings.create(job.id, job.payload, job.tags)
        except ApiError as error:
            reason = f"{FROM_SAGEMAKER}{error.code}: {error.message}"
            self._world.after(self._world.options.notice_delay_ms, lambda: self._settle_refused(job, reason))
            queue.pool.stop(job.slot)
        self._move(job, "SCHEDULED")

    def _preempt(self, preemption: Preempt) -> None:
        job = self._state.jobs[preemption.job.id]
        self._state.preemptions.append(
            Preemption(
                at=self._world.now(),
                job=job.id,
                attempt=job.training.arn if job.training else None,
                kind=preemption.kind,
                demander=preemption.demander.id if preemption.demander else None,
            )
        )
        reason = self._reasons[preemption.kind]
        loud = self._loud.get(preemption.kind, True)
        if loud:
            events.preemption_started(self._world, job, reason)
        self._stop(job, Stop("preempted", reason, loud))

    def _stop(self, job: Job, stop: Stop) -> None:
        """Stop the attempt; an earlier, weaker cause gives way to a termination."""
        if job.stop is None or stop.cause == "terminated":
            job.stop = stop
        self._queue(job).pool.stop(job.slot)
        if job.training:
            self._trainings.stop(job.training)

    # Blocked jobs.

    def _note_blocked(self, queue: JobQueue, found: list[Blocked]) -> None:
        reasons = {blocked.job.id: blocked.reason for blocked in found}
        for job in list(queue.blocked.values()):
            if job.id not in reasons:
                self._unblock(queue, job)
        for job_id, reason in reasons.items():
            job = self._state.jobs[job_id]
            if job.blocked != reason:
                self._block(queue, job, reason)

    def _block(self, queue: JobQueue, job: Job, reason: str) -> None:
        self._unblock(queue, job)
        queue.blocked[job.id] = job
        job.blocked = job.status_reason = reason
        events.queue_blocked(self._world, job)
        limit = self._time_limit(queue, reason)
        if limit:
            job.limit_timer = self._world.after(limit, lambda: self._exceed_limit(job, reason))

    def _unblock(self, queue: JobQueue, job: Job) -> None:
        queue.blocked.pop(job.id, None)
        job.blocked = job.status_reason = None
        if job.limit_timer:
            job.limit_timer.cancel()

    def _exceed_limit(self, job: Job, reason: str) -> None:
        if job.status == "RUNNABLE" and job.blocked == reason:
            self._fail(job, _limit_text(reason))

    @staticmethod
    def _time_limit(queue: JobQueue, reason: str) -> int | None:
        """jobStateTimeLimitActions maxTimeSeconds for this reason, in milliseconds."""
        code = _code(reason)
        actions = (action for action in queue.limit_actions if action["reason"] == code)
        return next((1000 * int(action["maxTimeSeconds"]) for action in actions), None)

    # What SageMaker reports.

    def _on_save(self, training: TrainingJob) -> None:
        self._state.jobs[training.owner].slot.saved_at = training.saved_at

    def _on_training(self, training: TrainingJob) -> None:
        job = self._state.jobs[training.owner]
        if training.ended:
            self._queue(job).pool.stop(job.slot)
            self._cancel_attempt_timer(job)
            self._world.after(self._world.options.notice_delay_ms, lambda: self._settle(job, training))
        elif training.status == "InProgress" and training.secondary in _RUNNING_AS:
            self._progress(job, training)

    def _progress(self, job: Job, training: TrainingJob) -> None:
        job.started_at = training.started_at if training.started_at else job.started_at
        job.blocked_ms = 0
        self._move(job, _RUNNING_AS[training.secondary])
        if job.status == "RUNNING" and job.timeout:
            delay = 1000 * int(job.timeout["attemptDurationSeconds"])
            job.attempt_timer = self._world.after(delay, lambda: self._stop(job, Stop("timeout", TIMED_OUT)))

    def _settle(self, job: Job, training: TrainingJob) -> None:
        """An attempt is over: success, retry, requeue or failure."""
        stop, job.stop = job.stop, None
        reason = FROM_SAGEMAKER + training.transitions[-1]["StatusMessage"]
        if training.status == "Completed":
            self._close(job, "SUCCEEDED", training, reason)
        elif stop is None:
            self._settle_unasked(job, training, reason)
        elif stop.cause == "preempted":
            self._settle_preempted(job, training, stop)
        else:
            self._close(job, "FAILED", training, stop.reason)

    def _settle_unasked(self, job: Job, training: TrainingJob, reason: str) -> None:
        """The training job failed, or somebody else stopped it (mapping: Stopped is FAILED)."""
        if training.failure == CAPACITY_ERROR:
            self._settle_capacity(job, training)
        elif training.status == "Stopped" and not self._world.options.stopped_outside_is_retried:
            self._close(job, "FAILED", training, reason)
        elif _retries(job.retry, job.tries, reason):
            job.attempts.append(_attempt(training, reason))
            self._retry(job, reason)
        else:
            self._close(job, "FAILED", training, reason)

    def _settle_capacity(self, job: Job, training: TrainingJob) -> None:
        """Batch tries again for as long as it takes, and keeps the newest failed training job only."""
        queue = self._queue(job)
        job.blocked_ms += training.modified_at - training.created_at
        if job.short_of_capacity:
            self._trainings.delete(job.short_of_capacity)
        job.short_of_capacity = training
        limit = self._time_limit(queue, CAPACITY_BLOCKED)
        if limit and job.blocked_ms >= limit:
            self._end(job, "FAILED", _limit_text(CAPACITY_BLOCKED))
            return
        self._to_runnable(job, CAPACITY_BLOCKED)
        events.queue_blocked(self._world, job)

    def _settle_preempted(self, job: Job, training: TrainingJob, stop: Stop) -> None:
        """Requeue, or fail once preemptionRetriesBeforeTermination is used up (preemption.html)."""
        attempt = _attempt(training, stop.reason)
        job.preempted_count += 1
        job.preempted = [*job.preempted, attempt][-self._world.options.preemption_window :]
        if self._world.options.preempted_in_attempts:
            job.attempts.append(attempt)
        exhausted = self._preemptions_used_up(job)
        if exhausted:
            self._end(job, "FAILED", stop.reason, training.ended_at)
        else:
            self._to_runnable(job, stop.reason)
        if stop.sends_events and (self._world.options.exhausted_sends_completed or not exhausted):
            events.preemption_completed(self._world, job)

    def _preemptions_used_up(self, job: Job) -> bool:
        if self._world.options.preemption_uses_attempts:
            job.tries += 1
            if job.tries > int((job.retry or {}).get("attempts", 1)):
                return True
        allowed = (job.preemption or {}).get("preemptionRetriesBeforeTermination")
        return allowed is not None and job.preempted_count > int(allowed)

    def _settle_refused(self, job: Job, reason: str) -> None:
        """SageMaker refused the request, so there is no training job and no attempt to show."""
        stop, job.stop = job.stop, None
        if stop:
            self._end(job, "FAILED", stop.reason)
        elif _retries(job.retry, job.tries, reason):
            self._retry(job, reason)
        else:
            self._end(job, "FAILED", reason)

    def _retry(self, job: Job, reason: str) -> None:
        job.tries += 1
        self._to_runnable(job, reason)

    # Transitions.

    def _to_runnable(self, job: Job, reason: str | None) -> None:
        self._leave_pool(job)
        if job.scheduled_at and not self._world.options.requeue_keeps_place:
            job.slot.order = next(self._state.orders)
        self._queue(job).pool.enqueue(job.slot)
        job.status_reason, job.runnable_at = reason, self._world.now()
        self._move(job, "RUNNABLE")

    def _fail(self, job: Job, reason: str) -> None:
        self._queue(job).pool.withdraw(job.slot)
        self._end(job, "FAILED", reason)

    def _close(self, job: Job, status: str, training: TrainingJob, reason: str) -> None:
        """The job ends with this attempt."""
        job.attempts.append(_attempt(training, reason))
        self._end(job, status, reason, training.ended_at)

    def _end(self, job: Job, status: str, reason: str, stopped_at: int | None = None) -> None:
        self._unblock(self._queue(job), job)
        self._leave_pool(job)
        job.status_reason = reason
        job.stopped_at = self._world.now() if stopped_at is None else stopped_at
        self._move(job, status)

    def _leave_pool(self, job: Job) -> None:
        queue = self._queue(job)
        queue.pool.release(job.slot)
        self.request_pass(queue)

    def _move(self, job: Job, status: str) -> None:
        self._queue(job).move(job, status)
        events.state_change(self._world, job)

    @staticmethod
    def _cancel_attempt_timer(job: Job) -> None:
        if job.attempt_timer:
            job.attempt_timer.cancel()

    def _queue(self, job: Job) -> JobQueue:
        return self._state.queues[job.queue_arn]


def _attempt(training: TrainingJob, reason: str) -> Json:
    """ServiceJobAttemptDetail and ServiceJobPreemptedAttempt; an attempt that never trained has no start."""
    started = {"startedAt": training.started_at} if training.started_at else {}
    return {
        "serviceResourceId": resource_id(training),
        **started,
        "stoppedAt": training.ended_at,
        "statusReason": reason,
    }


def _limit_text(reason: str) -> str:
    return f"Terminated by JobStateTimeLimit action due to reason: {_code(reason)}"


def _code(reason: str) -> str:
    """The documented reason code in front of its explanation."""
    return reason.partition(" - ")[0]


def _retries(strategy: Json | None, tries: int, reason: str) -> bool:
    """The first matching rule decides; without one, a retry as long as attempts are left."""
    if strategy is None or tries >= int(strategy["attempts"]):
        return False
    rules = strategy.get("evaluateOnExit", [])
    actions = (rule["action"] for rule in rules if _matches(rule.get("onStatusReason", "*"), reason))
    return str(next(actions, "RETRY")).upper() == "RETRY"


def _matches(pattern: str, reason: str) -> bool:
    """A glob in which only the asterisk is special."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), reason, re.DOTALL) is not None
