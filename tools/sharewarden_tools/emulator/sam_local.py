"""`make sam-local`: each function in a container of SAM CLI, against the tables and queues of a deployment.

`sam local invoke` with the function's payload in ``events/functions``, then the same through `sam local
start-lambda`. What came back and what was written is checked. SAM CLI hands a container only the variables
that the template declares, so it gets a copy of the built template in which they have real values.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import yaml
from botocore.config import Config

from sharewarden_tools.local.environment import aws_environment
from sharewarden_tools.policy.file import load_policy
from sharewarden_tools.stories.three_team import create_pool
from sharewarden_tools.template import load_template

from .deployed import Deployed, Setup, deployed
from .process import LOGS, ROOT, ROOT_USER, EmulatorError, clean_environment, run

BUILT = ROOT / ".aws-sam" / "build"
PAYLOADS = ROOT / "events" / "functions"
STARTS_WITHIN = 60


@dataclass(frozen=True)
class Function:
    """A function of the template; ``good`` says whether an answer is what the function should give."""

    name: str
    payload: Path
    good: Callable[[Any], bool]


def _all_taken(answer: Any) -> bool:
    return bool(answer == {"batchItemFailures": []})


FUNCTIONS = (
    Function("React", PAYLOADS / "react.json", _all_taken),
    Function("Apply", PAYLOADS / "apply.json", _all_taken),
    Function("Notify", PAYLOADS / "notify.json", _all_taken),
    Function("Watch", PAYLOADS / "watch.json", _all_taken),
    Function("Care", PAYLOADS / "care.json", lambda answer: answer.get("done") is True),
    Function("Sweep", PAYLOADS / "sweep.json", lambda answer: answer.get("queues") == 1),
    Function("AuditGuard", PAYLOADS / "audit_guard.json", lambda answer: answer is None),
)


def main() -> int:
    setup = Setup(policy=load_policy(), host=sys.argv[1])
    try:
        with deployed(setup) as stack:
            create_pool(stack)
            results = list(_try_all(stack))
    except EmulatorError as error:
        print(error, file=sys.stderr)
        return 1
    return 0 if all(results) else 1


def _try_all(stack: Deployed) -> Iterator[bool]:
    template = _template_for(stack)
    for function in FUNCTIONS:
        yield _checked("invoke", function, partial(_invoke, stack, template, function))
    with _start_lambda(stack, template) as client:
        for function in FUNCTIONS:
            yield _checked("start-lambda", function, partial(_call, client, function))
    yield _checked_table(stack)


def _checked(way: str, function: Function, call: Callable[[], Any]) -> bool:
    began = time.monotonic()
    answer = call()
    good = function.good(answer)
    told = "ok  " if good else "FAIL"
    print(
        f"{told}  {way:<13} {function.name:<11} {time.monotonic() - began:4.1f} s  {json.dumps(answer)[:120]}"
    )
    return good


def _checked_table(stack: Deployed) -> bool:
    """React wrote the job of its payload to the deployed table."""
    rows = stack.client("dynamodb").scan(TableName=stack.outputs["StateTable"])["Items"]
    found = any("background-2" in json.dumps(row) for row in rows)
    print(f"{'ok  ' if found else 'FAIL'}  the record of background-2 lies in the deployed table")
    return found


def _template_for(stack: Deployed) -> Path:
    """A copy of the built template, its functions pointed at the deployment."""
    template = load_template(BUILT / "template.yaml")
    places = {name: url for name, url in stack.environment(ROOT_USER).items() if "ENDPOINT" in name}
    template["Globals"]["Function"]["Environment"]["Variables"] |= stack.variables() | places
    for name, resource in template["Resources"].items():
        own = resource["Properties"].get("Environment", {}).get("Variables", {})
        own |= {variable: stack.variables(name).get(variable, "") for variable in own}
    copy = BUILT / "sam-local.yaml"
    copy.write_text(yaml.safe_dump(template, sort_keys=False), encoding="utf-8")
    return copy


def _command(action: str, template: Path) -> list[str]:
    sam = ROOT / os.environ.get("SAM_VENV", ".venvs/sam") / "bin" / "sam"
    return [str(sam), "local", action, "--template", str(template), "--skip-pull-image"]


def _invoke(stack: Deployed, template: Path, function: Function) -> Any:
    command = [*_command("invoke", template), function.name, "--event", str(function.payload)]
    return json.loads(run(command, _variables(stack), LOGS / f"sam-local-{function.name}.log"))


def _variables(stack: Deployed) -> Mapping[str, str]:
    return {**stack.environment(ROOT_USER), "SAM_CLI_TELEMETRY": "0"}


@contextmanager
def _start_lambda(stack: Deployed, template: Path) -> Iterator[Any]:
    """A Lambda client of `sam local start-lambda`."""
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        port = probe.getsockname()[1]
    command = [*_command("start-lambda", template), "--port", str(port), "--warm-containers", "LAZY"]
    with (LOGS / "sam-local-lambda.log").open("wb") as log:
        process = subprocess.Popen(command, env=clean_environment(_variables(stack)), stdout=log, stderr=log)
        try:
            _wait_for(port)
            yield _lambda(stack, port)
        finally:
            process.terminate()
            process.wait()


def _wait_for(port: int) -> None:
    give_up = time.monotonic() + STARTS_WITHIN
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError as error:
            if time.monotonic() > give_up:
                raise EmulatorError(f"sam local start-lambda did not start; see {LOGS}") from error
            time.sleep(0.2)


def _lambda(stack: Deployed, port: int) -> Any:
    with aws_environment(
        {**stack.environment(ROOT_USER), "AWS_ENDPOINT_URL_LAMBDA": f"http://127.0.0.1:{port}"}
    ):
        return boto3.client("lambda", config=Config(read_timeout=120, retries={"total_max_attempts": 1}))


def _call(client: Any, function: Function) -> Any:
    answer = client.invoke(FunctionName=function.name, Payload=function.payload.read_bytes())
    return json.loads(answer["Payload"].read() or b"null")


if __name__ == "__main__":
    sys.exit(main())
