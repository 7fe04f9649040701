"""The local stack: what the template deploys, on one machine, around the real handlers.

The lab stands for Batch, SageMaker and SQS, moto for DynamoDB and S3, both on loopback and reached by plain
boto3. Rules, queues, batch sizes, schedule and environment are read from the template. One thread moves
everything in the order of the clock, so a story with the same seed is the same story.

    with local_stack(VirtualClock(1_789_372_800_000), Setup(seed=7)) as stack:
        stack.client("batch", "maya").submit_service_job(...)
        stack.run_until(stack.now() + HOUR)
"""

from __future__ import annotations

import io
import json
import logging
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any, Literal, TextIO, overload

import boto3
from moto.s3 import models as s3_models
from moto.server import ThreadedMotoServer
from sharewarden import messages
from sharewarden.bootstrap import aws_runtime
from sharewarden.domain.policy import Policy

from sharewarden_tools.lab import Lab, Options, sqs, states
from sharewarden_tools.lab.clock import Clock
from sharewarden_tools.lab.delivery import NO_FAULTS, Delivery, EventFaults
from sharewarden_tools.lab.queues import Message
from sharewarden_tools.lab.server import LabServer
from sharewarden_tools.lab.wire import Wire
from sharewarden_tools.policy.file import policy_row
from sharewarden_tools.template import load_template, tables

from .environment import aws_environment, credentials, late_clients
from .functions import Context, Handler, failed_ids, load_handler, sqs_event
from .objects import S3Objects
from .wiring import Function, Wiring, read_wiring
from .workflows import Machine, machine_of

if TYPE_CHECKING:
    from mypy_boto3_batch import BatchClient

ACCOUNT, REGION = "123456789012", "us-east-1"
QUEUE = "ml-train-qm"
#: The topic that notices go to; nobody is subscribed to it.
TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:notices"
#: Every bucket is of the local account, so all checkpoints are watched.
BUCKETS = "arn:aws:s3:::*"
#: Services that moto serves, as the SDKs' variables name them.
_ELSEWHERE = ("DYNAMODB", "S3", "SNS", "SECRETS_MANAGER")
#: Access key id of the functions; every other one is the name of an IAM user.
CONTROLLER = "sharewarden"


def queue_arn(name: str) -> str:
    """ARN of a job queue of the local account."""
    return f"arn:aws:batch:{REGION}:{ACCOUNT}:job-queue/{name}"


@dataclass(frozen=True)
class Setup:
    """How a stack starts. It looks after ``queues``, which need not exist yet; ``port`` 0 is any free one."""

    queues: tuple[str, ...] = (QUEUE,)
    seed: int = 0
    options: Options = field(default_factory=Options)
    policy: Policy = field(default_factory=Policy)
    faults: EventFaults = NO_FAULTS
    port: int = 0


@contextmanager
def local_stack(clock: Clock, setup: Setup, log: TextIO | None = None) -> Iterator[LocalStack]:
    """A running stack. What the functions print and log goes to ``log``.

    Two stacks in one process at a time would share their tables. Raises PortInUseError.
    """
    wiring = read_wiring(map(queue_arn, setup.queues), TOPIC, BUCKETS)
    with ExitStack() as cleanup:
        cleanup.enter_context(_objects_dated_by(clock))
        aws = cleanup.enter_context(_moto())
        lab = Lab(
            clock=clock,
            options=setup.options,
            seed=setup.seed,
            account=ACCOUNT,
            region=REGION,
            objects=_objects(aws),
        )
        server = cleanup.enter_context(LabServer(lab, clock, port=setup.port))
        log = cleanup.enter_context(_function_log(log or io.StringIO(), wiring))
        delivery = Delivery(clock, setup.seed, setup.faults)
        stack = LocalStack(Parts(clock, lab, server, aws, wiring, log), delivery)
        stack.put_policy(setup.policy)
        yield stack


@dataclass(frozen=True)
class Parts:
    """What a stack is made of; ``aws`` is the address of DynamoDB, S3, SNS and Secrets Manager."""

    clock: Clock
    lab: Lab
    server: LabServer
    aws: str
    wiring: Wiring
    log: TextIO


