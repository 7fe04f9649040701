"""An HTTP server on this machine that answers as it is told, with or without TLS."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

Answer = Callable[["Handler"], None]


@dataclass
class Endpoint:
    """``requests``: path, headers and body of each; ``answer`` gives the answer; ``over`` ends slow ones.

    A GET, which only a client that follows redirects sends, is answered with nothing unless ``on_get`` says.
    """

    url: str
    answer: Answer
    on_get: Answer | None = None
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    over: Event = field(default_factory=Event)


class Handler(BaseHTTPRequestHandler):
    endpoint: Endpoint

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.endpoint.requests.append((self.path, dict(self.headers), body))
        self.endpoint.answer(self)

    def do_PUT(self) -> None:
        self.do_POST()

    def do_GET(self) -> None:
        self.endpoint.requests.append((self.path, dict(self.headers), b"(GET)"))
        (self.endpoint.on_get or status(200))(self)

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""


def status(code: int, body: bytes = b"", **headers: str) -> Answer:
    """Answers with that status."""

    def answer(handler: Handler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def silence(handler: Handler) -> None:
    """Takes the request and never answers."""
    handler.endpoint.over.wait(30)


def hang_up(handler: Handler) -> None:
    """Takes the request and closes the connection."""
    handler.close_connection = True


def trickle(handler: Handler) -> None:
    """A header line of an answer without end, a character at a time: no single read times out."""
    while not handler.endpoint.over.wait(0.05):
        handler.wfile.write(b"H")
        handler.wfile.flush()


def endless(handler: Handler) -> None:
    """A body that never ends."""
    handler.send_response(200)
    handler.end_headers()
    while not handler.endpoint.over.is_set():
        handler.wfile.write(b"x" * 65_536)


@contextmanager
def serving(answer: Answer, tls: Path | None = None) -> Iterator[Endpoint]:
    """The endpoint while it runs; ``tls`` is a file with key and certificate."""
    server = _Server(("127.0.0.1", 0), type("Bound", (Handler,), {}))
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme = "http" if tls is None else "https"
    endpoint = Endpoint(f"{scheme}://127.0.0.1:{server.server_port}", answer)
    server.RequestHandlerClass.endpoint = endpoint  # type: ignore[attr-defined]
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that hangs up is what some tests are about."""


def certificate(folder: Path) -> Path:
    """A file with a fresh key and a certificate for 127.0.0.1 that nobody has signed."""
    made = folder / "server.pem"
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*command, "-keyout", made, "-out", f"{made}.crt"], check=True, capture_output=True)
    made.write_text(made.read_text() + Path(f"{made}.crt").read_text())
    return made


def closed_port() -> str:
    """An address at which nobody listens."""
    with serving(silence) as endpoint:
        return endpoint.url
