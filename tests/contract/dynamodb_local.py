"""Run the ledger's contract tests against DynamoDB Local.

usage: dynamodb_local.py EMULATOR_DIR [pytest options]

DynamoDB Local listens on every interface and has no option against it, so this script first moves itself
into a network namespace that holds nothing but a loopback of its own; server and tests meet there. Linux
only; as root, or where the kernel lets users make namespaces. Needs Java 17.
"""

import fcntl
import os
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

PORT = 8000
START_UP_SECONDS = 30
INSIDE = "SHAREWARDEN_NETWORK_NAMESPACE"
SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1  # netdevice(7)


def main(emulator: Path, options: list[str]) -> int:
    """The exit code of pytest."""
    if INSIDE not in os.environ:
        return in_a_namespace_of_its_own()
    loopback_up()
    with subprocess.Popen(server_command(), cwd=emulator, stdout=subprocess.DEVNULL) as server:
        try:
            wait_until_it_answers(server)
            os.environ["DYNAMODB_ENDPOINT"] = f"http://127.0.0.1:{PORT}"
            return pytest.main(["-q", *map(str, ledger_tests()), *options])
        finally:
            server.terminate()


def in_a_namespace_of_its_own() -> int:
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    command = ["unshare", "--net", *user, sys.executable, *sys.argv]
    return subprocess.run(command, env=os.environ | {INSIDE: "1"}, check=False).returncode


def loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


def server_command() -> list[str]:
    options = ["-inMemory", "-sharedDb", "-disableTelemetry", "-port", str(PORT)]
    return [
        "java",
        "-Xmx512m",
        "-Djava.library.path=./DynamoDBLocal_lib",
        "-jar",
        "DynamoDBLocal.jar",
        *options,
    ]


def wait_until_it_answers(server: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_UP_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", PORT)) == 0:
                return
        time.sleep(0.1)
    raise SystemExit("DynamoDB Local did not start; is Java 17 there?")


def ledger_tests() -> list[Path]:
    return sorted(Path(__file__).parent.glob("test_ledger*.py"))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
