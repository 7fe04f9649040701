"""The local stack as the operator's commands see it."""

from __future__ import annotations

from functools import cache
from typing import Any

import boto3
from sharewarden_tools.cli.deployment import Deployment
from sharewarden_tools.local.environment import aws_environment
from sharewarden_tools.local.stack import ACCOUNT, REGION, LocalStack
from sharewarden_tools.operations.site import NotHere, Site


@cache
def site_of(stack: LocalStack) -> Site:
    deployment = Deployment(
        "local stack", ACCOUNT, REGION, "ana", stack.runtime, stack.client("batch", "ana")
    )

    @cache
    def client(service: str) -> Any:
        if service not in ("batch", "dynamodb", "s3", "sqs"):
            raise NotHere(f"the local stack has no {service}")
        with aws_environment(stack.environment("ana")):
            return boto3.client(service)  # type: ignore[call-overload]

    return Site(deployment, client, stack.variables)


def lay(stack: LocalStack, body: str, **attributes: str) -> None:
    """A dead letter among the events."""
    site_of(stack).client("sqs").send_message(
        QueueUrl=site_of(stack).queue_url("EventsDeadLetters"),
        MessageBody=body,
        MessageAttributes={
            name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()
        },
    )
