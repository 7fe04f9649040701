"""Checks of the pool and of what Sharewarden knows about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from botocore.exceptions import ClientError
from pydantic import ValidationError
from sharewarden.aws.errors import asking, code
from sharewarden.aws.policies import DOES_NOT_LOAD, KEY
from sharewarden.domain.base import last_part
from sharewarden.domain.durations import format_duration
from sharewarden.domain.notice import Notice, settled_under
from sharewarden.domain.policy import Policy
from sharewarden.domain.record import JobRecord
from sharewarden.domain.stored import DAY, MINUTE, SECOND
from sharewarden.domain.sweeping import SweepState

from .findings import Seen
from .site import NotHere, Site

#: Open records that a check reads at most, and checkpoint folders that it tries.
SAMPLE, FOLDERS = 200, 5
#: Three sweeps of five minutes.
LATE = 15 * MINUTE


def queues(site: Site) -> Iterator[Seen]:
    """Each queue is there, for SageMaker training jobs, with quota management."""
    arns = sorted(site.runtime.queues)
    with asking("DescribeJobQueues"):
        answer = site.client("batch").describe_job_queues(jobQueues=arns)
        found = {row["jobQueueArn"]: row for row in answer["jobQueues"]}
    for arn in arns:
        fault = _queue_fault(site, found.get(arn, {}))
        name = last_part(arn)
        yield ("problem", f"{name} {fault}", "correct QueueArns, or the queue") if fault else ("ok", name)


def _queue_fault(site: Site, queue: dict[str, str]) -> str | None:
    if not queue:
        return "does not exist"
    if queue.get("jobQueueType") != "SAGEMAKER_TRAINING":
        return f"is of type {queue.get('jobQueueType')}, not SAGEMAKER_TRAINING"
    if (queue["state"], queue.get("status")) != ("ENABLED", "VALID"):
        return f"is {queue['state']} and {queue.get('status')}"
    policy = queue.get("schedulingPolicyArn")
    if policy is None:
        return "has no scheduling policy, so no quota shares"
    with asking("DescribeSchedulingPolicies"):
        found = site.client("batch").describe_scheduling_policies(arns=[policy])["schedulingPolicies"]
    return None if found and "quotaSharePolicy" in found[0] else "has no quota management"


def shares(site: Site) -> Iterator[Seen]:
    """Each quota share is in force, and the policy names no other."""
    policy = site.runtime.policies.current()
    for arn in sorted(site.runtime.queues):
        with asking("ListQuotaShares"):
            pages = site.client("batch").get_paginator("list_quota_shares").paginate(jobQueue=arn)
            rows = [row for page in pages for row in page["quotaShares"]]
        queue, names = last_part(arn), {row["quotaShareName"] for row in rows}
        for row in rows:
            if (row["state"], row["status"]) != ("ENABLED", "VALID"):
                yield (
                    "warning",
                    f"{row['quotaShareName']} is {row['state']} and {row['status']}",
                    "look in Batch",
                )
        if unknown := sorted(policy.queue(arn).shares.keys() - names):
            yield "warning", f"the policy names {', '.join(unknown)}, not in {queue}", "correct the policy"
        yield ("ok", f"{len(rows)} in {queue}") if rows else ("problem", f"{queue} has none", "make some")


def policy(site: Site) -> Iterator[Seen]:
    """A policy is in force, and says what each queue may do."""
    with asking("GetItem"):
        table = site.variables["STATE_TABLE"]
        row = site.client("dynamodb").get_item(TableName=table, Key=KEY, ConsistentRead=True).get("Item")
    if row is None:
        yield "warning", "none was pushed: every queue is in shadow", "docs/first-hour.md, push a policy"
        return
    try:
        found = Policy.model_validate_json(row.get("doc", {}).get("S", ""))
    except DOES_NOT_LOAD as error:
        told = f"it does not load: {_fault(error)}"
        yield "problem", told, "push one that does; the last good one stays in force"
        return
    if found.paused:
        yield "warning", f"{found.hash} is paused: nothing acts", "push it with paused: false"
    known = {last_part(arn) for arn in site.runtime.queues}
    if strange := sorted(found.queues.keys() - known):
        yield "warning", f"{found.hash} names {', '.join(strange)}, not in QueueArns", "correct one of them"
    for name in sorted(known):
        rules = found.queue(name)
        yield "ok", f"{found.hash}: {name} mode {rules.mode}, bumps {rules.bumps}"


def _fault(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the document'}: {first['msg']}"


def priority_cap(site: Site) -> Iterator[Seen]:
    """No band of the policy reaches above what IAM lets apply set."""
    if site.stack is None:
        raise NotHere("the local stack has no IAM")
    cap, found = int(site.parameters["MaxPriority"]), site.runtime.policies.current()
    for arn in sorted(site.runtime.queues):
        bands = found.queue(arn).bands
        highest = max(bands.human.highest, bands.automatic.highest)
        name = last_part(arn)
        if highest > cap:
            fix = "lower the band, or deploy with a higher MaxPriority"
            yield "problem", f"{name}: bands reach {highest}, MaxPriority is {cap}", fix
        else:
            yield "ok", f"{name}: bands reach {highest}, MaxPriority is {cap}"


def sweep(site: Site) -> Iterator[Seen]:
    """The sweep has come to its end lately."""
    state, now = site.runtime.ledger.load(SweepState, "all"), site.runtime.clock.now()
    if state is None and _is_new(site, now):
        yield "cannot tell", "none has run yet", "wait five minutes"
    elif state is None:
        yield "problem", "none has ever run", "docs/operations.md, SweepIdleAlarm"
    elif not state.finished_at:
        yield "cannot tell", "none has finished since this version was deployed", "wait five minutes"
    elif now - state.finished_at > LATE:
        age = format_duration(now - state.finished_at)
        yield "problem", f"the last one finished {age} ago", "docs/operations.md, SweepIdleAlarm"
    else:
        yield "ok", f"the last one finished {format_duration(now - state.finished_at)} ago"


def _is_new(site: Site, now: int) -> bool:
    """The local stack keeps nothing, so it is never old."""
    return site.stack is None or now - int(site.stack["CreationTime"].timestamp() * SECOND) < LATE


def events(site: Site) -> Iterator[Seen]:
    """Events arrive: only they write into the timeline of a job."""
    now, jobs = site.runtime.clock.now(), _open_jobs(site)
    silent = [job.name for job in jobs if _moved_in_silence(job, now)]
    newest = max((job.timeline[-1].at for job in jobs if job.timeline), default=0)
    if silent:
        told = f"{len(silent)} jobs of the last day moved on and no event told of it, such as {silent[0]}"
        yield "warning", told, "docs/operations.md, SilenceAlarm"
    elif now - newest <= DAY:
        yield "ok", f"the newest one came {format_duration(max(0, now - newest))} ago"
    else:
        yield "cannot tell", "no open job has had an event within a day: there may have been none to send"


def _moved_in_silence(job: JobRecord, now: int) -> bool:
    """A job of our time, long past its first state, of which no event has told."""
    read = job.snapshot
    young = 2 * LATE < now - job.created_at < DAY
    return young and not job.timeline and read is not None and read.status != "SUBMITTED"


def notices(site: Site) -> Iterator[Seen]:
    """People hear what they are to be told of."""
    runtime, now = site.runtime, site.runtime.clock.now()
    queues = sorted(runtime.queues | runtime.classic_queues)
    places = [place for arn in queues for place in (arn, settled_under(arn, told=False))]
    found = [one for place in places for one in runtime.ledger.open_items(Notice, place)]
    missed = Counter(one.state for one in found if not one.is_open or now - one.at > LATE)
    if not missed:
        yield "ok", f"nobody missed one, {len(found)} under way"
    elif missed.keys() == {"untold"}:
        told = f"{missed['untold']} went to nobody: no channel is set up"
        yield "warning", told, "deploy with NoticeTopicArn or WebhookSecretArn"
    else:
        told = ", ".join(f"{count} {state}" for state, count in sorted(missed.items()))
        yield "warning", told, "sharewarden notices list tells why"


def checkpoints(site: Site) -> Iterator[Seen]:
    """The folders that open jobs save to can be read, by whoever asks."""
    jobs = _open_jobs(site)
    if not jobs:
        yield "cannot tell", "no job is open"
        return
    without = [job.name for job in jobs if job.checkpoint_uri is None and not job.classic]
    if without:
        told = f"{len(without)} open jobs, such as {without[0]}, have no CheckpointConfig"
        yield "warning", told, "a preempted one starts from zero: submit it with CheckpointConfig"
    for folder in sorted({job.checkpoint_uri for job in jobs if job.checkpoint_uri})[:FOLDERS]:
        yield _folder(site, folder)


def _folder(site: Site, folder: str) -> Seen:
    bucket, _, prefix = folder.removeprefix("s3://").partition("/")
    with asking("ListObjectsV2"):
        try:
            found = site.client("s3").list_objects_v2(Bucket=bucket, Prefix=prefix, MaxKeys=1)
        except ClientError as error:
            if code(error) == "NoSuchBucket" and site.stack is None:
                return "cannot tell", f"{folder}: the lab makes the bucket at the first save"
            if code(error) == "NoSuchBucket":
                return "problem", f"{folder}: no such bucket, nothing is saved", "make the bucket"
            if code(error) == "AccessDenied":
                return "warning", f"{folder}: you may not list it", "ask for s3:ListBucket"
            raise
    return "ok", f"{folder}: {'can be read' if found.get('KeyCount') else 'is empty so far'}"


def _open_jobs(site: Site) -> list[JobRecord]:
    """Some of the jobs that are not settled yet."""
    ledger = site.runtime.ledger
    rows = (job for arn in sorted(site.runtime.queues) for job in ledger.open_items(JobRecord, arn))
    return [job for job in islice(rows, SAMPLE) if job.end is None]
