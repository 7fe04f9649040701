"""The local AWS as a process on loopback."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

from sharewarden_tools.local.environment import OWN_MACHINE, credentials
from sharewarden_tools.local.stack import ACCOUNT, REGION
from sharewarden_tools.template import TEMPLATE

ROOT = TEMPLATE.parent
#: Where logs are kept, in the working directory.
LOGS = Path(".sharewarden")
#: The emulator takes this access key for the account's root; every other one has to be made in its IAM.
ROOT_USER = "test"
STARTS_WITHIN, STOPS_WITHIN = 90, 10
#: A minute that a workflow waits takes two seconds here, where the lab's jobs take seconds, too.
WAIT_SCALE = "0.03"


class EmulatorError(Exception):
    """The emulator, or a program that works on it, failed; the text says where to read more."""


@dataclass(frozen=True)
class Emulator:
    """A running emulator."""

    host: str
    port: int
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def workers(self, function: str) -> list[int]:
        """Ids of the processes in which functions run whose name contains this."""
        found = subprocess.run(
            ["pgrep", "-P", str(self.process.pid), "-f", function],
            capture_output=True,
            check=False,
            text=True,
        )
        return [int(line) for line in found.stdout.split()]


@contextmanager
def emulator(endpoints: Mapping[str, str], host: str) -> Iterator[Emulator]:
    """Start it and stop it. ``endpoints`` reach its functions as they are: variables ``AWS_ENDPOINT_URL_*``.

    IAM is enforced for what the emulator itself serves. Raises EmulatorError.
    """
    port = _free_port(host)
    LOGS.mkdir(exist_ok=True)
    log = LOGS / f"emulator-{port}.log"
    with (
        tempfile.TemporaryDirectory(prefix="sharewarden-", dir=_memory()) as folder,
        log.open("wb") as output,
    ):
        process = subprocess.Popen(
            [_python(), str(Path(__file__).with_name("server.py"))],
            env={**_settings(host, port, folder), **endpoints},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            _wait_until_ready(process, host, port, log)
            yield Emulator(host, port, process)
        finally:
            _stop(process)


def run(command: list[str], environment: Mapping[str, str], log: Path) -> str:
    """What a program that works on the emulator printed; all of it is in ``log``. Raises EmulatorError."""
    ended = subprocess.run(
        command, env=clean_environment(environment), capture_output=True, check=False, text=True
    )
    log.write_text(ended.stdout + ended.stderr, encoding="utf-8")
    if ended.returncode:
        raise EmulatorError(f"{Path(command[0]).name} failed ({ended.returncode}); see {log}:\n{_tail(log)}")
    return ended.stdout


def clean_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """This process's environment with these AWS settings, and none of the user's own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {**kept, **OWN_MACHINE, **variables}


def _memory() -> str | None:
    """A file system in memory where there is one: each process of a function unpacks the layer, 60 MB."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - the folder made there has a random name


def _python() -> str:
    python = ROOT / os.environ.get("EMULATOR_VENV", ".venvs/emulator") / "bin" / "python"
    if not python.exists():
        raise EmulatorError(f"{python} is missing; `make deploy-local` and `make e2e` make it")
    return str(python)


def _settings(host: str, port: int, folder: str) -> dict[str, str]:
    """The emulator's environment, which its functions inherit, so nothing of the user's own is in it."""
    return {
        "PATH": os.environ["PATH"],
        "TMPDIR": folder,
        "BIND_HOST": host,
        "MINISTACK_HOST": host,
        "GATEWAY_PORT": str(port),
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        "AUTH": "true",
        "SFTP_ENABLED": "0",
        "SFN_WAIT_SCALE": WAIT_SCALE,
        "IOT_MTLS_ENABLED": "0",
        **OWN_MACHINE,
        "NO_PROXY": host,
        "no_proxy": host,
        **credentials(ROOT_USER, REGION),
    }


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def _wait_until_ready(process: subprocess.Popen[bytes], host: str, port: int, log: Path) -> None:
    give_up = time.monotonic() + STARTS_WITHIN
    while not _answers(host, port):
        if process.poll() is not None or time.monotonic() > give_up:
            raise EmulatorError(f"the local AWS did not start; see {log}:\n{_tail(log)}")
        time.sleep(0.1)


def _answers(host: str, port: int) -> bool:
    connection = HTTPConnection(host, port, timeout=1)
    try:
        connection.request("GET", "/_ministack/health")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _stop(process: subprocess.Popen[bytes]) -> None:
    """The emulator with the functions' processes: they share its session."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOPS_WITHIN)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:])
