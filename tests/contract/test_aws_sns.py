"""SnsTopic over boto3: what arrives on moto's topic, and what each failure says about it."""

from __future__ import annotations

import json
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ParamValidationError
from moto import mock_aws
from sharewarden.aws.sns import SnsTopic
from sharewarden.bootstrap import ONCE
from sharewarden.domain.telling import Message, compose
from sharewarden.ports import Denied, Unavailable, Unsure

from tests.contract.loopback import Answer, closed_port, hang_up, serving, silence, status
from tests.simulation.notices import notice

TOPIC = "arn:aws:sns:us-east-1:123456789012:notices"
TOLD = compose([notice("vision-1")])


@mock_aws
def test_subscribers_get_text_subject_and_what_filters_need() -> None:
    sns, sqs = boto3.client("sns"), boto3.client("sqs")
    topic = sns.create_topic(Name="notices")["TopicArn"]
    for name, team in (("research", "research"), ("serving", "serving")):
        queue = sqs.create_queue(QueueName=name)["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        policy = json.dumps({"team": [team], "mode": ["enforce"], "kind": ["finding"]})
        sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes={"FilterPolicy": policy})
    SnsTopic(sns, topic).send(TOLD)
    arrived = {name: _received(sqs, name) for name in ("research", "serving")}
    assert arrived["serving"] == []
    (envelope,) = arrived["research"]
    assert (envelope["Subject"], envelope["Message"]) == (TOLD.subject, TOLD.text)
    sent = {name: each["Value"] for name, each in envelope["MessageAttributes"].items()}
    assert sent == TOLD.attributes


def _received(sqs: Any, name: str) -> list[dict[str, Any]]:
    url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
    return [json.loads(each["Body"]) for each in sqs.receive_message(QueueUrl=url).get("Messages", ())]


@mock_aws
def test_a_topic_that_is_not_there_refuses() -> None:
    with pytest.raises(Denied, match="NotFound"):
        SnsTopic(boto3.client("sns"), TOPIC).send(TOLD)


@mock_aws
def test_characters_that_sns_does_not_take_are_replaced() -> None:
    sns = boto3.client("sns")
    topic = sns.create_topic(Name="notices")["TopicArn"]
    odd = TOLD.model_copy(update={"text": "a\x00b", "attributes": {"team": "r\x1bs", "share": ""}})
    SnsTopic(sns, topic).send(odd)


def failing(url: str, quick: float = 5) -> SnsTopic:
    """A topic at that address, with the real settings but for how long it waits."""
    config = ONCE.merge(Config(read_timeout=quick))
    return SnsTopic(boto3.client("sns", endpoint_url=url, config=config), TOPIC)


def error(code: str, http: int) -> Answer:
    body = f"<ErrorResponse><Error><Code>{code}</Code><Message>no</Message></Error></ErrorResponse>"
    return status(http, body.encode())


@pytest.mark.parametrize(
    ("answer", "raised"),
    [
        (error("Throttled", 429), Unavailable),
        (error("Throttling", 400), Unavailable),
        (error("KMSThrottling", 400), Unavailable),
        (error("ServiceUnavailable", 503), Unavailable),
        (error("AuthorizationError", 403), Denied),
        (error("InvalidParameter", 400), Denied),
        (error("InternalError", 500), Unsure),
        (status(502), Unsure),
        (status(200, b"no XML"), Unsure),
        (hang_up, Unsure),
    ],
)
def test_what_an_answer_means_and_that_nothing_is_sent_twice(answer: Answer, raised: type[Exception]) -> None:
    with serving(answer) as endpoint, pytest.raises(raised):
        failing(endpoint.url).send(TOLD)
    assert len(endpoint.requests) == 1


def test_no_answer_leaves_it_open() -> None:
    with serving(silence) as endpoint, pytest.raises(Unsure, match="ReadTimeout"):
        failing(endpoint.url, quick=0.1).send(TOLD)
    assert len(endpoint.requests) == 1


def test_nobody_at_the_address_is_certain() -> None:
    with pytest.raises(Unavailable, match="EndpointConnectionError"):
        failing(closed_port()).send(TOLD)


def test_a_request_that_cannot_be_one_is_a_fault_of_ours() -> None:
    broken: Any = Message.model_construct(subject=7, text="x", attributes={})
    with pytest.raises(ParamValidationError):
        failing(closed_port()).send(broken)
