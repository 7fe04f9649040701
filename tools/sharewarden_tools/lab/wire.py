"""The wire protocols of Batch, SageMaker, SQS and Step Functions, driven by botocore's own service models.

A request is routed by the model's HTTP method and URI (rest-json: Batch) or by ``X-Amz-Target`` (json 1.x:
all others), checked against the model, handed to an operation that takes and returns plain dicts in the
model's shapes, and the result is checked again before it is written. So unmodified SDKs can talk to the lab.

What is *not* checked: SigV4 signatures, credentials, permissions (a request without ``Authorization`` is
fine) and the ``User-Agent``. Stricter than AWS: an unknown input member is refused instead of ignored,
since ignoring it would claim a behaviour that the lab does not have.
"""

from __future__ import annotations

import enum
import itertools
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol
from urllib.parse import parse_qs, unquote

from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ConnectionClosedError
from botocore.model import OperationModel, Shape

from .errors import ApiError
from .shapes import problems, service_model

Params = dict[str, Any]
Operation = Callable[[Params], Params]
Operations = Mapping[str, Mapping[str, Operation]]


class Fault(enum.Enum):
    """What goes wrong with one call; ``LOST`` means that the act happens but its answer never arrives."""

    THROTTLE = "throttle"
    FAIL = "fail"
    LOST = "lost"


Faults = Callable[[str, str], Fault | None]
"""(service, operation) -> the fault of this call, if any; asked once for each valid call."""


class LostAnswerError(Exception):
    """The operation was carried out, and its answer must not reach the caller."""


class LabBugError(Exception):
    """The lab itself broke its contract: an operation returned what the service's model does not allow."""


@dataclass(frozen=True)
class Request:
    """``path`` is still percent-encoded and without the query; header names are lower-case."""

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True)
class Response:
    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Dialect:
    """The (code, HTTP status) that a service uses for the errors every operation shares."""

    invalid: tuple[str, int]
    throttled: tuple[str, int]
    failed: tuple[str, int]


_JSON = Dialect(("ValidationException", 400), ("ThrottlingException", 400), ("InternalFailure", 500))
# Throttling of Batch: re:Post "aws-batch-requests-error" (429, although the model does not list it).
DIALECTS = {
    "batch": Dialect(("ClientException", 400), ("TooManyRequestsException", 429), ("ServerException", 500)),
    "sagemaker": _JSON,
    "sqs": Dialect(("InvalidParameterValue", 400), ("ThrottlingException", 400), ("InternalFailure", 500)),
    "stepfunctions": _JSON,
}

_SQS_OLD = "AWS.SimpleQueueService"
QUERY_CODES = {
    "QueueDoesNotExist": f"{_SQS_OLD}.NonExistentQueue",
    "QueueNameExists": "QueueAlreadyExists",
    "MessageNotInflight": f"{_SQS_OLD}.MessageNotInflight",
    "EmptyBatchRequest": f"{_SQS_OLD}.EmptyBatchRequest",
    "BatchEntryIdsNotDistinct": f"{_SQS_OLD}.BatchEntryIdsNotDistinct",
    "TooManyEntriesInBatchRequest": f"{_SQS_OLD}.TooManyEntriesInBatchRequest",
    "UnsupportedOperation": f"{_SQS_OLD}.UnsupportedOperation",
}


def no_faults(_service: str, _operation: str) -> Fault | None:
    return None


