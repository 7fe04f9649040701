"""The figures that alarms look at, as the sweep and the audit's guard write them."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from sharewarden import messages
from sharewarden.intake.sweeps import MEASURED, walk
from sharewarden.usecases.bump import BumpRequest, bump
from sharewarden_tools.local.functions import load_handler
from sharewarden_tools.memory import MemoryClock
from sharewarden_tools.template import TEMPLATE

from tests.simulation.samples import HOUR, JOB, described, state
from tests.simulation.world import ENFORCE, MINUTE, NOW, World, world

CONTEXT = SimpleNamespace(aws_request_id="r1", get_remaining_time_in_millis=lambda: 240_000)


@pytest.fixture(autouse=True)
def namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages.metrics.provider, "namespace", "Sharewarden")
    monkeypatch.setattr(messages.metrics.provider, "service", "sharewarden")


def written(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The one metrics line of an invocation, with the dimension that the template's alarms name."""
    (line,) = [line for line in map(json.loads, capsys.readouterr().out.splitlines()) if "_aws" in line]
    (metrics,) = line["_aws"]["CloudWatchMetrics"]
    assert (metrics["Namespace"], metrics["Dimensions"]) == ("Sharewarden", [["service"]])
    return {metric["Name"]: line[metric["Name"]][0] for metric in metrics["Metrics"]}


def known_job(status: str = "RUNNABLE", **update: object) -> World:
    """A pool where Batch lists the job as told, and the one event so far said RUNNABLE."""
    one = world(clock=MemoryClock(NOW), policy=ENFORCE)
    one.batch.tell(described(**update))
    one.take(state("RUNNABLE", NOW))
    one.batch.tell(described(status=status, **update))
    return one


def test_a_sweep_writes_what_the_alarms_need(capsys: pytest.CaptureFixture[str]) -> None:
    walk(known_job().runtime, CONTEXT)
    figures = written(capsys)
    assert tuple(figures) == MEASURED
    assert (figures["queues"], figures["records"], figures["behind"], figures["unread"]) == (1, 1, 0, 0)


def test_a_job_that_moved_on_without_an_event_is_counted_once(capsys: pytest.CaptureFixture[str]) -> None:
    one = known_job("RUNNING", read_at=NOW + MINUTE, started_at=NOW + MINUTE)
    one.clock.advance(5 * MINUTE)
    assert [walk(one.runtime, CONTEXT)["behind"] for _ in range(2)] == [1, 0]
    capsys.readouterr()


@pytest.mark.parametrize(("age", "behind"), [(MINUTE, 1), (HOUR, 0)], ids=["unheard of", "was there before"])
def test_a_new_job_that_no_event_told_of_counts_too(
    age: int, behind: int, capsys: pytest.CaptureFixture[str]
) -> None:
    one = world(clock=MemoryClock(NOW + age))
    one.batch.tell(described(created_at=NOW))
    walk(one.runtime, CONTEXT)
    assert written(capsys)["behind"] == behind


def test_the_age_of_the_oldest_open_wish_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    one = known_job()
    bump(one.runtime, BumpRequest(id="b1", job=JOB, actor="U1", reason="r", by=5))
    one.clock.advance(7 * MINUTE)
    walk(one.runtime, CONTEXT)
    assert written(capsys)["oldest_wish_ms"] == 7 * MINUTE


def test_a_changed_audit_record_is_named_and_counted(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    handler: Any = load_handler(TEMPLATE.parent / "functions/audit_guard/app.py")
    record = {"eventName": "REMOVE", "dynamodb": {"Keys": {"key": {"S": "job-ended#1"}}}}
    handler({"Records": [record, record | {"eventName": "MODIFY"}]}, CONTEXT)
    counted = [line for line in capsys.readouterr().out.splitlines() if "_aws" in line]
    assert [json.loads(line)["audit_changed"] for line in counted] == [[2.0]]
    told = [(vars(line)["key"], vars(line)["change"]) for line in caplog.records]
    assert told == [("job-ended#1", "REMOVE"), ("job-ended#1", "MODIFY")]
