"""The wire layer by itself, a small fake behind it: routing, checks against the models, errors, faults."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError
from sharewarden_tools.lab.errors import ApiError
from sharewarden_tools.lab.shapes import problems, service_model
from sharewarden_tools.lab.wire import (
    Fault,
    LabBugError,
    LostAnswerError,
    Request,
    Response,
    Wire,
    access_key_id,
    in_process,
    seeded_faults,
)

JOB = {"jobArn": "arn:aws:batch:us-east-1:123456789012:service-job/j1", "jobId": "j1", "jobName": "n"}
NO_RETRIES = Config(retries={"total_max_attempts": 1})


class Fake:
    """Answers with what it was given, and remembers."""

    def __init__(self, **results: Any) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.results = results

    def __getitem__(self, name: str) -> Any:
        def operation(params: dict[str, Any]) -> dict[str, Any]:
            self.calls.append((name, params))
            result = self.results[name]
            if isinstance(result, Exception):
                raise result
            return dict(result)

        return operation


def wire_of(service: str = "batch", **results: Any) -> tuple[Wire, Fake]:
    fake = Fake(**results)
    return Wire({service: {name: fake[name] for name in results}}), fake


def post(path: str, body: Any, **headers: str) -> Request:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Request(
        "POST", path, headers={name.replace("_", "-"): v for name, v in headers.items()}, body=data
    )


def said(response: Response) -> Any:
    return json.loads(response.body)


def test_a_batch_request_reaches_its_operation_and_its_result_the_caller() -> None:
    wire, fake = wire_of(UpdateServiceJob=JOB)
    response = wire.answer(post("/v1/updateservicejob", {"jobId": "j1", "schedulingPriority": 7}))
    assert fake.calls == [("UpdateServiceJob", {"jobId": "j1", "schedulingPriority": 7})]
    assert (response.status, said(response)) == (200, JOB)
    assert response.headers["Content-Type"] == "application/json"


def test_a_sagemaker_request_is_routed_by_its_target() -> None:
    wire, fake = wire_of("sagemaker", StopTrainingJob={})
    response = wire.answer(post("/", {"TrainingJobName": "t"}, x_amz_target="SageMaker.StopTrainingJob"))
    assert fake.calls == [("StopTrainingJob", {"TrainingJobName": "t"})]
    assert (response.status, said(response)) == (200, {})
    assert response.headers["Content-Type"] == "application/x-amz-json-1.1"


ARN = "arn:aws:batch:us-east-1:123456789012:job-queue/q/quota-share/s"
ENCODED = ARN.replace(":", "%3A").replace("/", "%2F")


@pytest.mark.parametrize(
    ("operation", "request_", "params"),
    [
        ("ListTagsForResource", Request("GET", f"/v1/tags/{ENCODED}"), {"resourceArn": ARN}),
        (
            "TagResource",
            Request("POST", f"/v1/tags/{ENCODED}", body=b'{"tags": {"team": "nlp"}}'),
            {"resourceArn": ARN, "tags": {"team": "nlp"}},
        ),
        (
            "UntagResource",
            Request("DELETE", f"/v1/tags/{ENCODED}", query="tagKeys=team&tagKeys=a%2Fb"),
            {"resourceArn": ARN, "tagKeys": ["team", "a/b"]},
        ),
    ],
)
def test_uri_labels_and_query_lists_become_members(
    operation: str, request_: Request, params: dict[str, Any]
) -> None:
    wire, fake = wire_of(**{operation: {}})
    assert wire.answer(request_).status == 200
    assert fake.calls == [(operation, params)]


def test_null_means_absent() -> None:
    wire, fake = wire_of(ListServiceJobs={"jobSummaryList": []})
    wire.answer(post("/v1/listservicejobs", {"jobQueue": "q", "jobStatus": None}))
    assert fake.calls == [("ListServiceJobs", {"jobQueue": "q"})]


@pytest.mark.parametrize(
    ("path", "body", "text"),
    [
        ("updateservicejob", {"jobId": "j1"}, "schedulingPriority"),
        ("updateservicejob", {"jobId": "j1", "schedulingPriority": "7"}, "schedulingPriority"),
        ("updateservicejob", {"jobId": "j1", "schedulingPriority": True}, "schedulingPriority"),
        ("updateservicejob", {"jobId": "j1", "schedulingPriority": 7, "reason": "x"}, "reason"),
        ("listservicejobs", {"jobQueue": "q", "jobStatus": "WAITING"}, "jobStatus"),
    ],
)
def test_what_the_model_forbids_is_a_client_exception_that_names_the_member(
    path: str, body: dict[str, Any], text: str
) -> None:
    wire, fake = wire_of(UpdateServiceJob=JOB, ListServiceJobs={"jobSummaryList": []})
    response = wire.answer(post(f"/v1/{path}", body))
    assert (response.status, response.headers["x-amzn-ErrorType"]) == (400, "ClientException")
    assert text in said(response)["message"]
    assert not fake.calls


@pytest.mark.parametrize(
    ("name", "constraint"), [("-bad-", "pattern"), ("x" * 64, "at most 63")], ids=["pattern", "length"]
)
def test_sagemaker_constraints_are_a_validation_exception(name: str, constraint: str) -> None:
    wire, _ = wire_of("sagemaker", StopTrainingJob={})
    response = wire.answer(post("/", {"TrainingJobName": name}, x_amz_target="SageMaker.StopTrainingJob"))
    assert (response.status, said(response)["__type"]) == (400, "ValidationException")
    assert "TrainingJobName" in said(response)["message"]
    assert constraint in said(response)["message"]


@pytest.mark.parametrize(
    ("request_", "status", "text"),
    [
        (post("/v1/nosuchthing", {}), 404, "POST /v1/nosuchthing"),
        (Request("GET", "/v1/updateservicejob"), 404, "GET /v1/updateservicejob"),
        (post("/v1/submitjob", {}), 404, "SubmitJob"),
        (post("/", {}, x_amz_target="SageMaker.Nonsense"), 400, "Nonsense"),
        (post("/", {}, x_amz_target="SageMaker.CreateTrainingJob"), 400, "CreateTrainingJob"),
    ],
)
def test_what_the_lab_does_not_have_is_named(request_: Request, status: int, text: str) -> None:
    response = wire_of(UpdateServiceJob=JOB)[0].answer(request_)
    assert response.status == status
    assert text in said(response)["message"]
    assert "UnknownOperationException" in (
        said(response).get("__type"),
        response.headers.get("x-amzn-ErrorType"),
    )


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff", b"[" * 100_000], ids=lambda body: body[:3])
def test_a_body_that_is_no_json_object_is_a_serialization_exception(body: bytes) -> None:
    response = wire_of(UpdateServiceJob=JOB)[0].answer(post("/v1/updateservicejob", body))
    assert (response.status, response.headers["x-amzn-ErrorType"]) == (400, "SerializationException")


def test_text_whose_pattern_python_cannot_read_passes() -> None:
    arn = "arn:aws:lambda:us-east-1:123456789012:function:credentials"
    shape = service_model("sagemaker").shape_for("TrainingRepositoryAuthConfig")
    assert problems({"TrainingRepositoryCredentialsProviderArn": arn}, shape) == []
    assert problems({"TrainingRepositoryCredentialsProviderArn": 1}, shape) != []


def test_a_result_that_the_model_forbids_is_a_bug_of_the_lab() -> None:
    wrong: list[dict[str, Any]] = [{"jobArn": 1}, {**JOB, "share": "s"}]
    for result in wrong:
        with pytest.raises(LabBugError, match="UpdateServiceJob"):
            wire_of(UpdateServiceJob=result)[0].answer(
                post("/v1/updateservicejob", {"jobId": "j1", "schedulingPriority": 7})
            )


def test_a_job_that_has_not_started_has_no_started_at() -> None:
    runnable = {
        "jobId": "j1",
        "jobName": "n",
        "jobQueue": "q",
        "serviceJobType": "SAGEMAKER_TRAINING",
        "status": "RUNNABLE",
    }
    wire, _ = wire_of(DescribeServiceJob=runnable)
    assert wire.answer(post("/v1/describeservicejob", {"jobId": "j1"})).status == 200


@pytest.mark.parametrize(
    ("fault", "status", "code", "acts"),
    [(Fault.THROTTLE, 429, "TooManyRequestsException", 0), (Fault.FAIL, 500, "ServerException", 0)],
)
def test_injected_errors_come_before_the_act(fault: Fault, status: int, code: str, acts: int) -> None:
    wire, fake = wire_of(DescribeServiceJob=JOB)
    wire.faults = lambda service, operation: fault
    response = wire.answer(post("/v1/describeservicejob", {"jobId": "j1"}))
    assert (response.status, response.headers["x-amzn-ErrorType"], len(fake.calls)) == (status, code, acts)


def test_a_lost_answer_comes_after_the_act() -> None:
    wire, fake = wire_of(UpdateServiceJob=JOB)
    wire.faults = lambda service, operation: Fault.LOST if operation == "UpdateServiceJob" else None
    with pytest.raises(LostAnswerError):
        wire.answer(post("/v1/updateservicejob", {"jobId": "j1", "schedulingPriority": 7}))
    assert len(fake.calls) == 1


def test_seeded_faults_repeat_and_have_the_wanted_shares() -> None:
    def draws(seed: int) -> list[Fault | None]:
        faults = seeded_faults(seed, throttle=0.2, fail=0.1, lost=0.1)
        return [faults("batch", "DescribeServiceJob") for _ in range(1000)]

    share = Counter(draws(3))
    assert draws(3) == draws(3) != draws(4)
    assert 150 < share[Fault.THROTTLE] < 250
    assert 60 < share[Fault.FAIL] < 140
    assert 60 < share[Fault.LOST] < 140


def client(wire: Wire, service: str = "batch", config: Config = NO_RETRIES) -> Any:
    made = boto3.client(
        service,
        region_name="us-east-1",
        aws_access_key_id="AKIDSOMEONE",
        aws_secret_access_key="s",
        config=config,
    )
    in_process(made, wire)
    return made


def test_boto3_works_without_a_socket_and_sees_the_services_errors() -> None:
    wire, _ = wire_of(
        UpdateServiceJob=JOB, DescribeServiceJob=ApiError("ClientException", "no such job", 400)
    )
    batch = client(wire)
    assert batch.update_service_job(jobId="j1", schedulingPriority=7)["jobName"] == "n"
    with pytest.raises(batch.exceptions.ClientException, match="no such job"):
        batch.describe_service_job(jobId="j1")


def test_boto3_sees_faults_as_it_would_from_aws_and_retries_by_itself() -> None:
    wire, fake = wire_of(UpdateServiceJob=JOB)
    script = iter([Fault.THROTTLE, Fault.FAIL, Fault.LOST])
    wire.faults = lambda service, operation: next(script, None)
    batch = client(wire)
    with pytest.raises(ClientError, match="TooManyRequestsException"):
        batch.update_service_job(jobId="j1", schedulingPriority=7)
    with pytest.raises(batch.exceptions.ServerException):
        batch.update_service_job(jobId="j1", schedulingPriority=7)
    with pytest.raises(ConnectionClosedError):
        batch.update_service_job(jobId="j1", schedulingPriority=7)
    assert len(fake.calls) == 1

    script = iter([Fault.LOST])
    retrying = client(wire, config=Config(retries={"mode": "standard", "total_max_attempts": 2}))
    retrying.update_service_job(jobId="j1", schedulingPriority=7)
    assert len(fake.calls) == 3  # the lost act, and its repetition


def test_the_caller_is_the_access_key_id_of_the_signature() -> None:
    callers: list[str] = []

    @contextmanager
    def acting_as(caller: str) -> Iterator[None]:
        callers.append(caller)
        yield
        callers.append("left")

    wire = Wire({"batch": {"UpdateServiceJob": lambda params: dict(JOB)}}, acting_as=acting_as)
    client(wire).update_service_job(jobId="j1", schedulingPriority=7)
    wire.answer(post("/v1/updateservicejob", {"jobId": "j1", "schedulingPriority": 7}))
    assert callers == ["AKIDSOMEONE", "left"]
    assert access_key_id({"authorization": "Bearer x"}) is None