class Wire:
    """Answers requests for every service in ``operations`` at one address.

    ``faults`` may be replaced while running. Not thread-safe: the caller locks around :meth:`answer`.
    A signed request runs its operation inside ``acting_as(access key id)``.
    """

    def __init__(
        self,
        operations: Operations,
        faults: Faults = no_faults,
        acting_as: Callable[[str], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self.operations = operations
        self.faults = faults
        self._acting_as = acting_as
        self._request_ids = itertools.count(1)

    def answer(self, request: Request) -> Response:
        """Raises LostAnswerError for that fault, LabBugError for a wrong result; AWS errors are answers."""
        service = _service_of(request)
        try:
            result = self._call(service, request)
        except ApiError as error:
            return self._error(service, error)
        return self._response(service, 200, {}, result)

    def _call(self, service: str, request: Request) -> Params:
        operation, labels = _route(service, request)
        function = self._find(service, operation)
        params = _parse(operation, request, labels)
        _check_input(service, operation, params)
        fault = self.faults(service, operation.name)
        _refuse(service, fault)
        caller = access_key_id(request.headers)
        with self._acting_as(caller) if caller else nullcontext():
            result = function(params)
        _check_output(operation, result)
        if fault is Fault.LOST:
            raise LostAnswerError(f"{service} {operation.name}")
        return result

    def _find(self, service: str, operation: OperationModel) -> Operation:
        function = self.operations.get(service, {}).get(operation.name)
        if function is None:
            raise _unknown(service, f"the lab does not have the {service} operation {operation.name}")
        return function

    def _error(self, service: str, error: ApiError) -> Response:
        body = {"message": error.message}
        if service == "batch":
            return self._response(service, error.status, {"x-amzn-ErrorType": error.code}, body)
        headers = {"x-amzn-query-error": _query_error(error)} if service == "sqs" else {}
        return self._response(service, error.status, headers, {"__type": error.code, **body})

    def _response(self, service: str, status: int, headers: Mapping[str, str], body: Params) -> Response:
        version = service_model(service).metadata["jsonVersion"]
        kind = "application/json" if service == "batch" else f"application/x-amz-json-{version}"
        request_id = f"lab-{next(self._request_ids):08d}"
        return Response(
            status,
            {"Content-Type": kind, "x-amzn-RequestId": request_id, **headers},
            json.dumps(body).encode(),
        )


class ActingLab(Protocol):
    """What the wire needs of a lab."""

    operations: Operations

    def acting_as(self, principal: str) -> AbstractContextManager[None]: ...


def lab_wire(
    lab: ActingLab,
    faults: Faults = no_faults,
    account: str = "123456789012",
    queues: Mapping[str, Operation] | None = None,
) -> Wire:
    """The lab's operations, and those of ``queues`` as SQS; CloudTrail names the IAM user <access key id>."""

    def acting_as(access_key: str) -> AbstractContextManager[None]:
        return lab.acting_as(f"arn:aws:iam::{account}:user/{access_key}")

    return Wire({**lab.operations, "sqs": queues or {}}, faults, acting_as)


def _query_error(error: ApiError) -> str:
    """SQS also names an error as its older query protocol did; SDKs show that code to their users."""
    return f"{QUERY_CODES.get(error.code, error.code)};Sender"


def server_failure(error: Exception) -> Response:
    """What a caller sees when the lab itself broke: HTTP 500 that names the cause, in both protocols."""
    body = {"__type": "ServerException", "message": f"the lab failed: {type(error).__name__}: {error}"}
    headers = {"Content-Type": "application/json", "x-amzn-ErrorType": "ServerException"}
    return Response(500, headers, json.dumps(body).encode())


def in_process(client: Any, wire: Wire) -> None:
    """Make a boto3 client talk to ``wire`` without a socket; signing and retries stay the SDK's own."""
    client.meta.events.register("before-send", lambda request, **_: _send(wire, request))


def seeded_faults(seed: int, *, throttle: float = 0.0, fail: float = 0.0, lost: float = 0.0) -> Faults:
    """Faults with these probabilities per call; the same calls in the same order fail the same way."""
    rng = random.Random(seed)
    steps = ((throttle, Fault.THROTTLE), (throttle + fail, Fault.FAIL), (throttle + fail + lost, Fault.LOST))

    def draw(_service: str, _operation: str) -> Fault | None:
        roll = rng.random()
        return next((fault for limit, fault in steps if roll < limit), None)

    return draw


def access_key_id(headers: Mapping[str, str]) -> str | None:
    """The caller of a signed request (SigV4 ``Credential=AKID/date/region/service/aws4_request``)."""
    found = re.search(r"Credential=([^/,\s]+)/", headers.get("authorization", ""))
    return found[1] if found else None


# --- routing and parsing --------------------------------------------------------------------------------


def _service_of(request: Request) -> str:
    target = request.headers.get("x-amz-target", "")
    prefixes = {service_model(name).metadata["targetPrefix"]: name for name in DIALECTS.keys() - {"batch"}}
    return prefixes.get(target.partition(".")[0], "batch")


def _route(service: str, request: Request) -> tuple[OperationModel, dict[str, str]]:
    if service == "batch":
        return _route_rest(request)
    name = request.headers["x-amz-target"].partition(".")[2]
    if name not in service_model(service).operation_names:
        raise _unknown(service, f"{service} has no operation {name}")
    return service_model(service).operation_model(name), {}


def _route_rest(request: Request) -> tuple[OperationModel, dict[str, str]]:
    for method, pattern, name in _rest_routes():
        found = pattern.fullmatch(request.path)
        if found and method == request.method:
            labels = {label: unquote(value) for label, value in found.groupdict().items()}
            return service_model("batch").operation_model(name), labels
    raise _unknown("batch", f"no Batch operation is {request.method} {request.path}")


@cache
def _rest_routes() -> list[tuple[str, re.Pattern[str], str]]:
    model = service_model("batch")
    operations = (model.operation_model(name) for name in model.operation_names)
    return [(op.http["method"], _uri_pattern(op.http["requestUri"]), op.name) for op in operations]


def _uri_pattern(uri: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(uri)))


def _parse(operation: OperationModel, request: Request, labels: Mapping[str, str]) -> Params:
    params = _json_object(request.body)
    query = parse_qs(request.query, keep_blank_values=True)
    for member, shape in _input_members(operation).items():
        name = shape.serialization.get("name", member)
        if shape.serialization.get("location") == "uri":
            params[member] = labels[name]
        elif shape.serialization.get("location") == "querystring" and name in query:
            params[member] = query[name] if shape.type_name == "list" else query[name][0]
    return params


def _input_members(operation: OperationModel) -> Mapping[str, Shape]:
    members: Mapping[str, Shape] = operation.input_shape.members if operation.input_shape else {}
    return members


def _json_object(body: bytes) -> Params:
    try:
        value: Any = _without_nulls(json.loads(body or b"{}"))
    except (ValueError, RecursionError) as error:
        raise ApiError("SerializationException", f"the body is not JSON: {error}", 400) from error
    if not isinstance(value, dict):
        raise ApiError("SerializationException", "the body is not a JSON object", 400)
    return value


def _without_nulls(value: Any) -> Any:
    """JSON null means absent in both protocols."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _unknown(service: str, message: str) -> ApiError:
    return ApiError("UnknownOperationException", message, 404 if service == "batch" else 400)


def _refuse(service: str, fault: Fault | None) -> None:
    if fault is Fault.THROTTLE:
        code, status = DIALECTS[service].throttled
        raise ApiError(code, "Rate exceeded (injected)", status)
    if fault is Fault.FAIL:
        code, status = DIALECTS[service].failed
        raise ApiError(code, "Internal failure (injected)", status)


def _check_input(service: str, operation: OperationModel, params: Params) -> None:
    found = problems(params, operation.input_shape)
    if found:
        code, status = DIALECTS[service].invalid
        raise ApiError(code, f"{len(found)} validation error(s) detected: {'; '.join(found)}", status)


def _check_output(operation: OperationModel, result: Params) -> None:
    found = problems(result, operation.output_shape)
    if found:
        raise LabBugError(f"{operation.name} returned a wrong shape: {'; '.join(found)}")


# --- without a socket -----------------------------------------------------------------------------------


def _send(wire: Wire, request: Any) -> Any:
    """A botocore ``before-send`` hook: an AWSPreparedRequest in, an AWSResponse out."""
    path, _, query = request.url.partition("://")[2].partition("/")[2].partition("?")
    headers = {name.lower(): _text(value) for name, value in request.headers.items()}
    body = request.body.encode() if isinstance(request.body, str) else request.body or b""
    try:
        response = wire.answer(Request(request.method, f"/{path}", query, headers, body))
    except LostAnswerError as error:
        raise ConnectionClosedError(endpoint_url=request.url, error=error) from error
    return AWSResponse(request.url, response.status, _headers(response.headers), _Raw(response.body))


def _headers(values: Mapping[str, str]) -> HTTPHeaders:
    headers = HTTPHeaders()
    for name, value in values.items():
        headers[name] = value
    return headers


class _Raw:
    """The part of a urllib3 response that botocore reads."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self) -> Iterator[bytes]:
        yield self._body


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
