"""The deployment that a command works on: a CloudFormation stack, or the local stack."""

from __future__ import annotations

import getpass
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from sharewarden.aws.errors import asking
from sharewarden.aws.lazy import Lazy
from sharewarden.bootstrap import CONFIG, aws_runtime
from sharewarden.domain.base import last_part
from sharewarden.domain.observation import TERMINAL
from sharewarden.domain.policy import Policy
from sharewarden.ports import Runtime, Unavailable

from sharewarden_tools.local.environment import aws_environment, credentials, late_clients

from .output import BadInput, full_time, note

if TYPE_CHECKING:
    from mypy_boto3_batch import BatchClient

#: Where ``sharewarden local serve`` leaves its addresses, in the working directory.
LOCAL_FILE = Path(".sharewarden/local.json")
#: Of S3 for a person, who can wait: the copy of a large object takes a while.
PATIENT = Config(connect_timeout=5, read_timeout=60)
_JOB_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_OUTPUTS = {
    "StateTable": "STATE_TABLE",
    "AuditTable": "AUDIT_TABLE",
    "WishesQueueUrl": "WISHES_QUEUE_URL",
    "NoticesQueueUrl": "NOTICES_QUEUE_URL",
    "EventsDeadLettersUrl": "EVENTS_DEAD_LETTERS_URL",
}
_PARAMETERS = {"QueueArns": "QUEUE_ARNS", "ClassicQueueArns": "CLASSIC_QUEUE_ARNS"}


@dataclass(frozen=True)
class Deployment:
    """``actor`` is who the caller is in the audit."""

    name: str
    account: str
    region: str
    actor: str
    runtime: Runtime
    batch: BatchClient

    def announce(self) -> None:
        """Say where and how a change is about to happen. Raises Unavailable."""
        policy = self.runtime.policies.current()
        modes = [_modes(policy, arn) for arn in sorted(self.runtime.queues)]
        paused = ["PAUSED, so nothing acts"] if policy.paused else []
        note("; ".join([self.where, *modes, *paused]))

    @property
    def where(self) -> str:
        """Stack, account, Region and caller on one line."""
        return f"{self.name}, account {self.account}, {self.region}, as {self.actor}"

    def job(self, text: str) -> str:
        """Id or ARN of the job that the text names. Raises BadInput, Unavailable."""
        if text.startswith("arn:") or _JOB_ID.fullmatch(text):
            return text
        found = list(self._named(text))
        alive = [row for row in found if row["status"] not in TERMINAL] or found
        if len(alive) == 1:
            return str(alive[0]["jobArn"])
        if not alive:
            raise BadInput(f"{text}: no job of that name in {', '.join(sorted(self.runtime.queues))}")
        rows = (f"  {row['jobId']}  {row['status']:<9}  {full_time(row['createdAt'])}" for row in alive)
        raise BadInput(f"{text}: {len(alive)} jobs have that name; give the id of one:", *rows)

    def _named(self, name: str) -> Iterator[Mapping[str, Any]]:
        pages = self.batch.get_paginator("list_service_jobs")
        for queue in sorted(self.runtime.queues):
            with asking("ListServiceJobs"):
                for page in pages.paginate(jobQueue=queue, filters=[{"name": "JOB_NAME", "values": [name]}]):
                    # to Batch it is a pattern, in which case does not matter (ListServiceJobs, filters)
                    yield from (row for row in page["jobSummaryList"] if row["jobName"] == name)


def _modes(policy: Policy, queue: str) -> str:
    """What takes effect on the queue: bumps of people, and which guardrails may change or end jobs."""
    acting = ", ".join(policy.acting(queue)) or "none"
    return f"{last_part(queue)}: bumps {policy.queue(queue).bumps}, acting guardrails: {acting}"


def open_deployment(stack: str | None, *, local: bool) -> Deployment:
    """Raises BadInput when not exactly one of the two is given or it is not there, and Unavailable."""
    if local == (stack is not None):
        raise BadInput("give either --stack NAME or --local")
    return _local() if stack is None else _deployed(stack)


def read_local() -> dict[str, Any]:
    """What the local stack that runs here says of itself. Raises BadInput when none does."""
    try:
        return dict(json.loads(LOCAL_FILE.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise BadInput(
            f"{LOCAL_FILE}: no local stack runs here; start one in this folder: sharewarden local serve"
        ) from error


def local_environment(found: Mapping[str, Any]) -> dict[str, str]:
    """The variables that make the caller known to that local stack."""
    return dict(found["environment"] | credentials(getpass.getuser(), found["region"]))


def _local() -> Deployment:
    found, actor = read_local(), getpass.getuser()
    with aws_environment(local_environment(found)):
        runtime = aws_runtime(found["variables"], clients=late_clients())
        return Deployment(
            "local stack", found["account"], found["region"], actor, runtime, boto3.client("batch")
        )


def _deployed(name: str) -> Deployment:
    with asking("GetCallerIdentity"):
        identity = boto3.client("sts", config=CONFIG).get_caller_identity()
        batch = boto3.client("batch", config=CONFIG)
    return Deployment(
        name=f"stack {name}",
        account=identity["Account"],
        region=batch.meta.region_name,
        actor=identity["Arn"],
        runtime=aws_runtime(
            stack_variables(describe_stack(name)),
            clients={"s3": Lazy(lambda: boto3.client("s3", config=CONFIG.merge(PATIENT)))},
        ),
        batch=batch,
    )


def describe_stack(name: str) -> Mapping[str, Any]:
    """What CloudFormation says of the stack. Raises BadInput when there is none, and Unavailable."""
    try:
        with asking("DescribeStacks"):
            return dict(
                boto3.client("cloudformation", config=CONFIG).describe_stacks(StackName=name)["Stacks"][0]
            )
    except Unavailable as error:
        if "does not exist" in str(error):
            raise BadInput(f"{name}: no such CloudFormation stack in this account and Region") from error
        raise


def stack_variables(stack: Mapping[str, Any]) -> dict[str, str]:
    """The functions' settings, from a description of their stack. Raises BadInput."""
    outputs = {row["OutputKey"]: row["OutputValue"] for row in stack.get("Outputs", ())}
    parameters = {row["ParameterKey"]: row.get("ParameterValue", "") for row in stack.get("Parameters", ())}
    missing = sorted((_OUTPUTS.keys() - outputs.keys()) | (_PARAMETERS.keys() - parameters.keys()))
    if missing:
        raise BadInput(f"{stack.get('StackName')}: not a stack of Sharewarden, it lacks {', '.join(missing)}")
    return {env: outputs[key] for key, env in _OUTPUTS.items()} | {
        env: parameters[key] for key, env in _PARAMETERS.items()
    }
