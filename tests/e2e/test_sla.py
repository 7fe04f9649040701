"""`sharewarden sla forecast` on the three-team pool: clocks are Batch's, and the step does what it says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sharewarden.domain.policy import Policy
from sharewarden.domain.stored import HOUR, MINUTE
from sharewarden_tools.cli.deployment import Deployment
from sharewarden_tools.cli.jobs import Raise, bump_job
from sharewarden_tools.cli.sla import show_forecast
from sharewarden_tools.lab import VirtualClock
from sharewarden_tools.local.stack import ACCOUNT, REGION, LocalStack, Setup, local_stack
from sharewarden_tools.policy.file import load_policy
from sharewarden_tools.stories.three_team import START, create_pool, submit

DOCUMENT = Path(__file__).parents[2] / "docs" / "sla.md"
SILVER = {
    "start_within": "40m",
    "restart_within": "1h",
    "finish_by": True,
    "ladder": [{"at": "50%", "boost": 100}, {"at": "100%", "notify": "team"}],
}
#: 14 September 2026, 20:00 UTC: twelve hours after the start.
TAGS = {"sla": "silver", "deadline": "2026-09-14T22:00:00+02:00", "expected-runtime": "6h"}


@pytest.fixture
def stack() -> Iterator[LocalStack]:
    """Background runs two jobs, and two more wait: one asks for an SLA, one for none."""
    known = load_policy().model_dump(mode="json")
    policy = Policy.model_validate(known | {"sla": known["sla"] | {"silver": SILVER}})
    with local_stack(VirtualClock(START), Setup(seed=5, policy=policy)) as running:
        create_pool(running)
        for name in ("background-1", "background-2", "background-3"):
            submit(running, name, 6 * HOUR, tags=TAGS)
            running.run_until(running.now() + MINUTE)
        submit(running, "background-4", 6 * HOUR)
        running.run_until(running.now() + MINUTE)
        yield running


def deployment(stack: LocalStack) -> Deployment:
    return Deployment("local stack", ACCOUNT, REGION, "ana", stack.runtime, stack.client("batch", "ana"))


def forecast(stack: LocalStack, capsys: pytest.CaptureFixture[str]) -> Any:
    capsys.readouterr()
    assert show_forecast(deployment(stack), None, "background", as_json=True) == 0
    (queue,) = json.loads(capsys.readouterr().out)["queues"]
    return queue


def described(stack: LocalStack, job: str) -> Any:
    return stack.client("batch", "ana").describe_service_job(jobId=deployment(stack).job(job))


def test_law_11_the_forecast_comes_true_when_somebody_takes_the_step(
    stack: LocalStack, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = forecast(stack, capsys)
    assert (queue["without_sla"], queue["untold"], queue["gaps"]) == (1, [], [])
    (job,) = queue["jobs"]
    created = described(stack, "background-3")["createdAt"]
    assert (job["name"], job["sla"]["since"], job["sla"]["due"]) == (
        "background-3",
        created,
        created + 40 * MINUTE,
    )
    assert job["slack"] == START + 12 * HOUR - queue["at"] - 6 * HOUR
    assert (job["due"], job["next"]["at"], job["next"]["boost"]) == ([], created + 20 * MINUTE, 100)

    stack.run_until(job["next"]["at"])
    (job,) = forecast(stack, capsys)["jobs"]
    assert (job["used"], [step["number"] for step in job["due"]], job["next"]["number"]) == (50, [1], 2)
    assert (job["help"]["kind"], job["help"]["asked"]) == ("yes-now", 200)
    assert described(stack, "background-3")["schedulingPriority"] == 100, "no step is carried out"

    bump_job(deployment(stack), "background-3", Raise(200, None, "4h", "the step, by hand"), as_json=True)
    stack.run_until(stack.now() + 10 * MINUTE)
    assert described(stack, "background-3")["status"] == "RUNNING"
    (pushed,) = forecast(stack, capsys)["jobs"]
    assert pushed["name"] in {victim["name"] for victim in job["help"]["victims"]}
    assert_restarts(stack, pushed)


def assert_restarts(stack: LocalStack, pushed: Any) -> None:
    """Its clock began with the requeue, and what it had saved need not be trained again."""
    (attempt,) = described(stack, pushed["name"])["preemptionSummary"]["recentPreemptedAttempts"]
    sla = pushed["sla"]
    assert sla["epoch"] == "restart"
    assert 0 <= sla["since"] - attempt["stoppedAt"] <= MINUTE
    assert sla["due"] == sla["since"] + HOUR
    trained = attempt["stoppedAt"] - attempt["startedAt"]
    assert 6 * HOUR - trained <= sla["remaining"] < 6 * HOUR


def test_the_document_shows_what_it_prints(capsys: pytest.CaptureFixture[str]) -> None:
    (shown,) = re.findall(
        r"```\n\$ sharewarden sla forecast [^\n]*\n(.*?)```", DOCUMENT.read_text(), re.DOTALL
    )
    tags = {"sla": "silver", "deadline": "2026-09-14T18:00:00+02:00", "expected-runtime": "6h"}
    with local_stack(VirtualClock(START), Setup(seed=5, policy=load_policy())) as running:
        create_pool(running)
        for name in ("background-1", "background-2"):
            submit(running, name, 6 * HOUR)
            running.run_until(running.now() + MINUTE)
        submit(running, "background-3", 6 * HOUR, tags=tags)
        running.run_until(START + 16 * MINUTE)
        capsys.readouterr()
        assert show_forecast(deployment(running), None, None, as_json=False) == 0
    assert capsys.readouterr().out == shown
