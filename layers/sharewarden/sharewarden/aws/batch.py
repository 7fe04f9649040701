"""Batch over boto3. Shapes: Batch API reference, DescribeServiceJob, ListServiceJobs, ListQuotaShares."""

import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from time import sleep
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import ClientError

from sharewarden.aws.errors import asking, code, message
from sharewarden.domain.base import last_part, well_formed
from sharewarden.domain.observation import AttemptSeen, JobDescription, JobSummary, ShareDescription, Status
from sharewarden.domain.resubmission import Submission
from sharewarden.domain.stored import SECOND
from sharewarden.ports import Clock, Denied, Page, Shares, Unavailable

if TYPE_CHECKING:
    from mypy_boto3_batch import BatchClient

#: The most that ListServiceJobs gives at once.
PAGE_SIZE = 100

#: Batch documents the code (ClientException) but not the words, and uses the code for other refusals too.
#: Only words that clearly say "no such job" count: a job wrongly taken for gone would be closed.
_NO_SUCH_JOB = re.compile(
    r"(not|n't) (be )?(found|find|exist)|no such|unknown (service )?job|no (service )?job\b.* found",
    re.IGNORECASE,
)

#: SubmitServiceJob takes five calls a second of a whole account (Batch user guide, service_limits): with this
#: pause two functions at once, the most there are (template), leave one of them to people.
SUBMIT_EVERY = SECOND // 2

#: Codes that say no, and not "not now" (Batch API reference, UpdateServiceJob, TerminateServiceJob,
#: SubmitServiceJob and CommonErrors).
_REFUSALS = frozenset({"AccessDeniedException", "ClientException", "ValidationException"})

#: Members of a payload that hold no secret, and that say why AWS refuses it.
_HARMLESS = frozenset({"RoleArn", "ResourceConfig", "StoppingCondition"})
#: Characters below which a value of a payload is no secret, but a word or a number.
SHORTEST_SECRET = 6

logger = logging.getLogger(__name__)

T = TypeVar("T")
Answer = Mapping[str, Any]


class AwsBatch:
    """Batch. Times of reading are taken before the call: an answer may be newer than it says, never older."""

    def __init__(self, client: "BatchClient", clock: Clock, pause: Callable[[float], None] = sleep) -> None:
        self._client = client
        self._clock = clock
        self._pause = pause
        self._submitted_at = 0

    def describe(self, job: str) -> JobDescription | None:
        read_at = self._clock.now()
        with asking("DescribeServiceJob"):
            answer = self._described(job)
            return None if answer is None else _description(well_formed(answer), read_at)

    def jobs(self, queue: str, status: Status, token: str | None) -> Page:
        paging: Any = {"nextToken": token} if token else {}
        with asking("ListServiceJobs"):
            answer = self._client.list_service_jobs(
                jobQueue=queue, jobStatus=status, maxResults=PAGE_SIZE, **paging
            )
            rows = answer["jobSummaryList"]
        jobs = _readable(_summary, rows)
        return Page(jobs=jobs, next_token=answer.get("nextToken") or None, odd=len(rows) - len(jobs))

    def shares(self, queue: str) -> Shares:
        # The list holds all that DescribeQuotaShare tells, except tags, which nobody needs.
        with asking("ListQuotaShares"):
            pages = self._client.get_paginator("list_quota_shares").paginate(jobQueue=queue)
            rows = [row for page in pages for row in page["quotaShares"]]
        shares = _readable(_share, rows)
        return Shares(shares=shares, odd=len(rows) - len(shares))

    def environment(self, queue: str) -> dict[str, int] | None:
        # A quota-managed queue has one environment (Service quotas); what several would mean is not said.
        with asking("DescribeJobQueues"):
            queues = self._client.describe_job_queues(jobQueues=[queue])["jobQueues"]
            orders = [
                order["serviceEnvironment"] for row in queues for order in row["serviceEnvironmentOrder"]
            ]
        if len(orders) != 1:
            return None
        with asking("DescribeServiceEnvironments"):
            answer = self._client.describe_service_environments(serviceEnvironments=orders)
            rows = [row["capacityLimits"] for row in answer["serviceEnvironments"]]
            limits = {limit["capacityUnit"]: limit["maxCapacity"] for row in rows for limit in row}
        return limits if len(rows) == 1 else None

    def set_priority(self, job: str, priority: int) -> None:
        with _acting("UpdateServiceJob"):
            self._client.update_service_job(jobId=job, schedulingPriority=priority)

    def terminate(self, job: str, reason: str) -> None:
        with _acting("TerminateServiceJob"):
            self._client.terminate_service_job(jobId=job, reason=reason)

    def submission(self, job: str) -> Submission | None:
        with asking("DescribeServiceJob"):
            answer = self._described(job)
            return None if answer is None else _submission(answer)

    def named(self, queue: str, name: str) -> tuple[JobSummary, ...]:
        # A row that cannot be read may be the one that is looked for, so it makes the answer unusable.
        with asking("ListServiceJobs"):
            pages = self._client.get_paginator("list_service_jobs").paginate(
                jobQueue=queue, filters=[{"name": "JOB_NAME", "values": [name]}]
            )
            rows = [row for page in pages for row in page["jobSummaryList"]]
            return tuple(_summary(row) for row in rows if row["jobName"] == name)  # the filter ignores case

    def submit(self, submission: Submission, token: str) -> str:
        self._pace()
        try:
            with _acting("SubmitServiceJob"):
                answer = self._client.submit_service_job(**_submitted(submission), clientToken=token)
                return answer["jobArn"]
        except (Denied, Unavailable) as error:  # not its cause, either: that has AWS's own words
            raise type(error)(_without_values(str(error), submission.payload)) from None

    def _described(self, job: str) -> Answer | None:
        try:
            return self._client.describe_service_job(jobId=job)
        except ClientError as error:
            if _knows_no_such_job(error):
                return None
            raise

    def _pace(self) -> None:
        wait = self._submitted_at + SUBMIT_EVERY - self._clock.now()
        if 0 < wait <= SUBMIT_EVERY:
            self._pause(wait / SECOND)
        self._submitted_at = self._clock.now()


