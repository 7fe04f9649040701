"""Rows of the two tables, to and from the domain's values. The template has the same key names."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sharewarden.domain.audit import AuditFact, AuditRecord
from sharewarden.domain.base import last_part
from sharewarden.domain.record import JobRecord
from sharewarden.domain.stored import DAY, SECOND, Stored

Row = dict[str, Any]
"""Attribute name -> {"S": text} or {"N": number as text}."""

#: The most bytes of one item, names included (DynamoDB developer guide, Constraints).
MAX_ITEM_BYTES = 400 * 1024

#: Key attributes of the audit indexes; DynamoDB refuses an empty text in them.
_INDEX_KEYS = ("job", "actor")
_JSON = ("figures", "inputs")


def state_key(kind: str, key: str) -> Row:
    """Primary key of an item of the State table."""
    return {"pk": {"S": f"{kind}#{key}"}, "sk": {"S": "RECORD"}}


def open_key(kind: str, queue: str) -> str:
    """Key of the open items of one kind under one queue."""
    return f"{kind}#{queue}"


def state_row(item: Stored) -> Row:
    """The item with its version raised. Raises ValueError when it is too big."""
    written = item.model_copy(update={"version": item.version + 1})
    row = state_key(item.item, item.key) | {
        "doc": {"S": written.model_dump_json()},
        "version": {"N": str(written.version)},
    }
    if written.expires_at is not None:
        row["expires_at"] = {"N": str(written.expires_at // SECOND)}  # DynamoDB's TTL counts seconds
    if written.open_queue is not None:
        since = written.created_at if isinstance(written, JobRecord) else 0
        row |= {"open_queue": {"S": open_key(item.item, written.open_queue)}, "open_since": {"N": str(since)}}
    return _fitting(row, f"{item.item}#{item.key}")


def audit_row(fact: AuditFact, now: int) -> Row:
    """The fact as recorded at ``now``. Raises ValueError when it is too big."""
    members = dict(fact) | {"recorded_at": now}
    row = {name: _attribute(value) for name, value in members.items() if value is not None}
    for name in _INDEX_KEYS:
        if members[name] == "":
            del row[name]
    if fact.queue:  # a fact whose share is not known is found under the queue alone
        row["share_day"] = {"S": share_day(fact.queue, fact.share or "", fact.at // DAY)}
    return _fitting(row, fact.key)


def audit_record(row: Mapping[str, Any]) -> AuditRecord:
    """The record in a row of the Audit table."""
    members = {name: _value(name, attribute) for name, attribute in row.items() if name != "share_day"}
    return AuditRecord(**{"actor": "", **members})


def share_day(queue: str, share: str, day: int) -> str:
    """Key of the records of one share (or of none) on one UTC day, counted from the epoch."""
    return f"{last_part(queue)}/{share}#{datetime.fromtimestamp(day * DAY / SECOND, UTC):%Y-%m-%d}"


def _attribute(value: str | int | dict[str, Any]) -> dict[str, str]:
    if isinstance(value, str):
        return {"S": value}
    return {"N": str(value)} if isinstance(value, int) else {"S": json.dumps(value, ensure_ascii=False)}


def _value(name: str, attribute: Mapping[str, str]) -> Any:
    if "N" in attribute:
        return int(attribute["N"])
    return json.loads(attribute["S"]) if name in _JSON else attribute["S"]


def _fitting(row: Row, name: str) -> Row:
    size = sum(len(key) + len(text.encode()) for key, value in row.items() for text in value.values())
    if size > MAX_ITEM_BYTES:
        raise ValueError(f"{name} has {size} bytes; an item of DynamoDB has at most {MAX_ITEM_BYTES}")
    return row
