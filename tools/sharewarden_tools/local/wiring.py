"""What ``template.yaml`` says about the wiring, as the local stack needs it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moto.events.models import EventPattern, EventPatternParser
from sharewarden.domain.durations import parse_duration

from sharewarden_tools.template import TEMPLATE, Template, evaluate, load_template, resolve

_QUEUE_SETTINGS = ("VisibilityTimeout", "MessageRetentionPeriod", "DelaySeconds")


@dataclass(frozen=True)
class Rule:
    """A rule of EventBridge: what it matches and the ARN of the queue that it delivers to."""

    pattern: EventPattern
    target: str

    def matches(self, event: Any) -> bool:
        return bool(self.pattern.matches_event(event))


@dataclass(frozen=True)
class Function:
    """A Lambda function. ``timeout_ms`` bounds one invocation, ``code`` is the file of its handler."""

    name: str
    code: Path
    timeout_ms: int
    queue: str | None = None
    """ARN of the queue that it is fed from."""
    batch_size: int = 1
    every_ms: int | None = None
    """How often the schedule calls it."""


@dataclass(frozen=True)
class Workflow:
    """A state machine; in its definition each of ``substitutions`` takes the place of ``${name}``."""

    arn: str
    definition: Path
    substitutions: Mapping[str, str]


@dataclass(frozen=True)
class Wiring:
    """``queues``: name -> attributes of CreateQueue, dead-letter queues first."""

    queues: Mapping[str, Mapping[str, str]]
    rules: tuple[Rule, ...]
    functions: tuple[Function, ...]
    workflows: tuple[Workflow, ...]
    variables: Mapping[str, str]
    """The environment of all functions, also what only one of them is given: here they share a runtime."""


def read_wiring(queue_arns: Iterable[str], topic: str = "", buckets: str = "") -> Wiring:
    """The template for these job queues, this SNS topic and this ARN of buckets. Raises TemplateError."""
    template = load_template()
    parameters = {"QueueArns": sorted(queue_arns), "NoticeTopicArn": topic, "CheckpointBucketArns": buckets}
    resources = resolve(template, parameters)
    return Wiring(
        queues=dict(sorted(_queues(resources), key=lambda item: "RedrivePolicy" in item[1])),
        rules=tuple(_rules(resources)),
        functions=tuple(_functions(resources)),
        workflows=tuple(_workflows(template, resources)),
        variables=_variables(template, parameters) | _own_variables(resources),
    )


def _of_type(resources: Mapping[str, Any], kind: str) -> Iterator[tuple[str, Any]]:
    return ((name, item["Properties"]) for name, item in resources.items() if item["Type"] == kind)


def _queues(resources: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, str]]]:
    for name, properties in _of_type(resources, "AWS::SQS::Queue"):
        fifo = bool(properties.get("FifoQueue"))
        settings = {key: str(properties[key]) for key in _QUEUE_SETTINGS if key in properties}
        if "RedrivePolicy" in properties:
            settings["RedrivePolicy"] = json.dumps(properties["RedrivePolicy"])
        yield (f"{name}.fifo", settings | {"FifoQueue": "true"}) if fifo else (name, settings)


def _rules(resources: Mapping[str, Any]) -> Iterator[Rule]:
    for _, properties in _of_type(resources, "AWS::Events::Rule"):
        text = json.dumps(properties["EventPattern"])
        pattern = EventPattern(text, EventPatternParser(text).parse())
        yield from (Rule(pattern, target["Arn"]) for target in properties["Targets"])


def _functions(resources: Mapping[str, Any]) -> Iterator[Function]:
    for name, properties in _of_type(resources, "AWS::Serverless::Function"):
        code = TEMPLATE.parent / properties["CodeUri"] / "app.py"
        sources = properties.get("Events", {}).values()
        if any(source["Type"] == "DynamoDB" for source in sources):  # moto's stand-in has no streams
            continue
        fed = [_source(source["Properties"]) for source in sources] or [{}]
        yield from (Function(name, code, properties["Timeout"] * 1000, **source) for source in fed)


def _workflows(template: Template, resources: Mapping[str, Any]) -> Iterator[Workflow]:
    for name, properties in _of_type(resources, "AWS::Serverless::StateMachine"):
        arn = evaluate(template, {}, {"Ref": name})
        definition = TEMPLATE.parent / properties["DefinitionUri"]
        yield Workflow(arn, definition, properties["DefinitionSubstitutions"])


def _source(properties: Mapping[str, Any]) -> dict[str, Any]:
    if "Queue" in properties:
        return {"queue": properties["Queue"], "batch_size": properties["BatchSize"]}
    return {"every_ms": _rate(properties["ScheduleExpression"])}


def _rate(expression: str) -> int:
    """``rate(5 minutes)`` in milliseconds (EventBridge Scheduler user guide, rate-based schedules)."""
    amount, unit = expression.removeprefix("rate(").removesuffix(")").split()
    return parse_duration(f"{amount}{unit[0]}")


def _own_variables(resources: Mapping[str, Any]) -> dict[str, str]:
    functions = [properties for _, properties in _of_type(resources, "AWS::Serverless::Function")]
    environments = [function.get("Environment", {}).get("Variables", {}) for function in functions]
    return {name: value for variables in environments for name, value in variables.items()}


def _variables(template: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, str]:
    declared = template["Globals"]["Function"]["Environment"]["Variables"]
    holder = {"Type": "Environment", "Properties": declared}
    extended = {**template, "Resources": {**template["Resources"], "Environment": holder}}
    return {
        name: str(value) for name, value in resolve(extended, parameters)["Environment"]["Properties"].items()
    }
