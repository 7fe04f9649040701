"""Finding resources by name or ARN, and refusing doubled ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from . import checks
from .errors import client_error
from .model import JobQueue, SchedulingPolicy, ServiceEnvironment, State
from .world import Json, World

R = TypeVar("R")


class Registry:
    def __init__(self, world: World, state: State) -> None:
        self._world = world
        self.state = state

    def queue(self, params: Json) -> JobQueue:
        return self._find(self.state.queues, params, "jobQueue", "job-queue")

    def environment(self, params: Json) -> ServiceEnvironment:
        return self._find(self.state.environments, params, "serviceEnvironment", "service-environment")

    def policy(self, params: Json, key: str) -> SchedulingPolicy:
        return self._find(self.state.policies, params, key, "scheduling-policy")

    def _find(self, found: Mapping[str, R], params: Json, key: str, kind: str) -> R:
        checks.require(params, key)
        resource = found.get(params[key]) or found.get(self._world.arn("batch", f"{kind}/{params[key]}"))
        if resource is None:
            raise client_error(f"{params[key]} does not exist.")
        return resource

    def choose(self, found: Mapping[str, R], wanted: list[str] | None, kind: str) -> list[R]:
        """All, or those that exist of the named ones."""
        if not wanted:
            return list(found.values())
        arns = (name if name in found else self._world.arn("batch", f"{kind}/{name}") for name in wanted)
        return [found[arn] for arn in arns if arn in found]


def refuse_duplicate(found: Mapping[str, object], arn: str) -> None:
    if arn in found:
        raise client_error(f"Object already exists: {arn}")


def refuse_more_than(limit: int, found: Mapping[str, object], what: str) -> None:
    if len(found) >= limit:
        raise client_error(f"At most {limit} {what} are allowed.")
