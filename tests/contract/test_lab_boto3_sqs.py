"""The lab's queues through an unmodified boto3 client: SQS semantics in virtual time."""

from __future__ import annotations

import json
from typing import Any

import pytest
from moto import mock_aws
from sharewarden_tools.lab import sqs
from sharewarden_tools.lab.clock import VirtualClock
from sharewarden_tools.lab.queues import QueueSystem
from sharewarden_tools.lab.wire import Wire

from tests.contract.lab_clients import client

START = 1_700_000_000_000


class Sqs:
    """A client, its clock, and the few calls that the cases below repeat."""

    def __init__(self) -> None:
        self.clock = VirtualClock(START)
        self.system = QueueSystem(self.clock)
        self.api = client("sqs", wire=Wire({"sqs": sqs.operations(self.system)}))

    def pass_time(self, seconds: float) -> None:
        self.clock.advance_to(self.clock.now() + int(seconds * 1000))

    def create(self, name: str, **attributes: str) -> str:
        fifo = {"FifoQueue": "true"} if name.endswith(".fifo") else {}
        return str(self.api.create_queue(QueueName=name, Attributes={**fifo, **attributes})["QueueUrl"])

    def send(self, url: str, *bodies: str, group: str = "g") -> None:
        extra = {"MessageGroupId": group} if url.endswith(".fifo") else {}
        for body in bodies:
            identity = {"MessageDeduplicationId": f"{group}-{body}"} if extra else {}
            self.api.send_message(QueueUrl=url, MessageBody=body, **extra, **identity)

    def receive(self, url: str, limit: int = 10, **options: Any) -> list[dict[str, Any]]:
        answer = self.api.receive_message(QueueUrl=url, MaxNumberOfMessages=limit, **options)
        return list(answer.get("Messages", []))

    def bodies(self, url: str, limit: int = 10) -> list[str]:
        return [message["Body"] for message in self.receive(url, limit)]

    def delete(self, url: str, message: dict[str, Any]) -> None:
        self.api.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])

    def arn(self, url: str) -> str:
        answer = self.api.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        return str(answer["Attributes"]["QueueArn"])

    def counts(self, url: str) -> list[int]:
        """Visible, in flight, delayed."""
        attributes = self.api.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        suffixes = ("", "NotVisible", "Delayed")
        return [int(attributes[f"ApproximateNumberOfMessages{suffix}"]) for suffix in suffixes]


@pytest.fixture
def queues() -> Sqs:
    return Sqs()


def test_a_received_message_is_hidden_until_its_visibility_time_out(queues: Sqs) -> None:
    url = queues.create("work", VisibilityTimeout="60")
    queues.send(url, "a", "b")
    assert queues.bodies(url, limit=1) == ["a"]
    assert queues.bodies(url) == ["b"]
    assert queues.counts(url) == [0, 2, 0]
    queues.pass_time(59.999)
    assert queues.bodies(url) == []
    queues.pass_time(0.001)
    assert queues.bodies(url) == ["a", "b"]


def test_a_deleted_message_never_comes_back(queues: Sqs) -> None:
    url = queues.create("work")
    queues.send(url, "a")
    queues.delete(url, queues.receive(url)[0])
    queues.pass_time(3600)
    assert queues.bodies(url) == []
    assert queues.counts(url) == [0, 0, 0]


def test_receive_counts_and_times_are_told(queues: Sqs) -> None:
    url = queues.create("work", VisibilityTimeout="10")
    queues.send(url, "a")
    queues.pass_time(5)
    queues.receive(url)
    queues.pass_time(10)
    (message,) = queues.receive(url, AttributeNames=["All"])
    assert message["Attributes"] == {
        "SenderId": "lab",
        "SentTimestamp": str(START),
        "ApproximateReceiveCount": "2",
        "ApproximateFirstReceiveTimestamp": str(START + 5_000),
    }


def test_a_stale_handle_deletes_nothing_on_a_standard_queue(queues: Sqs) -> None:
    url = queues.create("work", VisibilityTimeout="10")
    queues.send(url, "a")
    stale = queues.receive(url)[0]
    queues.pass_time(10)
    queues.receive(url)
    queues.delete(url, stale)
    queues.pass_time(10)
    assert queues.bodies(url) == ["a"]


def test_the_latest_handle_deletes_even_after_its_time_out_on_a_standard_queue(queues: Sqs) -> None:
    url = queues.create("work", VisibilityTimeout="10")
    queues.send(url, "a")
    message = queues.receive(url)[0]
    queues.pass_time(10)
    queues.delete(url, message)
    assert queues.bodies(url) == []


