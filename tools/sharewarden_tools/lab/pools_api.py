"""Operations on scheduling policies, service environments and job queues.

Only what quota management needs is here: queues of type SAGEMAKER_TRAINING with one service environment and
a quota-share policy (create-quota-management-resources.html). Configuration is VALID as soon as it is made.
"""

from __future__ import annotations

from collections.abc import Callable

from . import checks
from .errors import client_error
from .lifecycle import Lifecycle
from .model import (
    JobQueue,
    SchedulingPolicy,
    ServiceEnvironment,
    limits_by_unit,
)
from .pool import Pool
from .registry import Registry, refuse_duplicate, refuse_more_than
from .views import present
from .world import Json, World

MAX_ENVIRONMENTS = MAX_QUEUES = 50  # per account and Region (service_limits.html)
LIMIT_REASONS = (
    "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY",
    "MISCONFIGURATION:SERVICE_ENVIRONMENT_MAX_RESOURCE",
    "MISCONFIGURATION:QUOTA_MANAGEMENT_LIMIT_EXCEEDED",
)


class PoolsApi:
    def __init__(self, world: World, registry: Registry, lifecycle: Lifecycle) -> None:
        self._world = world
        self._registry = registry
        self._state = registry.state
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
        }

    # Scheduling policies.

    def create_scheduling_policy(self, params: Json) -> Json:
        checks.require(params, "name", "quotaSharePolicy")
        name = checks.name(params["name"], "name")
        arn = self._world.arn("batch", f"scheduling-policy/{name}")
        refuse_duplicate(self._state.policies, arn)
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
        policy = self._registry.policy(params, "arn")
        if "quotaSharePolicy" in params:
            policy.quota_share_policy = _quota_policy(params)
        return {}

    def delete_scheduling_policy(self, params: Json) -> Json:
        policy = self._registry.policy(params, "arn")
        if any(queue.policy_arn == policy.arn for queue in self._state.queues.values()):
            raise client_error("The scheduling policy is used by a job queue.")
        del self._state.policies[policy.arn]
        return {}

    # Service environments.

    def create_service_environment(self, params: Json) -> Json:
        checks.require(params, "serviceEnvironmentName", "serviceEnvironmentType", "capacityLimits")
        name = checks.name(params["serviceEnvironmentName"], "serviceEnvironmentName")
        arn = self._world.arn("batch", f"service-environment/{name}")
        refuse_duplicate(self._state.environments, arn)
        refuse_more_than(MAX_ENVIRONMENTS, self._state.environments, "service environments")
        self._state.environments[arn] = ServiceEnvironment(
            name=name,
            arn=arn,
            type=checks.one_of(
                params["serviceEnvironmentType"], ["SAGEMAKER_TRAINING"], "serviceEnvironmentType"
            ),
            state=checks.state(params),
            capacity_limits=checks.capacity_limits(params["capacityLimits"]),
            tags=checks.tags(params.get("tags")),
        )
        return {"serviceEnvironmentName": name, "serviceEnvironmentArn": arn}

    def describe_service_environments(self, params: Json) -> Json:
        chosen = self._registry.choose(
            self._state.environments, params.get("serviceEnvironments"), "service-environment"
        )
        shown, token = checks.page(enumerate(chosen), params)
        return present({"serviceEnvironments": [_environment_detail(e) for e in shown], "nextToken": token})

    def update_service_environment(self, params: Json) -> Json:
        environment = self._registry.environment(params)
        limits = params.get("capacityLimits")
        limits = checks.capacity_limits(limits) if limits else environment.capacity_limits
        environment.state = checks.state(params, environment.state)
        environment.capacity_limits = limits
        for queue in self._queues_of(environment):
            queue.pool.configure_environment(limits_by_unit(limits))
            self._lifecycle.request_pass(queue)
        return {"serviceEnvironmentName": environment.name, "serviceEnvironmentArn": environment.arn}

    def delete_service_environment(self, params: Json) -> Json:
        environment = self._registry.environment(params)
        if environment.state != "DISABLED" or self._queues_of(environment):
            raise client_error("The service environment must be DISABLED and not be used by a job queue.")
        del self._state.environments[environment.arn]
        return {}

    def _queues_of(self, environment: ServiceEnvironment) -> list[JobQueue]:
        return [
            q
            for q in self._state.queues.values()
            if q.environments[0]["serviceEnvironment"] == environment.arn
        ]

    # Job queues.

    def create_job_queue(self, params: Json) -> Json:
        checks.require(params, "jobQueueName", "priority", "schedulingPolicyArn", "serviceEnvironmentOrder")
        checks.one_of(params.get("jobQueueType", ""), ["SAGEMAKER_TRAINING"], "jobQueueType")
        name = checks.name(params["jobQueueName"], "jobQueueName")
        arn = self._world.arn("batch", f"job-queue/{name}")
        refuse_duplicate(self._state.queues, arn)
        refuse_more_than(MAX_QUEUES, self._state.queues, "job queues")
        environment = self._environment_for(params["serviceEnvironmentOrder"])
        self._state.queues[arn] = JobQueue(
            name=name,
            arn=arn,
            state=checks.state(params),
            priority=checks.within(params["priority"], 0, 2**31 - 1, "priority"),
            policy_arn=self._registry.policy(params, "schedulingPolicyArn").arn,
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
        environment = self._registry.environment(order[0])
        if self._queues_of(environment):
            raise client_error("The service environment is already used by another job queue.")
        return environment

    def describe_job_queues(self, params: Json) -> Json:
        chosen = self._registry.choose(self._state.queues, params.get("jobQueues"), "job-queue")
        shown, token = checks.page(enumerate(chosen), params)
        return present({"jobQueues": [_queue_detail(queue) for queue in shown], "nextToken": token})

    def update_job_queue(self, params: Json) -> Json:
        queue = self._registry.queue(params)
        priority = checks.within(params.get("priority", queue.priority), 0, 2**31 - 1, "priority")
        policy_arn, actions = queue.policy_arn, queue.limit_actions
        if "schedulingPolicyArn" in params:
            policy_arn = self._registry.policy(params, "schedulingPolicyArn").arn
        if "jobStateTimeLimitActions" in params:
            actions = _limit_actions(params)
        queue.state = checks.state(params, queue.state)
        queue.priority, queue.policy_arn, queue.limit_actions = priority, policy_arn, actions
        return {"jobQueueName": queue.name, "jobQueueArn": queue.arn}

    def delete_job_queue(self, params: Json) -> Json:
        """Needs DISABLED; ends all its jobs (API_DeleteJobQueue)."""
        queue = self._registry.queue(params)
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


def _quota_policy(params: Json) -> Json:
    policy = params["quotaSharePolicy"]
    checks.require(policy, "idleResourceAssignmentStrategy")
    checks.one_of(policy["idleResourceAssignmentStrategy"], ["FIFO"], "idleResourceAssignmentStrategy")
    return dict(policy)


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
