"""Answers of AWS Batch that a file or a caller gives, read as the product reads Batch's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sharewarden.aws.batch import AwsBatch
from sharewarden.domain.observation import JobDescription
from sharewarden.ports import Clock, Shares


class _Client:
    """A Batch client that knows one answer to everything."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self._answer = answer

    def describe_service_job(self, jobId: str) -> Mapping[str, Any]:  # noqa: ARG002, N803 - boto3's signature
        return self._answer

    def get_paginator(self, name: str) -> _Client:  # noqa: ARG002 - boto3's signature
        return self

    def paginate(self, **_: str) -> Iterable[Mapping[str, Any]]:
        return [self._answer]


def told_job(answer: Mapping[str, Any], clock: Clock) -> JobDescription | None:
    """From an answer of DescribeServiceJob; of what is none, Unavailable, AttributeError or TypeError."""
    client: Any = _Client(answer)
    return AwsBatch(client, clock).describe("the job")


def told_shares(answer: Mapping[str, Any], clock: Clock) -> Shares:
    """From an answer of ListQuotaShares; errors as of ``told_job``."""
    client: Any = _Client(answer)
    return AwsBatch(client, clock).shares("the queue")
