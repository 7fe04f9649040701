"""The payloads in ``events/functions``: what each deployed function is called with, made by the lab.

    python -m sharewarden_tools.samples events/functions

One file a function, named as its folder, for `sam local invoke` and whoever wants to try a handler by hand.
The same seed gives the same files.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import boto3
from sharewarden.domain.base import last_part
from sharewarden.domain.stored import HOUR, MINUTE

from .lab import Lab, VirtualClock
from .lab.queues import QueueSystem
from .lab.wire import in_process, lab_wire
from .local.environment import aws_environment, credentials
from .local.functions import sqs_event
from .local.stack import ACCOUNT, REGION
from .stories.three_team import START, create_pool, submit

#: A batch of this many messages, as the template sets it.
BATCH = 10


def lab_events(seed: int = 7) -> list[dict[str, Any]]:
    """What happens when a team borrows, and the lender takes its instance back."""
    clock = VirtualClock(START)
    lab = Lab(clock=clock, seed=seed)
    events: list[dict[str, Any]] = []
    lab.subscribe(events.append)
    people = _InProcess(lab)
    create_pool(people)
    lab.advance_to(START + MINUTE)
    for name in ("background-1", "background-2"):
        submit(people, name, HOUR)
    lab.advance_to(START + 15 * MINUTE)
    submit(people, "medium-1", HOUR)
    lab.advance_to(START + 4 * HOUR)
    return events


def payloads() -> dict[str, Any]:
    """By the name of the function's folder."""
    events = lab_events()
    victim = next(event for event in events if "Preemption Started" in event["detail-type"])["resources"][0]
    told = [event for event in events if victim in event["resources"]][:BATCH]
    wish = json.dumps({"job": last_part(victim), "version": 1})
    return {
        "react": _from_queue("EventsQueue", map(json.dumps, told)),
        "apply": _from_queue("WishesQueue.fifo", [wish], last_part(victim)),
        "notify": _from_queue("NoticesQueue", [json.dumps({"notice": f"finding#{last_part(victim)}"})]),
        "watch": _from_queue("LooksQueue", [json.dumps({"job": last_part(victim)})]),
        "care": {"step": "note", "attempt": _preempted(told), "job": last_part(victim), "generation": 1},
        "sweep": {},  # what EventBridge Scheduler sends where the schedule has no Input
        "audit_guard": {"Records": [_changed(f"job-ended#{last_part(victim)}")]},
    }


def _preempted(events: Iterable[Mapping[str, Any]]) -> str:
    """ARN of the training job that was stopped, as the end of the preemption names it."""
    (detail,) = (event["detail"] for event in events if "Preemption Completed" in event["detail-type"])
    (attempt,) = detail["preemptionSummary"]["recentPreemptedAttempts"]
    return str(attempt["serviceResourceId"]["value"])


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, payload in payloads().items():
        (folder / f"{name}.json").write_text(json.dumps(payload, indent=2) + "\n", encoding="utf-8")


class _InProcess:
    """Clients of the lab without a socket."""

    def __init__(self, lab: Lab) -> None:
        self._wire = lab_wire(lab)

    def client(self, service: str, user: str) -> Any:
        with aws_environment(credentials(user, REGION)):
            made = boto3.client(service)  # type: ignore[call-overload]
        in_process(made, self._wire)
        return made


def _from_queue(name: str, bodies: Iterable[str], group: str | None = None) -> dict[str, Any]:
    clock = VirtualClock(START)
    fifo = {"FifoQueue": "true"} if name.endswith(".fifo") else {}
    queue = QueueSystem(clock, base_url="http://127.0.0.1").create(name, fifo)
    for body in bodies:
        queue.send(body, group=group, deduplication_id=group)
    return sqs_event(queue.receive(BATCH), f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}")


def _changed(key: str) -> Mapping[str, Any]:
    """A record of a DynamoDB stream with view type KEYS_ONLY (DynamoDB developer guide, Streams)."""
    return {
        "eventID": "1",
        "eventName": "MODIFY",
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": REGION,
        "dynamodb": {"Keys": {"key": {"S": key}}, "SequenceNumber": "1", "StreamViewType": "KEYS_ONLY"},
        "eventSourceARN": f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/Audit/stream/2026-01-01T00:00:00.000",
    }


if __name__ == "__main__":
    write(Path(sys.argv[1]))
