"""Events per second through the real handler, AWS left out."""

import json
from collections.abc import Callable
from contextlib import redirect_stdout
from datetime import datetime
from io import StringIO
from statistics import median
from time import process_time
from typing import Any

from sharewarden.domain.observation import JobDescription
from sharewarden.events import observe
from sharewarden.ports import Runtime
from sharewarden_tools.memory import MemoryBatch, MemoryClock

from functions.react import app

from . import QUEUE
from .memory import memory_runtime
from .pool import CONTEXT, START, UNIT, Pool, message
from .section import Section

BATCH_SIZE = 10
SHARES = 20

Event = dict[str, Any]
Measure = Callable[[], float]
"""Does the work once; the answer is the seconds of CPU time that it took: neighbours do not count."""


def throughput(jobs: int, rounds: int) -> Section:
    events = _events(jobs)
    bodies = [json.dumps(event) for event in events]
    measures: dict[str, Measure] = {
        "json and observe alone": lambda: _observed(bodies),
        "react, batches of 10": lambda: _handled(events),
    }
    seconds: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(rounds):
        for name, measure in measures.items():
            seconds[name].append(measure())
    return Section(
        f"Events per second, {len(events)} events of {jobs} jobs, median of {rounds} rounds in turn",
        "the whole handler of functions/react: SQS batch, decision, commit, metrics; CPU time of one thread",
        "ledger and Batch in memory, events by the lab: the waiting for AWS is left out",
        _rows(seconds, len(events)),
    )


def _rows(seconds: dict[str, list[float]], events: int) -> list[dict[str, str | float]]:
    alone, *_ = seconds.values()
    return [_row(name, taken, alone, events) for name, taken in seconds.items()]


def _row(name: str, taken: list[float], alone: list[float], events: int) -> dict[str, str | float]:
    """A ratio for each round by itself, so that a busy moment hits both of its sides."""
    ratios = [one / other for one, other in zip(taken, alone, strict=True)]
    return {
        "path": name,
        "events/s": events / median(taken),
        "time against reading": median(ratios),
        "lowest": min(ratios),
        "highest": max(ratios),
    }


def _events(jobs: int) -> list[Event]:
    """What the lab tells about that many jobs, preemptions among them, as it happens."""
    pool = Pool(SHARES)
    events: list[Event] = []
    pool.lab.subscribe(events.append)
    pool.play(jobs)
    return events


def _observed(bodies: list[str]) -> float:
    began = process_time()
    for body in bodies:
        observe(json.loads(body))
    return process_time() - began


def _handled(events: list[Event]) -> float:
    """Each round starts with an empty ledger. The clock follows the events; no message may fail."""
    clock = MemoryClock(START)
    runtime = _runtime(events, clock)
    batches = [events[start : start + BATCH_SIZE] for start in range(0, len(events), BATCH_SIZE)]
    inputs = [(_time(batch[-1]), {"Records": list(map(message, batch))}) for batch in batches]
    with redirect_stdout(StringIO()):
        began = process_time()
        for clock.at, records in inputs:
            assert not app.handler(records, CONTEXT, runtime)["batchItemFailures"]
        return process_time() - began


def _runtime(events: list[Event], clock: MemoryClock) -> Runtime:
    batch = MemoryBatch(clock)
    for event in events:
        if event["detail"].get("jobQueue") == QUEUE:
            batch.tell(_description(event["detail"]))
    return memory_runtime(clock, batch)


def _description(detail: dict[str, Any]) -> JobDescription:
    """Describe as of the first moment: it names the job, the events tell the rest."""
    return JobDescription(
        job=detail["jobArn"].rsplit("/", 1)[1],
        arn=detail["jobArn"],
        read_at=START,
        name=detail["jobName"],
        queue=detail["jobQueue"],
        status="RUNNABLE",
        created_at=detail["createdAt"],
        share=detail["quotaShareName"],
        priority=detail["schedulingPriority"],
        instance_type=UNIT,
        instance_count=1,
    )


def _time(event: Event) -> int:
    return round(datetime.fromisoformat(event["time"]).timestamp() * 1000)
