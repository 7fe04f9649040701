"""``sharewarden doctor`` on the local stack: well when it is, and each damage is found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from sharewarden.aws.policies import KEY
from sharewarden.domain import rules
from sharewarden.domain.policy import Policy, QueuePolicy
from sharewarden.domain.stored import HOUR, MINUTE
from sharewarden.ports import Unavailable
from sharewarden_tools.cli.doctor import doctor
from sharewarden_tools.lab import VirtualClock
from sharewarden_tools.local.stack import LocalStack, Setup, local_stack
from sharewarden_tools.operations.site import Site
from sharewarden_tools.policy.file import load_policy
from sharewarden_tools.stories.three_team import QUEUE, START, create_pool, submit

from tests.e2e.operations_kit import lay, site_of


@pytest.fixture(scope="module")
def stack() -> Iterator[LocalStack]:
    with local_stack(VirtualClock(START), Setup(seed=5, policy=load_policy())) as running:
        create_pool(running)
        submit(running, "background-1", 9 * HOUR)
        submit(running, "urgent-1", 9 * HOUR)
        running.run_until(START + 10 * MINUTE)
        yield running


@pytest.fixture(autouse=True)
def mend(stack: LocalStack) -> Iterator[None]:
    """What a test broke is whole again after it."""
    handlers = dict(stack.handlers)
    yield
    stack.handlers = handlers
    stack.put_policy(load_policy())
    batch, sqs = site_of(stack).client("batch"), site_of(stack).client("sqs")
    batch.update_job_queue(jobQueue=QUEUE, state="ENABLED")
    for share in batch.list_quota_shares(jobQueue=QUEUE)["quotaShares"]:
        batch.update_quota_share(quotaShareArn=share["quotaShareArn"], state="ENABLED")
    sqs.purge_queue(QueueUrl=site_of(stack).queue_url("EventsDeadLetters"))
    stack.run_until(stack.now() + 6 * MINUTE)


def states(stack: LocalStack, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, set[str]]]:
    code = doctor(site_of(stack), as_json=True)
    found: dict[str, set[str]] = {}
    for finding in json.loads(capsys.readouterr().out):
        found.setdefault(finding["name"], set()).add(finding["state"])
    return code, found


def test_a_healthy_local_stack(stack: LocalStack, capsys: pytest.CaptureFixture[str]) -> None:
    stack.run_until(stack.now() + 15 * MINUTE)
    code, found = states(stack, capsys)
    assert code == 0
    here = ("queues", "shares", "policy", "sweep", "events", "dead letters", "notices", "checkpoints")
    assert {name: found[name] for name in here} == {name: {"ok"} for name in here}
    assert {state for name in found.keys() - set(here) for state in found[name]} == {"cannot tell"}


def break_policy(stack: LocalStack) -> None:
    doc = {"doc": {"S": '{"pausd": true}'}}
    site_of(stack).client("dynamodb").put_item(TableName=stack.variables["STATE_TABLE"], Item=KEY | doc)


def strange_policy(stack: LocalStack) -> None:
    stack.put_policy(Policy(paused=True, queues={"another": QueuePolicy()}))


def forget_policy(stack: LocalStack) -> None:
    site_of(stack).client("dynamodb").delete_item(TableName=stack.variables["STATE_TABLE"], Key=KEY)


def stop_sweeps(stack: LocalStack) -> None:
    stack.handlers["Sweep"] = lambda *_: {}
    stack.run_until(stack.now() + 20 * MINUTE)


def lose_events(stack: LocalStack) -> None:
    stack.handlers["React"] = lambda *_: {}
    submit(stack, "medium-1", 9 * HOUR)
    stack.run_until(stack.now() + HOUR)


def disable_share(stack: LocalStack) -> None:
    batch = site_of(stack).client("batch")
    (share, *_) = batch.list_quota_shares(jobQueue=QUEUE)["quotaShares"]
    batch.update_quota_share(quotaShareArn=share["quotaShareArn"], state="DISABLED")


def disable_queue(stack: LocalStack) -> None:
    site_of(stack).client("batch").update_job_queue(jobQueue=QUEUE, state="DISABLED")


@pytest.mark.parametrize(
    ("damage", "name", "state"),
    [
        (break_policy, "policy", "problem"),
        (strange_policy, "policy", "warning"),
        (forget_policy, "policy", "warning"),
        (stop_sweeps, "sweep", "problem"),
        (disable_share, "shares", "warning"),
        (disable_queue, "queues", "problem"),
        (lambda stack: lay(stack, "x"), "dead letters", "problem"),
        (lose_events, "events", "warning"),
    ],
)
def test_what_is_broken_is_found(
    stack: LocalStack, capsys: pytest.CaptureFixture[str], damage: Any, name: str, state: str
) -> None:
    damage(stack)
    code, found = states(stack, capsys)
    assert state in found[name]
    assert code == (1 if state == "problem" else 0)


def test_a_rule_whose_library_is_not_here_is_a_policy_that_does_not_load(
    stack: LocalStack, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "import_module", failing)
    assert doctor(site_of(stack), as_json=False) == 1
    assert "problem     policy        it does not load: No module named" in capsys.readouterr().out


def failing(name: str, _package: str) -> Any:
    raise ImportError(f"No module named {name!r}")


def test_each_finding_is_a_line_and_its_fix_another(
    stack: LocalStack, capsys: pytest.CaptureFixture[str]
) -> None:
    lay(stack, "x")
    assert doctor(site_of(stack), as_json=False) == 1
    out, err = capsys.readouterr()
    assert "problem     dead letters  about 1 in EventsDeadLetters\n" in out
    assert f"{'':<26} -> sharewarden redrive tells why\n" in out
    assert "\x1b" not in out
    assert "1 problem" in err


def test_nothing_to_tell_is_an_exit_code_of_its_own(stack: LocalStack) -> None:
    def down(_: Site) -> Iterator[Any]:
        raise Unavailable("throttled")
        yield

    assert doctor(site_of(stack), as_json=False, checks=[down]) == 3
