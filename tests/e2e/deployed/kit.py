"""What every test of the deployment needs: people, patience, and what Batch and the tables say."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, TypeVar

from sharewarden.domain.audit import AuditRecord
from sharewarden.domain.observation import TERMINAL
from sharewarden.domain.record import JobRecord, status
from sharewarden.ports import Runtime
from sharewarden_tools.cli.deployment import open_deployment
from sharewarden_tools.emulator.deployed import STACK, Deployed
from sharewarden_tools.emulator.process import ROOT_USER, clean_environment
from sharewarden_tools.lab import Options
from sharewarden_tools.local.environment import aws_environment
from sharewarden_tools.stories.three_team import submit

#: Seconds where AWS takes minutes.
SECONDS = Options(
    scheduler_period_ms=100,
    runnable_delay_ms=(50, 150),
    pending_ms=(200, 400),
    downloading_ms=(200, 400),
    uploading_ms=(100, 200),
    stop_ms=(300, 300),
    notice_delay_ms=100,
    cloudtrail_delay_ms=200,
)
SECOND = 1000
COMMAND = [sys.executable, "-c", "from sharewarden_tools.cli import main; main()"]
Found = TypeVar("Found")


def until(what: Callable[[], Found], wanted: Callable[[Found], bool] = bool, seconds: float = 45) -> Found:
    """Look until it is as wanted; fails with what was seen last."""
    give_up = time.monotonic() + seconds
    while not wanted(seen := what()):
        assert time.monotonic() < give_up, f"after {seconds} s still {seen!r}"
        time.sleep(0.1)
    return seen


class Pool:
    """The deployed stack as a test sees it. Jobs by name; the same name has the same checkpoints."""

    def __init__(self, stack: Deployed) -> None:
        self.stack = stack
        self.batch = stack.client("batch")
        self.jobs: dict[str, str] = {}

    @cached_property
    def runtime(self) -> Runtime:
        """The product's own ports, opened as the command does it."""
        with aws_environment(self.stack.environment(ROOT_USER)):
            return open_deployment(STACK, local=False).runtime

    def submit(self, name: str, trains: int, saves_every: int = SECOND) -> None:
        self.jobs[name] = submit(self.stack, name, trains, saves_every)

    def describe(self, name: str) -> Mapping[str, Any]:
        return dict(self.batch.describe_service_job(jobId=self.jobs[name]))

    def status(self, name: str) -> str:
        return str(self.describe(name)["status"])

    def priority(self, name: str) -> int:
        return int(self.describe(name)["schedulingPriority"])

    def wait_for(self, state: str, *names: str) -> None:
        """Until each job is in this state in Batch."""
        until(lambda: {name: self.status(name) for name in names}, lambda seen: set(seen.values()) == {state})

    def record(self, name: str) -> JobRecord | None:
        return self.runtime.ledger.load(JobRecord, self.jobs[name])

    def facts(self, name: str, *kinds: str) -> list[AuditRecord]:
        return [f for f in self.runtime.audit.by_job(self.jobs[name], 0) if not kinds or f.kind in kinds]

    def wait_for_facts(self, name: str, kind: str, count: int = 1) -> list[AuditRecord]:
        return until(lambda: self.facts(name, kind), lambda found: len(found) == count)

    def sweep(self) -> Mapping[str, Any]:
        """A sweep of our own: it waits for the one on the schedule, which holds the lease while it runs."""
        return until(
            lambda: self.stack.invoke("SweepFunction", {}), lambda report: not report["leased_elsewhere"]
        )

    def dead_letters(self) -> list[Mapping[str, Any]]:
        """What lies there; taken out, so that each test sees its own."""
        sqs, url = self.stack.client("sqs"), self.stack.outputs["EventsDeadLettersUrl"]
        found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"])
        for message in found.get("Messages", ()):
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return list(found.get("Messages", ()))

    def settle_down(self) -> None:
        """End what still lives, so that the next test finds the pool empty."""
        for name, job in self.jobs.items():
            if self.status(name) not in TERMINAL:
                self.batch.terminate_service_job(jobId=job, reason="the test is over")
        until(lambda: [name for name in self.jobs if not self.ended(name)], lambda alive: alive == [])

    def ended(self, name: str) -> bool:
        """Whether its record says so; the audit may still wait for an event that is late."""
        record = self.record(name)
        return record is not None and status(record) in TERMINAL


def run(command: list[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """A program as somebody with these variables runs it."""
    return subprocess.run(
        command, env=clean_environment(environment), capture_output=True, text=True, check=False
    )
