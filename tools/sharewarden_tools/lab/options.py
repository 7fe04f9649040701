"""What AWS leaves open, each as a named option; `[assumed]` marks a default that no page confirms.

Spans are `(shortest, longest)` in milliseconds, drawn evenly and repeatably from the lab's seed; equal
ends give a fixed duration.
"""

from __future__ import annotations

from dataclasses import dataclass

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Options:
    # Scheduling.
    heuristic: str = "documented"  # which job loses: documented, random, adversarial
    scheduler_period_ms: int = 1_000  # [assumed] shortest time between two passes over one queue
    # [assumed] A requeued job keeps its place among equals (FIFO by submission)
    requeue_keeps_place: bool = True
    borrow_backfill: bool = True  # [assumed] a borrower whose job does not fit lets later borrowers pass
    blocked_share_holds_queue: bool = False  # [assumed] a blocked share lets the other shares go on
    reclaim_uncovered: bool = True  # [assumed] borrowing that no lender covers any more is taken back at once

    # Life cycle.
    runnable_delay_ms: Span = (1_000, 4_000)  # [assumed] SUBMITTED to RUNNABLE
    pending_ms: Span = (30_000, 240_000)  # [assumed] SCHEDULED (InProgress/Pending)
    downloading_ms: Span = (60_000, 180_000)  # [assumed] STARTING (InProgress/Downloading)
    runtime_ms: Span = (3_600_000, 3_600_000)  # training time of a job that does not say its own
    uploading_ms: Span = (20_000, 60_000)  # [assumed] still RUNNING (InProgress/Uploading)
    stop_ms: Span = (17_000, 17_000)  # SIGTERM to Stopped; the sample shows 17 s, the bound is 120 s
    notice_delay_ms: int = 3_000  # [assumed] from the end of a training job to Batch's own transition
    update_terminal_fails: bool = True  # [assumed] UpdateServiceJob on an ended job is a ClientException
    limits_replace: bool = True  # [assumed] UpdateQuotaShare capacityLimits replaces the list, else it merges

    # Retries and preemption.
    # [assumed] preemptions do not count against retryStrategy.attempts
    preemption_uses_attempts: bool = False
    preempted_in_attempts: bool = False  # [assumed] preempted attempts are only in preemptionSummary
    preemption_window: int = 10  # [assumed] length of recentPreemptedAttempts, oldest first
    # [assumed] StopTrainingJob by hand: FAILED, whatever retryStrategy says
    stopped_outside_is_retried: bool = False
    # chance that a training job ends with CapacityError instead of starting
    capacity_failure_rate: float = 0.0

    # Training.
    checkpoint_interval_ms: int = 600_000  # for jobs with CheckpointConfig that do not say their own
    saves_on_sigterm: bool = False  # AWS images often do not pass SIGTERM on (sagemaker-training-toolkit#125)

    # Events.
    optional_members: bool = True  # [assumed] state changes carry the quota-management members of Describe
    in_share_reason: str = "In-share preemption triggered by a higher priority job"  # [assumed] text
    limit_reason: str = "Cross-share preemption triggered to reclaim borrowed capacity"  # [assumed] text
    in_share_sends_events: bool = True  # [assumed] Started and Completed also for in-share preemption
    limit_sends_events: bool = True  # [assumed] the same after a lowered limit
    exhausted_sends_completed: bool = True  # [assumed] Completed with FAILED when preemption retries ran out
    # [assumed] AWS's sample has numeric strings, captures have numbers
    sagemaker_times_as_strings: bool = False

    # API.
    # SubmitServiceJob per second and account (Service quotas); None for bulk simulation
    submit_rate: int | None = 5
    snapshot_age_ms: int = 0  # [assumed] how old an answer of GetJobQueueSnapshot may be

    # CloudTrail.
    cloudtrail: bool = True  # write calls also appear as events
    cloudtrail_delay_ms: int = 4_000  # [assumed]
    # who calls, unless `Lab.acting_as` says
    principal: str = "arn:aws:sts::123456789012:assumed-role/LabUser/lab"