@contextmanager
def _acting(operation: str) -> Iterator[None]:
    """``asking``, and Denied for what says no."""
    with asking(operation):
        try:
            yield
        except ClientError as error:
            if code(error) in _REFUSALS:
                raise Denied(f"{operation}: {code(error)}: {message(error)}") from error
            raise


def _knows_no_such_job(error: ClientError) -> bool:
    return code(error) == "ClientException" and bool(_NO_SUCH_JOB.search(message(error)))


def _readable(parse: Callable[[Answer], T], rows: Iterable[Answer]) -> tuple[T, ...]:
    """The rows that can be read: one of a kind that is new to us must not hide the others."""
    read: list[T] = []
    for row in rows:
        try:
            read.append(parse(well_formed(row)))
        except (LookupError, TypeError, AttributeError, ValueError):  # pydantic's error is a ValueError
            logger.warning("cannot read a row with the members %s", sorted(row))
    return tuple(read)


def _without_values(text: str, payload: str) -> str:
    """The text without the payload's values: AWS quotes what it refuses, and that may be a secret."""
    request = _parsed(payload)
    private = [value for name, value in request.items() if name not in _HARMLESS]
    for value in sorted({payload, *_texts(private)}, key=len, reverse=True):
        for written in (value, json.dumps(value)[1:-1]):
            text = text.replace(written, "***") if len(written) >= SHORTEST_SECRET else text
    return text


