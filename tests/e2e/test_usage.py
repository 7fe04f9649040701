"""`sharewarden usage` on the three-team pool: the figures equal what Batch says of every attempt."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sharewarden.domain.policy import Policy
from sharewarden.domain.record import JobRecord
from sharewarden.domain.stored import HOUR, MINUTE
from sharewarden_tools.cli.deployment import Deployment
from sharewarden_tools.cli.output import BadInput
from sharewarden_tools.cli.usage import Asked, show_usage
from sharewarden_tools.lab import VirtualClock
from sharewarden_tools.local.stack import ACCOUNT, QUEUE, REGION, LocalStack, Setup, local_stack, queue_arn
from sharewarden_tools.policy.file import load_policy
from sharewarden_tools.prices import EXAMPLE, SCHEMA
from sharewarden_tools.stories.three_team import START, create_pool, submit

PLAIN = Asked(None, "month", None, None, None)


def policy() -> Policy:
    known = load_policy().model_dump(mode="json")
    budget = {"rule": "gpu-hour-budget", "period": "month", "total": 2, "borrowed": 1, "teams": ["research"]}
    return Policy.model_validate(known | {"guardrails": [budget]})


@pytest.fixture(scope="module")
def stack() -> Iterator[LocalStack]:
    """Background runs two jobs, one of them on borrowed capacity, until medium takes that back."""
    with local_stack(VirtualClock(START), Setup(seed=5, policy=policy())) as running:
        create_pool(running)
        submit(running, "background-1", HOUR)
        submit(running, "background-2", HOUR)
        running.run_until(START + 40 * MINUTE)
        submit(running, "medium-1", 30 * MINUTE)
        yield running


def deployment(stack: LocalStack) -> Deployment:
    return Deployment("local stack", ACCOUNT, REGION, "ana", stack.runtime, stack.client("batch", "ana"))


def asked_json(stack: LocalStack, capsys: pytest.CaptureFixture[str], asked: Asked = PLAIN) -> dict[str, Any]:
    assert show_usage(deployment(stack), asked, as_json=True) == 0
    return dict(json.loads(capsys.readouterr().out))


def trained(stack: LocalStack) -> dict[str, int]:
    """Milliseconds of all attempts of each share's jobs, by what Batch tells of them. Each has one GPU."""
    batch, spent = stack.client("batch", "admin"), dict.fromkeys(("background", "medium"), 0)
    for status in ("RUNNABLE", "SCHEDULED", "STARTING", "RUNNING", "SUCCEEDED"):
        for row in batch.list_service_jobs(jobQueue=QUEUE, jobStatus=status)["jobSummaryList"]:
            job: Any = batch.describe_service_job(jobId=row["jobId"])
            attempts = job.get("attempts", []) + job.get("preemptionSummary", {}).get(
                "recentPreemptedAttempts", []
            )
            times = [(one["startedAt"], one["stoppedAt"]) for one in attempts]
            times += [(job["startedAt"], stack.now())] if status == "RUNNING" else []
            spent[job["quotaShareName"]] += sum(stop - start for start, stop in times)
    return spent


def teams(answer: dict[str, Any]) -> dict[str, tuple[float, float]]:
    return {row["team"]: (row["owned_gpu_hours"], row["borrowed_gpu_hours"]) for row in answer["usage"]}


def test_figures_are_those_of_batch_while_jobs_run_and_after_their_records_are_closed(
    stack: LocalStack, capsys: pytest.CaptureFixture[str]
) -> None:
    for until in (START + HOUR, START + 8 * HOUR):
        stack.run_until(until)
        spent, found = trained(stack), teams(asked_json(stack, capsys))
        assert spent["medium"] > 0
        # an event's time is a whole second, and tells when a running attempt began
        assert sum(found["research"]) * HOUR == pytest.approx(spent["background"], abs=2000)
        assert sum(found["vision"]) * HOUR == pytest.approx(spent["medium"], abs=2000)
    assert found["vision"][1] == 0
    assert 0.5 < found["research"][1] < 1
    assert sum(found["research"]) * HOUR == pytest.approx(spent["background"], abs=0.001)
    assert not list(stack.runtime.ledger.open_items(JobRecord, queue_arn(QUEUE)))


def test_for_people(stack: LocalStack, capsys: pytest.CaptureFixture[str]) -> None:
    stack.run_until(START + 8 * HOUR)
    assert show_usage(deployment(stack), PLAIN._replace(prices=EXAMPLE), as_json=False) == 0
    out, err = capsys.readouterr()
    head, names, research, vision = out.splitlines()
    assert head == "2026-09 on ml-train-qm, until 2026-09-14T16:00:00Z: GPU-hours"
    assert names.split() == ["team", "owned", "borrowed", "total", "unknown", "USD", "budget"]
    assert research.split()[0] == "research"
    assert "over" in research
    assert "of 1 borrowed, " in research
    assert vision.split() == ["vision", "0.51", "0.00", "0.51", "0.00", "0.51"]
    assert err == ""


def test_without_prices_there_is_no_money(stack: LocalStack, capsys: pytest.CaptureFixture[str]) -> None:
    stack.run_until(START + 8 * HOUR)
    show_usage(deployment(stack), PLAIN, as_json=False)
    assert "USD" not in capsys.readouterr().out
    answer = asked_json(stack, capsys)
    assert answer["prices"] is None
    assert {row["cost"] for row in answer["usage"]} == {None}
    assert answer["gpus"].startswith("GPUs per SageMaker training instance type, November 2026. Source: ")


def test_one_team_and_another_period(stack: LocalStack, capsys: pytest.CaptureFixture[str]) -> None:
    stack.run_until(START + 8 * HOUR)
    asked = PLAIN._replace(team="vision", period="day", since="1d")
    assert show_usage(deployment(stack), asked, as_json=True) == 0
    out, err = capsys.readouterr()
    rows = json.loads(out)["usage"]
    assert [(row["team"], row["period"]) for row in rows] == [("vision", "2026-09-14")]
    assert err == "the policy has budgets for each month: --period month shows them\n"


def test_nothing_used_is_said(stack: LocalStack, capsys: pytest.CaptureFixture[str]) -> None:
    assert show_usage(deployment(stack), PLAIN._replace(team="nobody"), as_json=False) == 0
    out, err = capsys.readouterr()
    assert (out, err) == ("", "nothing was used by team nobody since 2026-09-01T00:00:00Z\n")


@pytest.mark.parametrize(
    ("update", "fault"),
    [
        ({"since": "soon"}, "--since: 'soon' is neither"),
        ({"until": "soon"}, "--until: 'soon' is neither"),
        ({"since": "1h", "until": "2h"}, "--since: 2026-09-14T15:00:00Z is later than 2026-09-14T14:00:00Z"),
        ({"since": "2030-01-01"}, "is later than 2026-09-14T16:00:00Z"),
        ({"since": "500d"}, "--since: usage is kept for 397 days, since 2025-08-13T16:00:00Z"),
        ({"prices": Path("none.yaml")}, "none.yaml: no such file or directory"),
        ({"prices": SCHEMA}, "prices.schema.json:2:3: $schema: there is no key '$schema' here"),
    ],
)
def test_bad_input_is_refused(stack: LocalStack, update: dict[str, Any], fault: str) -> None:
    stack.run_until(START + 8 * HOUR)
    with pytest.raises(BadInput) as refused:
        show_usage(deployment(stack), PLAIN._replace(**update), as_json=False)
    assert fault in str(refused.value)
