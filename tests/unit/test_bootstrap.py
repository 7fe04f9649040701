"""The composition root: what it reads from the environment and what it makes."""

import os
import time

import pytest
from pydantic import ValidationError
from sharewarden.aws.clock import SystemClock
from sharewarden.aws.s3 import S3Checkpoints
from sharewarden.aws.sns import SnsTopic
from sharewarden.aws.stepfunctions import StepFunctionsWorkflows
from sharewarden.aws.webhook import Webhook
from sharewarden.bootstrap import ONCE, aws_runtime, lambda_runtime, settings
from sharewarden.ports import Nowhere, NoWorkflows
from sharewarden_tools.memory import MemoryClock

QUEUE = "arn:aws:batch:us-east-1:123456789012:job-queue/ml-train-qm"
ENV = {
    "STATE_TABLE": "State",
    "AUDIT_TABLE": "Audit",
    "WISHES_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/Wishes.fifo",
    "NOTICES_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/Notices",
    "EVENTS_DEAD_LETTERS_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/Letters",
    "QUEUE_ARNS": QUEUE,
    "AWS_SESSION_TOKEN": "very-secret",
}

WORKFLOW = {"PREEMPTION_WORKFLOW_ARN": "arn:aws:states:us-east-1:123456789012:stateMachine:Preemption"}


@pytest.mark.parametrize(
    "name",
    [
        "STATE_TABLE",
        "AUDIT_TABLE",
        "WISHES_QUEUE_URL",
        "NOTICES_QUEUE_URL",
        "EVENTS_DEAD_LETTERS_URL",
        "QUEUE_ARNS",
    ],
)
@pytest.mark.parametrize("value", [None, ""], ids=["missing", "empty"])
def test_a_variable_that_is_needed_is_named(name: str, value: str | None) -> None:
    env = ENV | {name: value} if value is not None else {key: ENV[key] for key in ENV if key != name}
    with pytest.raises(ValidationError) as raised:
        settings(env)  # type: ignore[arg-type]
    assert name in str(raised.value)
    assert "very-secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [(QUEUE, {QUEUE}), (f" {QUEUE}, b ,,", {QUEUE, "b"}), ("a,a", {"a"})],
)
def test_queues_are_separated_by_commas(text: str, expected: set[str]) -> None:
    assert settings(ENV | {"QUEUE_ARNS": text}).queue_arns == expected


@pytest.mark.parametrize(
    ("extra", "expected"),
    [({}, set()), ({"CLASSIC_QUEUE_ARNS": ""}, set()), ({"CLASSIC_QUEUE_ARNS": "c"}, {"c"})],
)
def test_classic_queues_may_be_none(extra: dict[str, str], expected: set[str]) -> None:
    assert settings(ENV | extra).classic_queue_arns == expected


def test_only_commas_are_no_queue() -> None:
    with pytest.raises(ValidationError, match="QUEUE_ARNS"):
        settings(ENV | {"QUEUE_ARNS": " , "})


def test_the_runtime_takes_a_clock() -> None:
    clock = MemoryClock(5)
    runtime = aws_runtime(ENV | {"CLASSIC_QUEUE_ARNS": "c", "OWN_ROLE": "apply"}, clock)
    assert runtime.clock is clock
    assert (runtime.queues, runtime.classic_queues, runtime.own_role) == ({QUEUE}, {"c"}, "apply")


@pytest.mark.parametrize(
    ("extra", "channels"),
    [
        ({}, set()),
        ({"NOTICE_TOPIC_ARN": "", "WEBHOOK_SECRET_ARN": ""}, set()),
        ({"NOTICE_TOPIC_ARN": "arn:t"}, {"topic"}),
        ({"WEBHOOK_SECRET_ARN": "arn:s"}, {"webhook"}),
        ({"NOTICE_TOPIC_ARN": "arn:t", "WEBHOOK_SECRET_ARN": "arn:s"}, {"topic", "webhook"}),
    ],
)
def test_a_channel_is_made_when_it_is_set_up(extra: dict[str, str], channels: set[str]) -> None:
    runtime = aws_runtime(ENV | extra, MemoryClock(5))
    assert runtime.channels == channels
    assert isinstance(runtime.topic, SnsTopic if "topic" in channels else Nowhere)
    assert isinstance(runtime.webhook, Webhook if "webhook" in channels else Nowhere)


def test_a_function_that_never_asks_s3_makes_no_client_of_it() -> None:
    runtime = aws_runtime(ENV, MemoryClock(5))
    assert isinstance(runtime.checkpoints, S3Checkpoints)
    client = vars(runtime.checkpoints)["_client"]
    assert "_made" not in vars(client)
    assert client.meta.service_model.service_name == "s3"
    assert "_made" in vars(client)


def test_clients_that_are_given_are_taken() -> None:
    given = {"s3": object(), "stepfunctions": object()}
    runtime = aws_runtime(ENV | WORKFLOW, MemoryClock(5), given)
    assert vars(runtime.checkpoints)["_client"] is given["s3"]
    assert vars(runtime.workflows)["_client"] is given["stepfunctions"]


def test_executions_are_started_where_the_workflow_is_known() -> None:
    assert isinstance(aws_runtime(ENV, MemoryClock(5)).workflows, NoWorkflows)
    assert isinstance(aws_runtime(ENV | WORKFLOW, MemoryClock(5)).workflows, StepFunctionsWorkflows)


def test_what_must_not_be_done_twice_is_tried_once() -> None:
    assert ONCE.retries["total_max_attempts"] == 1


def test_lambda_makes_one_runtime_from_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENV.items():
        monkeypatch.setitem(os.environ, name, value)
    lambda_runtime.cache_clear()
    assert lambda_runtime() is lambda_runtime()
    assert lambda_runtime().queues == {QUEUE}
    lambda_runtime.cache_clear()


def test_the_system_clock_counts_epoch_milliseconds() -> None:
    before = time.time()
    now = SystemClock().now()
    assert int(before * 1000) <= now <= time.time() * 1000
