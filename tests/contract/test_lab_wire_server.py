"""The HTTP server on loopback: real sockets, both clocks, a clean stop."""

from __future__ import annotations

import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from http.client import HTTPConnection, RemoteDisconnected
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ConnectionClosedError
from sharewarden_tools.lab.clock import VirtualClock, WallClock
from sharewarden_tools.lab.engine import Lab
from sharewarden_tools.lab.errors import ApiError
from sharewarden_tools.lab.options import Options
from sharewarden_tools.lab.server import LabServer, PortInUseError
from sharewarden_tools.lab.wire import Fault

from tests.contract.lab_clients import client, make_queue, make_share, submit


class FakeLab:
    """Counts the moves of time; ``due`` is what it waits for."""

    def __init__(self, due: int | None = None) -> None:
        self.due = due
        self.moves: list[int] = []
        self.callers: list[str] = []
        self.moved_past_due = threading.Event()
        self.operations: Any = {
            "batch": {"UpdateServiceJob": self.update, "DescribeServiceJob": self.describe},
            "sagemaker": {"StopTrainingJob": lambda params: {}},
        }

    def update(self, params: dict[str, Any]) -> dict[str, Any]:
        return {"jobId": params["jobId"], "jobName": "é", "jobArn": "arn"}

    def describe(self, params: dict[str, Any]) -> dict[str, Any]:
        if params["jobId"] == "broken":
            raise ZeroDivisionError("a bug")
        raise ApiError("ClientException", "no such job", 400)

    def advance_to(self, now_ms: int) -> None:
        self.moves.append(now_ms)
        if self.due is not None and now_ms >= self.due:
            self.due = None
            self.moved_past_due.set()

    def next_due(self) -> int | None:
        return self.due

    def acting_as(self, principal: str) -> AbstractContextManager[None]:
        self.callers.append(principal)
        return nullcontext()


@pytest.fixture
def server() -> Iterator[LabServer]:
    with LabServer(FakeLab(), VirtualClock()) as running:
        yield running


def connection(server: LabServer) -> HTTPConnection:
    return HTTPConnection(urlsplit(server.url).netloc, timeout=10)


def test_the_environment_variables_point_every_service_to_the_lab(
    server: LabServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    assert client("batch").update_service_job(jobId="j", schedulingPriority=1)["jobName"] == "é"
    assert client("sagemaker").stop_training_job(TrainingJobName="t")
    url = client("sqs").create_queue(QueueName="q")["QueueUrl"]
    assert url.startswith(server.url)
    client("sqs").send_message(QueueUrl=url, MessageBody="hello")
    assert client("sqs").receive_message(QueueUrl=url)["Messages"][0]["Body"] == "hello"


def test_a_connection_serves_many_requests(server: LabServer) -> None:
    http = connection(server)
    sockets = set()
    for _ in range(3):
        http.request("POST", "/v1/describeservicejob", body=b'{"jobId": "j"}')
        answer = http.getresponse()
        assert (answer.status, answer.getheader("x-amzn-ErrorType")) == (400, "ClientException")
        answer.read()
        sockets.add(http.sock)
    assert len(sockets) == 1
    http.close()


def test_a_lost_answer_closes_the_connection(server: LabServer) -> None:
    server.wire.faults = lambda service, operation: Fault.LOST
    with pytest.raises(ConnectionClosedError):
        client("batch", url=server.url).update_service_job(jobId="j", schedulingPriority=1)
    http = connection(server)
    http.request("POST", "/v1/updateservicejob", body=b'{"jobId": "j", "schedulingPriority": 1}')
    with pytest.raises(RemoteDisconnected):
        http.getresponse()
    http.close()


def test_a_bug_in_the_lab_is_http_500_and_is_raised_on_leaving(capsys: pytest.CaptureFixture[str]) -> None:
    with (
        pytest.raises(ExceptionGroup) as caught,
        LabServer(FakeLab(), VirtualClock()) as server,
        pytest.raises(client("batch").exceptions.ClientError, match="ZeroDivisionError"),
    ):
        client("batch", url=server.url).describe_service_job(jobId="broken")
    assert isinstance(caught.value.exceptions[0], ZeroDivisionError)
    assert "a bug" in capsys.readouterr().err


def test_a_caller_that_goes_away_is_no_news(capsys: pytest.CaptureFixture[str]) -> None:
    with LabServer(FakeLab(), VirtualClock()) as server:
        with socket.create_connection(("127.0.0.1", urlsplit(server.url).port or 0)) as caller:
            caller.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )  # reset on closing
            caller.sendall(b"POST /v1/updateservicejob HTTP/1.1\r\nContent-Length: 10\r\n\r\n{")
        client("batch", url=server.url).update_service_job(jobId="j", schedulingPriority=1)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Transfer-Encoding": "chunked"}, 411),
        ({"Content-Length": str(3 * 1024 * 1024)}, 413),
        ({"Content-Length": "9" * 5000}, 413),
        ({"Content-Length": "abc"}, 400),
        ({"Content-Length": "-1"}, 400),
    ],
)
def test_bodies_that_no_sdk_sends_are_refused(
    server: LabServer, headers: dict[str, str], status: int
) -> None:
    http = connection(server)
    http.putrequest("POST", "/v1/describeservicejob")
    for name, value in headers.items():
        http.putheader(name, value)
    http.endheaders()
    assert http.getresponse().status == status
    http.close()


