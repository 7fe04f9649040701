"""Rows of Batch's answers that this version cannot read: counted, and no cover for the others."""

from __future__ import annotations

from typing import Any

import pytest
from sharewarden.aws.batch import AwsBatch
from sharewarden.ports import Shares
from sharewarden_tools.memory import MemoryClock

from tests.contract.test_aws_batch import JOB_ARN, QUEUE, VISION, listed_share

ROW = {"jobArn": JOB_ARN, "jobName": "n", "status": "RUNNING", "createdAt": 1}


class Client:
    """Answers of boto3 that its model does not allow, or a newer one might."""

    def __init__(self, rows: list[Any]) -> None:
        self._rows = rows

    def list_service_jobs(self, **_: Any) -> dict[str, Any]:
        return {"jobSummaryList": self._rows}

    def describe_service_job(self, **_: Any) -> dict[str, Any]:
        return dict(self._rows[0])

    def get_paginator(self, _: str) -> Client:
        return self

    def paginate(self, **_: Any) -> list[dict[str, Any]]:
        return [{"quotaShares": self._rows}]


def answering(*rows: Any) -> AwsBatch:
    client: Any = Client(list(rows))
    return AwsBatch(client, MemoryClock())


def without(row: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}


@pytest.mark.parametrize(
    "odd",
    [
        without(listed_share(), "capacityLimits"),  # as one in CREATING may be
        listed_share() | {"resourceSharingConfiguration": {"strategy": "LEND_TO_FRIENDS"}},
        listed_share() | {"quotaShareArn": None},
    ],
    ids=["no limits", "new strategy", "no ARN"],
)
def test_an_odd_share_does_not_hide_the_others(odd: dict[str, Any]) -> None:
    assert answering(odd, listed_share()).shares(QUEUE) == Shares(shares=(VISION,), odd=1)


@pytest.mark.parametrize(
    "odd", [without(ROW, "createdAt"), ROW | {"status": "DREAMING"}, ROW | {"latestAttempt": "x"}]
)
def test_an_odd_row_of_a_listing_does_not_hide_the_others(odd: dict[str, Any]) -> None:
    page = answering(odd, ROW).jobs(QUEUE, "RUNNING", None)
    assert ([job.arn for job in page.jobs], page.odd) == ([JOB_ARN], 1)


def test_half_a_pair_of_surrogates_is_a_question_mark() -> None:
    payload = '{"RoleArn": "a\\udc00b"}'
    job = ROW | {"jobQueue": QUEUE, "statusReason": "\ud800 \U0001f600", "serviceRequestPayload": payload}
    description = answering(job).describe(JOB_ARN)
    assert description is not None
    assert (description.reason, description.role) == ("? \U0001f600", "a?b")
    assert description.model_dump_json()
