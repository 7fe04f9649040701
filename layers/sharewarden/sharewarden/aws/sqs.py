"""The wishes' FIFO queue, the queues of notices and looks, and the dead-letter queue over boto3."""

import hashlib
import json
import re
from typing import TYPE_CHECKING

from sharewarden.aws.errors import asking
from sharewarden.domain.stored import SECOND

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

#: All characters but those that SQS takes (SQS API reference, SendMessage). Compiled at first use: that takes
#: milliseconds, which a cold start without poison need not pay.
_REFUSED = "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"

#: Attributes count towards the size of a message, and the body may need nearly all of it.
LONGEST_REASON = 1000
LONGEST_ORIGIN = 200


class SqsWishQueue:
    """WishQueue: one message group a job, so that wishes of one job are handled in order."""

    def __init__(self, client: "SQSClient", url: str) -> None:
        self._client = client
        self._url = url

    def send(self, job: str, wish: int | str, once: str) -> None:
        kind = "version" if isinstance(wish, int) else "termination"
        with asking("SendMessage"):
            self._client.send_message(
                QueueUrl=self._url,
                MessageBody=json.dumps({"job": job, kind: wish}),
                MessageGroupId=job,
                MessageDeduplicationId=hashlib.sha256(once.encode()).hexdigest(),
            )


class SqsNoticeQueue:
    """NoticeQueue: in no order, since each notice stands by itself."""

    def __init__(self, client: "SQSClient", url: str) -> None:
        self._client = client
        self._url = url

    def send(self, key: str) -> None:
        with asking("SendMessage"):
            self._client.send_message(QueueUrl=self._url, MessageBody=json.dumps({"notice": key}))


class SqsLookQueue:
    """LookQueue: a delay of its own for each message, in whole seconds."""

    def __init__(self, client: "SQSClient", url: str) -> None:
        self._client = client
        self._url = url

    def send(self, job: str, delay: int, asked: int | None = None) -> None:
        message = {"job": job} if asked is None else {"job": job, "asked": asked}
        with asking("SendMessage"):
            self._client.send_message(
                QueueUrl=self._url, MessageBody=json.dumps(message), DelaySeconds=-(-delay // SECOND)
            )


class SqsDeadLetters:
    """DeadLetters: the body stays as it came, so that a redrive can send it again."""

    def __init__(self, client: "SQSClient", url: str) -> None:
        self._client = client
        self._url = url

    def bury(self, body: str, reason: str, origin: str) -> None:
        with asking("SendMessage"):
            self._client.send_message(
                QueueUrl=self._url,
                MessageBody=accepted(body),
                MessageAttributes={
                    "reason": {"DataType": "String", "StringValue": accepted(reason[:LONGEST_REASON])},
                    "origin": {"DataType": "String", "StringValue": accepted(origin[:LONGEST_ORIGIN])},
                },
            )


def accepted(text: str) -> str:
    """``text`` as SQS takes it: odd characters replaced, and never empty."""
    return re.sub(_REFUSED, "\ufffd", text) or "(empty)"
