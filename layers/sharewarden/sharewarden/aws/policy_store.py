"""PolicyStore over the State and Audit tables: the versions of the policy, and which is in force.

Only the commands write here; the functions read (``aws/policies.py``).
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from sharewarden.aws.errors import asking, refuse_malformed
from sharewarden.aws.policies import KEY, version_key
from sharewarden.aws.rows import audit_row
from sharewarden.domain.audit import AuditFact
from sharewarden.domain.policy_version import PolicyEntry, PolicyVersion, put_by_hand
from sharewarden.ports import Conflict

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Put = dict[str, Any]

_NUMBERS = ("number", "at", "previous")
#: Names that DynamoDB reserves stand behind a placeholder (DynamoDB developer guide, Reserved words).
_ENTRY = {f"#{name}": name for name in PolicyEntry.model_fields}


class DynamoPolicyStore:
    """PolicyStore."""

    def __init__(self, client: "DynamoDBClient", state: str, audit: str) -> None:
        self._client = client
        self._state = state
        self._audit = audit

    def current(self) -> PolicyVersion | None:
        row = self._row(KEY)
        if row is None:
            return None
        if "hash" in row:
            return _version(row)
        newest = next(self._entries(), None)
        return put_by_hand(row.get("doc", {}).get("S", ""), newest.number if newest else None)

    def version(self, number: int) -> PolicyVersion | None:
        row = self._row(version_key(number))
        return None if row is None else _version(row)

    def history(self) -> Iterator[PolicyEntry]:
        current = self.current()
        if current is not None and current.author is None:
            yield PolicyEntry(**current.model_dump(include=set(PolicyEntry.model_fields)))
        yield from self._entries()

    def put(self, version: PolicyVersion, seen: PolicyVersion | None, fact: AuditFact, now: int) -> None:
        kept = [] if seen is None or seen.author is not None else [self._version_put(seen)]
        audited = {
            "TableName": self._audit,
            "Item": audit_row(fact, now),
            "ConditionExpression": "attribute_not_exists(#key)",
            "ExpressionAttributeNames": {"#key": "key"},
        }
        self._transact([*kept, self._version_put(version), self._current_put(version, seen), audited])

    def _version_put(self, version: PolicyVersion) -> Put:
        item = version_key(version.number) | _attributes(version)
        return {
            "TableName": self._state,
            "Item": item,
            "ConditionExpression": "attribute_not_exists(pk)",
        }

    def _current_put(self, version: PolicyVersion, seen: PolicyVersion | None) -> Put:
        row = {name: value for name, value in _attributes(version).items() if name != "text"}
        return {"TableName": self._state, "Item": {**KEY, **row}, **_as_seen(seen)}

    def _transact(self, puts: list[Put]) -> None:
        with asking("TransactWriteItems"):
            try:
                self._client.transact_write_items(TransactItems=[{"Put": put} for put in puts])  # type: ignore[typeddict-item]
            except ClientError as error:
                refuse_malformed(error)
                reasons = {reason["Code"] for reason in error.response.get("CancellationReasons", ())}
                if reasons & {"ConditionalCheckFailed", "TransactionConflict"}:
                    raise Conflict("another policy was put") from error
                raise

    def _entries(self) -> Iterator[PolicyEntry]:
        """The versions that are kept, newest first, without their documents."""
        request: dict[str, Any] = {
            "TableName": self._state,
            "KeyConditionExpression": "pk = :policy AND begins_with(sk, :version)",
            "ExpressionAttributeValues": {":policy": KEY["pk"], ":version": {"S": "VERSION#"}},
            "ProjectionExpression": ", ".join(_ENTRY),
            "ExpressionAttributeNames": _ENTRY,
            "ScanIndexForward": False,
            "ConsistentRead": True,
        }
        while True:
            with asking("Query"):
                page = self._client.query(**request)
                entries = [PolicyEntry(**_members(row)) for row in page["Items"]]
            yield from entries
            if "LastEvaluatedKey" not in page:
                return
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def _row(self, key: Mapping[str, Any]) -> Mapping[str, Any] | None:
        with asking("GetItem"):
            answer = self._client.get_item(TableName=self._state, Key=key, ConsistentRead=True)
        return answer.get("Item")


def _as_seen(seen: PolicyVersion | None) -> Put:
    """The condition that the policy in force is still the one that was seen."""
    if seen is None:
        return {"ConditionExpression": "attribute_not_exists(pk)"}
    if seen.author is None:
        no_text = "attribute_not_exists(doc) OR NOT attribute_type(doc, :text)"
        return {
            "ConditionExpression": f"attribute_not_exists(#h) AND (doc = :doc OR {no_text})",
            "ExpressionAttributeNames": {"#h": "hash"},
            "ExpressionAttributeValues": {":doc": {"S": seen.doc}, ":text": {"S": "S"}},
        }
    return {
        "ConditionExpression": "#hash = :hash AND #number = :number",
        "ExpressionAttributeNames": {"#hash": "hash", "#number": "number"},
        "ExpressionAttributeValues": {":hash": {"S": seen.hash}, ":number": {"N": str(seen.number)}},
    }


def _attributes(version: PolicyVersion) -> dict[str, Any]:
    given = version.model_dump(exclude_none=True)
    return {name: {"N": str(value)} if name in _NUMBERS else {"S": value} for name, value in given.items()}


def _version(row: Mapping[str, Any]) -> PolicyVersion:
    """Raises Unavailable for a row that somebody has maimed."""
    with asking("GetItem"):
        return PolicyVersion(**_members(row))


def _members(row: Mapping[str, Any]) -> dict[str, Any]:
    """The members in a row, without what a newer version of the code has added."""
    known = (name for name in PolicyVersion.model_fields if name in row)
    return {name: int(row[name]["N"]) if name in _NUMBERS else row[name]["S"] for name in known}
