"""The lab over HTTP on loopback: one address for Batch, SageMaker and SQS that any AWS SDK can be pointed to.

With a ``WallClock`` a thread of the server moves the lab on whenever something is due. With any other clock
time never moves here: whoever holds the clock does that.
"""

from __future__ import annotations

import errno
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Protocol, Self

from . import sqs
from .clock import WallClock
from .queues import QueueSystem
from .wire import ActingLab, LostAnswerError, Request, Response, lab_wire, server_failure

SERVICES = ("BATCH", "SAGEMAKER", "SQS")
MAX_BODY = 2 * 1024 * 1024  # twice what SQS takes; Batch takes 30 KiB


class PortInUseError(Exception):
    """Another process listens on the wanted address."""


class TimedLab(ActingLab, Protocol):
    """What the server needs of a lab."""

    def advance_to(self, now_ms: int) -> None: ...
    def next_due(self) -> int | None: ...


class Clock(Protocol):
    def now(self) -> int: ...


class LabServer:
    """Serves ``lab`` and queues of its own while used as a context manager.

    ``wire`` is the door itself: its ``faults`` may be replaced while the server runs. ``queues`` are the SQS
    queues. Leaving the context stops every thread and raises what broke inside the lab (callers only saw HTTP
    500), so that a test cannot pass over a lab bug. Raises :class:`PortInUseError`.
    """

    def __init__(self, lab: TimedLab, clock: Clock, host: str = "127.0.0.1", port: int = 0) -> None:
        self._http = _listen(host, port)
        self.url = f"http://{host}:{self._http.server_address[1]}"
        self.queues = QueueSystem(clock, base_url=self.url)
        self.wire = lab_wire(lab, queues=sqs.operations(self.queues))
        self.bugs: list[Exception] = []
        self._lab = lab
        self._clock = clock
        self._changed = threading.Condition()
        self._stopping = False
        self._http.answer = self._answer
        self._threads = [threading.Thread(target=self._http.serve_forever, args=(0.05,), name="lab-http")]
        if isinstance(clock, WallClock):
            self._threads.append(threading.Thread(target=self._move_time, name="lab-clock"))

    def environment(self) -> dict[str, str]:
        """The variables that point an AWS SDK or the AWS CLI to this server."""
        return {f"AWS_ENDPOINT_URL_{service}": self.url for service in SERVICES}

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep requests and the clock's thread out of the lab and the queues inside the block."""
        with self._changed:
            yield

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._http.shutdown()
        self._http.server_close()
        for thread in self._threads:
            thread.join()
        if self.bugs and error is None:
            raise ExceptionGroup("the lab failed while it was serving", self.bugs)

    def _answer(self, request: Request) -> Response:
        with self._changed:
            try:
                return self.wire.answer(request)
            except LostAnswerError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever broke: the caller gets HTTP 500, we keep it
                self._remember(error)
                return server_failure(error)
            finally:
                self._changed.notify_all()

    def _move_time(self) -> None:
        with self._changed:
            while not self._stopping:
                self._advance()
                self._changed.wait(self._seconds_to_next())

    def _advance(self) -> None:
        try:
            self._lab.advance_to(self._clock.now())
        except Exception as error:  # noqa: BLE001 - a thread that dies silently would freeze the lab's time
            self._remember(error)
            self._stopping = True

    def _seconds_to_next(self) -> float | None:
        """An hour at most: what lies centuries ahead is more than a thread can wait for."""
        due = self._lab.next_due()
        return None if due is None else min(3_600, max(0.001, (due - self._clock.now()) / 1000))

    def _remember(self, error: Exception) -> None:
        self.bugs.append(error)
        traceback.print_exception(error)


def serve(port: int, lab: TimedLab, clock: WallClock, caller: Mapping[str, str]) -> None:
    """Serve until SIGINT or SIGTERM; prints what points a shell's SDKs here, as ``caller``.

    Services that the lab has not come here, too, and are refused: nothing reaches AWS by mistake.
    Raises PortInUseError.
    """
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with LabServer(lab, clock, port=port) as server:
        for name, value in {"AWS_ENDPOINT_URL": server.url, **server.environment(), **caller}.items():
            print(f"export {name}={value}", flush=True)
        stop.wait()


class _HttpServer(ThreadingHTTPServer):
    """Remembers open connections, since a kept-alive one would hold its thread (and so the stop) for ever."""

    daemon_threads = False
    allow_reuse_address = True

    answer: Callable[[Request], Response]

    def __init__(self, address: tuple[str, int]) -> None:
        self._open: set[socket.socket] = set()
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a caller that went away is no news
            super().handle_error(request, client_address)

    def server_close(self) -> None:
        for connection in list(self._open):
            connection.shutdown(socket.SHUT_RDWR)
        super().server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _HttpServer

    def _handle(self) -> None:
        length = self.headers.get("Content-Length") or "0"
        if refusal := self._refusal(length):
            self.close_connection = True
            self.send_error(refusal)
            return
        try:
            response = self.server.answer(self._request(self.rfile.read(int(length))))
        except LostAnswerError:
            self.close_connection = True
            return
        self._write(response)

    do_GET = do_POST = do_DELETE = do_PUT = _handle  # noqa: N815 - http.server finds them by these names

    def _refusal(self, length: str) -> int | None:
        """The HTTP status for a body whose end is not known, or is too far away."""
        if not (length.isascii() and length.isdigit()):
            return 400
        if len(length) > len(str(MAX_BODY)) or int(length) > MAX_BODY:
            return 413
        return 411 if "Transfer-Encoding" in self.headers else None

    def _request(self, body: bytes) -> Request:
        path, _, query = self.path.partition("?")
        headers = {name.lower(): value for name, value in self.headers.items()}
        return Request(self.command, path, query, headers, body)

    def _write(self, response: Response) -> None:
        self.send_response(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(response.body)))
        self.end_headers()
        self.wfile.write(response.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Quiet: an SDK shows its own errors, and the demo's output is the product's."""


def _listen(host: str, port: int) -> _HttpServer:
    try:
        return _HttpServer((host, port))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortInUseError(f"{host}:{port} is in use; choose another port, or 0 for any") from error
        raise
