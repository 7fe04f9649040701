"""``sharewarden lab serve`` and ``sharewarden local serve``: servers in wall time, until told to stop."""

from __future__ import annotations

import json
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO
from urllib.parse import urlsplit

from sharewarden.domain.stored import MINUTE

from sharewarden_tools.lab import Lab, Options, WallClock
from sharewarden_tools.lab.server import PortInUseError, serve
from sharewarden_tools.local.environment import credentials
from sharewarden_tools.local.stack import ACCOUNT, REGION, LocalStack, Setup, local_stack
from sharewarden_tools.policy.file import load_policy
from sharewarden_tools.stories.three_team import create_pool, submit
from sharewarden_tools.stories.timeline import Line, Timeline

from .deployment import LOCAL_FILE
from .output import OK, BadInput, note, timeline_text

#: Seconds where AWS takes minutes, so that a person can watch.
QUICK = Options(
    runnable_delay_ms=(500, 1_500),
    pending_ms=(2_000, 4_000),
    downloading_ms=(2_000, 4_000),
    uploading_ms=(1_000, 2_000),
    stop_ms=(2_000, 2_000),
    notice_delay_ms=500,
    runtime_ms=(5 * MINUTE, 5 * MINUTE),
    checkpoint_interval_ms=10_000,
    cloudtrail_delay_ms=1_000,
)
STORY = ("background-1", "background-2", "background-3", "urgent-1")
TRAINS, SAVES_EVERY = 10 * MINUTE, 10_000
#: How long an event may wait for the next look, in seconds.
LOOKS_EVERY = 0.2
#: How long a line waits for an earlier one: CloudTrail tells of a call a second later.
LATE_MS = 2_000
LOG_FILE = LOCAL_FILE.with_name("local.log")


def serve_lab(port: int, *, quick: bool) -> int:
    """The lab alone. Raises BadInput when the port is taken."""
    clock = WallClock()
    try:
        lab = Lab(clock=clock, options=QUICK if quick else Options())
        serve(port, lab, clock, credentials("admin", REGION))
    except PortInUseError as error:
        raise BadInput(str(error)) from error
    return OK


def serve_local(port: int, *, story: bool) -> int:
    """The local stack with the three-team pool.

    Raises BadInput when the port is taken, one runs in this folder already, or the folder cannot be written.
    """
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    refuse_a_second(LOCAL_FILE)
    setup = Setup(options=QUICK, policy=load_policy(), port=port)
    try:
        with _log(LOG_FILE) as log, local_stack(WallClock(), setup, log) as stack:
            _serve(stack, stop, story=story)
    except PortInUseError as error:
        raise BadInput(str(error)) from error
    return OK


def _serve(stack: LocalStack, stop: threading.Event, *, story: bool) -> None:
    timeline = Timeline(stack.now, _show)
    stack.lab.subscribe(timeline.hear)
    with announced(stack.environment("admin"), stack.variables, LOCAL_FILE):
        create_pool(stack)
        for name in STORY if story else ():
            note(f"{name} submitted: {submit(stack, name, TRAINS, SAVES_EVERY)}")
        for name, value in stack.environment("admin").items():
            print(f"export {name}={value}", flush=True)
        note(f"copy these lines into another shell; the functions log to {LOG_FILE}; Ctrl-C ends it")
        while not stop.wait(LOOKS_EVERY):
            stack.settle()
            with stack.parts.server.hold():
                timeline.tell(stack.now() - LATE_MS)


def _show(line: Line) -> None:
    note(timeline_text(line).plain)


def _log(file: Path) -> TextIO:
    """Raises BadInput."""
    try:
        file.parent.mkdir(exist_ok=True)
        return file.open("w", encoding="utf-8", buffering=1)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise BadInput(
            f"{file}: {why}; `local serve` keeps its addresses and its log in this folder"
        ) from error


def refuse_a_second(file: Path) -> None:
    """Raises BadInput when the stack that the file tells of still answers; a file left over is nothing."""
    try:
        url = str(json.loads(file.read_text(encoding="utf-8"))["environment"]["AWS_ENDPOINT_URL_BATCH"])
        address = urlsplit(url).hostname, urlsplit(url).port
    except (OSError, ValueError, KeyError, TypeError):
        return
    with suppress(OSError), socket.create_connection(address, timeout=1):
        raise BadInput(
            f"{file}: a local stack runs in this folder already, at {url}; stop it, or use another folder"
        )


@contextmanager
def announced(environment: Mapping[str, str], variables: Mapping[str, str], file: Path) -> Iterator[None]:
    """The addresses lie in the file while the stack runs, for ``--local`` to find. Raises BadInput."""
    refuse_a_second(file)
    found = {"account": ACCOUNT, "region": REGION, "environment": environment, "variables": variables}
    text = json.dumps(found, indent=2)
    file.write_text(text, encoding="utf-8")
    try:
        yield
    finally:
        with suppress(OSError):
            if file.read_text(encoding="utf-8") == text:  # else it is another stack's by now
                file.unlink()
