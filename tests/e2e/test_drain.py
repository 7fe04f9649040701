"""``sharewarden drain`` on the local stack in virtual time, and every command as a process in wall time."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from sharewarden.domain.base import last_part
from sharewarden.domain.stored import HOUR, MINUTE
from sharewarden_tools.cli.drain import Asked
from sharewarden_tools.cli.drain import drain as drain_command
from sharewarden_tools.cli.jobs import Raise, bump_job
from sharewarden_tools.cli.output import BadInput
from sharewarden_tools.lab import VirtualClock
from sharewarden_tools.local.stack import ACCOUNT, REGION, LocalStack, Setup, local_stack
from sharewarden_tools.policy.file import load_policy
from sharewarden_tools.stories.three_team import QUEUE, START, create_pool, submit

from tests.e2e.operations_kit import site_of
from tests.e2e.test_local_stack_cli import exports, run, start


@pytest.fixture
def stack() -> Iterator[LocalStack]:
    with local_stack(VirtualClock(START), Setup(seed=5, policy=load_policy())) as running:
        create_pool(running)
        submit(running, "background-1", 3 * HOUR)
        submit(running, "urgent-1", 3 * HOUR)
        running.run_until(START + 10 * MINUTE)
        yield running


def priority(stack: LocalStack, name: str = "background-1") -> int:
    site = site_of(stack)
    job = site.deployment.job(name)
    return int(stack.client("batch", "ana").describe_service_job(jobId=job)["schedulingPriority"])


def bump(stack: LocalStack, name: str = "background-1") -> None:
    bump_job(site_of(stack).deployment, name, Raise(850, None, "4h", "deadline"), as_json=True)
    stack.run_until(stack.now() + MINUTE)


def drain(stack: LocalStack, asked: Asked, *, as_json: bool = False) -> int:
    """The command, while the stack lives on in virtual time."""

    def pause(seconds: float) -> None:
        stack.run_until(stack.now() + int(seconds * 1000))

    return drain_command(site_of(stack), asked, as_json=as_json, pause=pause)


def test_drain_restores_every_base(stack: LocalStack, capsys: pytest.CaptureFixture[str]) -> None:
    bump(stack)
    capsys.readouterr()
    assert priority(stack) == 850
    assert drain(stack, Asked("we leave", yes=True)) == 0
    out, err = capsys.readouterr()
    assert priority(stack) == 100
    assert out == "every job is at its base\nstop `sharewarden local serve`; it keeps nothing\n"
    assert err.startswith(
        f"local stack, account {ACCOUNT}, {REGION}, as ana; {QUEUE}: bumps enforce, acting guardrails: none\n"
    )
    job = last_part(site_of(stack).deployment.job("background-1"))
    kinds = [fact.kind for fact in stack.runtime.audit.by_job(job, 0)]
    assert kinds.count("unbump") == kinds.count("boost-ended") == 1


def test_without_a_yes_nothing_is_drained(stack: LocalStack, capsys: pytest.CaptureFixture[str]) -> None:
    bump(stack)
    assert drain(stack, Asked("we leave"), as_json=True) == 1
    stack.run_until(stack.now() + MINUTE)
    assert priority(stack) == 850
    assert "nothing was changed; --yes to end them" in capsys.readouterr().err


def test_law_05_drain_waits_for_the_hold_of_a_job_that_a_bump_started(
    stack: LocalStack, capsys: pytest.CaptureFixture[str]
) -> None:
    submit(stack, "urgent-2", HOUR)
    bump(stack, "urgent-2")
    running = site_of(stack).deployment.job("urgent-1")
    stack.client("batch", "cho").terminate_service_job(jobId=running, reason="make room")
    stack.run_until(stack.now() + 5 * MINUTE)
    asked = Asked("we leave", timeout="5m", yes=True)
    assert drain(stack, asked) == 1
    assert "850 -> 100  held: a boost has started the job" in capsys.readouterr().out
    assert priority(stack, "urgent-2") == 850
    assert drain(stack, asked._replace(timeout="1h")) == 0
    assert priority(stack, "urgent-2") == 100


def test_drain_now_gives_up_the_hold_and_says_what_that_means(
    stack: LocalStack, capsys: pytest.CaptureFixture[str]
) -> None:
    submit(stack, "urgent-2", HOUR)
    bump(stack, "urgent-2")
    running = site_of(stack).deployment.job("urgent-1")
    stack.client("batch", "cho").terminate_service_job(jobId=running, reason="make room")
    stack.run_until(stack.now() + 5 * MINUTE)
    assert drain(stack, Asked("we leave", now=True, timeout="5m", yes=True)) == 0
    assert "likelier victims" in capsys.readouterr().err
    assert priority(stack, "urgent-2") == 100


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (Asked("", yes=True), "reason: "),
        (Asked("x", timeout="soon", yes=True), "--timeout: 'soon' is not a duration"),
    ],
)
def test_drain_says_what_is_wrong_with_its_input(stack: LocalStack, asked: Asked, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        drain(stack, asked)


# --- the real process --------------------------------------------------------------------------------


def test_the_commands_find_the_local_stack(tmp_path: Path) -> None:
    server = start(tmp_path, "local", "serve", "--story")
    try:
        exports(server, 8)
        looked = run(tmp_path, "doctor", "--local", "--json")
        redriven = run(tmp_path, "redrive", "--local", "--yes", "--json")
        bumped = run(tmp_path, "bump", "urgent-1", "--to", "850", "--reason", "now", "--local")
        asked = run(tmp_path, "drain", "--local")
        # --now: on a slow machine the bump comes before the dispatch, and a hold of half an hour follows.
        drained = run(tmp_path, "drain", "--local", "--yes", "--now", "--timeout", "1m", "--json")
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=30)
    assert {row["name"] for row in json.loads(looked.stdout)} >= {"queues", "policy", "dead letters"}
    assert (redriven.returncode, json.loads(redriven.stdout)["letters"]) == (0, [])
    assert bumped.returncode == 0
    assert asked.returncode == 1
    assert (drained.returncode, json.loads(drained.stdout)) == (0, {"remaining": [], "kept": {}})


def test_without_a_stack_the_commands_say_so(tmp_path: Path) -> None:
    for command in ("doctor", "redrive", "drain"):
        ended = run(tmp_path, command, "--local")
        assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