def test_an_expired_handle_is_an_error_on_a_fifo_queue(queues: Sqs) -> None:
    url = queues.create("work.fifo", VisibilityTimeout="10")
    queues.send(url, "a")
    message = queues.receive(url)[0]
    queues.pass_time(10)
    with pytest.raises(queues.api.exceptions.ClientError, match="expired"):
        queues.delete(url, message)


def test_visibility_can_be_changed_while_in_flight(queues: Sqs) -> None:
    url = queues.create("work", VisibilityTimeout="10")
    queues.send(url, "a")
    handle = queues.receive(url)[0]["ReceiptHandle"]
    change = {"QueueUrl": url, "ReceiptHandle": handle}
    queues.api.change_message_visibility(**change, VisibilityTimeout=100)
    queues.pass_time(99)
    assert queues.bodies(url) == []
    queues.api.change_message_visibility(**change, VisibilityTimeout=0)
    assert queues.bodies(url) == ["a"]
    with pytest.raises(queues.api.exceptions.MessageNotInflight):
        queues.api.change_message_visibility(**change, VisibilityTimeout=5)


@pytest.mark.parametrize("own", [True, False], ids=["message", "queue"])
def test_a_delayed_message_arrives_late(queues: Sqs, own: bool) -> None:
    url = queues.create("work", DelaySeconds="0" if own else "5")
    queues.api.send_message(QueueUrl=url, MessageBody="a", **({"DelaySeconds": 5} if own else {}))
    assert queues.counts(url) == [0, 0, 1]
    assert queues.bodies(url) == []
    queues.pass_time(5)
    assert queues.bodies(url) == ["a"]


def test_messages_expire_after_the_retention_period(queues: Sqs) -> None:
    url = queues.create("work", MessageRetentionPeriod="60")
    queues.send(url, "a")
    queues.pass_time(60)
    assert queues.bodies(url) == []


def test_a_fifo_group_waits_for_what_is_in_flight_and_other_groups_do_not(queues: Sqs) -> None:
    url = queues.create("work.fifo", VisibilityTimeout="60")
    queues.send(url, "a1", "a2", "a3", group="a")
    queues.send(url, "b1", group="b")
    first, second = queues.receive(url, limit=2)
    assert [first["Body"], second["Body"]] == ["a1", "a2"]
    assert queues.bodies(url) == ["b1"]
    queues.delete(url, first)
    assert queues.bodies(url) == []
    queues.delete(url, second)
    assert queues.bodies(url) == ["a3"]


def test_a_fifo_message_that_was_not_handled_comes_back_before_its_successors(queues: Sqs) -> None:
    url = queues.create("work.fifo", VisibilityTimeout="60")
    queues.send(url, "a1", "a2")
    queues.receive(url, limit=1)
    queues.pass_time(60)
    assert queues.bodies(url) == ["a1", "a2"]


def test_a_fifo_queue_drops_repetitions_for_five_minutes(queues: Sqs) -> None:
    url = queues.create("work.fifo")
    message = {"QueueUrl": url, "MessageGroupId": "g", "MessageDeduplicationId": "same"}
    first = queues.api.send_message(MessageBody="a", **message)
    queues.delete(url, queues.receive(url)[0])
    queues.pass_time(299.999)
    again = queues.api.send_message(MessageBody="a", **message)
    assert (again["MessageId"], again["SequenceNumber"]) == (first["MessageId"], first["SequenceNumber"])
    assert queues.bodies(url) == []
    queues.pass_time(0.001)
    later = queues.api.send_message(MessageBody="a", **message)
    assert later["SequenceNumber"] > first["SequenceNumber"]
    assert queues.bodies(url) == ["a"]


def test_content_based_deduplication_uses_the_body(queues: Sqs) -> None:
    url = queues.create("work.fifo", ContentBasedDeduplication="true")
    for body in ("a", "a", "b"):
        queues.api.send_message(QueueUrl=url, MessageBody=body, MessageGroupId="g")
    assert queues.bodies(url) == ["a", "b"]


