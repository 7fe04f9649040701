"""One job, its share, and the events about them, as short calls."""

from __future__ import annotations

from sharewarden.domain.observation import JobDescription, ShareDescription, Status
from sharewarden_tools.lab.world import iso_seconds

from tests.simulation.world import MINUTE, NOW, QUEUE, Json

HOUR = 60 * MINUTE
JOB = "job-1"
ARN = f"arn:aws:batch:us-east-1:123456789012:service-job/{JOB}"
SHARE = f"{QUEUE}/quota-share/background"
FIRST, SECOND = (f"arn:aws:sagemaker:us-east-1:123456789012:training-job/AWSBatch{n}" for n in "12")


def described(**update: object) -> JobDescription:
    known = JobDescription(
        job=JOB,
        arn=ARN,
        read_at=0,
        name="pretrain",
        queue=QUEUE,
        status="RUNNABLE",
        created_at=NOW,
        share="background",
        priority=200,
        tags=(("team", "research"),),
        instance_type="ml.g5.xlarge",
        instance_count=2,
    )
    return known.model_copy(update=update)


def share(limit: int) -> ShareDescription:
    return ShareDescription(
        arn=SHARE, name="background", queue=QUEUE, limits=(("ml.g5.xlarge", limit),), strategy="LEND"
    )


def event(kind: str, detail: Json, at: int, source: str = "aws.batch") -> Json:
    return {
        "version": "0",
        "id": f"{kind}-{at}",
        "detail-type": kind,
        "source": source,
        "account": "123456789012",
        "time": iso_seconds(at),
        "region": "us-east-1",
        "resources": [],
        "detail": detail,
    }


def state(status: Status, at: int, **more: object) -> Json:
    detail = {"jobArn": ARN, "jobName": "pretrain", "jobQueue": QUEUE, "status": status, "createdAt": NOW}
    return event("Batch Service Job State Change", detail | more, at)


def api_call(name: str, request: Json, at: int) -> Json:
    detail = {
        "eventID": f"{name}-{at}",
        "eventSource": "batch.amazonaws.com",
        "eventName": name,
        "eventTime": iso_seconds(at),
        "readOnly": False,
        "userIdentity": {"arn": "arn:aws:iam::123456789012:user/alice"},
        "requestParameters": request,
    }
    return event("AWS API Call via CloudTrail", detail, at)


def attempt_row(training_job: str) -> Json:
    return {"serviceResourceId": {"name": "TrainingJobArn", "value": training_job}}