class LocalStack:
    """``handlers`` by function name may be replaced; ``delivery.faults`` too. Times are epoch ms."""

    def __init__(self, parts: Parts, delivery: Delivery) -> None:
        self.parts = parts
        self.lab = parts.lab
        self.delivery = delivery
        self.variables = dict(parts.wiring.variables)
        self.handlers: dict[str, Handler] = {
            function.name: load_handler(function.code) for function in parts.wiring.functions
        }
        self.machines: dict[str, Machine] = {
            workflow.arn: machine_of(workflow, self._task, parts.clock) for workflow in parts.wiring.workflows
        }
        self._dynamodb: Any = self.client("dynamodb", CONTROLLER)
        self._create()
        with aws_environment(self.environment(CONTROLLER)):
            self.runtime = aws_runtime(self.variables, parts.clock, late_clients())
        self._due = {f.name: self.now() + f.every_ms for f in parts.wiring.functions if f.every_ms}
        self._invocations = 0
        self.lab.subscribe(delivery.accept)

    def now(self) -> int:
        return self.parts.clock.now()

    def environment(self, user: str) -> dict[str, str]:
        """The variables that point an AWS SDK or the AWS CLI here, as this user.

        Services that are not here go to the lab, which refuses them: nothing reaches AWS by mistake.
        """
        places = {f"AWS_ENDPOINT_URL_{service}": self.parts.aws for service in _ELSEWHERE}
        server = self.parts.server
        return {
            "AWS_ENDPOINT_URL": server.url,
            **server.environment(),
            **places,
            **credentials(user, REGION),
        }

    if TYPE_CHECKING:

        @overload
        def client(self, service: Literal["batch"], user: str) -> BatchClient: ...
        @overload
        def client(self, service: str, user: str) -> Any: ...

    def client(self, service: str, user: str) -> Any:
        """A boto3 client as the user would make it."""
        with aws_environment(self.environment(user)):
            return boto3.client(service)  # type: ignore[call-overload]

    def put_policy(self, policy: Policy) -> None:
        """Put the policy in force; the functions see it within a minute."""
        self._dynamodb.put_item(TableName=self.variables["STATE_TABLE"], Item=policy_row(policy))

    def buried(self) -> list[Message]:
        """What lies in the dead-letter queues, without taking it out."""
        queues = (self.parts.server.queues.queue(name) for name in self.parts.wiring.queues)
        return [
            message for queue in queues if "DeadLetters" in queue.name for message in queue.receive(10, 0)
        ]

    # Time.

    def run_until(self, until: int) -> None:
        """Let everything happen that is due up to ``until``, in order (a virtual clock only)."""
        while self.step(until):
            pass

    def step(self, until: int) -> bool:
        """Go to the next moment at which something is due; False, at ``until``, when nothing is before it."""
        self.settle()
        due = min((at for at in self._all_due() if at is not None), default=until + 1)
        self.lab.advance_to(min(due, until))
        self.settle()
        return due <= until

    def settle(self) -> None:
        """Do all that is due now: events, the functions' queues, workflows, then what is on a schedule."""
        while any([self._deliver(), *map(self._feed, self.parts.wiring.functions), self._run_workflows()]):
            pass
        for function in self.parts.wiring.functions:
            self._call_on_schedule(function)

    def _all_due(self) -> Iterator[int | None]:
        yield self.lab.next_due()
        yield self.delivery.next_due()
        yield from self._due.values()
        yield from (machine.next_due() for machine in self.machines.values())
        for name in self.parts.wiring.queues:
            yield self.parts.server.queues.queue(name).next_due()

    # From event to function.

    def _deliver(self) -> bool:
        with self.parts.server.hold():
            events = list(self.delivery.take_due())
            for event in events:
                for rule in self.parts.wiring.rules:
                    if rule.matches(event):
                        self.parts.server.queues.queue(rule.target).send(json.dumps(event))
        return bool(events)

    def _feed(self, function: Function) -> bool:
        """One batch from the function's queue; what failed comes again after its visibility time-out."""
        if function.queue is None:
            return False
        queue = self.parts.server.queues.queue(function.queue)
        with self.parts.server.hold():
            batch = queue.receive(function.batch_size)
        if not batch:
            return False
        failed = self._invoke(
            function, sqs_event(batch, function.queue), lost={message.id for message in batch}
        )
        with self.parts.server.hold():
            for message in batch:
                if message.id not in failed:
                    queue.delete(message.receipt)
        return True

    def _call_on_schedule(self, function: Function) -> None:
        if function.every_ms and self.now() >= self._due[function.name]:
            self._due[function.name] = self.now() + function.every_ms
            self._invoke(function, {}, lost=set())

    def _run_workflows(self) -> bool:
        done = [machine.run_due() for machine in self.machines.values()]
        return any(done)

    def _task(self, resource: str, arguments: Any) -> Any:
        """What the function of that ARN answers to a workflow, or raises."""
        name = resource.rpartition(":")[2]
        function = next(each for each in self.parts.wiring.functions if each.name == name)
        return self._answer(function, arguments)

    def _invoke(self, function: Function, event: dict[str, Any], lost: set[str]) -> set[str]:
        """The ids of the messages that failed; ``lost`` when the function raises: Lambda keeps the batch."""
        try:
            return failed_ids(self._answer(function, event))
        except Exception:  # noqa: BLE001 - it is in the function's log
            return lost

    def _answer(self, function: Function, event: dict[str, Any]) -> Any:
        """What the function answers; whatever it raises is in its log, too."""
        self._invocations += 1
        ends_at = self.now() + function.timeout_ms
        context = Context(f"local-{self._invocations}", self.parts.clock, ends_at)
        with redirect_stdout(self.parts.log):
            try:
                return self.handlers[function.name](event, context, self.runtime)
            except Exception:
                traceback.print_exc(file=self.parts.log)
                raise

    # Setting up.

    def _create(self) -> None:
        server, lab = self.parts.server, self.lab
        served = {"sqs": sqs.operations(server.queues), "stepfunctions": states.operations(self.machines)}
        server.wire = Wire({**lab.operations, **served}, acting_as=self._acting_as)
        for table in tables(load_template()):
            self._dynamodb.create_table(**table)
        self.client("sns", CONTROLLER).create_topic(Name=TOPIC.rpartition(":")[2])
        for name, settings in self.parts.wiring.queues.items():
            queue = server.queues.create(name, settings)
            self._use_address(name, server.queues.url(queue))

    def _use_address(self, queue: str, url: str) -> None:
        for name, value in self.variables.items():
            if value.endswith(f"/{queue}"):
                self.variables[name] = url

    def _acting_as(self, access_key: str) -> Any:
        """Who CloudTrail says it was: the role of apply for the functions, else the user of that name."""
        role = f"arn:aws:sts::{ACCOUNT}:assumed-role/{self.variables['OWN_ROLE']}/apply"
        user = f"arn:aws:iam::{ACCOUNT}:user/{access_key}"
        return self.lab.acting_as(role if access_key == CONTROLLER else user)


