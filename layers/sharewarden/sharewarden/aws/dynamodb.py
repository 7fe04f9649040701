"""Ledger and AuditReader over the State and Audit tables.

Writers of the Audit table hold ``dynamodb:PutItem`` alone, so a commit neither reads nor updates it.
"""

import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import ClientError

from sharewarden.aws.errors import asking, code, message, refuse_malformed
from sharewarden.aws.rows import Row, audit_record, audit_row, open_key, share_day, state_key, state_row
from sharewarden.domain.audit import AuditFact, AuditRecord
from sharewarden.domain.stored import DAY, Stored
from sharewarden.ports import MAX_ACTIONS, Conflict, Unavailable

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=Stored)
Put = Any
"""Arguments of PutItem, which are also those of a Put in TransactWriteItems."""

#: The longest pauses, in seconds, before each further try of a throttled transaction: botocore retries none.
BACKOFF = (0.05, 0.1, 0.2, 0.4)
#: Why an action is cancelled whose condition does not hold: another version of an item, or a fact on record.
ON_RECORD = "ConditionalCheckFailed"


class DynamoLedger:
    """Ledger.

    A write whose answer was lost and that is sent again meets its own first try as a Conflict: the caller
    reads again and finds its work done. So no request token is relied upon.
    """

    def __init__(
        self,
        client: "DynamoDBClient",
        state: str,
        audit: str,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._state = state
        self._audit = audit
        self._pause = pause

    def load(self, kind: type[T], key: str) -> T | None:
        with asking("GetItem"):
            answer = self._client.get_item(
                TableName=self._state, Key=state_key(kind.item, key), ConsistentRead=True
            )
        row = answer.get("Item")
        return _item(kind, row) if row else None

    def commit(self, items: Sequence[Stored], facts: Sequence[AuditFact], now: int) -> None:
        if len(items) + len(facts) > MAX_ACTIONS:
            raise ValueError(f"a commit has at most {MAX_ACTIONS} items and facts")
        item_puts = [self._item_put(item) for item in items]
        fact_puts = [
            self._fact_put(fact, now) for fact in {fact.key: fact for fact in reversed(facts)}.values()
        ]
        if not items:
            self._put_facts(fact_puts)
        elif len(items) == 1 and not facts:
            self._put_item(item_puts[0])
        else:
            self._transact(item_puts, fact_puts)

    def open_items(self, kind: type[T], queue: str) -> Iterator[T]:
        rows = _query(
            self._client,
            TableName=self._state,
            IndexName="open",
            KeyConditionExpression="open_queue = :queue",
            ExpressionAttributeValues={":queue": {"S": open_key(kind.item, queue)}},
        )
        for row in rows:
            try:
                yield _item(kind, row)
            except ValueError:  # one item that cannot be read must not hide the others
                logger.exception("cannot read %s", row["pk"]["S"])

    def _item_put(self, item: Stored) -> Put:
        put = {"TableName": self._state, "Item": state_row(item)}
        if item.version == 0:
            return put | {"ConditionExpression": "attribute_not_exists(pk)"}
        return put | {
            "ConditionExpression": "#version = :read",
            "ExpressionAttributeNames": {"#version": "version"},
            "ExpressionAttributeValues": {":read": {"N": str(item.version)}},
        }

    def _fact_put(self, fact: AuditFact, now: int) -> Put:
        return {
            "TableName": self._audit,
            "Item": audit_row(fact, now),
            "ConditionExpression": "attribute_not_exists(#key)",
            "ExpressionAttributeNames": {"#key": "key"},
        }

    def _put_item(self, put: Put) -> None:
        if not self._put(put):
            raise Conflict(f"{put['Item']['pk']['S']} changed since it was read")

    def _put_facts(self, puts: Sequence[Put]) -> None:
        """Facts alone need no transaction: each stands by itself, and a second try skips those on record."""
        for put in puts:
            self._put(put)

    def _put(self, put: Put) -> bool:
        """False when the condition did not hold."""
        with asking("PutItem"):
            try:
                self._client.put_item(**put)
            except ClientError as error:
                if code(error) == "TransactionConflictException":
                    raise Conflict("another transaction is writing the item") from error
                if code(error) == "ConditionalCheckFailedException":
                    return False
                refuse_malformed(error)
                raise
        return True

    def _transact(self, items: Sequence[Put], facts: Sequence[Put]) -> None:
        reasons: list[str] = []
        for wait in (0, *BACKOFF):
            if reasons and ON_RECORD not in reasons:
                self._pause(random.uniform(wait / 2, wait))  # noqa: S311 (spreads writers, hides nothing)
            reasons = self._try((*items, *facts))
            if not reasons:
                return
            if ON_RECORD in reasons[: len(items)] or "TransactionConflict" in reasons:
                raise Conflict(f"{', '.join(put['Item']['pk']['S'] for put in items)}: changed since read")
            its_reason = zip(facts, reasons[len(items) :], strict=True)
            facts = [fact for fact, reason in its_reason if reason != ON_RECORD]
        raise Unavailable(f"TransactWriteItems: cancelled {len(BACKOFF) + 1} times, at last for {reasons}")

    def _try(self, puts: Sequence[Put]) -> list[str]:
        """Why each action was cancelled ("None": not its fault), in order; empty when all was written."""
        with asking("TransactWriteItems"):
            try:
                self._client.transact_write_items(TransactItems=[{"Put": put} for put in puts])
            except ClientError as error:
                refuse_malformed(error)
                if code(error) != "TransactionCanceledException":
                    raise
                reasons = [reason["Code"] for reason in error.response["CancellationReasons"]]
                if "ValidationError" in reasons:
                    raise ValueError(f"DynamoDB does not take it: {message(error)}") from error
                return reasons
        return []


class DynamoAuditReader:
    """AuditReader over the indexes of the Audit table. Iterating raises Unavailable."""

    def __init__(self, client: "DynamoDBClient", audit: str) -> None:
        self._client = client
        self._audit = audit

    def by_job(self, job: str, since: int) -> Iterator[AuditRecord]:
        yield from self._indexed("by_job", "job", job, "#at >= :since", {":since": _number(since)})

    def by_share(self, queue: str, share: str, since: int, until: int) -> Iterator[AuditRecord]:
        """One query a day of the range, so bound it."""
        between = {":since": _number(since), ":until": _number(until)}
        for day in range(since // DAY, until // DAY + 1):
            key = share_day(queue, share, day)
            yield from self._indexed("by_share", "share_day", key, "#at BETWEEN :since AND :until", between)

    def _indexed(self, index: str, name: str, key: str, times: str, values: Row) -> Iterator[AuditRecord]:
        rows = _query(
            self._client,
            TableName=self._audit,
            IndexName=index,
            KeyConditionExpression=f"#key = :key AND {times}",
            ExpressionAttributeNames={"#key": name, "#at": "at"},
            ExpressionAttributeValues={":key": {"S": key}, **values},
        )
        return map(audit_record, rows)


def _item(kind: type[T], row: Mapping[str, Any]) -> T:
    """The item in a row. What a newer version added is ignored, so that a rollback can read what it left."""
    return kind.model_validate_json(row["doc"]["S"], extra="ignore")


def _query(client: "DynamoDBClient", **request: Any) -> Iterator[Row]:
    """The rows of all pages, oldest first."""
    while True:
        with asking("Query"):
            page = client.query(**request)
        yield from page["Items"]
        if "LastEvaluatedKey" not in page:
            return
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def _number(value: int) -> dict[str, str]:
    return {"N": str(value)}
