"""A deployment on one machine, in wall time: what `sam deploy` made of the template, and the lab beside it.

    with deployed(Setup(options=SECONDS)) as stack:
        stack.client("batch", "maya").submit_service_job(...)

The lab's events go to the emulator's default bus; from there on everything is the deployed template's own:
rules, queues, functions in processes of their own under their roles, tables, streams.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import boto3
from sharewarden.domain.policy import Policy

from sharewarden_tools.lab import Lab, Options, WallClock
from sharewarden_tools.lab.delivery import Delivery, Event
from sharewarden_tools.lab.server import LabServer
from sharewarden_tools.lab.wire import Wire
from sharewarden_tools.local.environment import aws_environment, credentials
from sharewarden_tools.local.stack import ACCOUNT, QUEUE, REGION, queue_arn
from sharewarden_tools.policy.file import policy_row

from .process import LOGS, ROOT, ROOT_USER, Emulator, emulator, run

STACK = "sharewarden"
#: Seconds between two looks for events that are due; so late may an event be.
LOOKS_EVERY = 0.05
_MOST_ENTRIES = 10  # of PutEvents


@dataclass(frozen=True)
class Setup:
    """How a deployment starts; ``host`` is the address of this machine that its servers listen on."""

    options: Options = field(default_factory=Options)
    policy: Policy = field(default_factory=Policy)
    seed: int = 0
    host: str = "127.0.0.1"


@contextmanager
def deployed(setup: Setup) -> Iterator[Deployed]:
    """Start the lab and the emulator, deploy, and stop it all. Raises EmulatorError."""
    clock = WallClock()
    lab = Lab(clock=clock, options=setup.options, seed=setup.seed, account=ACCOUNT, region=REGION)
    delivery = Delivery(clock, setup.seed)
    lab.subscribe(delivery.accept)
    with (
        LabServer(lab, clock, setup.host) as server,
        emulator(_lab_endpoints(server), setup.host) as aws,
    ):
        stack = Deployed(lab, server, delivery, aws)
        stack.deploy()
        stack.put_policy(setup.policy)
        stack.make_training_role()
        with _forwarding(stack):
            yield stack


class Deployed:
    """A running deployment. ``delivery.faults`` and ``server.wire.faults`` may be replaced."""

    def __init__(self, lab: Lab, server: LabServer, delivery: Delivery, aws: Emulator) -> None:
        self.lab = lab
        self.server = server
        self.delivery = delivery
        self.aws = aws
        self.outputs: Mapping[str, str] = {}
        self._users: dict[str, str] = {}
        self._bus = self.client("events")
        self._apply_role = ""
        server.wire = Wire(lab.operations, acting_as=self._acting_as)

    def environment(self, user: str) -> dict[str, str]:
        """The variables that point an AWS SDK, the AWS CLI or SAM here; Batch knows any user by name."""
        places = {"AWS_ENDPOINT_URL": self.aws.url, **_lab_endpoints(self.server)}
        return {**places, **credentials(user, REGION), "NO_PROXY": self.aws.host, "no_proxy": self.aws.host}

    def client(self, service: str, user: str = ROOT_USER) -> Any:
        with aws_environment(self.environment(user)):
            return boto3.client(service)  # type: ignore[call-overload]

    def deploy(self, template: str = ".aws-sam/build/template.yaml", **parameters: str) -> None:
        """`sam deploy` of the built template; may be called again. Raises EmulatorError."""
        given = {"QueueArns": queue_arn(QUEUE), **parameters}
        command = [
            *(_sam(), "deploy", "--template-file", str(ROOT / template), "--stack-name", STACK),
            *("--resolve-s3", "--capabilities", "CAPABILITY_IAM", "--no-progressbar"),
            *("--no-fail-on-empty-changeset", "--no-confirm-changeset"),
            *("--parameter-overrides", *(f"{name}={value}" for name, value in given.items())),
        ]
        quick = {"SAM_CLI_TELEMETRY": "0", "SAM_CLI_POLL_DELAY": "1"}
        run(command, self.environment(ROOT_USER) | quick, LOGS / "deploy.log")
        cloudformation = self.client("cloudformation")
        stack = cloudformation.describe_stacks(StackName=STACK)["Stacks"][0]
        self.outputs = {row["OutputKey"]: row["OutputValue"] for row in stack["Outputs"]}
        self._apply_role = self.physical_id("ApplyRole")
        self._keep_small()

    def physical_id(self, logical_id: str) -> str:
        """What CloudFormation called the resource."""
        answer = self.client("cloudformation").describe_stack_resource(
            StackName=STACK, LogicalResourceId=logical_id
        )
        return str(answer["StackResourceDetail"]["PhysicalResourceId"])

    def variables(self, function: str = "React") -> dict[str, str]:
        """What a deployed function finds in its environment."""
        name = self.physical_id(function)
        found = self.client("lambda").get_function_configuration(FunctionName=name)
        return dict(found["Environment"]["Variables"])

    def put_policy(self, policy: Policy) -> None:
        """Put the policy in force; the functions see it within a minute."""
        self.client("dynamodb").put_item(TableName=self.outputs["StateTable"], Item=policy_row(policy))

    def make_training_role(self) -> None:
        """The role that the examples name: the SageMaker SDK asks IAM what it may do."""
        iam, everything = self.client("iam"), {"Effect": "Allow", "Action": "*", "Resource": "*"}
        trusted = {"Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}
        iam.create_role(RoleName="Training", AssumeRolePolicyDocument=_policy({"Effect": "Allow", **trusted}))
        iam.put_role_policy(RoleName="Training", PolicyName="training", PolicyDocument=_policy(everything))

    def user(self, name: str, *policies: str) -> dict[str, str]:
        """Make an IAM user who holds these policies, named by outputs: the variables to act as them."""
        iam = self.client("iam")
        arn = iam.create_user(UserName=name)["User"]["Arn"]
        for output in policies:
            iam.attach_user_policy(UserName=name, PolicyArn=self.outputs[output])
        key = iam.create_access_key(UserName=name)["AccessKey"]
        self._users[key["AccessKeyId"]] = arn
        return {**self.environment(key["AccessKeyId"]), "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}

    def invoke(self, output: str, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """What the function, named by an output of the stack, answers."""
        name, payload = self.outputs[output], json.dumps(event).encode()
        answer = self.client("lambda").invoke(FunctionName=name, Payload=payload)
        return dict(json.loads(answer["Payload"].read()))

    def forward(self) -> None:
        """Put the lab's events that are due on the default bus."""
        with self.server.hold():
            due = list(self.delivery.take_due())
        for start in range(0, len(due), _MOST_ENTRIES):
            self._bus.put_events(Entries=[_entry(event) for event in due[start : start + _MOST_ENTRIES]])

    def _keep_small(self) -> None:
        """At most two processes a queue, the least that AWS takes: each start costs a second of two cores."""
        client = self.client("lambda")
        for source in client.list_event_source_mappings()["EventSourceMappings"]:
            if "ScalingConfig" in source:
                client.update_event_source_mapping(
                    UUID=source["UUID"], ScalingConfig={"MaximumConcurrency": 2}
                )

    def _acting_as(self, access_key: str) -> AbstractContextManager[None]:
        """Who CloudTrail says it was: temporary keys are the functions', and of those apply alone writes."""
        if access_key.startswith("ASIA"):
            return self.lab.acting_as(f"arn:aws:sts::{ACCOUNT}:assumed-role/{self._apply_role}/apply")
        return self.lab.acting_as(self._users.get(access_key, f"arn:aws:iam::{ACCOUNT}:user/{access_key}"))


def _lab_endpoints(server: LabServer) -> dict[str, str]:
    return {f"AWS_ENDPOINT_URL_{service}": server.url for service in ("BATCH", "SAGEMAKER")}


def _policy(statement: Mapping[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def _sam() -> str:
    return str(ROOT / os.environ.get("SAM_VENV", ".venvs/sam") / "bin" / "sam")


def _entry(event: Event) -> dict[str, Any]:
    """The event as an entry of PutEvents; the bus gives it an id of its own."""
    return {
        "Source": event["source"],
        "DetailType": event["detail-type"],
        "Time": event["time"],
        "Resources": event["resources"],
        "Detail": json.dumps(event["detail"]),
    }


@contextmanager
def _forwarding(stack: Deployed) -> Iterator[None]:
    """A thread hands on the lab's events inside the block; what stopped it is raised at the end."""
    stop, broken = threading.Event(), list[Exception]()

    def forward() -> None:
        try:
            while not stop.wait(LOOKS_EVERY):
                stack.forward()
        except Exception as error:  # noqa: BLE001 - raised again where somebody sees it
            broken.append(error)

    thread = threading.Thread(target=forward, name="event-bus")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    if broken:
        raise ExceptionGroup("events were not handed on", broken)
