"""`template.yaml` as plain data: what the local stack creates and what the template's own tests read.

Only the intrinsic functions that the template uses are known; any other one raises `TemplateError`, so that a
new one is added here on purpose. Names and ARNs of resources are stand-ins of the right form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

TEMPLATE = Path(__file__).resolve().parents[2] / "template.yaml"

PSEUDO_PARAMETERS: dict[str, Any] = {
    "AWS::AccountId": "123456789012",
    "AWS::Partition": "aws",
    "AWS::Region": "us-east-1",
    "AWS::StackName": "sharewarden",
    "AWS::URLSuffix": "amazonaws.com",
}
_ARN_FORMS = {
    "AWS::DynamoDB::Table": "dynamodb:{region}:{account}:table/{name}",
    "AWS::Events::Rule": "events:{region}:{account}:rule/{name}",
    "AWS::IAM::Role": "iam::{account}:role/{name}",
    "AWS::Logs::LogGroup": "logs:{region}:{account}:log-group:{name}:*",
    "AWS::SQS::Queue": "sqs:{region}:{account}:{name}",
    "AWS::Serverless::Function": "lambda:{region}:{account}:function:{name}",
    "AWS::Serverless::StateMachine": "states:{region}:{account}:stateMachine:{name}",
}
_SUBSTITUTION = re.compile(r"\$\{([^!}][^}]*)\}")
_NO_VALUE = object()

Template = dict[str, Any]


class TemplateError(ValueError):
    """The template uses something that this reader does not know; the message says what."""


class _Loader(yaml.SafeLoader):
    """YAML with CloudFormation's short tags: `!Ref X` -> {"Ref": "X"}, `!Sub X` -> {"Fn::Sub": "X"}."""


def _intrinsic(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    value = _plain(loader, node)
    if suffix == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


def _plain(loader: yaml.SafeLoader, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_scalar(node)  # type: ignore[arg-type]


_Loader.add_multi_constructor("!", _intrinsic)


def load_template(path: Path = TEMPLATE) -> Template:
    """Read the file; short tags become their long form, nothing is resolved yet."""
    return dict(yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader))  # noqa: S506 (a SafeLoader)


def resolve(template: Template, parameters: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The resources by logical id, with every intrinsic function replaced by its value.

    `parameters` overrides the defaults; lists stand for comma-delimited lists. Resources whose condition is
    false are left out. Raises `TemplateError` for a parameter without value or an unknown intrinsic function.
    """
    resolver = _Resolver(template, parameters)
    return {
        name: resolver.value(resource)
        for name, resource in template["Resources"].items()
        if resolver.holds(resource.get("Condition"))
    }


def evaluate(template: Template, parameters: Mapping[str, Any], node: Any) -> Any:
    """What one expression of the template comes to. Raises `TemplateError` as `resolve` does."""
    return _Resolver(template, parameters).value(node)


def event_patterns(template: Template, parameters: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The pattern of each EventBridge rule by the rule's logical id."""
    return {
        name: resource["Properties"]["EventPattern"]
        for name, resource in resolve(template, parameters).items()
        if resource["Type"] == "AWS::Events::Rule"
    }


def tables(template: Template) -> list[dict[str, Any]]:
    """Arguments of DynamoDB `create_table`, one dict a table; `TableName` is the logical id."""
    wanted = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "BillingMode")
    return [
        {"TableName": name}
        | {key: resource["Properties"][key] for key in wanted if key in resource["Properties"]}
        for name, resource in template["Resources"].items()
        if resource["Type"] == "AWS::DynamoDB::Table"
    ]


class _Resolver:
    def __init__(self, template: Template, parameters: Mapping[str, Any]) -> None:
        self._template = template
        self._parameters = parameters
        self._functions: dict[str, Callable[[Any], Any]] = {
            "Ref": self._ref,
            "Fn::GetAtt": lambda argument: self._attribute(*argument),
            "Fn::Sub": self._sub,
            "Fn::Join": lambda argument: argument[0].join(self.value(argument[1])),
            "Fn::Split": lambda argument: self.value(argument[1]).split(argument[0]),
            "Fn::Equals": lambda argument: self.value(argument[0]) == self.value(argument[1]),
            "Fn::Not": lambda argument: not self.value(argument[0]),
            "Fn::If": lambda argument: self.value(argument[1 if self.holds(argument[0]) else 2]),
        }

    def value(self, node: Any) -> Any:
        """The node with its intrinsic functions replaced; what resolves to `AWS::NoValue` is dropped."""
        if isinstance(node, list):
            return [item for item in map(self.value, node) if item is not _NO_VALUE]
        if not isinstance(node, dict):
            return node
        if len(node) == 1 and (key := next(iter(node))) in self._functions:
            return self._functions[key](node[key])
        if unknown := [key for key in node if str(key).startswith("Fn::")]:
            raise TemplateError(f"intrinsic function {unknown[0]} is not known here")
        resolved = {key: self.value(item) for key, item in node.items()}
        return {key: item for key, item in resolved.items() if item is not _NO_VALUE}

    def holds(self, condition: str | None) -> bool:
        """Whether the named condition is true; no condition is always true."""
        return condition is None or bool(self.value(self._template["Conditions"][condition]))

    def _ref(self, name: str) -> Any:
        if name == "AWS::NoValue":
            return _NO_VALUE
        if name in self._template["Resources"]:
            return self._reference(name)
        if name in PSEUDO_PARAMETERS:
            return PSEUDO_PARAMETERS[name]
        return self._parameter(name)

    def _parameter(self, name: str) -> Any:
        declared = self._template["Parameters"].get(name)
        if declared is None:
            raise TemplateError(f"{name} is neither a parameter nor a resource")
        given = self._parameters.get(name, declared.get("Default"))
        if given is None:
            raise TemplateError(f"parameter {name} needs a value")
        if declared["Type"] == "CommaDelimitedList" and isinstance(given, str):
            return [item.strip() for item in given.split(",")]
        return given

    def _reference(self, name: str) -> str:
        """What `!Ref` gives: a queue's URL, a state machine's ARN, else the name."""
        kind = self._template["Resources"][name]["Type"]
        if kind == "AWS::Serverless::StateMachine":
            return self._attribute(name, "Arn")
        if kind == "AWS::SQS::Queue":
            account, region = PSEUDO_PARAMETERS["AWS::AccountId"], PSEUDO_PARAMETERS["AWS::Region"]
            return f"https://sqs.{region}.amazonaws.com/{account}/{self._physical_name(name)}"
        return self._physical_name(name)

    def _physical_name(self, name: str) -> str:
        fifo = self._template["Resources"][name].get("Properties", {}).get("FifoQueue")
        return f"{name}.fifo" if fifo else name

    def _attribute(self, name: str, attribute: str) -> str:
        if attribute in ("QueueName", "Name"):
            return self._physical_name(name)
        if attribute == "StreamArn":
            return f"{self._attribute(name, 'Arn')}/stream/2026-01-01T00:00:00.000"
        form = _ARN_FORMS.get(self._template["Resources"][name]["Type"])
        if attribute != "Arn" or form is None:
            raise TemplateError(f"attribute {name}.{attribute} is not known here")
        account, region = PSEUDO_PARAMETERS["AWS::AccountId"], PSEUDO_PARAMETERS["AWS::Region"]
        return "arn:aws:" + form.format(region=region, account=account, name=self._physical_name(name))

    def _sub(self, text: str) -> str:
        return _SUBSTITUTION.sub(lambda match: str(self._substitute(match[1])), text)

    def _substitute(self, name: str) -> Any:
        return self._attribute(*name.split(".", 1)) if "." in name else self._ref(name)
