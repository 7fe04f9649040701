"""The local AWS: ministack, with the gaps closed that a deployment of Sharewarden meets.

Run as a script by the Python of ministack's own environment; :mod:`.process` does. It replaces private
functions, so that version is pinned, and each replacement has its test in ``tests/e2e/deployed``.
"""

# mypy: disable-error-code="import-not-found"

import json
from contextvars import ContextVar
from typing import Any

import yaml
from ministack.app import main
from ministack.services import eventbridge
from ministack.services.cloudformation import changesets, engine, handlers, provisioners, stacks

Answer = tuple[int, dict[str, str], bytes]

_put, _now = eventbridge._put_events, eventbridge._now_ts
_evaluate = engine._evaluate_conditions
_alarm_record = provisioners._cw_metric_alarm_record
_create_table = provisioners._RESOURCE_HANDLERS["AWS::DynamoDB::Table"]["create"]
_iso_time = provisioners.now_iso
_state_machine = provisioners._sfn_definition
_in_table: ContextVar[bool] = ContextVar("whether a table is being made", default=False)
_time: ContextVar[float | None] = ContextVar("time of the event that is being put", default=None)


# PutEvents: whoever plays AWS Batch or SageMaker needs their `aws.*` sources and the time of what happened.


def put_events(data: dict[str, Any], allow_aws_source: bool = False) -> Answer:  # noqa: ARG001
    """PutEvents from any source; ``Time`` of an entry holds, as on AWS (ministack takes that of the call)."""
    results: list[dict[str, Any]] = []
    for entry in data["Entries"]:
        status, headers, body = _put_one(entry)
        if status != 200:
            return status, headers, body
        results += json.loads(body)["Entries"]
    failed = sum("ErrorCode" in result for result in results)
    return 200, headers, json.dumps({"FailedEntryCount": failed, "Entries": results}).encode()


def _put_one(entry: dict[str, Any]) -> Answer:
    token = _time.set(entry.get("Time"))
    try:
        answer: Answer = _put({"Entries": [entry]}, True)
        return answer
    finally:
        _time.reset(token)


def event_time() -> float:
    given = _time.get()
    return float(_now()) if given is None else given


# CloudFormation: `Fn::Join` inside Conditions, which ministack takes for a value that equals nothing.


def evaluate_conditions(template: dict[str, Any], params: dict[str, Any]) -> dict[str, bool]:
    conditions = _joined(template.get("Conditions", {}), params)
    answer: dict[str, bool] = _evaluate({**template, "Conditions": conditions}, params)
    return answer


def _joined(node: Any, params: dict[str, Any]) -> Any:
    """The node with each join replaced by its value; a list parameter is one string with commas here."""
    if isinstance(node, list):
        return [_joined(item, params) for item in node]
    if not isinstance(node, dict):
        return node
    if "Fn::Join" in node:
        separator, source = node["Fn::Join"]
        return separator.join(str(params[source["Ref"]]["Value"]).split(","))
    return {key: _joined(value, params) for key, value in node.items()}


# DynamoDB by CloudFormation: a stream is labelled without the `Z` that ministack lets its ARN end in.


def create_table(logical_id: str, props: dict[str, Any], stack_name: str) -> Any:
    token = _in_table.set(True)
    try:
        return _create_table(logical_id, props, stack_name)
    finally:
        _in_table.reset(token)


def iso_time() -> str:
    text = str(_iso_time())
    return text.removesuffix("Z") if _in_table.get() else text


# CloudWatch: an alarm on metric math is made, as on AWS, but never evaluated.


def alarm_record(name: str, props: dict[str, Any]) -> dict[str, Any]:
    if "Metrics" in props:
        shown = next(metric for metric in props["Metrics"] if metric.get("ReturnData", True))
        props = {**props, "Metrics": None, "Namespace": "metric math", "MetricName": shown["Id"]}
    answer: dict[str, Any] = _alarm_record(name, props)
    return answer


# Step Functions by CloudFormation: a definition in YAML, as S3 may hold it; ministack reads JSON alone.


def state_machine(props: dict[str, Any]) -> str:
    return json.dumps(yaml.safe_load(_state_machine(props)))


def close_gaps() -> None:
    eventbridge._put_events = put_events
    eventbridge._now_ts = event_time
    provisioners._cw_metric_alarm_record = alarm_record
    provisioners._RESOURCE_HANDLERS["AWS::DynamoDB::Table"]["create"] = create_table
    provisioners.now_iso = iso_time
    provisioners._sfn_definition = state_machine
    for module in (changesets, engine, handlers, stacks):
        module._evaluate_conditions = evaluate_conditions


if __name__ == "__main__":
    close_gaps()
    main()
