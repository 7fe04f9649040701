"""The events that Batch sends, as the user guide shows them."""

from __future__ import annotations

from dataclasses import dataclass

from .model import Job
from .views import job_event, preemption_summary
from .world import Json, World, iso_seconds


def state_change(world: World, job: Job) -> None:
    """Each transition after the submission (service-job-events.html)."""
    detail = job_event(job, optional_members=world.options.optional_members)
    world.emit("aws.batch", "Batch Service Job State Change", [job.arn], detail)


def preemption_started(world: World, job: Job, reason: str) -> None:
    """No share, queue, attempt or preemptor is named (batch-service-job-preemption-events.html)."""
    detail = {
        "statusReason": f"PREEMPTION_IN_PROGRESS: {reason}",
        "preemptedJobArn": job.arn,
        "status": job.status,
    }
    world.emit("aws.batch", "Batch Service Job Preemption Started", [job.arn], detail)


def preemption_completed(world: World, job: Job) -> None:
    detail = {
        "preemptedJobArn": job.arn,
        "preemptionSummary": preemption_summary(job),
        "status": job.status,
    }
    world.emit("aws.batch", "Batch Service Job Preemption Completed", [job.arn], detail)


def queue_blocked(world: World, job: Job) -> None:
    """Resources name the job, not the queue (batch-service-job-queue-blocked-events.html)."""
    detail = job_event(job, optional_members=world.options.optional_members)
    world.emit("aws.batch", "Batch Service Job Queue Blocked", [job.arn], detail)


@dataclass(frozen=True, slots=True)
class ApiCall:
    """A write call and what became of it; `error` is code and text."""

    name: str
    principal: str
    request: Json
    response: Json | None
    error: tuple[str, str] | None


def api_call(world: World, call: ApiCall) -> None:
    """One write call as CloudTrail reports it, some seconds later (logging-using-cloudtrail.html)."""
    detail = _call_detail(world, call)
    world.after(
        world.options.cloudtrail_delay_ms,
        lambda: world.emit("aws.batch", "AWS API Call via CloudTrail", [], detail),
    )


def _call_detail(world: World, call: ApiCall) -> Json:
    failure = {"errorCode": call.error[0], "errorMessage": call.error[1]} if call.error else {}
    return {
        "eventVersion": "1.11",
        "userIdentity": identity(world, call.principal),
        "eventTime": iso_seconds(world.now()),
        "eventSource": "batch.amazonaws.com",
        "eventName": call.name,
        "awsRegion": world.region,
        "sourceIPAddress": "127.0.0.1",
        "userAgent": "sharewarden-lab",
        "requestParameters": {k: v for k, v in call.request.items() if k != "serviceRequestPayload"},
        "responseElements": call.response or None,
        "requestID": world.uuid("request"),
        "eventID": world.uuid("call"),
        "readOnly": False,
        "eventType": "AwsApiCall",
        "managementEvent": True,
        "recipientAccountId": world.account,
        "eventCategory": "Management",
        **failure,
    }


def identity(world: World, principal: str) -> Json:
    """userIdentity of an assumed role, or of an IAM user; a bare name is taken for a user's."""
    if not principal.startswith("arn:"):
        principal = f"arn:aws:iam::{world.account}:user/{principal}"
    kind, _, name = principal.rsplit(":", 1)[-1].partition("/")
    if kind != "assumed-role":
        user = name.rsplit("/", 1)[-1]
        return {"type": "IAMUser", "arn": principal, "accountId": world.account, "userName": user}
    role, _, session = name.partition("/")
    issuer = {
        "type": "Role",
        "principalId": "AROAEXAMPLEID0000001",
        "arn": f"arn:aws:iam::{world.account}:role/{role}",
        "accountId": world.account,
        "userName": role,
    }
    return {
        "type": "AssumedRole",
        "principalId": f"AROAEXAMPLEID0000001:{session}",
        "arn": principal,
        "accountId": world.account,
        "sessionContext": {"sessionIssuer": issuer},
    }
