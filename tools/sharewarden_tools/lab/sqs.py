"""The SQS wire protocol (JSON 1.0) of the lab's queues, so that ``AWS_ENDPOINT_URL_SQS`` works with any SDK.

``WaitTimeSeconds`` never waits: nothing but the clock passes time. Shapes and errors: SQS API reference.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any

from .errors import ApiError
from .queues import Message, Queue, QueueSystem, invalid

Params = dict[str, Any]

BATCH_LIMIT = 10


def operations(queues: QueueSystem) -> dict[str, Callable[[Params], Params]]:
    """What :class:`~sharewarden_tools.lab.wire.Wire` serves under ``sqs``."""

    def on_queue(act: Callable[[Queue, Params], Params]) -> Callable[[Params], Params]:
        return lambda params: act(queues.queue(params["QueueUrl"]), params)

    def create(params: Params) -> Params:
        return {"QueueUrl": queues.url(queues.create(params["QueueName"], params.get("Attributes")))}

    def get_url(params: Params) -> Params:
        return {"QueueUrl": queues.url(queues.queue(params["QueueName"]))}

    return {
        "CreateQueue": create,
        "GetQueueUrl": get_url,
        "GetQueueAttributes": on_queue(_get_attributes),
        "PurgeQueue": on_queue(_purge),
        "SendMessage": on_queue(_send),
        "SendMessageBatch": on_queue(lambda queue, params: _batch(queue, params, _send)),
        "ReceiveMessage": on_queue(_receive),
        "DeleteMessage": on_queue(_delete),
        "DeleteMessageBatch": on_queue(lambda queue, params: _batch(queue, params, _delete)),
        "ChangeMessageVisibility": on_queue(_change_visibility),
    }


def _get_attributes(queue: Queue, params: Params) -> Params:
    counts = queue.counts()
    values = {
        **queue.settings,
        "QueueArn": queue.arn,
        "ApproximateNumberOfMessages": str(counts["visible"]),
        "ApproximateNumberOfMessagesNotVisible": str(counts["in_flight"]),
        "ApproximateNumberOfMessagesDelayed": str(counts["delayed"]),
    }
    return {"Attributes": _chosen(values, params.get("AttributeNames", []))}


def _purge(queue: Queue, _params: Params) -> Params:
    queue.purge()
    return {}


def _send(queue: Queue, params: Params) -> Params:
    if "MessageSystemAttributes" in params:
        raise ApiError("UnsupportedOperation", "the lab keeps no MessageSystemAttributes", 400)
    message = queue.send(
        params["MessageBody"],
        group=params.get("MessageGroupId"),
        deduplication_id=params.get("MessageDeduplicationId"),
        attributes=params.get("MessageAttributes"),
        delay_s=params.get("DelaySeconds"),
    )
    result = {"MessageId": message.id, "MD5OfMessageBody": _md5(message.body.encode())}
    if message.attributes:
        result["MD5OfMessageAttributes"] = attributes_md5(message.attributes)
    if queue.fifo:
        result["SequenceNumber"] = f"{message.sequence:020d}"
    return result


def _receive(queue: Queue, params: Params) -> Params:
    limit = params.get("MaxNumberOfMessages", 1)
    if not 1 <= limit <= BATCH_LIMIT:
        raise invalid("MaxNumberOfMessages", f"it must be between 1 and {BATCH_LIMIT}")
    messages = queue.receive(limit, params.get("VisibilityTimeout"))
    return {"Messages": [_received(message, params) for message in messages]} if messages else {}


def _received(message: Message, params: Params) -> Params:
    wanted = params.get("AttributeNames", []) + params.get("MessageSystemAttributeNames", [])
    attributes = _chosen(message.attributes, params.get("MessageAttributeNames", []))
    parts = {
        "MessageId": message.id,
        "ReceiptHandle": message.receipt,
        "Body": message.body,
        "MD5OfBody": _md5(message.body.encode()),
        "Attributes": _chosen(message.system_attributes(), wanted),
        "MessageAttributes": attributes,
        "MD5OfMessageAttributes": attributes_md5(attributes) if attributes else None,
    }
    return {name: value for name, value in parts.items() if value}


def _delete(queue: Queue, params: Params) -> Params:
    queue.delete(params["ReceiptHandle"])
    return {}


def _change_visibility(queue: Queue, params: Params) -> Params:
    queue.change_visibility(params["ReceiptHandle"], params["VisibilityTimeout"])
    return {}


def _batch(queue: Queue, params: Params, act: Callable[[Queue, Params], Params]) -> Params:
    """One act for each entry; a refused entry is reported beside those that went well."""
    entries = params["Entries"]
    _check_entries([entry["Id"] for entry in entries])
    outcome: Params = {"Successful": [], "Failed": []}
    for entry in entries:
        try:
            outcome["Successful"].append({"Id": entry["Id"], **act(queue, entry)})
        except ApiError as error:
            failure = {"SenderFault": True, "Code": error.code, "Message": error.message}
            outcome["Failed"].append({"Id": entry["Id"], **failure})
    return outcome


def _check_entries(ids: list[str]) -> None:
    if not ids:
        raise ApiError("EmptyBatchRequest", "There should be at least one entry in the request.", 400)
    if len(ids) > BATCH_LIMIT:
        raise ApiError("TooManyEntriesInBatchRequest", f"At most {BATCH_LIMIT} entries.", 400)
    if len(set(ids)) < len(ids):
        raise ApiError("BatchEntryIdsNotDistinct", "Two entries have the same Id.", 400)


def _chosen(values: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    """Members by exact name, by ``prefix.*``, or all of them (``All``, ``.*``)."""
    prefixes = tuple(name[:-2] for name in names if name.endswith(".*"))
    return {
        name: value
        for name, value in values.items()
        if "All" in names or name in names or name.startswith(prefixes)
    }


def attributes_md5(attributes: Mapping[str, Mapping[str, str]]) -> str:
    """SQS developer guide, "Calculating the MD5 message digest for message attributes"."""
    encoded = b""
    for name in sorted(attributes):
        value = attributes[name]
        encoded += _sized(name.encode()) + _sized(value["DataType"].encode())
        if value["DataType"].startswith("Binary"):
            encoded += b"\x02" + _sized(b64decode(value["BinaryValue"]))
        else:
            encoded += b"\x01" + _sized(value["StringValue"].encode())
    return _md5(encoded)


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def _md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()
