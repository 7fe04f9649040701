"""Calls to Batch in CloudTrail: which of them changed something, who made them, what they named."""

import copy
import json
from typing import Any

import pytest
from sharewarden.domain.observation import ApiCallObservation
from sharewarden.events import BadEvent, observe
from sharewarden.events.calls import REQUEST_LIMIT

CALL: dict[str, Any] = {
    "source": "aws.batch",
    "detail-type": "AWS API Call via CloudTrail",
    "time": "2026-09-14T12:10:04Z",
    "detail": {
        "eventID": "e-1",
        "eventSource": "batch.amazonaws.com",
        "eventName": "UpdateServiceJob",
        "userIdentity": {"arn": "arn:aws:iam::123456789012:user/ada", "principalId": "AIDA"},
    },
}
ARN = "arn:aws:batch:us-east-1:123456789012:service-job/j-1"
SHARE = "arn:aws:batch:us-east-1:123456789012:job-queue/q/quota-share/s"


def call(**detail: Any) -> dict[str, Any]:
    event = copy.deepcopy(CALL)
    event["detail"] |= detail
    return event


def seen(**detail: Any) -> ApiCallObservation:
    observation = observe(call(**detail))
    assert isinstance(observation, ApiCallObservation)
    return observation


@pytest.mark.parametrize(
    ("detail", "changed"),
    [
        ({}, True),
        ({"readOnly": False}, True),
        ({"readOnly": "false"}, True),
        ({"readOnly": None, "errorCode": None}, True),
        ({"readOnly": True}, False),
        ({"errorCode": "AccessDenied"}, False),
        ({"errorCode": ""}, False),
        ({"eventName": "DescribeServiceJob"}, False),
        ({"eventName": "ListServiceJobs"}, False),
        ({"eventName": "GetJobQueueSnapshot"}, False),
        ({"eventName": "ListServiceJobs", "readOnly": False}, True),
        ({"eventSource": "sagemaker.amazonaws.com"}, False),
    ],
)
def test_only_a_write_call_that_succeeded_happened(detail: dict[str, Any], changed: bool) -> None:
    assert (observe(call(**detail)) is not None) is changed


@pytest.mark.parametrize(
    ("identity", "principal"),
    [
        ({"arn": "a", "invokedBy": "b", "principalId": "c"}, "a"),
        ({"invokedBy": "batch.amazonaws.com", "principalId": "c"}, "batch.amazonaws.com"),
        ({"principalId": "AROA:ctl"}, "AROA:ctl"),
        ({"type": "Unknown"}, "unknown"),
        (None, "unknown"),
    ],
)
def test_who_called(identity: dict[str, str] | None, principal: str) -> None:
    assert seen(userIdentity=identity).principal == principal


@pytest.mark.parametrize(
    ("request_", "response", "subjects"),
    [
        ({"jobId": "j-1"}, None, ("j-1",)),
        ({"jobId": "j-0"}, {"jobArn": ARN, "jobId": "j-0"}, (ARN,)),
        ({"quotaShareArn": SHARE}, {"quotaShareArn": SHARE}, (SHARE,)),
        ({"quotaShareArn": SHARE}, None, (SHARE,)),
        ({"quotaShareName": "s", "jobQueue": "q"}, {"quotaShareArn": SHARE}, (SHARE,)),
        ({"jobs": ["j-1", "j-2"]}, None, ("j-1", "j-2")),
        ({"jobs": ["j-1", None]}, {}, ("j-1",)),
        ({"jobs": ["j-1", "j-2"]}, {"successful": ["j-2"], "errors": [{"job": "j-1"}]}, ("j-2",)),
        ({"jobs": ["j-1"]}, {"successful": []}, ()),
        ({"jobQueue": "q"}, None, ()),
        (None, None, ()),
    ],
)
def test_what_the_call_was_about(
    request_: dict[str, Any] | None, response: dict[str, Any] | None, subjects: tuple[str, ...]
) -> None:
    assert seen(requestParameters=request_, responseElements=response).subjects == subjects


def test_a_call_has_its_own_time() -> None:
    assert seen(eventTime="2026-09-14T12:10:00Z").at == 1789387800000
    assert seen().at == 1789387804000


@pytest.mark.parametrize(("told", "priority"), [(0, 0), (800, 800), (None, None)])
def test_priority(told: int | None, priority: int | None) -> None:
    assert seen(requestParameters={"schedulingPriority": told}).priority == priority


def test_the_request_does_not_depend_on_the_order_of_its_members() -> None:
    nested = {"state": {"y": [1, None], "x": "é"}, "reason": 1}
    turned = {"reason": 1, "state": {"x": "é", "y": [1, None]}}
    text = seen(requestParameters=nested).request
    assert (
        text == seen(requestParameters=turned).request == r'{"reason":1,"state":{"x":"\u00e9","y":[1,null]}}'
    )


def test_a_long_request_loses_its_longest_members() -> None:
    long = {
        "jobId": "j-1",
        "capacityLimits": "x" * REQUEST_LIMIT,
        "reason": "y" * 500,
        "state": "z" * 1600,
    }
    assert json.loads(seen(requestParameters=long).request) == {"jobId": "j-1", "reason": "y" * 500}


@pytest.mark.parametrize("spare", [0, 1])
def test_the_limit_of_a_request_is_exact(spare: int) -> None:
    filler = REQUEST_LIMIT - len('{"reason":"","state":1}') + 1 - spare
    kept = json.loads(seen(requestParameters={"state": 1, "reason": "x" * filler}).request)
    assert ("reason" in kept) is (spare == 1)


def test_a_member_that_is_not_on_the_list_stays_out_of_the_record() -> None:
    told = {"jobId": "j-1", "tags": {"secret": "s"}, "serviceRequestPayload": "{}", "new": 1}
    assert seen(requestParameters=told).request == '{"jobId":"j-1"}'


def test_no_request() -> None:
    assert seen(requestParameters=None).request == "{}"


@pytest.mark.parametrize("member", ["eventID", "eventSource", "eventName"])
def test_a_call_names_itself(member: str) -> None:
    event = call()
    del event["detail"][member]
    with pytest.raises(BadEvent, match=rf"^detail\.{member}: missing$"):
        observe(event)