@pytest.mark.parametrize("suffix", ["", ".fifo"])
def test_a_message_that_used_up_its_receives_goes_to_the_dead_letter_queue(queues: Sqs, suffix: str) -> None:
    dead = queues.create(f"dead{suffix}")
    policy = json.dumps({"deadLetterTargetArn": queues.arn(dead), "maxReceiveCount": "2"})
    url = queues.create(f"work{suffix}", VisibilityTimeout="10", RedrivePolicy=policy)
    queues.send(url, "poison", "good")
    for _ in range(2):
        assert queues.bodies(url, limit=1) == ["poison"]
        queues.pass_time(10)
    assert queues.bodies(url) == ["good"]
    (message,) = queues.receive(dead, MessageSystemAttributeNames=["All"])
    assert message["Body"] == "poison"
    assert message["Attributes"]["DeadLetterQueueSourceArn"] == queues.arn(url)
    assert message["Attributes"]["ApproximateReceiveCount"] == "1"
    moved_at = START + (20_000 if suffix else 0)  # only a FIFO queue starts the retention period anew
    assert message["Attributes"]["SentTimestamp"] == str(moved_at)


ATTRIBUTES = {
    "reason": {"DataType": "String", "StringValue": "broken, é"},
    "origin.rule": {"DataType": "Number", "StringValue": "12"},
    "raw": {"DataType": "Binary", "BinaryValue": b"\x00\x01\xff"},
}


def test_message_attributes_travel_and_can_be_chosen(queues: Sqs) -> None:
    url = queues.create("work", VisibilityTimeout="0")
    queues.api.send_message(QueueUrl=url, MessageBody="a", MessageAttributes=ATTRIBUTES)
    for names, expected in [
        (["All"], ATTRIBUTES.keys()),
        (["reason"], {"reason"}),
        (["origin.*"], {"origin.rule"}),
        ([], set()),
    ]:
        (message,) = queues.receive(url, MessageAttributeNames=names)
        assert message.get("MessageAttributes", {}).keys() == expected
    (message,) = queues.receive(url, MessageAttributeNames=["All"])
    assert message["MessageAttributes"] == ATTRIBUTES


def test_checksums_are_those_that_another_implementation_computes(queues: Sqs) -> None:
    def send(api: Any) -> dict[str, Any]:
        url = api.create_queue(QueueName="work")["QueueUrl"]
        return dict(api.send_message(QueueUrl=url, MessageBody="a é", MessageAttributes=ATTRIBUTES))

    ours = send(queues.api)
    with mock_aws():
        theirs = send(client("sqs"))
    for name in ("MD5OfMessageBody", "MD5OfMessageAttributes"):
        assert ours[name] == theirs[name]


def test_a_batch_reports_each_entry(queues: Sqs) -> None:
    url = queues.create("work.fifo")
    entries = [
        {"Id": "good", "MessageBody": "a", "MessageGroupId": "g", "MessageDeduplicationId": "1"},
        {"Id": "bad", "MessageBody": "b", "MessageDeduplicationId": "2"},
    ]
    answer = queues.api.send_message_batch(QueueUrl=url, Entries=entries)
    assert [entry["Id"] for entry in answer["Successful"]] == ["good"]
    assert [(entry["Id"], entry["Code"]) for entry in answer["Failed"]] == [("bad", "MissingParameter")]

    handles = [{"Id": "x", "ReceiptHandle": message["ReceiptHandle"]} for message in queues.receive(url)]
    wrong = {"Id": "y", "ReceiptHandle": "nonsense"}
    answer = queues.api.delete_message_batch(QueueUrl=url, Entries=[*handles, wrong])
    assert [entry["Id"] for entry in answer["Successful"]] == ["x"]
    assert [(entry["Id"], entry["Code"]) for entry in answer["Failed"]] == [("y", "ReceiptHandleIsInvalid")]
    assert queues.counts(url) == [0, 0, 0]


@pytest.mark.parametrize(
    ("ids", "error"),
    [
        ([], "EmptyBatchRequest"),
        (["a", "a"], "BatchEntryIdsNotDistinct"),
        ([str(number) for number in range(11)], "TooManyEntriesInBatchRequest"),
    ],
)
def test_a_batch_of_the_wrong_size_is_refused(queues: Sqs, ids: list[str], error: str) -> None:
    url = queues.create("work")
    entries = [{"Id": entry_id, "MessageBody": "a"} for entry_id in ids]
    with pytest.raises(getattr(queues.api.exceptions, error)):
        queues.api.send_message_batch(QueueUrl=url, Entries=entries)
    assert queues.bodies(url) == []


def test_who_holds_the_clock_can_ask_when_a_message_comes_back(queues: Sqs) -> None:
    url = queues.create("work", VisibilityTimeout="60")
    queue = queues.system.queue("work")
    queues.send(url, "a")
    assert queue.next_due() is None
    queues.receive(url)
    assert queue.next_due() == START + 60_000
    queues.api.send_message(QueueUrl=url, MessageBody="b", DelaySeconds=5)
    assert queue.next_due() == START + 5_000


