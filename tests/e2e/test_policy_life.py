"""A policy's life on the local stack: pushed, picked up by the functions, overtaken, rolled back, broken."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sharewarden.aws.policies import KEY
from sharewarden.domain.policy import Policy
from sharewarden.domain.stored import HOUR, MINUTE, SECOND
from sharewarden.usecases.bump import Refused
from sharewarden_tools.cli import policy_push
from sharewarden_tools.cli.output import BadInput
from sharewarden_tools.cli.policy_push import Asked, push_policy, read_written, roll_back
from sharewarden_tools.cli.policy_show import diff, history, show
from sharewarden_tools.cli.shadow import Asked as Wanted
from sharewarden_tools.cli.shadow import report
from sharewarden_tools.lab import VirtualClock
from sharewarden_tools.local.stack import LocalStack, Setup, local_stack
from sharewarden_tools.operations.site import Site
from sharewarden_tools.policy.file import EXAMPLE
from sharewarden_tools.stories.three_team import START, create_pool, submit

from tests.e2e.operations_kit import site_of
from tests.e2e.test_local_stack_cli import exports, run, start

YES = Asked(message="why", yes=True)


class Running(NamedTuple):
    stack: LocalStack
    log: io.StringIO

    @property
    def site(self) -> Site:
        return site_of(self.stack)


@pytest.fixture
def running() -> Iterator[Running]:
    """The pool, without any policy and before its first job."""
    log = io.StringIO()
    with local_stack(VirtualClock(START), Setup(seed=5), log) as stack:
        stack._dynamodb.delete_item(TableName=stack.variables["STATE_TABLE"], Key=KEY)
        create_pool(stack)
        yield Running(stack, log)


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "policy.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


def policies_used(running: Running, *, since: int) -> set[str]:
    """Hashes on the records that were written from then on, by whichever function."""
    rows = running.stack._dynamodb.scan(TableName=running.stack.variables["AUDIT_TABLE"])["Items"]
    return {
        row["policy"]["S"]
        for row in rows
        if int(row["recorded_at"]["N"]) >= since and row["kind"]["S"] != "policy-changed" and "policy" in row
    }


def test_push_show_history_and_rollback(
    running: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = running.site
    with pytest.raises(BadInput, match="no policy was ever pushed"):
        show(site, None, as_json=False)
    text = "# mine\nhold: 45m  # long\n"
    first = written(tmp_path, text)
    assert push_policy(site, first, YES) == 0
    out, err = capsys.readouterr()
    number, name = "version 1", read_written(first).policy.hash
    assert out == f"{number}, {name}, is in force; the functions read it within a minute\n"
    assert "as ana; ml-train-qm: bumps shadow" in err
    assert "  ~ hold: 30m -> 45m\n" in err
    assert "nothing changes for the queues of this stack" in err

    assert push_policy(site, EXAMPLE, YES._replace(message="bumps")) == 0
    assert "ml-train-qm: bumps take effect from now on" in capsys.readouterr().err
    assert push_policy(site, EXAMPLE, YES) == 0
    assert "version 2, " in (out := said(capsys))
    assert "is in force already, since 2026-09-14T08:00:00Z, by ana: nothing was changed" in out

    assert show(site, name[:6], as_json=False) == 0
    assert (
        said(capsys)
        == f"#    1  {name}  2026-09-14T08:00:00Z  ana  why".replace("#    1", "# 1") + f"\n{text}"
    )
    assert roll_back(site, "1", YES._replace(message="")) == 0
    assert said(capsys).startswith(f"version 3, {name}, is in force")
    assert history(site, 20, as_json=False) == 0
    lines = said(capsys).splitlines()
    assert [line[:6] for line in lines] == ["*    3", "     2", "     1"]
    assert [line.rpartition("ana  ")[2] for line in lines] == ["rollback to version 1", "bumps", "why"]
    assert show(site, None, as_json=True) == 0
    shown = json.loads(said(capsys))
    assert (shown["number"], shown["text"], shown["policy"], shown["in_force"]) == (
        3,
        text,
        {"hold": 45 * MINUTE},
        True,
    )
    facts = running.stack._dynamodb.scan(TableName=running.stack.variables["AUDIT_TABLE"])["Items"]
    assert sum(fact["kind"]["S"] == "policy-changed" for fact in facts) == 3


def test_the_functions_decide_by_it_within_a_minute(running: Running) -> None:
    """All of them, also those that have read the one before just now."""
    stack, site = running.stack, running.site
    submit(stack, "background-1", HOUR)
    stack.run_until(START + 15 * MINUTE)  # the sweep reads the policy just now
    pushed_at = stack.now()
    push_policy(site, EXAMPLE, YES)
    new = read_written(EXAMPLE).policy.hash
    submit(stack, "medium-1", MINUTE)
    stack.run_until(pushed_at + MINUTE + SECOND)
    used_from = stack.now()
    submit(stack, "urgent-1", 2 * MINUTE)
    stack.run_until(used_from + 30 * MINUTE)
    assert policies_used(running, since=used_from) == {new}
    assert policies_used(running, since=0) <= {new, Policy().hash}


BROKEN = '{"since_the_next_version": 1}'


def test_one_that_does_not_load_is_loud_in_every_function_that_reads_it(running: Running) -> None:
    """As old code meets what a newer command pushed: the version before stays in force."""
    stack, site = running.stack, running.site
    push_policy(site, EXAMPLE, YES)
    stack.run_until(stack.now() + 6 * MINUTE)
    assert "policy_unloadable" not in running.log.getvalue()
    row = stack._dynamodb.get_item(TableName=stack.variables["STATE_TABLE"], Key=KEY)["Item"]
    newer = row | {"number": {"N": "2"}, "previous": {"N": "1"}, "hash": {"S": "h"}, "doc": {"S": BROKEN}}
    stack._dynamodb.put_item(TableName=stack.variables["STATE_TABLE"], Item=newer)
    stack.run_until(stack.now() + 6 * MINUTE)
    metrics = [line for line in running.log.getvalue().splitlines() if '"policy_unloadable"' in line]
    assert metrics, "no sweep has told of it"
    (told, *_) = [json.loads(line) for line in metrics]
    (declared,) = told["_aws"]["CloudWatchMetrics"]
    assert "policy_unloadable" in {metric["Name"] for metric in declared["Metrics"]}
    assert stack.runtime.policies.current() == read_written(EXAMPLE).policy

    roll_back(site, "1", YES)
    stack.run_until(stack.now() + 6 * MINUTE)  # the first sweep still tells of what we have just read
    quiet_from = len(running.log.getvalue())
    stack.run_until(stack.now() + 10 * MINUTE)
    assert "policy_unloadable" not in running.log.getvalue()[quiet_from:]


def test_who_is_overtaken_while_deciding_learns_by_whom(
    running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = running.site
    push_policy(site, EXAMPLE, YES)

    def meanwhile(_question: str, *, yes: bool) -> bool:
        monkeypatch.setattr(policy_push, "confirmed", lambda _question, *, yes: yes)
        push_policy(site, written(tmp_path, "paused: true\n"), YES)
        return yes

    monkeypatch.setattr(policy_push, "confirmed", meanwhile)
    hers = Policy(paused=True).hash
    with pytest.raises(Refused, match=f"^ana pushed version 2, {hers}, at 2026-09-14T08:00:00Z: see what"):
        push_policy(site, written(tmp_path, "hold: 1h\n"), YES)
    assert policy_push.store_of(site).version(3) is None


def test_without_a_yes_nothing_is_changed(
    running: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))  # nobody at a terminal
    assert push_policy(running.site, EXAMPLE, Asked()) == 1
    assert "nothing was changed; --yes to push" in capsys.readouterr().err
    assert policy_push.store_of(running.site).current() is None


UNFIT: list[tuple[str, type[Exception], str]] = [
    ("pausd: true\n", BadInput, "pausd"),
    ("queues: {ml-train-qm: {bands: {human: {lowest: 0, highest: 1000}}}}\n", Refused, "reach 1000"),
    ("hold: [\n", BadInput, "YAML"),
]


def test_what_may_not_be_in_force_is_refused_before_anything_is_shown(
    running: Running, tmp_path: Path
) -> None:
    for text, error, told in UNFIT:
        with pytest.raises(error, match=told):
            push_policy(running.site, written(tmp_path, text), YES)
    with pytest.raises(BadInput, match="--message: 501 characters, 500 at most"):
        push_policy(running.site, EXAMPLE, Asked("x" * 501, yes=True))
    with pytest.raises(BadInput, match="no such file"):
        push_policy(running.site, tmp_path / "none.yaml", YES)
    assert policy_push.store_of(running.site).current() is None


def test_another_stacks_queue_is_a_warning(
    running: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, "queues: {ml-train-qm: {}, ml-trian-qm: {bumps: enforce}}\n")
    assert push_policy(running.site, file, YES) == 0
    assert "warning: this stack does not look after ml-trian-qm (QueueArns)" in capsys.readouterr().err


def test_diff_is_against_what_the_functions_go_by(
    running: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = running.site
    push_policy(site, EXAMPLE, YES)
    capsys.readouterr()
    assert diff(site, read_written(EXAMPLE).policy, as_json=False) == 0
    out, err = capsys.readouterr()
    assert (out, err.splitlines()[-1]) == ("", "it is in force already: no difference")
    paused = read_written(
        written(tmp_path, f"paused: true\n{EXAMPLE.read_text().replace('paused: false', '')}")
    )
    assert diff(site, paused.policy, as_json=True) == 0
    told = json.loads(said(capsys))
    assert told["changes"] == [{"path": "paused", "before": "false", "after": "true"}]
    assert told["effects"] == ["everything stops: paused, nothing acts"]


def test_a_version_that_is_not_there_is_bad_input(running: Running) -> None:
    push_policy(running.site, EXAMPLE, YES)
    for wanted in ("9", "abc", "ffff", "0"):
        with pytest.raises(BadInput, match=f"^{wanted}: no version has that number or hash"):
            show(running.site, wanted, as_json=False)


GUARD = """
queues:
  ml-train-qm: {mode: MODE, shares: {background: {team: research}}}
