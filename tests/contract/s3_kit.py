"""S3 as the contract tests of checkpoints have it: moto, or an endpoint that answers as it is told."""

from __future__ import annotations

from functools import cache
from typing import Any

import boto3
import pytest
from botocore.config import Config
from sharewarden.aws.s3 import S3Checkpoints
from sharewarden.bootstrap import CONFIG
from sharewarden_tools import memory_objects

from tests.contract.loopback import Answer, status

NOW = 1_789_372_800_000
URI = "s3://ckpt/team/run"
BUCKET = "ckpt"


#: Objects on a page here.
FEW = 5


@cache
def s3() -> Any:
    """Making a client takes a second."""
    return boto3.client("s3")


def few_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", str(FEW))
    monkeypatch.setattr(memory_objects, "PAGE_SIZE", FEW)


def error_of(code: str, http: int) -> Answer:
    return status(http, f"<Error><Code>{code}</Code><Message>because</Message></Error>".encode())


def failing(url: str) -> S3Checkpoints:
    """S3 at that address, with the real settings but for how long they wait."""
    config = CONFIG.merge(Config(read_timeout=0.3, retries={"mode": "standard", "total_max_attempts": 1}))
    return S3Checkpoints(boto3.client("s3", endpoint_url=url, config=config))
