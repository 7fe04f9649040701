"""``sharewarden lab serve`` and ``sharewarden local serve``: servers in wall time, until told to stop."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sharewarden.domain.stored import MINUTE

from sharewarden_tools.lab import Lab, Options, WallClock
from sharewarden_tools.lab.server import PortInUseError, serve
from sharewarden_tools.local.stack import ACCOUNT, REGION, LocalStack, Setup, local_stack
from sharewarden_tools.policy_file import load_policy
from sharewarden_tools.stories.three_team import create_pool, submit

from .deployment import LOCAL_FILE
from .output import OK, BadInput, note

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
TRAINS, SAVES_EVERY = 10 * MINUTE, 10_000
#: How long an event may wait for the next look, in seconds.
LOOKS_EVERY = 0.2


def serve_lab(port: int) -> int:
    """The lab alone. Raises BadInput when the port is taken."""
    clock = WallClock()
    try:
        serve(port, Lab(clock=clock), clock)
    except PortInUseError as error:
        raise BadInput(str(error)) from error
    return OK


def serve_local(port: int, *, story: bool) -> int:
    """The local stack with the three-team pool. Raises BadInput when the port is taken."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    setup = Setup(options=QUICK, policy=load_policy(), port=port)
    try:
        with local_stack(WallClock(), setup, sys.stderr) as stack:
            _serve(stack, stop, story=story)
    except PortInUseError as error:
        raise BadInput(str(error)) from error
    return OK


def _serve(stack: LocalStack, stop: threading.Event, *, story: bool) -> None:
    create_pool(stack)
    if story:
        for name in ("background-1", "background-2", "background-3", "urgent-1"):
            note(f"{name}: {submit(stack, name, TRAINS, SAVES_EVERY)}")
    with _announced(stack, LOCAL_FILE):
        for name, value in stack.environment("admin").items():
            print(f"export {name}={value}", flush=True)
        while not stop.wait(LOOKS_EVERY):
            stack.settle()


@contextmanager
def _announced(stack: LocalStack, file: Path) -> Iterator[None]:
    """The stack's addresses lie in the file while it runs, so that ``--local`` finds them."""
    file.parent.mkdir(exist_ok=True)
    found = {
        "account": ACCOUNT,
        "region": REGION,
        "environment": stack.environment("admin"),
        "variables": stack.variables,
    }
    file.write_text(json.dumps(found, indent=2), encoding="utf-8")
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
