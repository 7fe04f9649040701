"""Beyond every ledger's suite: rows as the template's indexes and TTL want them, and DynamoDB's refusals."""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.stub import ANY, Stubber
from moto import mock_aws
from sharewarden.aws.dynamodb import BACKOFF, DynamoAuditReader, DynamoLedger
from sharewarden.domain.audit import AuditFact
from sharewarden.domain.foreign import ForeignJob
from sharewarden.domain.record import JobRecord
from sharewarden.domain.stored import KEEP_AFTER_END, Stored
from sharewarden.ports import Conflict, Unavailable
from sharewarden_tools.template import load_template, tables

NOW = 1_789_372_800_123
QUEUE = "arn:aws:batch:us-east-1:123456789012:job-queue/ml-train-qm"


def job(**members: Any) -> JobRecord:
    base = {"job": "job-1", "arn": "arn:aws:batch:::service-job/job-1", "name": "n", "queue": QUEUE}
    return JobRecord(**base | {"created_at": NOW - 5} | members)


def fact(key: str = "k", **members: Any) -> AuditFact:
    return AuditFact(**{"key": key, "kind": "job-ended", "at": NOW} | members)


# ---------------------------------------------------------------- rows


@pytest.fixture
def dynamodb() -> Iterator[Any]:
    with mock_aws():
        client = boto3.client("dynamodb")
        for table in tables(load_template()):
            client.create_table(**table)
        yield client


