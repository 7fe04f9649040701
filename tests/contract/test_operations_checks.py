"""The checks of what CloudFormation made, over moto, and over answers in the shapes of botocore's models."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber
from moto import mock_aws
from sharewarden.domain.policy import Band, Bands, Policy, QueuePolicy
from sharewarden.domain.record import JobRecord
from sharewarden_tools.cli.deployment import Deployment
from sharewarden_tools.operations import checks_access, checks_pool, checks_wiring
from sharewarden_tools.operations.findings import Check, look
from sharewarden_tools.operations.site import Site
from sharewarden_tools.template import load_template, tables

from tests.simulation.samples import HOUR, described
from tests.simulation.world import NOW, QUEUE, World, world

ACCOUNT, REGION = "123456789012", "us-east-1"
TEMPLATE = load_template()
RULES = [name for name, item in TEMPLATE["Resources"].items() if item["Type"] == "AWS::Events::Rule"]
PARAMETERS = {
    "QueueArns": QUEUE,
    "ClassicQueueArns": "arn:aws:batch:us-east-1:123456789012:job-queue/etl",
    "MaxPriority": "999",
    "AlarmTopicArn": "arn:aws:sns:us-east-1:123456789012:on-call",
}


class Place:
    """A deployment on moto; ``clients`` may be replaced, ``outputs`` and ``parameters`` changed."""

    def __init__(self) -> None:
        self.world: World = world()
        self.clients: dict[str, Any] = {}
        self.sqs = boto3.client("sqs")
        self.outputs = {name: "x" for name, item in TEMPLATE["Outputs"].items() if "Condition" not in item}
        self.outputs |= {"StateTable": "State", "AuditTable": "Audit"}
        self.parameters = dict(PARAMETERS)
        self.status = "UPDATE_COMPLETE"
        self.age = HOUR
        self.resources: dict[str, str] = {name: f"stack-{name}" for name in RULES}
        for name in ("EventsQueue", "EventsDeadLetters", "NoticesDeadLetters", "LooksDeadLetters"):
            self.outputs[f"{name}Url"] = self.sqs.create_queue(QueueName=name)["QueueUrl"]
        attributes = {"FifoQueue": "true"}
        made = self.sqs.create_queue(QueueName="WishesDeadLetters.fifo", Attributes=attributes)
        self.outputs["WishesDeadLettersUrl"] = made["QueueUrl"]
        self.make_rules()
        self.let_in(RULES)

    def make_rules(self) -> None:
        events = boto3.client("events")
        target = {"Id": "q", "Arn": arn("EventsQueue"), "DeadLetterConfig": {"Arn": arn("EventsDeadLetters")}}
        for name in RULES:
            events.put_rule(Name=f"stack-{name}", EventPattern="{}")
            events.put_targets(Rule=f"stack-{name}", Targets=[target])

    def let_in(self, rules: list[str]) -> None:
        sources = [f"arn:aws:events:{REGION}:{ACCOUNT}:rule/stack-{name}" for name in rules]
        policy = {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Principal": {"Service": "events.amazonaws.com"},
                    "Action": "sqs:SendMessage",
                    "Resource": arn("EventsQueue"),
                    "Condition": {"ArnEquals": {"aws:SourceArn": sources}},
                }
            ],
        }
        self.sqs.set_queue_attributes(
            QueueUrl=self.outputs["EventsQueueUrl"], Attributes={"Policy": json.dumps(policy)}
        )

    def site(self) -> Site:
        deployment = Deployment("stack s", ACCOUNT, REGION, "ana", self.world.runtime, boto3.client("batch"))
        stack = {
            "StackName": "s",
            "StackStatus": self.status,
            "CreationTime": datetime.fromtimestamp((NOW - self.age) / 1000, UTC),
            "Outputs": [{"OutputKey": k, "OutputValue": v} for k, v in self.outputs.items()],
            "Parameters": [{"ParameterKey": k, "ParameterValue": v} for k, v in self.parameters.items()],
        }
        site = Site(deployment, self.client, {"STATE_TABLE": "State"}, stack)
        site.__dict__["resources"] = self.resources  # what ListStackResources would say
        return site

    def client(self, service: str) -> Any:
        return self.clients.get(service) or boto3.client(service)  # type: ignore[call-overload]

    def findings(self, check: Check) -> list[tuple[str, str]]:
        return [(found.state, found.seen) for found in look(self.site(), [check], lambda _: None)]


def arn(queue: str) -> str:
    return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}"


@pytest.fixture
def place() -> Iterator[Place]:
    with mock_aws():
        yield Place()


def make_tables(**more: Any) -> None:
    dynamodb = boto3.client("dynamodb")
    for table in tables(TEMPLATE):
        dynamodb.create_table(**table, DeletionProtectionEnabled=True, **more)
        dynamodb.update_continuous_backups(
            TableName=table["TableName"],
            PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
        )


def make_trail(**more: Any) -> Any:
    boto3.client("s3").create_bucket(Bucket="trail")
    cloudtrail = boto3.client("cloudtrail")
    cloudtrail.create_trail(Name="all", S3BucketName="trail", **more)
    cloudtrail.start_logging(Name="all")
    cloudtrail.put_event_selectors(
        TrailName="all", EventSelectors=[{"ReadWriteType": "All", "IncludeManagementEvents": True}]
    )
    return cloudtrail


def open_jobs(place: Place, **identity: Any) -> None:
    seen = described()
    fields = {"job": seen.job, "arn": seen.arn, "name": seen.name, "queue": seen.queue, "created_at": NOW}
    place.world.ledger.commit([JobRecord(**fields | identity)], [], NOW)


def well(place: Place) -> None:
    make_tables()
    make_trail()
    boto3.client("s3").create_bucket(Bucket="saves")
    open_jobs(place, checkpoint_uri="s3://saves/a")


@pytest.mark.parametrize(
    "check",
    [
        checks_wiring.stack,
        checks_wiring.rules,
        checks_wiring.queue_policy,
        checks_wiring.tables,
        checks_wiring.alarms,
        checks_wiring.dead_letters,
        checks_access.trail,
        checks_pool.priority_cap,
        checks_pool.notices,
        checks_pool.checkpoints,
    ],
    ids=lambda check: check.__name__,
)
def test_all_is_well(place: Place, check: Check) -> None:
    well(place)
    assert {state for state, _ in place.findings(check)} == {"ok"}


Damage = Callable[[Place], object]


def wide_band(place: Place) -> None:
    bands = Bands(human=Band(lowest=800, highest=1000))
    place.world.policies.policy = Policy(queues={"ml-train-qm": QueuePolicy(bands=bands)})


def retarget(place: Place, **target: Any) -> None:
    boto3.client("events").put_targets(
        Rule="stack-PreemptionRule", Targets=[{"Id": "q", "Arn": arn("EventsQueue")} | target]
    )


CASES: list[tuple[Check, Damage, str, str]] = [
    (checks_wiring.stack, lambda p: p.outputs.pop("AuditStreamArn"), "problem", "no output AuditStreamArn"),
    (checks_wiring.stack, lambda p: setattr(p, "status", "UPDATE_ROLLBACK_COMPLETE"), "warning", "ROLLBACK"),
    (
        checks_wiring.rules,
        lambda _: boto3.client("events").disable_rule(Name="stack-BatchCallsRule"),
        "problem",
        "BatchCallsRule is disabled",
    ),
    (checks_wiring.rules, retarget, "problem", "PreemptionRule has no dead-letter queue"),
    (
        checks_wiring.rules,
        lambda p: retarget(p, Arn=arn("other")),
        "problem",
        "PreemptionRule does not feed EventsQueue",
    ),
    (checks_wiring.rules, lambda p: p.resources.pop("TrainingJobRule"), "problem", "not in the stack"),
    (checks_wiring.queue_policy, lambda p: p.let_in(RULES[1:]), "problem", f"does not let in {RULES[0]}"),
    (checks_wiring.alarms, lambda p: p.parameters.update(AlarmTopicArn=""), "warning", "only show in"),
    (
        checks_wiring.dead_letters,
        lambda p: p.sqs.send_message(QueueUrl=p.outputs["EventsDeadLettersUrl"], MessageBody="x"),
        "problem",
        "about 1 in EventsDeadLetters",
    ),
    (
        checks_wiring.tables,
        lambda _: boto3.client("dynamodb").update_table(TableName="Audit", DeletionProtectionEnabled=False),
        "problem",
        "Audit may be deleted",
    ),
    (
        checks_wiring.tables,
        lambda _: boto3.client("dynamodb").update_continuous_backups(
            TableName="State", PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": False}
        ),
        "problem",
        "State has no point-in-time recovery",
    ),
    (
        checks_access.trail,
        lambda _: boto3.client("cloudtrail").stop_logging(Name="all"),
        "warning",
        "but not who made them",
    ),
    (
        checks_access.trail,
        lambda _: boto3.client("cloudtrail").put_event_selectors(
            TrailName="all", EventSelectors=[{"ReadWriteType": "ReadOnly", "IncludeManagementEvents": True}]
        ),
        "warning",
        "no trail logs management events",
    ),
    (checks_pool.priority_cap, wide_band, "problem", "bands reach 1000, MaxPriority is 999"),
    (
        checks_pool.checkpoints,
        lambda _: boto3.client("s3").delete_bucket(Bucket="saves"),
        "problem",
        "no such bucket",
    ),
    (checks_pool.checkpoints, lambda p: open_jobs(p, job="j2"), "warning", "have no CheckpointConfig"),
]


@pytest.mark.parametrize(("check", "damage", "state", "words"), CASES)
def test_what_is_broken_is_found(place: Place, check: Check, damage: Damage, state: str, words: str) -> None:
    well(place)
    damage(place)
    assert any(found == state and words in seen for found, seen in place.findings(check))


@pytest.mark.parametrize(("age", "state"), [(HOUR, "problem"), (0, "cannot tell")])
def test_a_new_stack_has_a_while_for_its_first_sweep(place: Place, age: int, state: str) -> None:
    place.age = age
    assert [found for found, _ in place.findings(checks_pool.sweep)] == [state]


def test_rules_for_containers_are_only_wanted_where_they_are_asked_for(place: Place) -> None:
    place.parameters["ClassicQueueArns"] = ""
    del place.resources["ClassicRule"]
    assert [state for state, _ in place.findings(checks_wiring.rules)] == ["ok"]


# --- what moto does not know ------------------------------------------------------------------------------


class Refusing:
    """A client whose every call is refused."""

    def __getattr__(self, name: str) -> Any:
        def refuse(**_: Any) -> Any:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "not yours"}}, name)

        return refuse


@pytest.mark.parametrize(
    ("service", "check"),
    [
        ("events", checks_wiring.rules),
        ("dynamodb", checks_wiring.tables),
        ("cloudtrail", checks_access.trail),
        ("iam", checks_access.roles),
        ("sqs", checks_wiring.dead_letters),
        ("batch", checks_pool.queues),
    ],
)
def test_who_may_not_look_is_told_so(place: Place, service: str, check: Check) -> None:
    place.resources["ReactRole"] = "react"
    place.resources["ApplyRole"] = place.resources["SweepRole"] = place.resources["AuditGuardRole"] = "x"
    place.clients[service] = Refusing()
    ((state, seen),) = place.findings(check)
    assert (state, "AccessDenied" in seen) == ("cannot tell", True)


def test_a_folder_that_the_caller_may_not_list_is_no_problem_of_the_jobs(place: Place) -> None:
    open_jobs(place, checkpoint_uri="s3://saves/a")
    place.clients["s3"] = Refusing()
    assert place.findings(checks_pool.checkpoints) == [("warning", "s3://saves/a: you may not list it")]


@pytest.mark.parametrize(
    ("fields", "logs"),
    [
        ({"eventCategory": ["Management"]}, True),
        ({"eventCategory": ["Management"], "readOnly": ["false"]}, True),
        ({"eventCategory": ["Management"], "readOnly": ["true"]}, False),
        ({"eventCategory": ["Data"]}, False),
    ],
)
def test_a_trail_with_advanced_selectors(place: Place, fields: dict[str, list[str]], logs: bool) -> None:
    cloudtrail = make_trail()
    selector = [{"Field": field, "Equals": values} for field, values in fields.items()]
    cloudtrail.put_event_selectors(TrailName="all", AdvancedEventSelectors=[{"FieldSelectors": selector}])
    assert [state for state, _ in place.findings(checks_access.trail)] == ["ok" if logs else "warning"]


ROLES = [name for name, item in TEMPLATE["Resources"].items() if item["Type"] == "AWS::IAM::Role"]
STATEMENT = {
    "Effect": "Allow",
    "Action": "batch:UpdateServiceJob",
    "Resource": f"arn:aws:batch:{REGION}:{ACCOUNT}:service-job/*",
    "Condition": {
        "NumericLessThanEquals": {"batch:SchedulingPriority": 999},
        "StringEquals": {"aws:ResourceTag/team": ["vision", "nlp"]},
    },
}
ASKED = {
    "ActionNames": ["batch:UpdateServiceJob"],
    "ResourceArns": [f"arn:aws:batch:{REGION}:{ACCOUNT}:service-job/any"],
    "ContextEntries": [
        {
            "ContextKeyName": "batch:SchedulingPriority",
            "ContextKeyType": "numeric",
            "ContextKeyValues": ["999"],
        },
        {
            "ContextKeyName": "aws:ResourceTag/team",
            "ContextKeyType": "string",
            "ContextKeyValues": ["vision"],
        },
    ],
}


@pytest.mark.parametrize("decision", ["allowed", "explicitDeny"])
def test_a_role_is_asked_what_its_own_policy_grants(place: Place, decision: str) -> None:
    iam = boto3.client("iam")
    with Stubber(iam) as stub:
        for name in ROLES:
            place.resources[name] = name
            role = {"Path": "/", "RoleName": name, "RoleId": "A" * 16, "CreateDate": "2026-01-01"}
            source = f"arn:aws:iam::{ACCOUNT}:role/{name}"
            stub.add_response("get_role", {"Role": role | {"Arn": source}}, {"RoleName": name})
            stub.add_response("list_role_policies", {"PolicyNames": ["own"]}, {"RoleName": name})
            document = {"RoleName": name, "PolicyName": "own", "PolicyDocument": json.dumps(TRIMMED)}
            stub.add_response("get_role_policy", document, {"RoleName": name, "PolicyName": "own"})
            result = {"EvalActionName": "batch:UpdateServiceJob", "EvalDecision": decision}
            answer = {"EvaluationResults": [result]}
            stub.add_response("simulate_principal_policy", answer, {"PolicySourceArn": source, **ASKED})
        place.clients["iam"] = Decoding(iam)
        found = place.findings(checks_access.roles)
    assert {state for state, _ in found} == {"ok" if decision == "allowed" else "problem"}
    assert len(found) == len(ROLES)


TRIMMED = {"Version": "2012-10-17", "Statement": [STATEMENT]}


class Decoding:
    """IAM as boto3 hands it over: policy documents are read already (botocore, json_decode_policies)."""

    def __init__(self, iam: Any) -> None:
        self._iam = iam

    def __getattr__(self, name: str) -> Any:
        return getattr(self._iam, name)

    def get_role_policy(self, **request: Any) -> dict[str, Any]:
        answer = self._iam.get_role_policy(**request)
        document = answer["PolicyDocument"]
        return {"PolicyDocument": json.loads(document) if isinstance(document, str) else document}


def test_a_role_that_is_gone_or_empty_can_do_nothing(place: Place) -> None:
    iam = boto3.client("iam")
    iam.create_role(RoleName="empty", AssumeRolePolicyDocument="{}")
    place.resources["ReactRole"] = "empty"
    assert {state for state, _ in place.findings(checks_access.roles)} == {"problem"}


def test_what_cloudformation_made_is_listed() -> None:
    with mock_aws():
        body = {"Resources": {"Q": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "made"}}}}
        boto3.client("cloudformation").create_stack(StackName="s", TemplateBody=json.dumps(body))
        place = Place().site()
        del place.__dict__["resources"]
        assert place.resources["Q"].endswith("/made")
