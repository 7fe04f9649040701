"""Notifier over an HTTPS endpoint that takes a POST of JSON; address and header come from Secrets Manager.

The address may be a secret by itself, so no error and no log shows it, nor what the endpoint answered.
"""

import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from threading import Timer
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from sharewarden.aws.errors import asking
from sharewarden.domain.stored import MINUTE
from sharewarden.domain.telling import Message
from sharewarden.ports import Clock, Denied, Unavailable, Unsure

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient

#: A changed secret is in use after so long, or at once when the endpoint refuses the old one.
CACHED = 5 * MINUTE
#: Seconds: to connect; for one read or write; for the whole exchange, however slowly the endpoint trickles.
CONNECT, ONE_STEP, IN_ALL = 3, 5, 10
#: The endpoint did not take it and says so (RFC 9110, RFC 6585, RFC 8470).
_TRY_LATER = {408, 425, 429, 503}
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


class _Secret(BaseModel):
    # An error must not show what it is about.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Header(_Secret):
    name: str = Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$")
    value: str = Field(pattern=r"^[\x20-\x7e]{1,4000}$")


class Endpoint(_Secret):
    """The secret: ``{"url": "https://...", "header": {"name": ..., "value": ...}}``, the header optional."""

    url: str = Field(pattern=r"^[\x21-\x7e]{1,2000}$")
    header: Header | None = None

    @field_validator("url")
    @classmethod
    def _is_safe(cls, url: str) -> str:
        """HTTPS, or HTTP to this machine (the local stack)."""
        parts = urlsplit(url)
        plain_here = parts.scheme == "http" and parts.hostname in _LOOPBACK
        if not parts.hostname or not (parts.scheme == "https" or plain_here):
            raise ValueError("not an https URL")
        if parts.username is not None or parts.port == 0:  # reading the port checks it
            raise ValueError("neither credentials nor port 0 belong in it")
        return url


class Webhook:
    """``context``: whom to trust; the system's certificate authorities without it."""

    def __init__(
        self,
        client: "SecretsManagerClient",
        secret: str,
        clock: Clock,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._client = client
        self._secret = secret
        self._clock = clock
        self._context = context
        self._endpoint: Endpoint | None = None
        self._read_at = 0

    def send(self, message: Message) -> None:
        endpoint = self._current()
        body = json.dumps(message.document, ensure_ascii=False).encode()
        status = _post(endpoint, body, self._context)
        if 200 <= status < 300:
            return
        self._endpoint = None  # what it refuses may be an old secret
        raise _refusal(status)

    def _current(self) -> Endpoint:
        now = self._clock.now()
        if self._endpoint is None or not 0 <= now - self._read_at < CACHED:  # a clock may be set back
            self._endpoint = self._read()
            self._read_at = now
        return self._endpoint

    def _read(self) -> Endpoint:
        with asking("GetSecretValue"):
            text = self._client.get_secret_value(SecretId=self._secret)["SecretString"]
        try:
            return Endpoint.model_validate_json(text)
        except ValidationError as error:
            where = sorted({".".join(map(str, row["loc"])) or "all of it" for row in error.errors()})
        raise Denied(f"the webhook's secret is not as documented: {', '.join(where)}")


def _refusal(status: int) -> Exception:
    """What an answer other than 2xx means; redirects are refusals, since none is followed."""
    text = f"the webhook answered {status}"
    if status in _TRY_LATER:
        return Unavailable(text)
    return Denied(text) if 300 <= status < 500 else Unsure(text)


def _post(endpoint: Endpoint, body: bytes, context: ssl.SSLContext | None) -> int:
    """The status of the answer; its body is not read. Raises Unavailable, or Unsure once sending began."""
    connection = _connected(endpoint, context)
    try:
        with _bounded(connection.sock):
            connection.request("POST", _target(endpoint.url), body, _headers(endpoint))
            return connection.getresponse().status
    except (OSError, HTTPException, ValueError) as error:
        raise Unsure(f"the webhook, after sending began: {type(error).__name__}") from None
    finally:
        connection.close()


def _connected(endpoint: Endpoint, context: ssl.SSLContext | None) -> HTTPConnection:
    """A connection, with TLS done. No proxy, no redirect. Raises Unavailable."""
    parts = urlsplit(endpoint.url)
    host = parts.hostname or ""
    connection = (
        HTTPSConnection(host, parts.port, timeout=CONNECT, context=context)
        if parts.scheme == "https"
        else HTTPConnection(host, parts.port, timeout=CONNECT)
    )
    try:
        connection.connect()
        connection.sock.settimeout(ONE_STEP)
    except (OSError, ValueError) as error:  # a name that cannot be one is a ValueError
        connection.close()
        raise Unavailable(f"the webhook, before sending: {type(error).__name__}") from None
    return connection


@contextmanager
def _bounded(sock: socket.socket) -> Iterator[None]:
    """Shut the connection when the exchange takes too long: a time-out of a socket bounds each step alone."""
    timer = Timer(IN_ALL, socket.socket.shutdown, (sock, socket.SHUT_RDWR))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _target(url: str) -> str:
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _headers(endpoint: Endpoint) -> dict[str, str]:
    own = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "sharewarden"}
    return own if endpoint.header is None else own | {endpoint.header.name: endpoint.header.value}
