"""Notifier over an SNS topic."""

from typing import TYPE_CHECKING, Any

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    ProxyConnectionError,
)
from botocore.parsers import ResponseParserError

from sharewarden.aws.errors import code, message
from sharewarden.aws.sqs import accepted
from sharewarden.domain.telling import Message
from sharewarden.ports import Denied, Unavailable, Unsure

if TYPE_CHECKING:
    from mypy_boto3_sns import SNSClient

#: Raised before a byte of the request is on its way.
_NOT_SENT = (ConnectTimeoutError, EndpointConnectionError, NoCredentialsError, ProxyConnectionError)
#: The service says that it did not take the request (SNS API reference, Publish and Common errors).
_TRY_LATER = {"Throttled", "Throttling", "ThrottlingException", "ServiceUnavailable", "KMSThrottling"}


class SnsTopic:
    """``client`` must not try again by itself: the first try may have gone out (``bootstrap.ONCE``)."""

    def __init__(self, client: "SNSClient", topic: str) -> None:
        self._client = client
        self._topic = topic

    def send(self, message: Message) -> None:
        try:
            self._client.publish(
                TopicArn=self._topic,
                Subject=message.subject,
                Message=accepted(message.text),
                MessageAttributes=_attributes(message.attributes),
            )
        except ParamValidationError:
            raise
        except ClientError as error:
            raise _answered(error) from error
        except _NOT_SENT as error:
            raise Unavailable(f"Publish: {type(error).__name__}: {error}") from error
        except (BotoCoreError, ResponseParserError) as error:
            raise Unsure(f"Publish: {type(error).__name__}: {error}") from error


def _answered(error: ClientError) -> Exception:
    """What an answer of the service means: refused, certainly not done, or done by half (5xx)."""
    text = f"Publish: {code(error)}: {message(error)}"
    if code(error) in _TRY_LATER:
        return Unavailable(text)
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return Denied(text) if 400 <= status < 500 else Unsure(text)


def _attributes(texts: dict[str, str]) -> dict[str, Any]:
    return {name: {"DataType": "String", "StringValue": accepted(text)} for name, text in texts.items()}
