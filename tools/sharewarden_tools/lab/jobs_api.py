"""Operations on service jobs, the queue snapshot, and tags."""

from __future__ import annotations

import itertools
import json
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping

from . import checks
from .book import Demand, PoolJob
from .errors import client_error, too_many_requests
from .lifecycle import Lifecycle
from .model import STATUSES, TERMINAL, Job, JobQueue, Tags
from .registry import Registry
from .views import job_detail, job_summary, present
from .world import Json, World

MAX_PAYLOAD = 10 * 1024  # bytes of serviceRequestPayload (service_limits.html)
MAX_BULK = 50
MAX_PRIORITY = 9999
FILTERS = ("JOB_NAME", "BEFORE_CREATED_AT", "AFTER_CREATED_AT", "SHARE_IDENTIFIER", "QUOTA_SHARE_NAME")
FRONT = 100  # jobs in frontOfQueue


class JobsApi:
    def __init__(self, world: World, registry: Registry, lifecycle: Lifecycle) -> None:
        self._world = world
        self._registry = registry
        self._state = registry.state
        self._lifecycle = lifecycle
        self._submits: deque[int] = deque()
        self._serial = 0

    def operations(self) -> dict[str, Callable[[Json], Json]]:
        return {
            "SubmitServiceJob": self.submit,
            "DescribeServiceJob": self.describe,
            "ListServiceJobs": self.list_jobs,
            "UpdateServiceJob": self.update,
            "TerminateServiceJob": self.terminate,
            "TerminateServiceJobs": self.terminate_all,
            "GetJobQueueSnapshot": self.snapshot,
            "TagResource": self.tag,
            "UntagResource": self.untag,
            "ListTagsForResource": self.list_tags,
        }

    # Submit.

    def submit(self, params: Json) -> Json:
        """API_SubmitServiceJob; TooManyRequestsException above 5 calls a second."""
        self._keep_rate()
        checks.require(params, "jobName", "jobQueue", "serviceRequestPayload", "serviceJobType")
        checks.require(params, "quotaShareName")
        queue = self._registry.queue(params)
        self._check_accepts(queue, params["quotaShareName"])
        job = self._new_job(queue, params)
        self._use_token(params.get("clientToken"))
        self._lifecycle.submit(job)
        return {"jobArn": job.arn, "jobName": job.name, "jobId": job.id}

    def _keep_rate(self) -> None:
        rate, now = self._world.options.submit_rate, self._world.now()
        if rate is None:
            return
        while self._submits and self._submits[0] <= now - 1000:
            self._submits.popleft()
        if len(self._submits) >= rate:
            raise too_many_requests()
        self._submits.append(now)

    @staticmethod
    def _check_accepts(queue: JobQueue, share_name: str) -> None:
        share = queue.shares.get(share_name)
        if queue.state != "ENABLED" or queue.status != "VALID":
            raise client_error(f"Job queue {queue.name} is not enabled.")
        if share is None:
            raise client_error(f"Quota share {share_name} does not exist in job queue {queue.name}.")
        if share.state != "ENABLED" or share.status != "VALID":
            raise client_error(f"Quota share {share_name} is not enabled.")

    def _use_token(self, token: str | None) -> None:
        """A repeated token is rejected, without the id of the first job (API_SubmitServiceJob)."""
        if token is None:
            return
        if not 1 <= len(token) <= 64:
            raise client_error("clientToken must have 1 to 64 characters.")
        if token in self._state.tokens:
            raise client_error("A request with the same clientToken was already received.")
        self._state.tokens.add(token)

    def _new_job(self, queue: JobQueue, params: Json) -> Job:
        checks.one_of(params["serviceJobType"], ["SAGEMAKER_TRAINING"], "serviceJobType")
        name = checks.name(params["jobName"], "jobName")
        priority = checks.within(params.get("schedulingPriority", 0), 0, MAX_PRIORITY, "schedulingPriority")
        payload = _payload(params["serviceRequestPayload"])
        demand, tags = _demand(payload), checks.tags(params.get("tags"))
        retry, preemption, timeout = _retry(params), _preemption(params), _timeout(params)
        job_id = self._world.uuid("job")
        self._serial += 1
        return Job(
            id=job_id,
            arn=self._world.arn("batch", f"service-job/{job_id}"),
            name=name,
            queue_arn=queue.arn,
            payload=payload,
            payload_text=params["serviceRequestPayload"],
            slot=PoolJob(job_id, params["quotaShareName"], demand, priority, next(self._state.orders)),
            created_at=self._world.now(),
            serial=self._serial,
            tags=tags,
            retry=retry,
            preemption=preemption,
            timeout=timeout,
        )

    # Read.

    def describe(self, params: Json) -> Json:
        return job_detail(self._job(params))

    def list_jobs(self, params: Json) -> Json:
        """Newest first; without a status only RUNNING jobs (API_ListServiceJobs)."""
        queue = self._registry.queue(params)
        found = ((-job.serial, job) for job in self._matching(queue, params))
        shown, token = checks.page(sorted(found, key=lambda entry: entry[0]), params)
        return present({"jobSummaryList": [job_summary(job) for job in shown], "nextToken": token})

    def _matching(self, queue: JobQueue, params: Json) -> Iterable[Job]:
        status = checks.one_of(params.get("jobStatus") or "RUNNING", STATUSES, "jobStatus")
        filters = params.get("filters") or []
        if len(filters) > 1:
            raise client_error("Only one filter can be used at a time.")
        if not filters:
            return queue.by_status[status].values()
        checks.require(filters[0], "name", "values")
        name, values = checks.one_of(filters[0]["name"], FILTERS, "filter name"), filters[0]["values"]
        if name in ("SHARE_IDENTIFIER", "QUOTA_SHARE_NAME"):
            shares = set(values) if name == "QUOTA_SHARE_NAME" else set()
            return (job for job in queue.by_status[status].values() if job.share in shares)
        return (job for job in queue.jobs if _passes(job, name, values[0]))

    def snapshot(self, params: Json) -> Json:
        """GetJobQueueSnapshot; use counts for the share that submitted the job."""
        queue, now = self._registry.queue(params), self._world.now()
        age = self._world.options.snapshot_age_ms
        if queue.snapshot is None or now - queue.snapshot[0] >= age:
            queue.snapshot = (now, self._take_snapshot(queue, now))
        return queue.snapshot[1]

    def _take_snapshot(self, queue: JobQueue, now: int) -> Json:
        pool = queue.pool
        front = itertools.islice(pool.in_dispatch_order(), FRONT)
        first = {name: [job for _, job in share.waiting[:1]] for name, share in pool.shares.items()}
        quotas = {name: [self._place(job) for job in jobs] for name, jobs in first.items()}
        return {
            "frontOfQueue": {"jobs": [self._place(job) for job in front], "lastUpdatedAt": now},
            "frontOfQuotaShares": {"quotaShares": quotas, "lastUpdatedAt": now},
            "queueUtilization": {
                "totalCapacityUsage": _usage({name: unit.total for name, unit in pool.now.units.items()}),
                "quotaShareUtilization": {"topCapacityUtilization": _use_by_share(queue)},
                "lastUpdatedAt": now,
            },
        }

    def _place(self, slot: PoolJob) -> Json:
        job = self._state.jobs[slot.id]
        return {"jobArn": job.arn, "earliestTimeAtPosition": job.runnable_at}

    # Change.

    def update(self, params: Json) -> Json:
        """Absolute value, at any time before the job ended; no reason, no compare (API_UpdateServiceJob)."""
        checks.require(params, "jobId", "schedulingPriority")
        priority = checks.within(params["schedulingPriority"], 0, MAX_PRIORITY, "schedulingPriority")
        job = self._job(params)
        if job.status not in TERMINAL:
            self._lifecycle.reprioritise(job, priority)
        elif self._world.options.update_terminal_fails:
            raise client_error(f"Job {job.id} has already ended.")
        return {"jobArn": job.arn, "jobName": job.name, "jobId": job.id}

    def terminate(self, params: Json) -> Json:
        checks.require(params, "jobId", "reason")
        self._lifecycle.terminate(self._job(params), params["reason"])
        return {}

    def terminate_all(self, params: Json) -> Json:
        """Up to 50 ids; those that do not exist count as done (API_TerminateServiceJobs)."""
        checks.require(params, "jobs", "reason")
        if len(params["jobs"]) > MAX_BULK:
            raise client_error(f"At most {MAX_BULK} jobs can be terminated in one request.")
        for name in params["jobs"]:
            if job := self._state.job(name):
                self._lifecycle.terminate(job, params["reason"])
        return {"successful": list(params["jobs"]), "errors": []}

    def _job(self, params: Json) -> Job:
        checks.require(params, "jobId")
        job = self._state.job(params["jobId"])
        if job is None:
            raise client_error(f"Job {params['jobId']} does not exist.")
        return job

    # Tags.

    def tag(self, params: Json) -> Json:
        checks.require(params, "resourceArn", "tags")
        tags = self._tags_of(params["resourceArn"])
        tags.update(checks.tags({**tags, **params["tags"]}))
        return {}

    def untag(self, params: Json) -> Json:
        checks.require(params, "resourceArn", "tagKeys")
        tags = self._tags_of(params["resourceArn"])
        for key in params["tagKeys"]:
            tags.pop(key, None)
        return {}

    def list_tags(self, params: Json) -> Json:
        checks.require(params, "resourceArn")
        return {"tags": dict(self._tags_of(params["resourceArn"]))}

    def _tags_of(self, arn: str) -> Tags:
        state = self._state
        job = state.job(arn) if ":service-job/" in arn else None
        kinds = (state.policies, state.environments, state.queues, state.shares)
        found = job or next((kind[arn] for kind in kinds if arn in kind), None)
        if found is None:
            raise client_error(f"Resource {arn} does not exist.")
        return found.tags


