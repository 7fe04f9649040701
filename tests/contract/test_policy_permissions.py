"""What the commands about the policy ask of AWS, recorded, against what the template lets people do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws
from sharewarden.usecases.bump import Refused
from sharewarden_tools.cli.policy_push import Asked, push_policy, roll_back
from sharewarden_tools.cli.policy_show import diff, history, show
from sharewarden_tools.cli.shadow import Asked as Wanted
from sharewarden_tools.cli.shadow import report
from sharewarden_tools.operations.site import Site, _client, open_site
from sharewarden_tools.policy.file import EXAMPLE, load_policy
from sharewarden_tools.template import load_template, tables

from tests.template.roles import STACK_ARN
from tests.template.stack import QUEUE_ARN, Stack

Call = tuple[str, str]
"""An action and what it is about, as the template's tests name it."""

TABLES = ("State", "Audit")
YES = Asked("why", yes=True)


@pytest.fixture
def calls() -> Iterator[list[Call]]:
    """A deployed stack as CloudFormation tells of it, and every call to AWS from now on."""
    with mock_aws():
        for table in tables(load_template()):
            boto3.client("dynamodb").create_table(**table)
        make_stack()
        recorded: list[Call] = []
        boto3.setup_default_session()
        session: Any = boto3.DEFAULT_SESSION
        session.events.register(
            "provide-client-params", lambda params, model, **_: recorded.extend(asked(model, params))
        )
        _client.cache_clear()
        yield recorded
        _client.cache_clear()
        boto3.DEFAULT_SESSION = None


def make_stack() -> None:
    """Only its outputs and parameters matter."""
    names = load_template()["Outputs"]
    values = dict.fromkeys(names, "http://localhost/q") | {f"{name}Table": name for name in TABLES}
    body = {
        "Parameters": {name: {"Type": "String"} for name in ("QueueArns", "ClassicQueueArns", "MaxPriority")},
        "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
        "Outputs": {name: {"Value": value} for name, value in values.items()},
    }
    given = {"QueueArns": QUEUE_ARN, "ClassicQueueArns": "", "MaxPriority": "999"}
    boto3.client("cloudformation").create_stack(
        StackName="sharewarden",
        TemplateBody=json.dumps(body),
        Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in given.items()],
    )


def asked(model: Any, params: dict[str, Any]) -> Iterator[Call]:
    """A transaction is authorised by its parts."""
    if model.name == "TransactWriteItems":
        for item in params["TransactItems"]:
            yield from ((f"dynamodb:{kind}Item", part["TableName"]) for kind, part in item.items())
        return
    service = model.service_model.service_name
    about = STACK_ARN if service == "cloudformation" else params.get("TableName", "*")
    index = f"/index/{params['IndexName']}" if "IndexName" in params else ""
    yield f"{service}:{model.name}", f"{about}{index}"


def granted(*policies: str) -> set[Call]:
    stack = Stack(load_template())
    return {grant for policy in policies for grant in stack.grants(policy)}


def everything(site: Site) -> None:
    """Each command about the policy, each way through it that asks AWS for something else."""
    push_policy(site, EXAMPLE, YES)
    push_policy(site, EXAMPLE, YES)
    diff(site, load_policy(), as_json=True)
    roll_back(site, "1", YES)
    for wanted in (None, "1"):
        show(site, wanted, as_json=True)
    history(site, 20, as_json=True)


def put_by_hand(site: Site) -> None:
    site.client("dynamodb").put_item(
        TableName="State",
        Item={"pk": {"S": "POLICY"}, "sk": {"S": "CURRENT"}, "doc": {"S": "{}"}},
    )


#: Anybody may ask who he is (AWS STS API, GetCallerIdentity).
FREE = {("sts:GetCallerIdentity", "*")}


@pytest.mark.parametrize("before", [lambda _site: None, put_by_hand], ids=["first ever", "over one by hand"])
def test_the_admin_may_do_exactly_what_the_commands_ask(
    calls: list[Call], before: Callable[[Site], None]
) -> None:
    site = open_site("sharewarden", local=False)
    before(site)
    everything(site)
    needed = set(calls) - FREE
    assert needed <= granted("AdminPolicy")
    assert needed == {
        ("cloudformation:DescribeStacks", STACK_ARN),
        *((f"dynamodb:{action}", "State") for action in ("GetItem", "PutItem", "Query")),
        ("dynamodb:PutItem", "Audit"),
    }


def test_the_shadow_report_asks_what_admin_and_auditor_may_together(calls: list[Call]) -> None:
    site = open_site("sharewarden", local=False)
    report(site.deployment, Wanted("1h"), as_json=True)
    needed = set(calls) - FREE
    covered = {(action, target.replace("/index/by_share", "/index/*")) for action, target in needed}
    assert covered <= granted("AdminPolicy", "AuditorPolicy")
    assert ("dynamodb:Query", "Audit/index/by_share") in needed
    assert not covered <= granted("AdminPolicy")


def test_who_pushes_is_the_caller_as_sts_names_it(calls: list[Call], tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("hold: 1h\n")
    site = open_site("sharewarden", local=False)
    push_policy(site, file, YES)
    row = site.client("dynamodb").get_item(
        TableName="State", Key={"pk": {"S": "POLICY"}, "sk": {"S": "VERSION#00000001"}}
    )["Item"]
    assert row["author"]["S"] == boto3.client("sts").get_caller_identity()["Arn"]
    assert ("sts:GetCallerIdentity", "*") in calls


def test_bands_above_the_stacks_own_parameter_are_refused(calls: list[Call], tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(
        "queues: {ml-train-qm: {bands: {automatic: LOW, human: HIGH}}}\n".replace(
            "LOW", "{lowest: 0, highest: 400}"
        ).replace("HIGH", "{lowest: 401, highest: 501}")
    )
    boto3.client("cloudformation").update_stack(
        StackName="sharewarden",
        UsePreviousTemplate=True,
        Parameters=[
            *({"ParameterKey": name, "UsePreviousValue": True} for name in ("QueueArns", "ClassicQueueArns")),
            {"ParameterKey": "MaxPriority", "ParameterValue": "500"},
        ],
    )
    with pytest.raises(Refused, match=r"above 500, .*those of ml-train-qm reach 501"):
        push_policy(open_site("sharewarden", local=False), file, YES)
    assert ("dynamodb:PutItem", "State") not in calls