@contextmanager
def _objects_dated_by(clock: Clock) -> Iterator[None]:
    """moto's S3 takes the time from ``clock`` inside the block: a checkpoint of the story is of its time."""
    moto: Any = s3_models
    utcnow, moto.utcnow = moto.utcnow, lambda: _naive(clock.now())
    try:
        yield
    finally:
        moto.utcnow = utcnow


@contextmanager
def _moto() -> Iterator[str]:
    """The address of empty services that are not the lab's."""
    requests = logging.getLogger("werkzeug")
    level = requests.level
    requests.setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        _reset(host, port)
        yield f"http://{host}:{port}"
        _reset(host, port)
    finally:
        server.stop()
        requests.setLevel(level)


def _naive(ms: int) -> datetime:
    """As moto keeps times: in UTC, and not saying so."""
    return datetime.fromtimestamp(ms / 1000, UTC).replace(tzinfo=None)


def _reset(host: str, port: int) -> None:
    """moto keeps its tables per process, not per server."""
    with closing(HTTPConnection(host, port, timeout=10)) as connection:
        connection.request("POST", "/moto-api/reset")
        connection.getresponse().read()


def _objects(aws: str) -> S3Objects:
    with aws_environment({"AWS_ENDPOINT_URL_S3": aws, **credentials("sagemaker", REGION)}):
        return S3Objects(boto3.client("s3"))


@contextmanager
def _function_log(log: TextIO, wiring: Wiring) -> Iterator[TextIO]:
    """Powertools' logger and metrics, which are the process's, work for the functions inside the block."""
    provider, handler = messages.metrics.provider, messages.logger.registered_handler
    namespace, provider.namespace = provider.namespace, wiring.variables["POWERTOOLS_METRICS_NAMESPACE"]
    stream = handler.setStream(log)  # type: ignore[attr-defined]
    try:
        yield log
    finally:
        provider.namespace = namespace
        handler.setStream(stream)  # type: ignore[attr-defined]
