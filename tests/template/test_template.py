"""The template keeps its promises, with every option on and with the defaults."""

import re
from collections.abc import Iterable
from itertools import takewhile
from typing import Any

import pytest
from sharewarden_tools.template import TEMPLATE, TemplateError, load_template, resolve, tables

from tests.template import checks, roles
from tests.template.checks import Check
from tests.template.stack import EXISTING_AUDIT, OLD_AUDIT, PARAMETERS, QUEUE_ARN, Grant, Stack

CHECKS: tuple[Check, ...] = (
    checks.rules,
    checks.queue_policy,
    checks.queues,
    checks.readers,
    checks.schedules,
    checks.tables,
    checks.audit_guard,
    checks.functions,
    checks.machines,
    checks.alarms,
    checks.alarm_texts,
    checks.names,
    roles.no_wider,
    roles.trusts,
    roles.as_code_needs,
)
RAW = load_template()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_template_keeps_its_promise(check: Check) -> None:
    assert list(check(Stack(RAW))) == []


@pytest.mark.parametrize("parameter", sorted(RAW["Parameters"]))
def test_a_parameter_is_described_grouped_and_bounded(parameter: str) -> None:
    declared = RAW["Parameters"][parameter]
    groups = RAW["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    assert [parameter in group["Parameters"] for group in groups].count(True) == 1
    assert declared["Description"]
    assert {"AllowedPattern", "AllowedValues", "MinValue"} & declared.keys()


@pytest.mark.parametrize(
    "parameter", [name for name, item in RAW["Parameters"].items() if "AllowedPattern" in item]
)
def test_a_pattern_takes_its_default_and_what_it_is_for(parameter: str) -> None:
    declared = RAW["Parameters"][parameter]
    given = (PARAMETERS | EXISTING_AUDIT)[parameter]
    for value in [*(given if isinstance(given, list) else [given]), declared.get("Default", QUEUE_ARN)]:
        assert re.fullmatch(declared["AllowedPattern"], value)
    assert not re.fullmatch(declared["AllowedPattern"], "no;thing")


def test_everything_unscoped_is_explained_where_it_stands() -> None:
    lines = [line for line in TEMPLATE.read_text().splitlines() if 'Resource: "*"' in line]
    assert len(lines) >= len(RAW["Resources"]) // 10
    assert [line for line in lines if "#" not in line] == []


def test_a_redeploy_can_go_on_with_the_audit_of_an_earlier_stack() -> None:
    stack = Stack(RAW, **EXISTING_AUDIT)
    assert "Audit" not in stack.resources
    assert variables(stack)["AUDIT_TABLE"] == EXISTING_AUDIT["ExistingAuditTable"]
    for name in ("React", "Apply", "Sweep"):
        assert ("dynamodb:PutItem", OLD_AUDIT) in stack.grants(f"{name}Role")
    assert {target for _, target in stack.grants("AuditorPolicy")} == {OLD_AUDIT, f"{OLD_AUDIT}/index/*"}
    ((_, _, source),) = stack.sources("DynamoDB")
    assert source["Stream"] == EXISTING_AUDIT["ExistingAuditStreamArn"]
    assert ("dynamodb:GetRecords", f"{OLD_AUDIT}/stream/*") in stack.grants("AuditGuardRole")


def test_what_is_not_asked_for_is_not_there() -> None:
    nothing = dict.fromkeys(
        (
            *("JobTeams", "AlarmTopicArn", "CheckpointBucketArns", "ResubmitRoleArns"),
            *("ScientistShareArns", "TrainingRoleArns"),
        ),
        "",
    )
    stack = Stack(RAW, **nothing)
    ((condition),) = [c for (a, _), c in stack.grants("ApplyRole").items() if a == "batch:UpdateServiceJob"]
    assert "ResourceTag" not in condition
    assert "SchedulingPriority" in condition
    made = {"batch:SubmitServiceJob", "batch:TagResource", "batch:ListServiceJobs", "iam:PassRole"}
    assert not made & {action for action, _ in stack.grants("ApplyRole")}
    assert "ScientistPolicy" not in stack.resources
    assert not any(action.startswith("s3:") for name in roles.ALLOWED for action, _ in _grants(stack, name))
    assert not any("AlarmActions" in alarm for alarm in stack.of_type("AWS::CloudWatch::Alarm").values())


def _grants(stack: Stack, name: str) -> Iterable[Grant]:
    return stack.grants(name) if name in stack.resources else ()


def test_tables_come_as_arguments_of_create_table() -> None:
    by_name = {table["TableName"]: table for table in tables(RAW)}
    keys = {name: [key["AttributeName"] for key in table["KeySchema"]] for name, table in by_name.items()}
    assert keys == {"State": ["pk", "sk"], "Audit": ["key"]}
    indexes = {index["IndexName"] for index in by_name["Audit"]["GlobalSecondaryIndexes"]}
    assert indexes == {"by_share", "by_job", "by_actor"}


def variables(stack: Stack) -> dict[str, Any]:
    found: dict[str, Any] = stack.value(RAW["Globals"]["Function"]["Environment"]["Variables"])
    return found


def test_functions_learn_where_things_are_from_their_environment() -> None:
    assert variables(Stack(RAW)) == {
        "STATE_TABLE": "State",
        "AUDIT_TABLE": "Audit",
        "WISHES_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/WishesQueue.fifo",
        "NOTICES_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/NoticesQueue",
        "LOOKS_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/LooksQueue",
        "CHECKPOINT_BUCKET_ARNS": "arn:aws:s3:::ckpt-a,arn:aws:s3:::ckpt-b",
        "EVENTS_DEAD_LETTERS_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/EventsDeadLetters",
        "QUEUE_ARNS": QUEUE_ARN,
        "CLASSIC_QUEUE_ARNS": PARAMETERS["ClassicQueueArns"][0],
        "OWN_ROLE": "ApplyRole",
        "POWERTOOLS_SERVICE_NAME": "sharewarden",
        "POWERTOOLS_METRICS_NAMESPACE": "Sharewarden",
        "LOG_LEVEL": "INFO",
    }


def test_a_parameter_without_value_is_named() -> None:
    with pytest.raises(TemplateError, match="QueueArns needs a value"):
        resolve(RAW, {})


def test_an_unknown_intrinsic_function_is_refused() -> None:
    with pytest.raises(TemplateError, match="Fn::Base64"):
        Stack(RAW).value({"Fn::Base64": "x"})


@pytest.mark.parametrize("name", sorted(roles.ALLOWED))
def test_the_documentation_lists_what_a_role_allows(name: str) -> None:
    lines = (TEMPLATE.parent / "docs" / "permissions.md").read_text().split(f"\n| {name} |")[1].splitlines()
    own = "\n".join(lines[:1] + list(takewhile(lambda line: line.startswith("| |"), lines[1:])))
    log = set(roles.LOG.split())
    actions = {action for action, _ in Stack(RAW).grants(name)} - log
    assert set(re.findall(r"`([a-z0-9]+:[A-Za-z]+)`", own)) == actions
