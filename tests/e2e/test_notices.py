"""From a job to the people: a finding of a guardrail arrives at the topic's subscribers and the webhook."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from sharewarden.aws.webhook import Webhook
from sharewarden.domain.notice import Notice, settled_under
from sharewarden.domain.stored import HOUR, MINUTE, SECOND
from sharewarden_tools.cli.notices import list_notices
from sharewarden_tools.lab import VirtualClock
from sharewarden_tools.local.environment import aws_environment
from sharewarden_tools.local.stack import TOPIC, LocalStack, Setup, local_stack, queue_arn
from sharewarden_tools.policy.file import load_policy
from sharewarden_tools.stories.three_team import QUEUE, START, create_pool, submit

from tests.contract.loopback import Endpoint, serving, status
from tests.e2e.operations_kit import site_of

ARN = queue_arn(QUEUE)
RULE = {"rule": "required-tags", "tags": ["cost-center"], "action": "notify"}


@pytest.fixture
def stack() -> Iterator[LocalStack]:
    policy = load_policy()
    document = policy.model_dump(mode="json", exclude_defaults=True) | {"guardrails": [RULE]}
    watching = type(policy).model_validate(document)
    with local_stack(VirtualClock(START), Setup(seed=3, policy=watching)) as running:
        create_pool(running)
        yield running


@pytest.fixture
def webhook(stack: LocalStack) -> Iterator[Endpoint]:
    """The stack posts there, too: its address lies in Secrets Manager."""
    with serving(status(200)) as endpoint:
        secrets = stack.client("secretsmanager", "ana")
        text = json.dumps({"url": f"{endpoint.url}/gpu", "header": {"name": "X-Token", "value": "t"}})
        arn = secrets.create_secret(Name="webhook", SecretString=text)["ARN"]
        told = Webhook(secrets, arn, stack.parts.clock)
        both = frozenset({*stack.runtime.channels, "webhook"})
        stack.runtime = replace(stack.runtime, channels=both, webhook=told)
        yield endpoint


class Subscriber:
    """An SQS queue that is subscribed to the topic, beside it: the lab's own SQS knows no topics."""

    def __init__(self, stack: LocalStack) -> None:
        beside = stack.environment("ana") | {"AWS_ENDPOINT_URL_SQS": stack.parts.aws}
        with aws_environment(beside):
            self._sqs: Any = boto3.client("sqs")
        self._url = self._sqs.create_queue(QueueName="subscriber")["QueueUrl"]
        answer = self._sqs.get_queue_attributes(QueueUrl=self._url, AttributeNames=["QueueArn"])
        arn = answer["Attributes"]["QueueArn"]
        stack.client("sns", "ana").subscribe(TopicArn=TOPIC, Protocol="sqs", Endpoint=arn)

    def received(self) -> list[dict[str, Any]]:
        answer = self._sqs.receive_message(QueueUrl=self._url, MaxNumberOfMessages=10)
        return [json.loads(message["Body"]) for message in answer.get("Messages", ())]


def test_a_finding_arrives_once_on_every_channel(
    stack: LocalStack, webhook: Endpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    people = Subscriber(stack)
    submit(stack, "background-1", 2 * HOUR)
    stack.run_until(START + 20 * MINUTE)
    (envelope,) = people.received()
    assert "required-tags" in envelope["Subject"]
    assert "background-1" in envelope["Message"]
    ((path, headers, body),) = webhook.requests
    assert (path, headers["X-Token"]) == ("/gpu", "t")
    document = json.loads(body)
    assert (document["count"], document["kind"]) == (1, "finding")
    (fact,) = [entry["record"] for entry in document["notices"]]
    assert fact in {record.key for record in stack.runtime.audit.by_job(document["notices"][0]["job"], 0)}
    (kept,) = stack.runtime.ledger.open_items(Notice, settled_under(ARN, told=True))
    assert (kept.fact, kept.state) == (fact, "sent")

    assert list_notices(site_of(stack).deployment, told=False, as_json=False) == 0
    assert capsys.readouterr().err == "no notice waits, failed or is unsure\n"
    assert list_notices(site_of(stack).deployment, told=True, as_json=True) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["state"], row["fact"]) == ("sent", fact)


def test_what_comes_within_a_minute_is_told_together(stack: LocalStack, webhook: Endpoint) -> None:
    for number in range(12):
        submit(stack, f"background-{number}", 2 * HOUR)
        stack.run_until(stack.now() + SECOND)  # AWS Batch takes so many calls a second
    stack.run_until(START + 20 * MINUTE)
    counts = [json.loads(body)["count"] for _, _, body in webhook.requests]
    assert sum(counts) == 12
    assert len(counts) <= 2


def test_a_webhook_that_is_away_is_told_later_and_the_topic_no_second_time(
    stack: LocalStack, webhook: Endpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    people = Subscriber(stack)
    webhook.answer = status(503)
    submit(stack, "background-1", 2 * HOUR)
    stack.run_until(START + 15 * MINUTE)
    assert list_notices(site_of(stack).deployment, told=False, as_json=False) == 0
    shown = capsys.readouterr().out
    assert "topic sent" in shown
    assert "webhook waiting: the webhook answered 503" in shown
    webhook.answer = status(200)
    stack.run_until(START + HOUR)
    assert len(people.received()) == 1
    assert list(stack.runtime.ledger.open_items(Notice, ARN)) == []