guardrails:
  - {rule: allowed-instance-types, types: [ml.p5.48xlarge], action: lower-priority, points: 50}
"""


def test_shadow_report_tells_what_the_functions_found(
    running: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Found in shadow, with the job; once it is enforced, what was done stands apart."""
    stack, site = running.stack, running.site
    push_policy(site, written(tmp_path, GUARD.replace("MODE", "shadow")), YES)
    job = submit(stack, "background-1", 2 * HOUR)
    stack.run_until(stack.now() + 12 * MINUTE)
    (shadow,) = reported(site, capsys)
    found = ("allowed-instance-types", "lower-priority", 1)
    assert (shadow["mode"], *(shadow[name] for name in ("label", "action", "number"))) == ("shadow", *found)
    (row,) = shadow["findings"]
    assert (row["job"], row["job_name"], row["team"]) == (job, "background-1", "research")
    assert row["policy"] == read_written(tmp_path / "policy.yaml").policy.hash
    assert (row["until"], "ml.g5.xlarge" in row["text"]) == (None, True)

    push_policy(site, written(tmp_path, GUARD.replace("MODE", "enforce")), YES)
    assert "becomes enforced: allowed-instance-types in ml-train-qm" in capsys.readouterr().err
    stack.run_until(stack.now() + 12 * MINUTE)
    shadow, enforced = reported(site, capsys)
    assert (enforced["mode"], *(enforced[name] for name in ("label", "action", "number"))) == (
        "enforce",
        *found,
    )
    assert shadow["findings"][0]["until"] is not None
    assert reported(site, capsys, share="urgent") == []


