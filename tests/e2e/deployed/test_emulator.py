"""The gaps of the local AWS that server.py closes, and what this suite relies on beside them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from sharewarden_tools.emulator.deployed import STACK, Deployed
from sharewarden_tools.local.environment import aws_environment

from tests.e2e.deployed.kit import Pool, until

LONG_AGO = datetime(2026, 9, 14, 8, 0, tzinfo=UTC)


@pytest.fixture
def probe(stack: Deployed) -> Iterator[str]:
    """URL of a queue that a rule of its own delivers to."""
    sqs, events = stack.client("sqs"), stack.client("events")
    url = sqs.create_queue(QueueName="probe")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    rule = events.put_rule(Name="probe", EventPattern=json.dumps({"detail": {"probe": ["yes"]}}))["RuleArn"]
    allowed = {"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": arn}
    allowed["Condition"] = {"ArnEquals": {"aws:SourceArn": rule}}
    sqs.set_queue_attributes(
        QueueUrl=url,
        Attributes={"Policy": json.dumps({"Version": "2012-10-17", "Statement": [allowed]})},
    )
    events.put_targets(Rule="probe", Targets=[{"Id": "probe", "Arn": arn}])
    yield url
    events.remove_targets(Rule="probe", Ids=["probe"])
    events.delete_rule(Name="probe")
    sqs.delete_queue(QueueUrl=url)


def test_put_events_takes_the_sources_of_aws_and_the_time_of_each_event(stack: Deployed, probe: str) -> None:
    times = [LONG_AGO, LONG_AGO.replace(hour=9)]
    answer = stack.client("events").put_events(
        Entries=[
            {"Source": "aws.batch", "DetailType": "probe", "Detail": '{"probe": "yes"}', "Time": time}
            for time in times
        ]
    )
    assert answer["FailedEntryCount"] == 0
    assert sorted((event["source"], event["time"]) for event in _received(stack, probe, 2)) == [
        ("aws.batch", "2026-09-14T08:00:00Z"),
        ("aws.batch", "2026-09-14T09:00:00Z"),
    ]


def _received(stack: Deployed, url: str, count: int) -> list[dict[str, Any]]:
    sqs, found = stack.client("sqs"), list[dict[str, Any]]()

    def look() -> int:
        answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
        found.extend(json.loads(message["Body"]) for message in answer.get("Messages", ()))
        return len(found)

    until(look, lambda seen: seen >= count)
    return found


def test_a_condition_over_a_joined_list_is_understood(stack: Deployed) -> None:
    made = {
        row["LogicalResourceId"]
        for row in stack.client("cloudformation").describe_stack_resources(StackName=STACK)["StackResources"]
    }
    assert "ServiceJobRule" in made
    assert not {"ClassicRule", "ScientistPolicy"} & made, "both have conditions that do not hold"


def test_an_alarm_on_metric_math_is_made(stack: Deployed) -> None:
    name = stack.physical_id("SilenceAlarm")
    alarms = stack.client("cloudwatch").describe_alarms(AlarmNames=[name])["MetricAlarms"]
    assert [alarm["StateValue"] for alarm in alarms] == ["INSUFFICIENT_DATA"]


def test_the_label_of_a_stream_has_the_form_of_aws(stack: Deployed) -> None:
    """2015-05-11T21:21:33.291, as the template's parameter ExistingAuditStreamArn takes it."""
    label = stack.outputs["AuditStreamArn"].rpartition("/stream/")[2]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}", label)


# --- what the emulator enforces ----------------------------------------------------------------------------


def test_who_may_only_read_the_audit_cannot_write_it(stack: Deployed) -> None:
    with aws_environment(stack.user("auditor", "AuditorPolicyArn")):
        dynamodb = boto3.client("dynamodb")
    table = stack.outputs["AuditTable"]
    assert dynamodb.scan(TableName=table)["ResponseMetadata"]["HTTPStatusCode"] == 200
    with pytest.raises(ClientError, match="AccessDenied"):
        dynamodb.put_item(TableName=table, Item={"key": {"S": "forged"}})
    with pytest.raises(ClientError, match="AccessDenied"):
        dynamodb.scan(TableName=stack.outputs["StateTable"])


def test_a_changed_record_of_the_audit_sounds_the_alarm(stack: Deployed, pool: Pool) -> None:
    pool.submit("background-1", 1000)
    pool.wait_for("SUCCEEDED", "background-1")
    key = pool.wait_for_facts("background-1", "job-ended")[0].key
    stack.client("dynamodb").update_item(
        TableName=stack.outputs["AuditTable"],
        Key={"key": {"S": key}},
        UpdateExpression="SET forged = :yes",
        ExpressionAttributeValues={":yes": {"BOOL": True}},
    )
    log = stack.physical_id("AuditGuardLog")
    lines = until(
        lambda: [
            row["message"]
            for row in stack.client("logs").filter_log_events(logGroupName=log)["events"]
            if "AUDIT CHANGED" in row["message"]
        ]
    )
    assert key in lines[0]