def _texts(value: object) -> Iterator[str]:
    """All texts in it, names of members apart."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _description(answer: Answer, read_at: int) -> JobDescription:
    preemptions = answer.get("preemptionSummary") or {}
    return JobDescription(
        job=last_part(answer["jobArn"]),
        arn=answer["jobArn"],
        read_at=read_at,
        name=answer["jobName"],
        queue=answer["jobQueue"],
        status=answer["status"],
        created_at=answer["createdAt"],
        reason=answer.get("statusReason"),
        terminated=answer.get("isTerminated") is True,
        share=answer.get("quotaShareName"),
        priority=answer.get("schedulingPriority"),
        scheduled_at=_time(answer, "scheduledAt"),
        started_at=_time(answer, "startedAt"),
        stopped_at=_time(answer, "stoppedAt"),
        attempt=_training_job(answer.get("latestAttempt") or {}),
        attempts=(
            *_attempts(answer.get("attempts") or (), preempted=False),
            *_attempts(preemptions.get("recentPreemptedAttempts") or (), preempted=True),
        ),
        preempted_count=preemptions.get("preemptedAttemptCount") or 0,
        preemption_retries=(answer.get("preemptionConfiguration") or {}).get(
            "preemptionRetriesBeforeTermination"
        ),
        tags=tuple(sorted((answer.get("tags") or {}).items())),
        **_requested(answer.get("serviceRequestPayload"), answer.get("timeoutConfig") or {}),
    )


def _submission(answer: Answer) -> Submission:
    """The members of SubmitServiceJob, each as it is: the payload goes on byte for byte."""
    return Submission(
        name=answer["jobName"],
        queue=answer["jobQueue"],
        kind=answer["serviceJobType"],
        payload=answer["serviceRequestPayload"],
        share=answer.get("quotaShareName"),
        priority=answer.get("schedulingPriority"),
        retry=answer.get("retryStrategy"),
        time_limit=answer.get("timeoutConfig"),
        preemption=answer.get("preemptionConfiguration"),
        tags=tuple(sorted((answer.get("tags") or {}).items())),
    )


def _submitted(submission: Submission) -> dict[str, Any]:
    """The request; what the old job had not is left out."""
    members = {
        "jobName": submission.name,
        "jobQueue": submission.queue,
        "serviceJobType": submission.kind,
        "serviceRequestPayload": submission.payload,
        "quotaShareName": submission.share,
        "schedulingPriority": submission.priority,
        "retryStrategy": submission.retry,
        "timeoutConfig": submission.time_limit,
        "preemptionConfiguration": submission.preemption,
        "tags": dict(submission.tags),
    }
    return {name: value for name, value in members.items() if value is not None}


def _summary(row: Answer) -> JobSummary:
    return JobSummary(
        job=last_part(row["jobArn"]),
        arn=row["jobArn"],
        name=row["jobName"],
        status=row["status"],
        created_at=row["createdAt"],
        share=row.get("quotaShareName"),
        attempt=_training_job(row.get("latestAttempt") or {}),
    )


def _share(row: Answer) -> ShareDescription:
    sharing = row["resourceSharingConfiguration"]
    borrows = sharing["strategy"] == "LEND_AND_BORROW"
    preemption = row.get("preemptionConfiguration") or {}
    return ShareDescription(
        arn=row["quotaShareArn"],
        name=row["quotaShareName"],
        queue=row["jobQueueArn"],
        limits=tuple(
            sorted((limit["capacityUnit"], limit["maxCapacity"]) for limit in row["capacityLimits"])
        ),
        strategy=sharing["strategy"],
        borrow_limit=sharing.get("borrowLimit", -1) if borrows else None,
        in_share_preemption=preemption.get("inSharePreemption") == "ENABLED",
        enabled=row.get("state") != "DISABLED",
    )


def _time(answer: Answer, name: str) -> int | None:
    """The model calls ``startedAt`` required, which no waiting job can fulfil: 0 counts as not told."""
    return answer.get(name) or None


def _training_job(attempt: Answer) -> str | None:
    return (attempt.get("serviceResourceId") or {}).get("value")


def _attempts(rows: Iterable[Answer], *, preempted: bool) -> tuple[AttemptSeen, ...]:
    named = ((row, _training_job(row)) for row in rows)
    return tuple(
        AttemptSeen(
            training_job=training_job,
            started_at=_time(row, "startedAt"),
            stopped_at=_time(row, "stoppedAt"),
            reason=row.get("statusReason"),
            preempted=preempted,
        )
        for row, training_job in named
        if training_job
    )


def _requested(payload: str | None, time_limit: Answer) -> dict[str, Any]:
    """What the job asks of SageMaker. Batch passes the payload on unchecked, so nothing in it is certain."""
    request = _parsed(payload)
    instance_type, count = _instances(_part(request, "ResourceConfig"))
    return {
        "instance_type": instance_type,
        "instance_count": count,
        "checkpoint_uri": _text(_part(request, "CheckpointConfig").get("S3Uri")),
        "role": _text(request.get("RoleArn")),
        "max_runtime": _max_runtime(request, time_limit),
    }


def _instances(config: Answer) -> tuple[str | None, int | None]:
    """Instance type and count; a job of several types has no one type, so it counts as not known."""
    groups = config.get("InstanceGroups") or [config]
    if not isinstance(groups, list) or not all(isinstance(group, dict) for group in groups):
        return None, None
    kinds = {_text(group.get("InstanceType")) for group in groups}
    counts = [_count(group.get("InstanceCount")) for group in groups]
    if len(kinds) != 1:
        return None, None
    known = [count for count in counts if count is not None]
    return kinds.pop(), sum(known) if len(known) == len(counts) else None


def _max_runtime(request: Answer, time_limit: Answer) -> int | None:
    """Batch ends an attempt after the one time, SageMaker the training job after the other."""
    seconds = (
        _count(time_limit.get("attemptDurationSeconds")),
        _count(_part(request, "StoppingCondition").get("MaxRuntimeInSeconds")),
    )
    return min((limit * SECOND for limit in seconds if limit), default=None)


def _parsed(payload: str | None) -> Answer:
    try:
        request = well_formed(json.loads(payload or "{}"))
    except (ValueError, RecursionError):
        return {}
    return request if isinstance(request, dict) else {}


def _part(request: Answer, name: str) -> Answer:
    part = request.get(name)
    return part if isinstance(part, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
