"""`sharewarden can-help` on the three-team pool: what it says is what a bump then does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from sharewarden.domain.stored import HOUR, MINUTE
from sharewarden_tools.cli.can_help import show_help
from sharewarden_tools.cli.deployment import Deployment
from sharewarden_tools.cli.jobs import Raise, bump_job
from sharewarden_tools.lab import VirtualClock
from sharewarden_tools.local.stack import ACCOUNT, REGION, LocalStack, Setup, local_stack
from sharewarden_tools.policy.file import load_policy
from sharewarden_tools.stories.three_team import START, create_pool, submit

NAMES = ("background-1", "background-2", "background-3", "medium-1", "medium-2")


@pytest.fixture
def stack() -> Iterator[LocalStack]:
    """Background runs two jobs, one borrowed from medium, and a third one waits."""
    with local_stack(VirtualClock(START), Setup(seed=5, policy=load_policy())) as running:
        create_pool(running)
        for name in NAMES[:3]:
            submit(running, name, 6 * HOUR)
            running.run_until(running.now() + MINUTE)
        yield running


def deployment(stack: LocalStack) -> Deployment:
    return Deployment("local stack", ACCOUNT, REGION, "ana", stack.runtime, stack.client("batch", "ana"))


def asked(stack: LocalStack, capsys: pytest.CaptureFixture[str], job: str, to: int | None = None) -> Any:
    capsys.readouterr()
    code = show_help(deployment(stack), job, to, as_json=True)
    answer = json.loads(capsys.readouterr().out)
    assert code == {"yes-now": 0, "yes-at": 0, "no": 1, "unknown": 3}[answer["kind"]]
    return answer


def status(stack: LocalStack, job: str) -> str:
    batch = stack.client("batch", "ana")
    return batch.describe_service_job(jobId=deployment(stack).job(job))["status"]


def test_law_07_it_helps_from_the_time_that_is_told(
    stack: LocalStack, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = asked(stack, capsys, "background-3")
    assert (answer["kind"], answer["reason"], answer["needs"]) == ("yes-at", "push-out", 101)
    assert {victim["name"] for victim in answer["victims"]} == {"background-1", "background-2"}
    assert (answer["figures"]["used"], answer["figures"]["own"], answer["figures"]["borrowed"]) == (2, 1, 1)
    stack.run_until(answer["at"])
    assert asked(stack, capsys, "background-3", 101)["kind"] == "yes-now"
    bump_job(deployment(stack), "background-3", Raise(101, None, "4h", "a try"), as_json=True)
    stack.run_until(stack.now() + 10 * MINUTE)
    assert status(stack, "background-3") == "RUNNING"


def test_where_a_bump_does_not_help_the_lever_is_named(
    stack: LocalStack, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in NAMES[3:]:
        submit(stack, name, 6 * HOUR)
    stack.run_until(START + 30 * MINUTE)
    answer = asked(stack, capsys, "medium-2")
    assert (answer["kind"], answer["reason"]) == ("no", "in-share-off")
    levers = {lever["change"] for lever in answer["levers"]}
    assert levers >= {"in-share-preemption", "wait"}
    bump_job(deployment(stack), "medium-2", Raise(900, None, "4h", "all the same"), as_json=True)
    stack.run_until(stack.now() + 10 * MINUTE)
    assert status(stack, "medium-2") == "RUNNABLE"