def test_a_held_server_answers_afterwards(server: LabServer) -> None:
    answered = threading.Event()

    def ask() -> None:
        client("batch", url=server.url).update_service_job(jobId="j", schedulingPriority=1)
        answered.set()

    with server.hold():
        thread = threading.Thread(target=ask)
        thread.start()
        assert not answered.wait(0.2)
    thread.join()
    assert answered.is_set()


def test_requests_do_not_move_virtual_time() -> None:
    lab = FakeLab()
    with LabServer(lab, VirtualClock()) as server:
        client("batch", url=server.url).update_service_job(jobId="j", schedulingPriority=1)
    assert lab.moves == []


def test_the_lab_hears_who_calls() -> None:
    lab = FakeLab()
    with LabServer(lab, VirtualClock()) as server:
        batch = client("batch", url=server.url, key="AKIDALICE")
        batch.update_service_job(jobId="j", schedulingPriority=1)
    assert lab.callers == ["arn:aws:iam::123456789012:user/AKIDALICE"]


def test_wall_time_moves_when_something_is_due() -> None:
    clock = WallClock()
    lab = FakeLab(due=clock.now() + 30)
    with LabServer(lab, clock):
        assert lab.moved_past_due.wait(10)


@pytest.mark.parametrize("due", [None, 10**18], ids=["nothing due", "due in aeons"])
def test_a_request_that_makes_something_due_wakes_the_clock(due: int | None) -> None:
    clock = WallClock()
    lab = FakeLab(due)

    def stop(params: dict[str, Any]) -> dict[str, Any]:
        lab.due = clock.now() + 30
        return {}

    lab.operations["sagemaker"]["StopTrainingJob"] = stop
    with LabServer(lab, clock) as server:
        client("sagemaker", url=server.url).stop_training_job(TrainingJobName="t")
        assert lab.moved_past_due.wait(10)


def test_a_lab_that_breaks_while_time_passes_is_raised_on_leaving(capsys: pytest.CaptureFixture[str]) -> None:
    lab = FakeLab()
    broken = threading.Event()

    def break_down(now_ms: int) -> None:
        broken.set()
        raise ZeroDivisionError("a bug in a timer")

    lab.advance_to = break_down  # type: ignore[method-assign]
    with pytest.raises(ExceptionGroup) as caught, LabServer(lab, WallClock()):
        assert broken.wait(10)
    assert isinstance(caught.value.exceptions[0], ZeroDivisionError)
    assert "a bug in a timer" in capsys.readouterr().err


def test_a_job_runs_to_its_end_in_wall_time() -> None:
    blink = (5, 5)
    options = Options(
        runnable_delay_ms=blink,
        pending_ms=blink,
        downloading_ms=blink,
        runtime_ms=blink,
        uploading_ms=blink,
        notice_delay_ms=5,
        scheduler_period_ms=5,
    )
    clock, succeeded = WallClock(), threading.Event()
    lab = Lab(clock=clock, options=options)

    def listen(event: dict[str, Any]) -> None:
        if event["detail"].get("status") == "SUCCEEDED":
            succeeded.set()

    lab.subscribe(listen)
    with LabServer(lab, clock) as server:
        batch = client("batch", url=server.url)
        queue = make_queue(batch, capacity=1)
        make_share(batch, queue)
        job = submit(batch, queue)
        assert succeeded.wait(20)
        assert batch.describe_service_job(jobId=job)["status"] == "SUCCEEDED"


def test_leaving_stops_every_thread_and_frees_the_port_even_with_an_open_connection() -> None:
    before = threading.active_count()
    with LabServer(FakeLab(), WallClock()) as server:
        http = connection(server)
        http.request("POST", "/v1/describeservicejob", body=b'{"jobId": "j"}')
        http.getresponse().read()
    assert threading.active_count() == before
    http.close()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", urlsplit(server.url).port or 0)) != 0


def test_a_port_in_use_is_named() -> None:
    with (
        LabServer(FakeLab(), VirtualClock()) as server,
        pytest.raises(PortInUseError, match=rf"127\.0\.0\.1:{urlsplit(server.url).port} is in use"),
    ):
        LabServer(FakeLab(), VirtualClock(), port=urlsplit(server.url).port or 0)


SERVE = """
from sharewarden_tools.lab.clock import WallClock
from sharewarden_tools.lab.server import serve
from tests.contract.test_lab_wire_server import FakeLab
serve(0, FakeLab(), WallClock(), {"AWS_DEFAULT_REGION": "us-east-1"})
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_prints_what_a_shell_needs_and_stops_on_a_signal(number: signal.Signals) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", SERVE], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout
        lines = [process.stdout.readline() for _ in range(5)]
        process.send_signal(number)
        assert process.wait(10) == 0
    *places, region = lines
    assert all(
        re.fullmatch(r"export AWS_ENDPOINT_URL(_[A-Z]+)?=http://127\.0\.0\.1:\d+\n", line) for line in places
    )
    assert region == "export AWS_DEFAULT_REGION=us-east-1\n"
