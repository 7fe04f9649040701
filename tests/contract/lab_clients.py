"""boto3 clients as a user makes them, pointed to a lab by address or without a socket."""

from __future__ import annotations

from typing import Any

import boto3
from botocore.config import Config
from sharewarden_tools.lab.wire import Wire, in_process

NO_RETRIES = Config(retries={"total_max_attempts": 1})


def client(service: str, *, wire: Wire | None = None, url: str | None = None, **options: Any) -> Any:
    made = boto3.client(
        service,
        region_name="us-east-1",
        endpoint_url=url,
        aws_access_key_id=options.pop("key", "AKIDSOMEONE"),
        aws_secret_access_key="secret",
        config=options.pop("config", NO_RETRIES),
        **options,
    )
    if wire:
        in_process(made, wire)
    return made
