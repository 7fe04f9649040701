"""A job of ``MemoryBatch``, as its list shows it, as it was submitted, and as it begins."""

from sharewarden.domain.observation import JobDescription, JobSummary
from sharewarden.domain.resubmission import Submission


def submission_of(job: JobDescription, payload: str) -> Submission:
    retries = job.preemption_retries
    return Submission(
        name=job.name,
        queue=job.queue,
        kind="SAGEMAKER_TRAINING",
        payload=payload,
        share=job.share,
        priority=job.priority,
        preemption=None if retries is None else {"preemptionRetriesBeforeTermination": retries},
        tags=job.tags,
    )


def job_of(submission: Submission, job: str, now: int) -> JobDescription:
    return JobDescription(
        job=job,
        arn=f"{submission.queue.partition('job-queue/')[0]}service-job/{job}",
        read_at=now,
        name=submission.name,
        queue=submission.queue,
        status="SUBMITTED",
        created_at=now,
        share=submission.share,
        priority=submission.priority,
        preemption_retries=(submission.preemption or {}).get("preemptionRetriesBeforeTermination"),
        tags=submission.tags,
    )


def summary_of(job: JobDescription) -> JobSummary:
    return JobSummary(
        job=job.job,
        arn=job.arn,
        name=job.name,
        status=job.status,
        created_at=job.created_at,
        share=job.share,
        attempt=job.attempt,
    )
