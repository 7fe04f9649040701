"""doctor, redrive and drain, as processes, on what `sam deploy` made."""

from __future__ import annotations

import json
import subprocess
import time

from sharewarden.usecases.bump import BumpRequest, bump
from sharewarden_tools.emulator.deployed import STACK
from sharewarden_tools.emulator.process import ROOT_USER

from tests.e2e.deployed.kit import COMMAND, SECOND, Pool, run, until

HOUR = 3600 * SECOND
#: The local AWS keeps no such setting of CloudFormation's, and its simulator hears of no context.
NOT_EMULATED = ("has no point-in-time recovery", "ApplyRole is denied batch:UpdateServiceJob")


def command(pool: Pool, *args: str) -> subprocess.CompletedProcess[str]:
    return run([*COMMAND, *args, "--stack", STACK, "--json"], pool.stack.environment(ROOT_USER))


def test_doctor_finds_nothing_wrong_with_what_the_template_made(pool: Pool) -> None:
    pool.sweep()
    found = command(pool, "doctor")
    rows = json.loads(found.stdout)
    problems = [row["seen"] for row in rows if row["state"] == "problem"]
    assert [seen for seen in problems if not seen.endswith(NOT_EMULATED)] == []
    ok = {row["name"] for row in rows if row["state"] == "ok"}
    assert ok >= {"stack", "rules", "queue policy", "roles", "queues", "shares", "policy", "dead letters"}


def test_redrive_sends_an_event_back_to_where_it_came_from(pool: Pool) -> None:
    pool.submit("background-1", HOUR)
    pool.wait_for("RUNNING", "background-1")
    record = until(lambda: pool.record("background-1"))
    event = {
        "source": "aws.batch",
        "detail-type": "Batch Service Job Queue Blocked",
        "time": "2026-09-14T08:00:00Z",
        "detail": {"jobArn": record.arn, "jobQueue": record.queue, "status": "RUNNABLE"},
    }
    pool.stack.client("sqs").send_message(
        QueueUrl=pool.stack.outputs["EventsDeadLettersUrl"], MessageBody=json.dumps(event)
    )
    told = json.loads(command(pool, "redrive", "--yes").stdout)
    assert (told["moved"], told["kept"]) == (1, 0)
    until(lambda: pool.record("background-1"), lambda seen: seen is not None and seen != record)


def test_drain_restores_a_base_through_the_deployed_functions(pool: Pool) -> None:
    pool.submit("background-1", HOUR)
    pool.wait_for("RUNNING", "background-1")
    until(lambda: pool.record("background-1"))
    # A job dispatched within the second of its bump may have been started by it, and would be held.
    until(lambda: time.time() * 1000 - pool.describe("background-1")["scheduledAt"] > 2_000)
    job = pool.jobs["background-1"]
    bump(pool.runtime, BumpRequest(id="drained", job=job, actor="ana", reason="x", to=850, lasts=HOUR))
    until(lambda: pool.describe("background-1")["schedulingPriority"], lambda seen: seen == 850)
    drained = command(pool, "drain", "--yes", "--timeout", "1m")
    assert (drained.returncode, json.loads(drained.stdout)["remaining"]) == (0, [])
    assert pool.describe("background-1")["schedulingPriority"] == 100
