"""Making boto3 clients for one deployment without leaving a trace in the process."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import boto3

#: Nothing of the user's own AWS configuration may reach a client of the local stack, nor may a proxy.
OWN_MACHINE = {
    "NO_PROXY": "127.0.0.1",
    "no_proxy": "127.0.0.1",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
}


def credentials(user: str, region: str) -> dict[str, str]:
    """Variables that make a caller known to the lab: it takes the access key id for the user's name."""
    return {"AWS_ACCESS_KEY_ID": user, "AWS_SECRET_ACCESS_KEY": "local", "AWS_DEFAULT_REGION": region}


@contextmanager
def aws_environment(variables: Mapping[str, str]) -> Iterator[None]:
    """The process's AWS settings are ``variables`` and nothing else inside the block.

    A client made inside keeps endpoint, Region and credentials after it. Not for two threads at a time.
    """
    before, session = dict(os.environ), boto3.DEFAULT_SESSION
    foreign = [name for name in before if name.startswith("AWS_")]
    for name in foreign:
        del os.environ[name]
    os.environ.update({**OWN_MACHINE, **variables})
    boto3.DEFAULT_SESSION = None
    try:
        yield
    finally:
        boto3.DEFAULT_SESSION = session
        os.environ.clear()
        os.environ.update(before)


def late_clients() -> dict[str, Any]:
    """The clients that ``aws_runtime`` would make at first use: to be made inside ``aws_environment``."""
    return {"s3": boto3.client("s3"), "stepfunctions": boto3.client("stepfunctions")}