def test_purge_empties_a_queue(queues: Sqs) -> None:
    url = queues.create("work")
    queues.send(url, "a", "b")
    queues.api.purge_queue(QueueUrl=url)
    assert queues.bodies(url) == []


def test_a_queue_is_found_by_name_and_created_once(queues: Sqs) -> None:
    url = queues.create("work", VisibilityTimeout="60")
    assert queues.api.get_queue_url(QueueName="work")["QueueUrl"] == url
    assert queues.create("work", VisibilityTimeout="60") == url
    with pytest.raises(queues.api.exceptions.QueueNameExists):
        queues.create("work", VisibilityTimeout="61")
    with pytest.raises(queues.api.exceptions.QueueDoesNotExist) as missing:
        queues.api.get_queue_url(QueueName="other")
    assert missing.value.response["Error"]["Code"] == "AWS.SimpleQueueService.NonExistentQueue"


@pytest.mark.parametrize(
    ("name", "attributes", "text"),
    [
        ("a b", {}, "QueueName"),
        ("x" * 81, {}, "QueueName"),
        ("work.fifo", {"FifoQueue": "false"}, "FifoQueue"),
        ("work", {"RedrivePolicy": "{"}, "RedrivePolicy"),
        ("work", {"RedrivePolicy": '{"maxReceiveCount": 1}'}, "RedrivePolicy"),
        (
            "work",
            {"RedrivePolicy": '{"deadLetterTargetArn": "a:dead.fifo", "maxReceiveCount": 1}'},
            "same type",
        ),
        ("work", {"Nonsense": "1"}, "Nonsense"),
        ("work", {"VisibilityTimeout": "soon"}, "VisibilityTimeout"),
        ("work", {"DelaySeconds": "-1"}, "DelaySeconds"),
        ("work", {"MessageRetentionPeriod": "59"}, "MessageRetentionPeriod"),
    ],
)
def test_a_wrong_queue_is_refused(queues: Sqs, name: str, attributes: dict[str, str], text: str) -> None:
    queues.create("dead.fifo")
    with pytest.raises(queues.api.exceptions.ClientError, match=text):
        queues.create(name, **attributes)


@pytest.mark.parametrize(
    ("queue", "message", "text"),
    [
        ("work", {"MessageBody": ""}, "empty"),
        ("work", {"MessageBody": "x" * 1_048_577}, "1048576 bytes"),
        ("work.fifo", {"MessageBody": "a"}, "MessageGroupId"),
        ("work.fifo", {"MessageBody": "a", "MessageGroupId": "g"}, "MessageDeduplicationId"),
        (
            "work.fifo",
            {"MessageBody": "a", "MessageGroupId": "g", "MessageDeduplicationId": "d", "DelaySeconds": 1},
            "DelaySeconds",
        ),
        (
            "work",
            {
                "MessageBody": "a",
                "MessageSystemAttributes": {"AWSTraceHeader": {"DataType": "String", "StringValue": "t"}},
            },
            "MessageSystemAttributes",
        ),
        ("work", {"MessageBody": "a", "DelaySeconds": 901}, "DelaySeconds"),
        *(
            ("work", {"MessageBody": "a", "MessageAttributes": {"who": value}}, "who needs a type")
            for value in (
                {"DataType": "String"},
                {"DataType": "Binary.gif", "StringValue": "a"},
                {"DataType": "Colour", "StringValue": "red"},
            )
        ),
    ],
)
def test_a_wrong_message_is_refused(queues: Sqs, queue: str, message: dict[str, Any], text: str) -> None:
    url = queues.create(queue)
    with pytest.raises(queues.api.exceptions.ClientError, match=text):
        queues.api.send_message(QueueUrl=url, **message)
    assert queues.bodies(url) == []


@pytest.mark.parametrize("seconds", [-1, 43_201])
def test_a_message_is_hidden_for_twelve_hours_at_most(queues: Sqs, seconds: int) -> None:
    url = queues.create("work")
    queues.send(url, "a")
    with pytest.raises(queues.api.exceptions.ClientError, match="VisibilityTimeout"):
        queues.receive(url, VisibilityTimeout=seconds)
    (message,) = queues.receive(url)
    handle = message["ReceiptHandle"]
    with pytest.raises(queues.api.exceptions.ClientError, match="VisibilityTimeout"):
        queues.api.change_message_visibility(QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=seconds)


@pytest.mark.parametrize("limit", [0, 11])
def test_one_to_ten_messages_at_a_time(queues: Sqs, limit: int) -> None:
    url = queues.create("work")
    with pytest.raises(queues.api.exceptions.ClientError, match="between 1 and 10"):
        queues.receive(url, limit=limit)