def rows(client: Any, table: str) -> list[dict[str, Any]]:
    return list(client.scan(TableName=table)["Items"])


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (job(), {"open_queue": {"S": f"JOB#{QUEUE}"}, "open_since": {"N": str(NOW - 5)}}),
        (job(closed_at=NOW), {"expires_at": {"N": str((NOW + KEEP_AFTER_END) // 1000)}}),
    ],
    ids=["open", "closed"],
)
def test_a_row_of_the_state_table(dynamodb: Any, item: Stored, expected: dict[str, Any]) -> None:
    DynamoLedger(dynamodb, "State", "Audit").commit([item], [], NOW)
    written = item.model_copy(update={"version": 1})
    assert rows(dynamodb, "State") == [
        {
            "pk": {"S": "JOB#job-1"},
            "sk": {"S": "RECORD"},
            "version": {"N": "1"},
            "doc": {"S": written.model_dump_json()},
        }
        | expected
    ]


def change_doc(client: Any, item: Stored, doc: str) -> None:
    key = {"pk": {"S": f"{item.item}#{item.key}"}, "sk": {"S": "RECORD"}}
    client.update_item(
        TableName="State",
        Key=key,
        UpdateExpression="SET doc = :doc",
        ExpressionAttributeValues={":doc": {"S": doc}},
    )


def test_what_a_newer_version_wrote_is_read_without_what_is_new(dynamodb: Any) -> None:
    ledger, item = DynamoLedger(dynamodb, "State", "Audit"), job()
    ledger.commit([item], [], NOW)
    newer = json.loads(rows(dynamodb, "State")[0]["doc"]["S"])
    newer |= {"invented": 1, "priority": newer["priority"] | {"invented": 2}}
    change_doc(dynamodb, item, json.dumps(newer))
    written = item.model_copy(update={"version": 1})
    assert ledger.load(JobRecord, item.key) == written
    assert list(ledger.open_items(JobRecord, QUEUE)) == [written]


def test_an_item_that_cannot_be_read_does_not_hide_the_others(
    dynamodb: Any, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = DynamoLedger(dynamodb, "State", "Audit")
    broken, sound = job(), job(job="job-2")
    ledger.commit([broken, sound], [], NOW)
    change_doc(dynamodb, broken, "{}")
    assert [item.key for item in ledger.open_items(JobRecord, QUEUE)] == ["job-2"]
    assert "JOB#job-1" in caplog.text


def test_a_row_of_the_audit_table(dynamodb: Any) -> None:
    full = fact(queue=QUEUE, share="vision", job="job-1", figures={"a": 1}, at=1_789_430_399_999)
    DynamoLedger(dynamodb, "State", "Audit").commit([], [full], NOW)
    [row] = rows(dynamodb, "Audit")
    assert row == {
        "key": {"S": "k"},
        "kind": {"S": "job-ended"},
        "at": {"N": "1789430399999"},
        "recorded_at": {"N": str(NOW)},
        "queue": {"S": QUEUE},
        "share": {"S": "vision"},
        "share_day": {"S": "ml-train-qm/vision#2026-09-14"},
        "job": {"S": "job-1"},
        "actor": {"S": "batch"},
        "mode": {"S": "observed"},
        "reason": {"S": ""},
        "figures": {"S": json.dumps({"a": 1})},
        "inputs": {"S": "{}"},
    }


def test_a_record_is_found_by_actor(dynamodb: Any) -> None:
    DynamoLedger(dynamodb, "State", "Audit").commit([], [fact("a", actor="U1"), fact("b", actor="U2")], NOW)
    found = dynamodb.query(
        TableName="Audit",
        IndexName="by_actor",
        KeyConditionExpression="actor = :actor",
        ExpressionAttributeValues={":actor": {"S": "U1"}},
    )
    assert [row["key"]["S"] for row in found["Items"]] == ["a"]


@pytest.mark.parametrize(
    ("items", "facts", "name"),
    [
        ([job(name="ä" * 210_000)], [], "JOB#job-1"),
        ([job()], [fact("too long", reason="x" * 410_000)], "too long"),
    ],
)
def test_what_is_too_big_is_refused_by_name(
    dynamodb: Any, items: list[Stored], facts: list[AuditFact], name: str
) -> None:
    with pytest.raises(ValueError, match=f"^{name} has 4[0-9]+ bytes"):
        DynamoLedger(dynamodb, "State", "Audit").commit(items, facts, NOW)
    assert rows(dynamodb, "State") == []


@pytest.mark.parametrize(
    ("items", "facts", "expected"),
    [
        ([job()], [], ["PutItem State"]),
        ([], [fact("a"), fact("b")], ["PutItem Audit", "PutItem Audit"]),
        ([job()], [fact()], ["TransactWriteItems"]),
        ([job(), ForeignJob(job="f", seen_at=1)], [], ["TransactWriteItems"]),
        ([], [], []),
    ],
)
def test_a_commit_is_as_few_calls_as_can_be(
    dynamodb: Any, items: list[Stored], facts: list[AuditFact], expected: list[str]
) -> None:
    calls: list[str] = []

    def note(model: Any, params: Any, **_: Any) -> None:
        calls.append(f"{model.name} {json.loads(params['body']).get('TableName', '')}".strip())

    dynamodb.meta.events.register("before-call.dynamodb", note)
    DynamoLedger(dynamodb, "State", "Audit").commit(items, facts, NOW)
    assert calls == expected


# ---------------------------------------------------------------- refusals


@pytest.fixture
def client() -> Any:
    return boto3.client("dynamodb")


@pytest.fixture
def stub(client: Any) -> Iterator[Stubber]:
    with Stubber(client) as stub:
        yield stub
        stub.assert_no_pending_responses()


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def ledger(client: Any, pauses: list[float]) -> DynamoLedger:
    return DynamoLedger(client, "State", "Audit", pause=pauses.append)


def cancel(stub: Stubber, *reasons: str) -> None:
    stub.add_client_error(
        "transact_write_items",
        "TransactionCanceledException",
        modeled_fields={"CancellationReasons": [{"Code": reason} for reason in reasons]},
    )


@pytest.mark.parametrize(
    "reasons",
    [
        ("ConditionalCheckFailed", "None"),
        ("ConditionalCheckFailed", "ConditionalCheckFailed"),
        ("TransactionConflict", "None"),
        ("None", "TransactionConflict"),
        ("ConditionalCheckFailed", "ThrottlingError"),
    ],
)
def test_another_writer_is_a_conflict(
    stub: Stubber, ledger: DynamoLedger, pauses: list[float], reasons: tuple[str, ...]
) -> None:
    cancel(stub, *reasons)
    with pytest.raises(Conflict, match="JOB#job-1"):
        ledger.commit([job()], [fact()], NOW)
    assert pauses == []


def test_a_throttled_transaction_is_tried_again_after_a_pause(
    stub: Stubber, ledger: DynamoLedger, pauses: list[float]
) -> None:
    cancel(stub, "ThrottlingError", "None")
    cancel(stub, "None", "ProvisionedThroughputExceeded")
    stub.add_response("transact_write_items", {})
    ledger.commit([job()], [fact()], NOW)
    assert [BACKOFF[i] / 2 <= pause <= BACKOFF[i] for i, pause in enumerate(pauses)] == [True, True]


def test_a_transaction_that_stays_throttled_is_given_up(
    stub: Stubber, ledger: DynamoLedger, pauses: list[float]
) -> None:
    for _ in range(len(BACKOFF) + 1):
        cancel(stub, "ThrottlingError", "None")
    with pytest.raises(
        Unavailable, match=r"TransactWriteItems: cancelled 5 times, at last for .*ThrottlingError"
    ):
        ledger.commit([job()], [fact()], NOW)
    assert len(pauses) == len(BACKOFF)


def test_only_the_facts_on_record_are_left_out_of_the_second_try(
    stub: Stubber, ledger: DynamoLedger, pauses: list[float]
) -> None:
    cancel(stub, "None", "ConditionalCheckFailed", "None")
    stub.add_response("transact_write_items", {}, {"TransactItems": [ANY, ANY]})
    ledger.commit([job()], [fact("old"), fact("new")], NOW)
    assert pauses == []


@pytest.mark.parametrize(("items", "facts"), [([job()], []), ([], [fact()])], ids=["item", "fact"])
def test_a_put_that_meets_a_transaction_is_a_conflict(
    stub: Stubber, ledger: DynamoLedger, items: list[Stored], facts: list[AuditFact]
) -> None:
    stub.add_client_error("put_item", "TransactionConflictException")
    with pytest.raises(Conflict):
        ledger.commit(items, facts, NOW)


REFUSED = "ProvisionedThroughputExceededException"


@pytest.mark.parametrize(
    ("method", "call"),
    [
        ("get_item", lambda ledger, reader: ledger.load(JobRecord, "job-1")),
        ("put_item", lambda ledger, reader: ledger.commit([job()], [], NOW)),
        ("put_item", lambda ledger, reader: ledger.commit([], [fact()], NOW)),
        ("transact_write_items", lambda ledger, reader: ledger.commit([job()], [fact()], NOW)),
        ("query", lambda ledger, reader: list(ledger.open_items(JobRecord, QUEUE))),
        ("query", lambda ledger, reader: list(reader.by_job("job-1", 0))),
        ("query", lambda ledger, reader: list(reader.by_share(QUEUE, "vision", NOW, NOW))),
    ],
)
def test_a_refusal_is_unavailable(
    client: Any, stub: Stubber, ledger: DynamoLedger, method: str, call: Any
) -> None:
    stub.add_client_error(method, REFUSED, "slow down", 400)
    operation = client.meta.method_to_api_mapping[method]
    with pytest.raises(Unavailable, match=f"^{operation}: {REFUSED}: slow down$"):
        call(ledger, DynamoAuditReader(client, "Audit"))


def test_a_record_is_read_as_last_written(stub: Stubber, ledger: DynamoLedger) -> None:
    key = {"pk": {"S": "JOB#job-1"}, "sk": {"S": "RECORD"}}
    stub.add_response("get_item", {}, {"TableName": "State", "Key": key, "ConsistentRead": True})
    assert ledger.load(JobRecord, "job-1") is None


@pytest.mark.parametrize("facts", [[], [fact()]], ids=["a put", "a transaction"])
def test_what_dynamodb_finds_malformed_is_no_matter_of_trying_again(
    stub: Stubber, ledger: DynamoLedger, facts: list[AuditFact]
) -> None:
    stub.add_client_error("transact_write_items" if facts else "put_item", "ValidationException", "empty key")
    with pytest.raises(ValueError, match="empty key"):
        ledger.commit([job()], facts, NOW)


def test_a_part_of_a_transaction_that_is_malformed_is_no_matter_of_trying_again(
    stub: Stubber, ledger: DynamoLedger, pauses: list[float]
) -> None:
    cancel(stub, "None", "ValidationError")
    with pytest.raises(ValueError, match="DynamoDB"):
        ledger.commit([job()], [fact()], NOW)
    assert pauses == []
