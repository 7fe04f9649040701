"""The template against its promises: nothing is lost on the way, roles are narrow, data stays."""

from collections.abc import Iterator
from typing import Any

import pytest
from sharewarden_tools.template import TemplateError, load_template, resolve, tables

PARAMETERS: dict[str, Any] = {
    "QueueArns": ["arn:aws:batch:us-east-1:123456789012:job-queue/ml-train-qm"],
    "ClassicQueueArns": ["arn:aws:batch:us-east-1:123456789012:job-queue/etl-spot"],
    "MaxPriority": 900,
}
TEMPLATE = load_template()
RESOURCES = resolve(TEMPLATE, PARAMETERS)
UNSCOPED = {"batch:DescribeServiceJob", "batch:ListServiceJobs"}  # Service Authorization Reference, AWS Batch
FUNCTIONS = ("React", "Apply", "Sweep")


def of_type(kind: str) -> dict[str, dict[str, Any]]:
    return {name: item["Properties"] for name, item in RESOURCES.items() if item["Type"] == kind}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def arn(name: str) -> str:
    return str(resolve_value({"Fn::GetAtt": [name, "Arn"]}))


def resolve_value(node: Any) -> Any:
    """What an expression comes to in this template."""
    probe = TEMPLATE | {"Resources": TEMPLATE["Resources"] | {"Probe": {"Type": "Probe", "Properties": node}}}
    return resolve(probe, PARAMETERS)["Probe"]["Properties"]


def statements(function: str) -> list[dict[str, Any]]:
    role = RESOURCES[f"{function}Role"]["Properties"]
    assert "ManagedPolicyArns" not in role
    return [each for policy in role["Policies"] for each in policy["PolicyDocument"]["Statement"]]


