"""The two queues over boto3, on moto."""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws
from sharewarden.aws.sqs import (
    LONGEST_ORIGIN,
    LONGEST_REASON,
    SqsDeadLetters,
    SqsLookQueue,
    SqsNoticeQueue,
    SqsWishQueue,
)
from sharewarden.ports import Unavailable


@pytest.fixture
def sqs() -> Iterator[Any]:
    with mock_aws():
        yield boto3.client("sqs")


def received(sqs: Any, url: str) -> list[dict[str, Any]]:
    answer = sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"], MessageAttributeNames=["All"]
    )
    return list(answer.get("Messages", []))


@pytest.fixture
def wishes(sqs: Any) -> str:
    return str(sqs.create_queue(QueueName="wishes.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"])


@pytest.fixture
def letters(sqs: Any) -> str:
    return str(sqs.create_queue(QueueName="letters")["QueueUrl"])


def test_a_wish_travels_in_the_group_of_its_job(sqs: Any, wishes: str) -> None:
    SqsWishQueue(sqs, wishes).send("job-1", 7, "once")
    [message] = received(sqs, wishes)
    assert json.loads(message["Body"]) == {"job": "job-1", "version": 7}
    assert message["Attributes"]["MessageGroupId"] == "job-1"


def test_a_notice_is_named_by_its_key(sqs: Any, letters: str) -> None:
    SqsNoticeQueue(sqs, letters).send("finding#job-1#x")
    [message] = received(sqs, letters)
    assert json.loads(message["Body"]) == {"notice": "finding#job-1#x"}


def test_a_termination_is_named_by_its_act(sqs: Any, wishes: str) -> None:
    SqsWishQueue(sqs, wishes).send("job-1", "giants#f#s#1", "once")
    [message] = received(sqs, wishes)
    assert json.loads(message["Body"]) == {"job": "job-1", "termination": "giants#f#s#1"}
    assert message["Attributes"]["MessageGroupId"] == "job-1"


@pytest.mark.parametrize("once", ["job-1#v7#sweep at 5", "x" * 500, "ünïcode 🚀"])
def test_a_wish_sent_once_more_comes_once(sqs: Any, wishes: str, once: str) -> None:
    queue = SqsWishQueue(sqs, wishes)
    for name in (once, once, f"{once} again"):
        queue.send("job-1", 7, name)
    assert len(received(sqs, wishes)) == 2


@pytest.mark.parametrize(("delay", "seconds"), [(0, 0), (1, 1), (60_000, 60), (900_000, 900)])
def test_a_look_waits_in_whole_seconds_never_less_than_asked(delay: int, seconds: int) -> None:
    client = boto3.client("sqs")
    with Stubber(client) as stub:
        message = {"QueueUrl": "https://queue", "MessageBody": '{"job": "job-1"}', "DelaySeconds": seconds}
        stub.add_response("send_message", {"MessageId": "m1"}, message)
        SqsLookQueue(client, "https://queue").send("job-1", delay)
        stub.assert_no_pending_responses()


def test_a_look_at_what_was_asked_for_names_the_wish() -> None:
    client = boto3.client("sqs")
    with Stubber(client) as stub:
        message = {
            "QueueUrl": "https://queue",
            "MessageBody": '{"job": "job-1", "asked": 3}',
            "DelaySeconds": 10,
        }
        stub.add_response("send_message", {"MessageId": "m1"}, message)
        SqsLookQueue(client, "https://queue").send("job-1", 10_000, 3)
        stub.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("body", "reason", "expected"),
    [
        ('{"a": "ü🚀"}', "broken\tat\nline 2", ('{"a": "ü🚀"}', "broken\tat\nline 2")),
        ("a\x00b\x1bc", "\ufffe\ud800", ("a\ufffdb\ufffdc", "\ufffd\ufffd")),
        ("", "", ("(empty)", "(empty)")),
        ("b", "r" * 5000, ("b", "r" * LONGEST_REASON)),
    ],
)
def test_a_message_is_buried_whatever_it_holds(
    sqs: Any, letters: str, body: str, reason: str, expected: tuple[str, str]
) -> None:
    SqsDeadLetters(sqs, letters).bury(body, reason, "react" * 100)
    [message] = received(sqs, letters)
    attributes = {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}
    assert (message["Body"], attributes["reason"]) == expected
    assert attributes["origin"] == ("react" * 100)[:LONGEST_ORIGIN]


@pytest.mark.parametrize(
    "call",
    [
        lambda client: SqsWishQueue(client, "https://queue").send("job-1", 1, "once"),
        lambda client: SqsDeadLetters(client, "https://queue").bury("body", "reason", "origin"),
        lambda client: SqsLookQueue(client, "https://queue").send("job-1", 0),
    ],
    ids=["wish", "dead letter", "look"],
)
def test_a_refusal_is_unavailable(call: Any) -> None:
    client = boto3.client("sqs")
    with Stubber(client) as stub:
        stub.add_client_error("send_message", "RequestThrottled", "slow down", 403)
        with pytest.raises(Unavailable, match=r"^SendMessage: RequestThrottled: slow down$"):
            call(client)