def _passes(job: Job, name: str, value: str) -> bool:
    if name == "JOB_NAME":
        wanted, actual = value.lower(), job.name.lower()
        return actual.startswith(wanted[:-1]) if wanted.endswith("*") else actual == wanted
    if not (value.isdecimal() and len(value) < 20):
        raise client_error(f"{name} takes milliseconds since the epoch.")
    return job.created_at < int(value) if name == "BEFORE_CREATED_AT" else job.created_at > int(value)


def _usage(totals: Mapping[str, int]) -> list[Json]:
    return [{"capacityUnit": unit, "quantity": float(n)} for unit, n in sorted(totals.items()) if n]


def _use_by_share(queue: JobQueue) -> list[Json]:
    """Shares that use something, the largest use first."""
    units = queue.pool.now.units
    use = {share: {name: unit.used[share] for name, unit in units.items()} for share in queue.shares}
    busiest = sorted((s for s in use if any(use[s].values())), key=lambda s: (-sum(use[s].values()), s))
    return [{"quotaShareName": share, "capacityUsage": _usage(use[share])} for share in busiest]


def _payload(text: str) -> Json:
    """Batch does not check the request it passes on, but it needs JSON and instances to count."""
    if len(text.encode(errors="surrogatepass")) > MAX_PAYLOAD:
        raise client_error(f"serviceRequestPayload must not be larger than {MAX_PAYLOAD} bytes.")
    try:
        payload = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise client_error("serviceRequestPayload is not valid JSON.") from None
    if not isinstance(payload, dict):
        raise client_error("serviceRequestPayload must be a JSON object.")
    return payload


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is JavaScript, not JSON")


