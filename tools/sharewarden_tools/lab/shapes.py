"""Checks values against botocore's service models: its own validator and the constraints that leaves out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import botocore.session
from botocore.model import ListShape, MapShape, ServiceModel, Shape, StructureShape
from botocore.validate import ParamValidator


@cache
def service_model(service: str) -> ServiceModel:
    """The installed botocore's model of ``batch``, ``sagemaker``, ``sqs`` or ``stepfunctions``."""
    loader = botocore.session.get_session().get_component("data_loader")
    raw = loader.load_service_model(service, "service-2")
    if service == "batch":
        _correct(raw)
    return ServiceModel(raw, service)


def _correct(batch: dict[str, Any]) -> None:
    """The model marks startedAt as required, which cannot hold for a job that has not started yet."""
    response = batch["shapes"]["DescribeServiceJobResponse"]
    response["required"] = [member for member in response["required"] if member != "startedAt"]


def problems(value: dict[str, Any], shape: Shape | None) -> list[str]:
    """What is wrong with ``value``, a sentence each; without a shape only an empty value is right."""
    if shape is None:
        return [f"unexpected members {sorted(value)}"] if value else []
    report = ParamValidator().validate(value, shape)
    if report.has_errors():
        return str(report.generate_report()).splitlines()
    return list(_violations(value, shape, ""))


def readable(value: Any, shape: Shape) -> Any:
    """What a service reads of JSON: null is absent, members that its model lacks are passed over."""
    if isinstance(value, list) and isinstance(shape, ListShape):
        return [readable(item, shape.member) for item in value]
    if not isinstance(value, dict):
        return value
    present = {name: item for name, item in value.items() if item is not None}
    if isinstance(shape, MapShape):
        return {name: readable(item, shape.value) for name, item in present.items()}
    if isinstance(shape, StructureShape):
        members = shape.members
        return {name: readable(item, members[name]) for name, item in present.items() if name in members}
    return value


def _violations(value: Any, shape: Shape, path: str) -> Iterator[str]:
    """The constraints that the services enforce and botocore's validator leaves out."""
    label = path.lstrip(".") or "input"
    yield from (f"Value at '{label}' failed to satisfy constraint: {text}" for text in _broken(value, shape))
    for child, child_shape, child_path in _children(value, shape, path):
        yield from _violations(child, child_shape, child_path)


def _broken(value: Any, shape: Shape) -> Iterator[str]:
    rules = shape.metadata
    if "enum" in rules and value not in rules["enum"]:
        yield f"Member must satisfy enum value set: {rules['enum']}"
    if "max" in rules and _size(value) > rules["max"]:
        yield f"Member must have size or value at most {rules['max']}"
    pattern = _pattern(rules["pattern"]) if "pattern" in rules else None
    if pattern and not pattern.fullmatch(value):
        yield f"Member must satisfy regular expression pattern: {rules['pattern']}"
    if isinstance(value, bool) and shape.type_name in ("integer", "long"):
        yield "Member must be a number"


def _size(value: Any) -> float:
    return len(value) if isinstance(value, str | list | dict) else float(value)


@cache
def _pattern(text: str) -> re.Pattern[str] | None:
    """None for what only Java reads (character classes by property): left unchecked."""
    try:
        return re.compile(text)
    except re.error:
        return None


def _children(value: Any, shape: Shape, path: str) -> Iterator[tuple[Any, Shape, str]]:
    if isinstance(shape, StructureShape):
        yield from ((value[name], shape.members[name], f"{path}.{name}") for name in value)
    elif isinstance(shape, ListShape):
        yield from ((item, shape.member, f"{path}[{index}]") for index, item in enumerate(value))
    elif isinstance(shape, MapShape):
        for key, item in value.items():
            yield key, shape.key, f"{path} key {key}"
            yield item, shape.value, f"{path}.{key}"
