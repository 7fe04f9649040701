"""Operations on scheduling policies, service environments, job queues and quota shares.

Only what quota management needs is here: queues of type SAGEMAKER_TRAINING with one service environment and
a quota-share policy (create-quota-management-resources.html). Configuration is VALID as soon as it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from . import checks
from .errors import client_error
from .lifecycle import Lifecycle
from .model import (
    JobQueue,
    QuotaShare,
    SchedulingPolicy,
    ServiceEnvironment,
    State,
    limits_by_unit,
)
from .pool import UNLIMITED, Pool
from .views import present
from .world import Json, World

R = TypeVar("R")
MAX_SHARES = 20  # per queue (quota-shares.html)
MAX_ENVIRONMENTS = MAX_QUEUES = 50  # per account and Region (service_limits.html)
STATES = ("ENABLED", "DISABLED")
STRATEGIES = ("RESERVE", "LEND", "LEND_AND_BORROW")
LIMIT_REASONS = (
    "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY",
    "MISCONFIGURATION:SERVICE_ENVIRONMENT_MAX_RESOURCE",
    "MISCONFIGURATION:QUOTA_MANAGEMENT_LIMIT_EXCEEDED",
)


class PoolsApi:
    def __init__(self, world: World, state: State, lifecycle: Lifecycle) -> None:
        self._world = world
        self._state = state
        self._lifecycle = lifecycle

    def operations(self) -> dict[str, Callable[[Json], Json]]:
        return {
            "CreateSchedulingPolicy": self.create_scheduling_policy,
            "DescribeSchedulingPolicies": self.describe_scheduling_policies,
            "UpdateSchedulingPolicy": self.update_scheduling_policy,
            "DeleteSchedulingPolicy": self.delete_scheduling_policy,
            "CreateServiceEnvironment": self.create_service_environment,
            "DescribeServiceEnvironments": self.describe_service_environments,
            "UpdateServiceEnvironment": self.update_service_environment,
            "DeleteServiceEnvironment": self.delete_service_environment,
            "CreateJobQueue": self.create_job_queue,
            "DescribeJobQueues": self.describe_job_queues,
            "UpdateJobQueue": self.update_job_queue,
            "DeleteJobQueue": self.delete_job_queue,
            "CreateQuotaShare": self.create_quota_share,
            "DescribeQuotaShare": self.describe_quota_share,
            "UpdateQuotaShare": self.update_quota_share,
            "ListQuotaShares": self.list_quota_shares,
            "DeleteQuotaShare": self.delete_quota_share,
        }

    # Scheduling policies.

    def create_scheduling_policy(self, params: Json) -> Json:
        checks.require(params, "name", "quotaSharePolicy")
        name = checks.name(params["name"], "name")
        arn = self._world.arn("batch", f"scheduling-policy/{name}")
        self._refuse_duplicate(self._state.policies, arn)
        policy = SchedulingPolicy(name, arn, _quota_policy(params), checks.tags(params.get("tags")))
        self._state.policies[arn] = policy
        return {"name": name, "arn": arn}

    def describe_scheduling_policies(self, params: Json) -> Json:
        checks.require(params, "arns")
        found = [self._state.policies[arn] for arn in params["arns"] if arn in self._state.policies]
        return {
            "schedulingPolicies": [
                {
                    "name": policy.name,
                    "arn": policy.arn,
                    "quotaSharePolicy": policy.quota_share_policy,
                    "tags": dict(policy.tags),
                }
                for policy in found
            ]
        }

    def update_scheduling_policy(self, params: Json) -> Json:
        policy = self._find(self._state.policies, params, "arn", "scheduling-policy")
        if "quotaSharePolicy" in params:
            policy.quota_share_policy = _quota_policy(params)
        return {}

    def delete_scheduling_policy(self, params: Json) -> Json:
        policy = self._find(self._state.policies, params, "arn", "scheduling-policy")
        if any(queue.policy_arn == policy.arn for queue in self._state.queues.values()):
            raise client_error("The scheduling policy is used by a job queue.")
        del self._state.policies[policy.arn]
        return {}

    # Service environments.

    def create_service_environment(self, params: Json) -> Json:
        checks.require(params, "serviceEnvironmentName", "serviceEnvironmentType", "capacityLimits")
        name = checks.name(params["serviceEnvironmentName"], "serviceEnvironmentName")
        arn = self._world.arn("batch", f"service-environment/{name}")
        self._refuse_duplicate(self._state.environments, arn)
        _refuse_more_than(MAX_ENVIRONMENTS, self._state.environments, "service environments")
        self._state.environments[arn] = ServiceEnvironment(
            name=name,
            arn=arn,
            type=checks.one_of(params["serviceEnvironmentType"], ["SAGEMAKER_TRAINING"], "serviceEnvironmentType"),
            state=_state(params),
            capacity_limits=checks.capacity_limits(params["capacityLimits"]),
            tags=checks.tags(params.get("tags")),
        )
        return {"serviceEnvironmentName": name, "serviceEnvironmentArn": arn}

    def describe_service_environments(self, params: Json) -> Json:
        chosen = self._choose(self._state.environments, params.get("serviceEnvironments"), "service-environment")
        shown, token = checks.page(enumerate(chosen), params)
        return present({"serviceEnvironments": [_environment_detail(e) for e in shown], "nextToken": token})

    def update_service_environment(self, params: Json) -> Json:
        key = "serviceEnvironment"
        environment = self._find(self._state.environments, params, key, "service-environment")
        environment.state = _state(params, environment.state)
        if params.get("capacityLimits"):
            environment.capacity_limits = checks.capacity_limits(params["capacityLimits"])
            for queue in self._queues_of(environment):
                queue.pool.configure_environment(limits_by_unit(environment.capacity_limits))
                self._lifecycle.request_pass(queue)
        return {"serviceEnvironmentName": environment.name, "serviceEnvironmentArn": environment.arn}

    def delete_service_environment(self, params: Json) -> Json:
        key = "serviceEnvironment"
        environment = self._find(self._state.environments, params, key, "service-environment")
        if environment.state != "DISABLED" or self._queues_of(environment):
            raise client_error("The service environment must be DISABLED and not be used by a job queue.")
        del self._state.environments[environment.arn]
        return {}

    def _queues_of(self, environment: ServiceEnvironment) -> list[JobQueue]:
        return [q for q in self._state.queues.values() if q.environments[0]["serviceEnvironment"] == environment.arn]

    # Job queues.

    def create_job_queue(self, params: Json) -> Json:
        checks.require(params, "jobQueueName", "priority", "schedulingPolicyArn", "serviceEnvironmentOrder")
        checks.one_of(params.get("jobQueueType", ""), ["SAGEMAKER_TRAINING"], "jobQueueType")
        name = checks.name(params["jobQueueName"], "jobQueueName")
        arn = self._world.arn("batch", f"job-queue/{name}")
        self._refuse_duplicate(self._state.queues, arn)
        _refuse_more_than(MAX_QUEUES, self._state.queues, "job queues")
        environment = self._environment_for(params["serviceEnvironmentOrder"])
        self._state.queues[arn] = JobQueue(
            name=name,
            arn=arn,
            state=_state(params),
            priority=checks.within(params["priority"], 0, 2**31 - 1, "priority"),
            policy_arn=self._find(self._state.policies, params, "schedulingPolicyArn", "scheduling-policy").arn,
            environments=[{"order": 1, "serviceEnvironment": environment.arn}],
            limit_actions=_limit_actions(params),
            tags=checks.tags(params.get("tags")),
            pool=Pool(limits_by_unit(environment.capacity_limits)),
        )
        return {"jobQueueName": name, "jobQueueArn": arn}

    def _environment_for(self, order: list[Json]) -> ServiceEnvironment:
        """A quota-managed queue has one environment, and that environment this one queue."""
        if len(order) != 1:
            raise client_error("A job queue with quota management has exactly one service environment.")
        environment = self._find(self._state.environments, order[0], "serviceEnvironment", "service-environment")
        if self._queues_of(environment):
            raise client_error("The service environment is already used by another job queue.")
        return environment

    def describe_job_queues(self, params: Json) -> Json:
        chosen = self._choose(self._state.queues, params.get("jobQueues"), "job-queue")
        shown, token = checks.page(enumerate(chosen), params)
        return present({"jobQueues": [_queue_detail(queue) for queue in shown], "nextToken": token})

    def update_job_queue(self, params: Json) -> Json:
        queue = self.queue(params)
        queue.state = _state(params, queue.state)
        queue.priority = checks.within(params.get("priority", queue.priority), 0, 2**31 - 1, "priority")
        if "schedulingPolicyArn" in params:
            policy = self._find(self._state.policies, params, "schedulingPolicyArn", "scheduling-policy")
            queue.policy_arn = policy.arn
        if "jobStateTimeLimitActions" in params:
            queue.limit_actions = _limit_actions(params)
        return {"jobQueueName": queue.name, "jobQueueArn": queue.arn}

    def delete_job_queue(self, params: Json) -> Json:
        """Needs DISABLED; ends all its jobs (API_DeleteJobQueue)."""
        queue = self.queue(params)
        if queue.state != "DISABLED":
            raise client_error("The job queue must be DISABLED before it can be deleted.")
        queue.status = "DELETING"
        for job in queue.open_jobs():
            self._lifecycle.terminate(job, "Job queue deleted")
        self._world.after(0, lambda: self._remove_queue(queue))
        return {}

    def _remove_queue(self, queue: JobQueue) -> None:
        if queue.open_jobs():
            self._world.after(self._world.options.notice_delay_ms, lambda: self._remove_queue(queue))
            return
        for share in queue.shares.values():
            self._state.shares.pop(share.arn, None)
        self._state.queues.pop(queue.arn, None)

    # Quota shares.

    def create_quota_share(self, params: Json) -> Json:
        checks.require(params, "quotaShareName", "capacityLimits", "resourceSharingConfiguration")
        checks.require(params, "preemptionConfiguration")
        queue = self.queue(params)
        name = checks.name(params["quotaShareName"], "quotaShareName")
        arn = f"{queue.arn}/quota-share/{name}"
        self._refuse_duplicate(self._state.shares, arn)
        _refuse_more_than(MAX_SHARES, queue.shares, "quota shares per job queue")
        share = QuotaShare(
            name=name,
            arn=arn,
            queue_arn=queue.arn,
            capacity_limits=checks.capacity_limits(params["capacityLimits"]),
            sharing=_sharing(params["resourceSharingConfiguration"]),
            preemption=_in_share(params["preemptionConfiguration"]),
            state=_state(params),
            tags=checks.tags(params.get("tags")),
        )
        queue.shares[name] = self._state.shares[arn] = share
        self._apply(queue, share)
        return {"quotaShareName": name, "quotaShareArn": arn}

    def describe_quota_share(self, params: Json) -> Json:
        share = self._share(params)
        return {**_share_detail(share), "tags": dict(share.tags)}

    def list_quota_shares(self, params: Json) -> Json:
        shown, token = checks.page(enumerate(self.queue(params).shares.values()), params)
        return present({"quotaShares": [_share_detail(share) for share in shown], "nextToken": token})

    def update_quota_share(self, params: Json) -> Json:
        """Members that are left out stay as they are; lowered limits can preempt at once."""
        share = self._share(params)
        limits, sharing = share.capacity_limits, share.sharing
        if "capacityLimits" in params:
            limits = self._new_limits(share, checks.capacity_limits(params["capacityLimits"]))
        if "resourceSharingConfiguration" in params:
            sharing = _sharing(params["resourceSharingConfiguration"])
        if "preemptionConfiguration" in params:
            share.preemption = _in_share(params["preemptionConfiguration"])
        share.state = _state(params, share.state)
        share.capacity_limits, share.sharing = limits, sharing
        self._apply(self._state.queues[share.queue_arn], share)
        return {"quotaShareName": share.name, "quotaShareArn": share.arn}

    def _new_limits(self, share: QuotaShare, given: list[Json]) -> list[Json]:
        if self._world.options.limits_replace:
            return given
        merged = limits_by_unit([*share.capacity_limits, *given])
        return checks.capacity_limits([{"maxCapacity": n, "capacityUnit": unit} for unit, n in merged.items()])

    def delete_quota_share(self, params: Json) -> Json:
        """Needs DISABLED; ends all its jobs, then the share is gone (API_DeleteQuotaShare)."""
        share = self._share(params)
        if share.state != "DISABLED":
            raise client_error("The quota share must be DISABLED before it can be deleted.")
        share.status = "DELETING"
        queue = self._state.queues[share.queue_arn]
        for job in queue.open_jobs(share.name):
            self._lifecycle.terminate(job, "Quota share deleted")
        self._world.after(0, lambda: self._remove_share(queue, share))
        return {}

    def _remove_share(self, queue: JobQueue, share: QuotaShare) -> None:
        if queue.open_jobs(share.name):
            self._world.after(self._world.options.notice_delay_ms, lambda: self._remove_share(queue, share))
            return
        queue.shares.pop(share.name)
        self._state.shares.pop(share.arn)
        queue.pool.remove_share(share.name)
        self._lifecycle.request_pass(queue)

    def _apply(self, queue: JobQueue, share: QuotaShare) -> None:
        queue.pool.configure_share(share.name, share.rules())
        self._lifecycle.request_pass(queue)

    # Look-ups.

    def queue(self, params: Json) -> JobQueue:
        return self._find(self._state.queues, params, "jobQueue", "job-queue")

    def _share(self, params: Json) -> QuotaShare:
        checks.require(params, "quotaShareArn")
        share = self._state.shares.get(params["quotaShareArn"])
        if share is None:
            raise client_error(f"Quota share {params['quotaShareArn']} does not exist.")
        return share

    def _find(self, found: Mapping[str, R], params: Json, key: str, kind: str) -> R:
        """A resource by name or ARN."""
        checks.require(params, key)
        resource = found.get(params[key]) or found.get(self._world.arn("batch", f"{kind}/{params[key]}"))
        if resource is None:
            raise client_error(f"{params[key]} does not exist.")
        return resource

    def _choose(self, found: Mapping[str, R], wanted: list[str] | None, kind: str) -> list[R]:
        """All, or those that exist of the named ones."""
        if not wanted:
            return list(found.values())
        arns = (name if name in found else self._world.arn("batch", f"{kind}/{name}") for name in wanted)
        return [found[arn] for arn in arns if arn in found]

    @staticmethod
    def _refuse_duplicate(found: Mapping[str, object], arn: str) -> None:
        if arn in found:
            raise client_error(f"Object already exists: {arn}")


def _refuse_more_than(limit: int, found: Mapping[str, object], what: str) -> None:
    if len(found) >= limit:
        raise client_error(f"At most {limit} {what} are allowed.")


def _state(params: Json, default: str = "ENABLED") -> str:
    return checks.one_of(params.get("state") or default, STATES, "state")


def _quota_policy(params: Json) -> Json:
    policy = params["quotaSharePolicy"]
    checks.require(policy, "idleResourceAssignmentStrategy")
    checks.one_of(policy["idleResourceAssignmentStrategy"], ["FIFO"], "idleResourceAssignmentStrategy")
    return dict(policy)


def _sharing(configuration: Json) -> Json:
    """borrowLimit goes with LEND_AND_BORROW only; unset it means no limit."""
    checks.require(configuration, "strategy")
    strategy = checks.one_of(configuration["strategy"], STRATEGIES, "strategy")
    limit = configuration.get("borrowLimit")
    if strategy != "LEND_AND_BORROW":
        if limit is not None:
            raise client_error("borrowLimit can only be set with the strategy LEND_AND_BORROW.")
        return {"strategy": strategy}
    chosen = UNLIMITED if limit is None else checks.within(limit, UNLIMITED, 2**31 - 1, "borrowLimit")
    return {"strategy": strategy, "borrowLimit": chosen}


def _in_share(configuration: Json) -> Json:
    checks.require(configuration, "inSharePreemption")
    return {"inSharePreemption": checks.one_of(configuration["inSharePreemption"], STATES, "inSharePreemption")}


def _limit_actions(params: Json) -> list[Json]:
    """On queues for service jobs: state RUNNABLE, action TERMINATE, 600 to 86,400 s."""
    actions = params.get("jobStateTimeLimitActions") or []
    for action in actions:
        checks.require(action, "reason", "state", "maxTimeSeconds", "action")
        checks.one_of(action["state"], ["RUNNABLE"], "state")
        checks.one_of(action["action"], ["TERMINATE"], "action")
        checks.one_of(action["reason"], LIMIT_REASONS, "reason")
        checks.within(action["maxTimeSeconds"], 600, 86_400, "maxTimeSeconds")
    return [dict(action) for action in actions]


def _environment_detail(environment: ServiceEnvironment) -> Json:
    return {
        "serviceEnvironmentName": environment.name,
        "serviceEnvironmentArn": environment.arn,
        "serviceEnvironmentType": environment.type,
        "state": environment.state,
        "status": "VALID",
        "capacityLimits": environment.capacity_limits,
        "tags": dict(environment.tags),
    }


def _queue_detail(queue: JobQueue) -> Json:
    return {
        "jobQueueName": queue.name,
        "jobQueueArn": queue.arn,
        "state": queue.state,
        "schedulingPolicyArn": queue.policy_arn,
        "status": queue.status,
        "priority": queue.priority,
        "computeEnvironmentOrder": [],
        "serviceEnvironmentOrder": queue.environments,
        "jobQueueType": "SAGEMAKER_TRAINING",
        "tags": dict(queue.tags),
        "jobStateTimeLimitActions": queue.limit_actions,
    }


def _share_detail(share: QuotaShare) -> Json:
    return {
        "quotaShareName": share.name,
        "quotaShareArn": share.arn,
        "jobQueueArn": share.queue_arn,
        "capacityLimits": share.capacity_limits,
        "resourceSharingConfiguration": share.sharing,
        "preemptionConfiguration": share.preemption,
        "state": share.state,
        "status": share.status,
    }