def reported(
    site: Site, capsys: pytest.CaptureFixture[str], share: str | None = None
) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert report(site.deployment, Wanted("1h", None, share), as_json=True) == 0
    groups: list[dict[str, Any]] = json.loads(said(capsys))
    return groups


# --- the real process -------------------------------------------------------------------------------------


LIFE: list[tuple[str, ...]] = [
    ("check", "FILE"),
    ("push", "FILE", "--local"),
    ("push", "FILE", "--local", "--yes", "--message", "a try", "--json"),
    ("push", "FILE", "--local"),
    ("show", "--local"),
    ("rollback", "1", "--local", "--yes"),
    ("history", "--local", "--json"),
    ("diff", "FILE", "--local"),
]


def test_check_push_show_history_rollback_and_conflict_as_processes(tmp_path: Path) -> None:
    file = written(tmp_path, "# why: a try\nqueues: {ml-train-qm: {bumps: shadow}}\n")
    server = start(tmp_path, "local", "serve")
    try:
        exports(server, 9)
        ended = [
            run(tmp_path, "policy", *(str(file) if arg == "FILE" else arg for arg in args)) for args in LIFE
        ]
        told = run(tmp_path, "shadow", "report", "--local", "--json")
        overtaken, why = pushed_while_another_decides(tmp_path, file)
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=30)
    assert [each.returncode for each in ended] == [0, 1, 0, 0, 0, 0, 0, 0]
    _, refused, pushed, again, shown, back, listed, diffed = ended
    assert "ml-train-qm: bumps are only recorded (shadow) from now on" in refused.stderr
    version = json.loads(pushed.stdout)
    assert (version["number"], version["previous"], version["message"], version["new"]) == (
        2,
        1,
        "a try",
        True,
    )
    assert "in force already" in again.stdout
    assert shown.stdout.endswith(file.read_text())
    assert "version 3, " in back.stdout
    entries = [(one["number"], one["in_force"], one["author"] is None) for one in json.loads(listed.stdout)]
    assert entries == [(3, True, False), (2, False, False), (1, False, True)]
    assert "~ queues.ml-train-qm.bumps: enforce -> shadow" in diffed.stdout
    assert (told.returncode, json.loads(told.stdout)) == (0, [])
    assert (overtaken, "pushed version 4, " in why, "then push again" in why) == (1, True, True)


def pushed_while_another_decides(where: Path, file: Path) -> tuple[int, str]:
    """One asks at a terminal whether to push, the other pushes, then the first says yes: its end."""
    other = where / "other.yaml"
    other.write_text("paused: true\n")
    terminal, stdin = pty.openpty()
    first = start(where, "policy", "push", str(file), "--local", stdin=stdin)
    assert first.stderr is not None
    seen = ""
    while "in force?" not in seen:
        sign = first.stderr.read(1)
        assert sign, seen
        seen += sign
    assert run(where, "policy", "push", str(other), "--local", "--yes").returncode == 0
    os.write(terminal, b"y\n")
    _, rest = first.communicate(timeout=60)
    os.close(terminal)
    os.close(stdin)
    return first.returncode, rest
