"""AWS calls of react, an event at a time: botocore's own events count them, so none can slip by."""

import json
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from os import environ
from typing import Any

import boto3
from moto import mock_aws
from sharewarden.aws.batch import AwsBatch
from sharewarden.bootstrap import aws_runtime
from sharewarden.ports import Runtime
from sharewarden_tools.lab.wire import in_process, lab_wire
from sharewarden_tools.template import load_template, tables

from functions.react import app

from .pool import CONTEXT, OTHER_QUEUE, Pool, message
from .section import Section

Event = dict[str, Any]
Calls = tuple[str, ...]

DELIVERY_MS = 2_000
FIRST_SIGHT, NEXT = "first sight of a job", "known job, next state change"
ROWS = (
    FIRST_SIGHT,
    NEXT,
    "the same event once more",
    "preemption started",
    "preemption completed",
    "requeued after a preemption",
    "job ended",
    "training job of SageMaker, first event",
    "training job of SageMaker, next event",
    "job of another queue, by name",
    "preemption of an unknown job, first event",
    "preemption of an unknown job, next event",
)


def calls() -> Section:
    with mock_aws(), redirect_stdout(StringIO()):  # the functions' logs and metrics
        counted = _Story().tell()
    return Section(
        "AWS calls of react per event",
        "calls that leave boto3, retries not counted, the policy (one GetItem a minute) cached; "
        f"goal of '{NEXT}': 2, no Describe",
        "DynamoDB by moto; Batch, SageMaker and their events by the lab in virtual time; "
        f"events come {DELIVERY_MS // 1000} s late",
        [_row(name, counted[name]) for name in ROWS],
    )


def _row(name: str, seen: list[Calls]) -> dict[str, str | int]:
    often = Counter(seen).most_common(1)[0][0]
    fewest, most = min(map(len, seen)), max(map(len, seen))
    return {"event": name, "events": len(seen), "fewest": fewest, "most": most, "mostly": ", ".join(often)}


class _Story:
    """A job borrows, the owner takes the capacity back, all jobs end. Each event is counted."""

    def __init__(self) -> None:
        self._pool = Pool(shares=2)
        self._events: deque[Event] = deque()
        self._pool.lab.subscribe(self._events.append)
        self._calls: list[str] = []
        self._runtime = self._made_runtime()
        self._known: set[str] = set()
        self._counted: defaultdict[str, list[Calls]] = defaultdict(list)

    def tell(self) -> dict[str, list[Calls]]:
        """The calls of each event by the name of its row."""
        self._pool.submit(0)
        self._pool.submit(0)
        foreign = self._pool.submit(0, queue=OTHER_QUEUE)
        owner_comes = iter([1])
        for event in self._heard():
            name = self._name(event)
            self._count(name, event)
            if name == NEXT:
                self._count("the same event once more", event)
            if name.startswith("preemption "):
                self._count_unknown(event, foreign)
            if event["detail"].get("status") == "RUNNING":
                for share in owner_comes:
                    self._pool.submit(share)
        return self._counted

    def _heard(self) -> Iterator[Event]:
        for _ in self._pool.steps():
            self._pool.lab.advance_to(self._pool.lab.now() + DELIVERY_MS)
            while self._events:
                yield self._events.popleft()

    def _count_unknown(self, event: Event, foreign: str) -> None:
        """A preemption event names no queue, so a job of another queue is unknown at first."""
        about = json.loads(json.dumps(event).replace(event["resources"][0], foreign))
        first, following = (f"preemption of an unknown job, {place} event" for place in ("first", "next"))
        self._count(following if first in self._counted else first, about)

    def _count(self, name: str, event: Event) -> None:
        self._runtime.policies.current()
        self._calls.clear()
        answer = app.handler({"Records": [message(event)]}, CONTEXT, self._runtime)
        assert not answer["batchItemFailures"], f"{name}: deferred"
        self._counted[name].append(tuple(self._calls))

    def _name(self, event: Event) -> str:
        kind, detail, arn = event["detail-type"], event["detail"], event["resources"][0]
        known = arn in self._known
        self._known.add(arn)
        if kind.startswith("SageMaker"):
            return f"training job of SageMaker, {'next' if known else 'first'} event"
        if detail.get("jobQueue") == OTHER_QUEUE:
            return "job of another queue, by name"
        if "Preemption" in kind:
            return "preemption started" if kind.endswith("Started") else "preemption completed"
        return _state_change(detail["status"]) if known else FIRST_SIGHT

    def _made_runtime(self) -> Runtime:
        boto3.setup_default_session()
        assert boto3.DEFAULT_SESSION is not None
        boto3.DEFAULT_SESSION.events.register("before-call", self._called)
        runtime = aws_runtime(environ, self._pool.clock)
        client = boto3.client("batch", endpoint_url="http://lab.invalid")  # a host that moto leaves alone
        in_process(client, lab_wire(self._pool.lab))
        for table in tables(load_template()):
            boto3.client("dynamodb").create_table(**table)
        return replace(runtime, batch=AwsBatch(client, self._pool.clock))

    def _called(self, model: Any, **_: Any) -> None:
        self._calls.append(model.name)


def _state_change(status: str) -> str:
    if status in {"SUCCEEDED", "FAILED"}:
        return "job ended"
    return "requeued after a preemption" if status == "RUNNABLE" else NEXT
