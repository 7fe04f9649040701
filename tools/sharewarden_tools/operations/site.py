"""A deployment and the AWS around it: its queues, its tables, what CloudFormation made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import boto3
from sharewarden.aws.errors import asking
from sharewarden.bootstrap import CONFIG
from sharewarden.ports import Runtime

from sharewarden_tools.cli.deployment import (
    Deployment,
    describe_stack,
    local_environment,
    open_deployment,
    read_local,
    stack_variables,
)
from sharewarden_tools.cli.output import BadInput
from sharewarden_tools.local.environment import aws_environment

#: Queues of the template by logical id.
FIFO = frozenset({"WishesQueue", "WishesDeadLetters"})


class NotHere(BadInput):
    """The local stack, or a stack of another version, has no such thing; the text says which."""


class _Members(dict[str, str]):
    """Outputs or parameters of a stack. Raises NotHere for one that it lacks."""

    def __missing__(self, name: str) -> str:
        raise NotHere(f"the stack has no {name}: another version made it")


@dataclass(frozen=True)
class Site:
    """``client`` makes a boto3 client of a service; ``variables`` are the functions' settings.

    ``stack`` is what DescribeStacks says; None for the local stack.
    """

    deployment: Deployment
    client: Callable[[str], Any]
    variables: Mapping[str, str]
    stack: Mapping[str, Any] | None = None

    @property
    def runtime(self) -> Runtime:
        return self.deployment.runtime

    def queue_url(self, name: str) -> str:
        """Address of the queue with this logical id. Raises Unavailable."""
        if self.stack is not None:
            return self.outputs[f"{name}Url"]
        with asking("GetQueueUrl"):
            physical = f"{name}.fifo" if name in FIFO else name
            return str(self.client("sqs").get_queue_url(QueueName=physical)["QueueUrl"])

    @cached_property
    def outputs(self) -> dict[str, str]:
        """Outputs of the stack. Raises NotHere."""
        rows = self.described.get("Outputs", ())
        return _Members({row["OutputKey"]: row["OutputValue"] for row in rows})

    @cached_property
    def parameters(self) -> dict[str, str]:
        """Parameters of the stack. Raises NotHere."""
        rows = self.described.get("Parameters", ())
        return _Members({row["ParameterKey"]: row.get("ParameterValue", "") for row in rows})

    @property
    def described(self) -> Mapping[str, Any]:
        """What DescribeStacks says. Raises NotHere."""
        if self.stack is None:
            raise NotHere("the local stack has no CloudFormation")
        return self.stack

    @cached_property
    def resources(self) -> dict[str, str]:
        """Physical ids of the stack's resources by logical id. Raises NotHere, Unavailable."""
        name = self.described["StackName"]
        with asking("ListStackResources"):
            pages = self.client("cloudformation").get_paginator("list_stack_resources")
            rows = [row for page in pages.paginate(StackName=name) for row in page["StackResourceSummaries"]]
        return {row["LogicalResourceId"]: row.get("PhysicalResourceId", "") for row in rows}


def open_site(stack: str | None, *, local: bool) -> Site:
    """Raises BadInput when not exactly one of the two is given or it is not there, and Unavailable."""
    deployment = open_deployment(stack, local=local)
    if stack is None:
        found = read_local()
        return Site(deployment, _local_clients(local_environment(found)), found["variables"])
    described = describe_stack(stack)
    return Site(deployment, _client, stack_variables(described), described)


@cache
def _client(service: str) -> Any:
    with asking(service):
        return boto3.client(service, config=CONFIG)  # type: ignore[call-overload]


def _local_clients(environment: Mapping[str, str]) -> Callable[[str], Any]:
    @cache  # to make one takes a good part of a second
    def client(service: str) -> Any:
        if f"AWS_ENDPOINT_URL_{service.upper()}" not in environment:
            raise NotHere(f"the local stack has no {service}")
        with aws_environment(environment):
            return boto3.client(service)  # type: ignore[call-overload]

    return client
