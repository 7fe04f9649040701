"""Webhook over a real socket: what arrives, what each failure says about it, and what is never shown."""

from __future__ import annotations

import json
import logging
import ssl
import traceback
from pathlib import Path
from typing import Any

import pytest
from sharewarden.aws import webhook
from sharewarden.aws.webhook import CACHED, Webhook
from sharewarden.domain.telling import compose
from sharewarden.ports import Denied, Unavailable, Unsure
from sharewarden_tools.memory import MemoryClock

from tests.contract.loopback import (
    Answer,
    certificate,
    closed_port,
    endless,
    hang_up,
    serving,
    silence,
    status,
    trickle,
)
from tests.simulation.notices import notice

TOLD = compose([notice("vision-1")])
SECRET = "s3cr3t-path-and-token"
HEADER = {"name": "X-Token", "value": f"Bearer {SECRET}"}


class Secrets:
    """GetSecretValue; ``text`` may be changed, as a rotation does. ``reads`` counts."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.reads = 0

    def get_secret_value(self, SecretId: str) -> dict[str, Any]:  # noqa: N803 - boto3's signature
        assert SecretId == "arn"
        self.reads += 1
        return {"SecretString": self.text}


def secret(url: str, **rest: Any) -> Secrets:
    return Secrets(json.dumps({"url": f"{url}/{SECRET}?a=1", **rest}))


def hook(secrets: Any, clock: MemoryClock | None = None, context: ssl.SSLContext | None = None) -> Webhook:
    return Webhook(secrets, "arn", clock or MemoryClock(1), context)


def test_the_document_arrives_with_the_header() -> None:
    with serving(status(204)) as endpoint:
        hook(secret(endpoint.url, header=HEADER)).send(TOLD)
    ((path, headers, body),) = endpoint.requests
    assert path == f"/{SECRET}?a=1"
    assert headers["X-Token"] == HEADER["value"]
    assert headers["Content-Type"] == "application/json; charset=utf-8"
    assert json.loads(body) == TOLD.document


@pytest.mark.parametrize(
    ("answer", "raised"),
    [
        (status(301, Location="/elsewhere"), Denied),
        (status(308, Location="/elsewhere"), Denied),
        (status(400), Denied),
        (status(404), Denied),
        (status(408), Unavailable),
        (status(425), Unavailable),
        (status(429), Unavailable),
        (status(503), Unavailable),
        (status(500), Unsure),
        (status(502), Unsure),
        (status(504), Unsure),
        (hang_up, Unsure),
        (silence, Unsure),
        (trickle, Unsure),
    ],
)
def test_what_an_answer_means_and_that_nothing_is_sent_twice(
    answer: Answer, raised: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "ONE_STEP", 0.3)
    monkeypatch.setattr(webhook, "IN_ALL", 0.5)
    with serving(answer) as endpoint:
        with pytest.raises(raised):
            hook(secret(endpoint.url)).send(TOLD)
        assert len(endpoint.requests) == 1


def test_an_answer_without_end_is_not_read() -> None:
    with serving(endless) as endpoint:
        hook(secret(endpoint.url)).send(TOLD)


def test_nobody_at_the_address_is_certain() -> None:
    with pytest.raises(Unavailable, match="before sending: ConnectionRefusedError"):
        hook(secret(closed_port())).send(TOLD)


def test_a_name_that_nobody_has_is_certain() -> None:
    with pytest.raises(Unavailable, match="before sending"):
        hook(secret("https://nowhere.invalid")).send(TOLD)


def test_tls_with_a_certificate_that_is_trusted(tmp_path: Path) -> None:
    pem = certificate(tmp_path)
    with serving(status(200), pem) as endpoint:
        hook(secret(endpoint.url), context=ssl.create_default_context(cafile=f"{pem}.crt")).send(TOLD)
    assert len(endpoint.requests) == 1


def test_tls_with_a_certificate_that_is_not_trusted_sends_nothing(tmp_path: Path) -> None:
    with serving(status(200), certificate(tmp_path)) as endpoint:
        with pytest.raises(Unavailable, match="SSLCertVerificationError"):
            hook(secret(endpoint.url)).send(TOLD)
        assert endpoint.requests == []


def test_slow_tls_is_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "ONE_STEP", 5)
    monkeypatch.setattr(webhook, "IN_ALL", 0.3)
    pem = certificate(tmp_path)
    with serving(trickle, pem) as endpoint:
        trusting = ssl.create_default_context(cafile=f"{pem}.crt")
        with pytest.raises(Unsure):
            hook(secret(endpoint.url), context=trusting).send(TOLD)


def test_a_secret_is_read_again_when_it_is_old_or_refused() -> None:
    clock = MemoryClock(1)
    with serving(status(200)) as endpoint, serving(status(403)) as refusing:
        secrets = secret(refusing.url)
        told = hook(secrets, clock)
        with pytest.raises(Denied):
            told.send(TOLD)
        secrets.text = secret(endpoint.url).text
        told.send(TOLD)
        told.send(TOLD)
        assert secrets.reads == 2
        clock.advance(CACHED)
        told.send(TOLD)
        assert secrets.reads == 3
        clock.at -= 2 * CACHED  # set back
        told.send(TOLD)
        assert secrets.reads == 4


def test_a_secret_that_cannot_be_read_is_certain() -> None:
    class Broken:
        def get_secret_value(self, **_: str) -> dict[str, str]:
            return {}  # a binary one has no text

    with pytest.raises(Unavailable, match="GetSecretValue"):
        hook(Broken()).send(TOLD)


BAD = [
    f"{SECRET}",
    "[]",
    "{}",
    json.dumps({"url": f"http://example.com/{SECRET}"}),
    json.dumps({"url": f"ftp://127.0.0.1/{SECRET}"}),
    json.dumps({"url": f"https://user:{SECRET}@example.com/"}),
    json.dumps({"url": f"https:///{SECRET}"}),
    json.dumps({"url": f"https://[{SECRET}/"}),
    json.dumps({"url": f"https://example.com:{SECRET}/"}),
    json.dumps({"url": f"https://example.com/{SECRET}\r\nX: y"}),
    json.dumps({"url": "https://example.com/", "token": SECRET}),
    json.dumps({"url": "https://example.com/", "header": {"name": "X", "value": f"{SECRET}\r\nY: z"}}),
    json.dumps({"url": "https://example.com/", "header": {"name": f"X: {SECRET}", "value": "z"}}),
]


@pytest.mark.parametrize("text", BAD)
def test_a_secret_that_is_not_as_documented_is_refused_unseen(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG), pytest.raises(Denied, match="not as documented") as raised:
        hook(Secrets(text)).send(TOLD)
    assert SECRET not in shown(raised.value) + caplog.text


@pytest.mark.parametrize(
    "answer", [status(500, SECRET.encode()), status(302, Location=f"/{SECRET}"), hang_up]
)
def test_no_error_shows_address_header_or_answer(answer: Answer, caplog: pytest.LogCaptureFixture) -> None:
    with serving(answer) as endpoint, caplog.at_level(logging.DEBUG):
        with pytest.raises((Denied, Unsure)) as raised:
            hook(secret(endpoint.url, header=HEADER)).send(TOLD)
        found = shown(raised.value) + caplog.text
    assert SECRET not in found
    assert "127.0.0.1" not in found
    assert SECRET not in repr(hook(secret(endpoint.url)))


def shown(error: BaseException) -> str:
    """All that a log of the traceback would hold, causes included."""
    return "".join(traceback.format_exception(error, chain=True))
