"""The template with parameters filled in, as the tests look at it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sharewarden_tools.template import Template, evaluate, resolve

QUEUE_ARN = "arn:aws:batch:us-east-1:123456789012:job-queue/ml-train-qm"
SHARE_ARN = f"{QUEUE_ARN}/quota-share/background"
TRAINING_ROLE = "arn:aws:iam::123456789012:role/Training"
RESUBMIT_ROLE = "arn:aws:iam::123456789012:role/Resubmitted"
PARAMETERS: dict[str, Any] = {
    "QueueArns": [QUEUE_ARN],
    "ClassicQueueArns": ["arn:aws:batch:us-east-1:123456789012:job-queue/etl-spot"],
    "MaxPriority": 900,
    "JobTeams": ["vision", "nlp"],
    "AlarmTopicArn": "arn:aws:sns:us-east-1:123456789012:on-call",
    "NoticeTopicArn": "arn:aws:sns:us-east-1:123456789012:gpu-notices",
    "WebhookSecretArn": "arn:aws:secretsmanager:us-east-1:123456789012:secret:sharewarden/webhook-a1B2c3",
    "CheckpointBucketArns": ["arn:aws:s3:::ckpt-a", "arn:aws:s3:::ckpt-b"],
    "ResubmitRoleArns": [RESUBMIT_ROLE],
    "ScientistShareArns": [SHARE_ARN],
    "TrainingRoleArns": [TRAINING_ROLE],
}
OLD_AUDIT = "arn:aws:dynamodb:us-east-1:123456789012:table/audit-of-old"
EXISTING_AUDIT = {
    "ExistingAuditTable": "audit-of-old",
    "ExistingAuditStreamArn": f"{OLD_AUDIT}/stream/2026-01-02T03:04:05.678",
}

Properties = dict[str, Any]
Grant = tuple[str, str]
"""Action, and the resource by a short name: ``Audit``, ``State/index/open``, ``*``."""


class Stack:
    """What CloudFormation would make. Raises TemplateError."""

    def __init__(self, template: Template, **parameters: Any) -> None:
        self.template = template
        self.parameters = PARAMETERS | parameters
        self.resources = resolve(template, self.parameters)

    def of_type(self, kind: str) -> dict[str, Properties]:
        """Properties of the resources of that type by logical id."""
        return {name: item["Properties"] for name, item in self.resources.items() if item["Type"] == kind}

    def value(self, node: Any) -> Any:
        """What an expression comes to."""
        return evaluate(self.template, self.parameters, node)

    def arn(self, name: str) -> str:
        return str(self.value({"Fn::GetAtt": [name, "Arn"]}))

    @property
    def functions(self) -> dict[str, Properties]:
        return self.of_type("AWS::Serverless::Function")

    def declared_variables(self, function: str) -> dict[str, Any]:
        """The variables of a function by name, unresolved."""
        own = self.template["Resources"][function]["Properties"]
        return {
            name: value
            for holder in (self.template["Globals"]["Function"], own)
            for name, value in holder.get("Environment", {}).get("Variables", {}).items()
        }

    def sources(self, kind: str) -> Iterator[tuple[str, Properties, Properties]]:
        """(function, its properties, the event source's properties) of each source of that kind."""
        for name, function in self.functions.items():
            for event in function.get("Events", {}).values():
                if event["Type"] == kind:
                    yield name, function, event["Properties"]

    def statements(self, resource: str) -> list[Properties]:
        """Statements of a role's policies, or of a managed policy."""
        properties = self.resources[resource]["Properties"]
        documents = [each["PolicyDocument"] for each in properties.get("Policies", ())]
        documents += [properties["PolicyDocument"]] if "PolicyDocument" in properties else []
        return [statement for document in documents for statement in document["Statement"]]

    def grants(self, resource: str) -> dict[Grant, str]:
        """All that a role or managed policy allows, with the condition as JSON."""
        return {
            (action, self.short(target)): json.dumps(statement.get("Condition", {}), sort_keys=True)
            for statement in self.statements(resource)
            for action in as_list(statement["Action"])
            for target in as_list(statement["Resource"])
        }

    def short(self, target: str) -> str:
        """Tables, queues, logs, functions by logical id, what is given by parameter, the rest as it is."""
        if target in self.parameters["QueueArns"]:
            return "QueueArns"
        for name in ("NoticeTopicArn", "WebhookSecretArn"):
            if target == self.parameters[name]:
                return name
        known = (
            "AWS::DynamoDB::Table",
            "AWS::SQS::Queue",
            "AWS::Logs::LogGroup",
            "AWS::Serverless::Function",
            "AWS::Serverless::StateMachine",
        )
        for name, item in self.resources.items():
            if item["Type"] in known and (
                target == self.arn(name) or target.startswith(f"{self.arn(name)}/")
            ):
                return name + target.removeprefix(self.arn(name))
        return target


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