def _demand(payload: Json) -> Demand:
    """Instances per type from ResourceConfig, also of heterogeneous clusters.

    [assumed] The only part that is checked at submission: without it no share could be charged.
    """
    demand: Counter[str] = Counter()
    for group in _groups(payload.get("ResourceConfig")):
        unit, count = _instances(group)
        demand[unit] += count
    return tuple(sorted(demand.items()))


def _groups(config: object) -> list[object]:
    match config:
        case {"InstanceGroups": [_, *_] as groups}:
            return list(groups)
    return [config]


def _instances(group: object) -> tuple[str, int]:
    match group:
        case {"InstanceType": str(unit), "InstanceCount": int(count)}:
            if unit and 0 < count < 2**31 and count is not True:
                return unit, count
    raise client_error("serviceRequestPayload needs ResourceConfig with InstanceType and InstanceCount.")


def _retry(params: Json) -> Json | None:
    strategy = params.get("retryStrategy")
    if strategy:
        checks.require(strategy, "attempts")
        checks.within(strategy["attempts"], 1, 10, "attempts")
        _check_exit_rules(strategy.get("evaluateOnExit") or [])
    return strategy


def _check_exit_rules(rules: list[Json]) -> None:
    if len(rules) > 5:
        raise client_error("evaluateOnExit takes at most 5 rules.")
    for rule in rules:
        checks.one_of(str(rule.get("action", "")).upper(), ["RETRY", "EXIT"], "action")
        if len(rule.get("onStatusReason", "")) > 512:
            raise client_error("onStatusReason takes at most 512 characters.")


def _preemption(params: Json) -> Json | None:
    configuration = params.get("preemptionConfiguration")
    retries = (configuration or {}).get("preemptionRetriesBeforeTermination")
    if retries is not None:
        checks.within(retries, 0, 2**31 - 1, "preemptionRetriesBeforeTermination")
    return configuration


def _timeout(params: Json) -> Json | None:
    configuration = params.get("timeoutConfig")
    seconds = (configuration or {}).get("attemptDurationSeconds")
    if seconds is not None:
        checks.within(seconds, 60, 2**31 - 1, "attemptDurationSeconds")
    return configuration