def grants(function: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(action, resource, condition) of all that the function's role allows."""
    for statement in statements(function):
        for action in as_list(statement["Action"]):
            for resource in as_list(statement["Resource"]):
                yield action, resource, statement.get("Condition", {})


@pytest.mark.parametrize("rule", of_type("AWS::Events::Rule").values(), ids=of_type("AWS::Events::Rule"))
def test_a_rule_delivers_to_the_events_queue_and_keeps_what_it_cannot_deliver(rule: dict[str, Any]) -> None:
    assert [target["Arn"] for target in rule["Targets"]] == [arn("EventsQueue")]
    assert [target["DeadLetterConfig"]["Arn"] for target in rule["Targets"]] == [arn("EventsDeadLetters")]
    assert rule.get("State", "ENABLED") == "ENABLED"
    assert "EventBusName" not in rule, "AWS services send to the default bus"


def test_every_rule_and_nobody_else_may_send_to_the_events_queues() -> None:
    (policy,) = of_type("AWS::SQS::QueuePolicy").values()
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert statement["Action"] == "sqs:SendMessage"
    assert statement["Principal"] == {"Service": "events.amazonaws.com"}
    assert set(statement["Resource"]) == {arn("EventsQueue"), arn("EventsDeadLetters")}
    allowed = statement["Condition"]["ArnEquals"]["aws:SourceArn"]
    assert sorted(allowed) == sorted(arn(rule) for rule in of_type("AWS::Events::Rule"))


@pytest.mark.parametrize("queue", of_type("AWS::SQS::Queue"))
def test_a_queue_is_encrypted_and_keeps_messages_as_long_as_it_can(queue: str) -> None:
    properties = of_type("AWS::SQS::Queue")[queue]
    assert properties["SqsManagedSseEnabled"] is True
    assert properties["MessageRetentionPeriod"] == 14 * 24 * 3600


@pytest.mark.parametrize(
    ("queue", "dead_letters"), [("EventsQueue", "EventsDeadLetters"), ("WishesQueue", "WishesDeadLetters")]
)
def test_a_queue_gives_up_late_and_to_a_dead_letter_queue_of_its_kind(queue: str, dead_letters: str) -> None:
    properties = of_type("AWS::SQS::Queue")
    redrive = properties[queue]["RedrivePolicy"]
    assert redrive["deadLetterTargetArn"] == arn(dead_letters)
    assert redrive["maxReceiveCount"] >= 10
    assert properties[queue].get("FifoQueue") == properties[dead_letters].get("FifoQueue")


@pytest.mark.parametrize(("function", "queue"), [("React", "EventsQueue"), ("Apply", "WishesQueue")])
def test_a_queue_hides_a_message_for_six_time_outs_of_its_reader(function: str, queue: str) -> None:
    properties = RESOURCES[function]["Properties"]
    (source,) = [event["Properties"] for event in properties["Events"].values()]
    assert source["Queue"] == arn(queue)
    assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert of_type("AWS::SQS::Queue")[queue]["VisibilityTimeout"] >= 6 * properties["Timeout"]


def test_one_sweep_at_a_time_and_each_ends_before_the_next() -> None:
    sweep = RESOURCES["Sweep"]["Properties"]
    assert sweep["ReservedConcurrentExecutions"] == 1
    (schedule,) = [event["Properties"]["ScheduleExpression"] for event in sweep["Events"].values()]
    assert schedule == "rate(5 minutes)"
    assert sweep["Timeout"] < 5 * 60


@pytest.mark.parametrize("table", ["State", "Audit"])
def test_a_table_outlives_mistakes(table: str) -> None:
    resource = RESOURCES[table]
    assert resource["DeletionPolicy"] == resource["UpdateReplacePolicy"] == "Retain"
    properties = resource["Properties"]
    assert properties["DeletionProtectionEnabled"] is True
    assert properties["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert properties["SSESpecification"] == {"SSEEnabled": True}
    assert "TableName" not in properties, "a fixed name would forbid a second stack"


def test_state_ages_out_and_audit_does_not() -> None:
    expiry = of_type("AWS::DynamoDB::Table")
    assert expiry["State"]["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}
    assert "TimeToLiveSpecification" not in expiry["Audit"]


def test_tables_come_as_arguments_of_create_table() -> None:
    by_name = {table["TableName"]: table for table in tables(TEMPLATE)}
    keys = {name: [key["AttributeName"] for key in table["KeySchema"]] for name, table in by_name.items()}
    assert keys == {"State": ["pk", "sk"], "Audit": ["key"]}
    indexes = {index["IndexName"] for index in by_name["Audit"]["GlobalSecondaryIndexes"]}
    assert indexes == {"by_share", "by_job", "by_actor"}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_has_a_role_and_a_log_of_its_own(function: str) -> None:
    properties = RESOURCES[function]["Properties"]
    assert properties["Role"] == arn(f"{function}Role")
    assert properties["LoggingConfig"] == {"LogGroup": f"{function}Log"}
    assert RESOURCES[f"{function}Log"]["Properties"]["RetentionInDays"] == 90
    assert "Policies" not in properties, "a policy here would be ignored beside a role"


def test_every_function_and_role_is_covered_by_these_tests() -> None:
    assert set(of_type("AWS::Serverless::Function")) == set(FUNCTIONS)
    assert set(of_type("AWS::IAM::Role")) == {f"{function}Role" for function in FUNCTIONS}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_role_serves_its_function_and_names_what_it_allows(function: str) -> None:
    trust = RESOURCES[f"{function}Role"]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert [each["Principal"] for each in trust] == [{"Service": "lambda.amazonaws.com"}]
    assert all(statement["Effect"] == "Allow" for statement in statements(function))
    for action, resource, _ in grants(function):
        assert "*" not in action
        assert resource != "*" or action in UNSCOPED


@pytest.mark.parametrize("function", FUNCTIONS)
def test_state_is_read_and_put_and_only_sweep_lists_what_is_open(function: str) -> None:
    state = {
        (action, resource) for action, resource, _ in grants(function) if resource.startswith(arn("State"))
    }
    records = {("dynamodb:GetItem", arn("State")), ("dynamodb:PutItem", arn("State"))}
    listing = {("dynamodb:Query", f"{arn('State')}/index/open")} if function == "Sweep" else set()
    assert state == records | listing


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_audit_is_append_only(function: str) -> None:
    audit = {action for action, resource, _ in grants(function) if resource.startswith(arn("Audit"))}
    assert audit == {"dynamodb:PutItem"}


@pytest.mark.parametrize(
    ("function", "readers"),
    [
        ("React", {"batch:DescribeServiceJob"}),
        ("Apply", {"batch:DescribeServiceJob", "batch:UpdateServiceJob"}),
        ("Sweep", {"batch:DescribeServiceJob", "batch:ListQuotaShares", "batch:ListServiceJobs"}),
    ],
)
def test_only_apply_may_change_a_job(function: str, readers: set[str]) -> None:
    assert {action for action, _, _ in grants(function) if action.startswith("batch:")} == readers


def test_apply_sets_no_priority_above_the_cap() -> None:
    ((resource, condition),) = [(r, c) for a, r, c in grants("Apply") if a == "batch:UpdateServiceJob"]
    assert resource == "arn:aws:batch:us-east-1:123456789012:service-job/*"
    assert condition == {"NumericLessThanEquals": {"batch:SchedulingPriority": 900}}


def test_sweep_reads_the_shares_of_the_named_queues_alone() -> None:
    scope = {resource for action, resource, _ in grants("Sweep") if action == "batch:ListQuotaShares"}
    assert scope == set(PARAMETERS["QueueArns"])


@pytest.mark.parametrize(
    ("sender", "queues"),
    [("React", {"EventsDeadLetters"}), ("Apply", {"EventsDeadLetters"}), ("Sweep", {"WishesQueue"})],
)
def test_a_function_sends_where_it_has_to(sender: str, queues: set[str]) -> None:
    sent = {resource for action, resource, _ in grants(sender) if action == "sqs:SendMessage"}
    assert sent == {arn(queue) for queue in queues}


def test_functions_learn_where_things_are_from_their_environment() -> None:
    environment = resolve_value(TEMPLATE["Globals"]["Function"]["Environment"]["Variables"])
    assert environment == {
        "STATE_TABLE": "State",
        "AUDIT_TABLE": "Audit",
        "WISHES_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/WishesQueue.fifo",
        "EVENTS_DEAD_LETTERS_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/EventsDeadLetters",
        "QUEUE_ARNS": PARAMETERS["QueueArns"][0],
        "CLASSIC_QUEUE_ARNS": PARAMETERS["ClassicQueueArns"][0],
        "OWN_ROLE": "ApplyRole",
        "POWERTOOLS_SERVICE_NAME": "sharewarden",
        "POWERTOOLS_METRICS_NAMESPACE": "Sharewarden",
        "LOG_LEVEL": "INFO",
    }


def test_a_parameter_without_value_is_named() -> None:
    with pytest.raises(TemplateError, match="QueueArns needs a value"):
        resolve(TEMPLATE, {})


def test_an_unknown_intrinsic_function_is_refused() -> None:
    with pytest.raises(TemplateError, match="Fn::Base64"):
        resolve_value({"Fn::Base64": "x"})
