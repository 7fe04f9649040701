"""What commands make of options, files and stacks, without any server."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sharewarden.domain.observation import ShareDescription
from sharewarden.domain.policy import Policy
from sharewarden.ports import Runtime, Unavailable
from sharewarden_tools.cli import main
from sharewarden_tools.cli.audit import list_audit, parse_since
from sharewarden_tools.cli.deployment import LOCAL_FILE, Deployment, stack_variables
from sharewarden_tools.cli.output import BadInput, full_time
from sharewarden_tools.memory import (
    MemoryBatch,
    MemoryClock,
    MemoryDeadLetters,
    MemoryLedger,
    MemoryNoticeQueue,
    MemoryPolicies,
    MemoryWishQueue,
)
from sharewarden_tools.memory_objects import MemoryCheckpoints
from sharewarden_tools.template import load_template

NOW = 1_789_372_800_000  # 2026-09-14T08:00:00Z
QUEUE = "arn:aws:batch:us-east-1:123456789012:job-queue/ml-train-qm"
ID = "53f51099-d4c3-5e90-ac11-be55089a1763"


def run(*args: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(args)
    return int(str(ended.value.code))


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2h", NOW - 7_200_000),
        ("1d", NOW - 86_400_000),
        ("2026-09-14T08:00:00Z", NOW),
        ("2026-09-14T10:00:00+02:00", NOW),
        ("2026-09-14T08:00:00", NOW),
    ],
)
def test_since_is_a_duration_or_a_time(text: str, at: int) -> None:
    assert parse_since(text, NOW) == at


@pytest.mark.parametrize("text", ["", "yesterday", "2", "2026-13-01", "-2h"])
def test_anything_else_is_no_since(text: str) -> None:
    with pytest.raises(BadInput, match="--since"):
        parse_since(text, NOW)


@pytest.mark.parametrize(
    "text", ["999999d", "1969-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"]
)
def test_a_time_that_cannot_be_written_is_no_since(text: str) -> None:
    with pytest.raises(BadInput, match=r"--until: .* is not a time between 1970 and 9999"):
        parse_since(text, NOW, "--until")


@pytest.mark.parametrize("text", ["1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_what_is_a_since_can_be_told(text: str) -> None:
    assert full_time(parse_since(text, NOW)) == text


# --- jobs by name -----------------------------------------------------------------------------------------


class Listing:
    """A Batch client that lists these jobs, whatever it is asked for."""

    def __init__(self, *rows: tuple[str, str], name: str = "train") -> None:
        self._rows = [
            {"jobId": job, "jobName": name, "jobArn": f"arn:{job}", "status": status, "createdAt": NOW}
            for job, status in rows
        ]

    def get_paginator(self, name: str) -> "Listing":
        assert name == "list_service_jobs"
        return self

    def paginate(self, **request: Any) -> Iterator[dict[str, Any]]:
        yield {"jobSummaryList": self._rows[:1]}
        yield {"jobSummaryList": self._rows[1:]}


def deployment(*rows: tuple[str, str], name: str = "train") -> Deployment:
    clock, ledger = MemoryClock(NOW), MemoryLedger()
    runtime = Runtime(
        batch=MemoryBatch(clock),
        ledger=ledger,
        audit=ledger,
        wishes=MemoryWishQueue(clock),
        notices=MemoryNoticeQueue(),
        dead_letters=MemoryDeadLetters(),
        checkpoints=MemoryCheckpoints(clock),
        policies=MemoryPolicies(),
        clock=clock,
        queues=frozenset({QUEUE}),
    )
    batch: Any = Listing(*rows, name=name)
    return Deployment("stack x", "123456789012", "us-east-1", "ana", runtime, batch)


@pytest.mark.parametrize("text", [ID, f"arn:aws:batch:us-east-1:123456789012:service-job/{ID}"])
def test_an_id_or_arn_is_taken_as_it_is(text: str) -> None:
    assert deployment().job(text) == text


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([("a", "RUNNING")], "arn:a"),
        ([("a", "FAILED"), ("b", "RUNNABLE")], "arn:b"),
        ([("a", "SUCCEEDED")], "arn:a"),
    ],
)
def test_a_name_means_the_one_job_that_has_it(rows: list[tuple[str, str]], found: str) -> None:
    assert deployment(*rows).job("train") == found


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "train: no job of that name in"),
        ([("a", "RUNNING"), ("b", "RUNNABLE")], "(?s)train: 2 jobs have that name.*a  RUNNING .*b  RUNNABLE"),
    ],
)
def test_a_name_is_never_guessed(rows: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        deployment(*rows).job("train")


@pytest.mark.parametrize("text", ["URGENT*", "urgent*", "URGENT-1", "urgent-"])
def test_a_name_is_no_pattern_though_batch_takes_it_for_one(text: str) -> None:
    with pytest.raises(BadInput, match="no job of that name"):
        deployment(("a", "RUNNING"), name="urgent-1").job(text)


# --- the audit of nothing ---------------------------------------------------------------------------------


def listed(found: Deployment, **what: str) -> int:
    return list_audit(found, **{"share": None, "job": None, **what}, since="2h", as_json=False)  # type: ignore[arg-type]


def with_share(found: Deployment) -> Deployment:
    share = ShareDescription(arn="arn:s", name="background", queue=QUEUE, limits=(), strategy="LEND")
    found.runtime.batch.quota_shares[QUEUE] = [share]  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ({"share": "background"}, "no records of share background since 2026-09-14T06:00:00Z\n"),
        ({"job": ID}, f"no records of job {ID} since 2026-09-14T06:00:00Z\n"),
    ],
)
def test_an_empty_audit_is_said(what: dict[str, str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert listed(with_share(deployment()), **what) == 0
    assert capsys.readouterr() == ("", said)


def test_a_share_that_is_not_there_is_bad_input() -> None:
    with pytest.raises(BadInput, match=r"no records of share nope, and no quota share.*there are background"):
        listed(with_share(deployment()), share="nope")


def test_who_may_not_ask_batch_still_reads_the_audit(capsys: pytest.CaptureFixture[str]) -> None:
    found = deployment()
    found.runtime.batch.down = "AccessDenied"  # type: ignore[attr-defined]
    assert listed(found, share="nope") == 0
    assert capsys.readouterr().err.startswith("no records of share nope since")


ENFORCED = {"rule": "max-instances-per-job", "limit": 4, "action": "terminate", "mode": "enforce"}


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ({}, "ml-train-qm: bumps shadow, acting guardrails: none"),
        ({"guardrails": [ENFORCED | {"mode": None}]}, "ml-train-qm: bumps shadow, acting guardrails: none"),
        (
            {
                "queues": {"ml-train-qm": {"mode": "enforce", "bumps": "enforce"}},
                "guardrails": [ENFORCED | {"mode": None}, ENFORCED | {"name": "big"}, {"rule": "no-team"}],
            },
            "ml-train-qm: bumps enforce, acting guardrails: max-instances-per-job, big",
        ),
        (
            {"paused": True, "guardrails": [ENFORCED]},
            "ml-train-qm: bumps shadow, acting guardrails: max-instances-per-job; PAUSED, so nothing acts",
        ),
    ],
)
def test_where_and_how_is_said_before_a_change(
    policy: dict[str, Any], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = deployment()
    found.runtime.policies.policy = Policy.model_validate(policy)  # type: ignore[attr-defined]
    found.announce()
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"stack x, account 123456789012, us-east-1, as ana; {told}\n"


# --- deployments ------------------------------------------------------------------------------------------


def described(**outputs: str) -> dict[str, Any]:
    parameters = {"QueueArns": QUEUE, "ClassicQueueArns": ""}
    return {
        "StackName": "warden",
        "Outputs": [{"OutputKey": key, "OutputValue": value} for key, value in outputs.items()],
        "Parameters": [{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
    }


OUTPUTS = {
    "StateTable": "s",
    "AuditTable": "a",
    "WishesQueueUrl": "w",
    "NoticesQueueUrl": "n",
    "EventsDeadLettersUrl": "d",
}


def test_a_stack_tells_the_settings_of_its_functions() -> None:
    assert stack_variables(described(**OUTPUTS)) == {
        "STATE_TABLE": "s",
        "AUDIT_TABLE": "a",
        "WISHES_QUEUE_URL": "w",
        "NOTICES_QUEUE_URL": "n",
        "EVENTS_DEAD_LETTERS_URL": "d",
        "QUEUE_ARNS": QUEUE,
        "CLASSIC_QUEUE_ARNS": "",
    }


def test_another_stack_is_refused_by_name() -> None:
    with pytest.raises(
        BadInput, match=r"warden: not a stack of Sharewarden, it lacks AuditTable, EventsDead"
    ):
        stack_variables(described(StateTable="s"))


def test_the_template_has_the_outputs_and_parameters_that_the_command_reads() -> None:
    template = load_template()
    stack = {
        "Outputs": [{"OutputKey": key, "OutputValue": key} for key in template["Outputs"]],
        "Parameters": [{"ParameterKey": key, "ParameterValue": key} for key in template["Parameters"]],
    }
    assert stack_variables(stack)["QUEUE_ARNS"] == "QueueArns"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "give either --stack NAME or --local"),
        (["--local", "--stack", "x"], "give either --stack NAME or --local"),
        (["--local"], f"{LOCAL_FILE}: no local stack runs here"),
    ],
)
def test_a_command_needs_one_deployment(
    args: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("audit", "list", "--share", "background", *args) == 2
    assert capsys.readouterr().err.startswith(message)


def test_a_broken_local_file_is_no_local_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    LOCAL_FILE.parent.mkdir()
    LOCAL_FILE.write_text("{")
    assert run("unbump", ID, "--reason", "x", "--local") == 2
    assert "no local stack runs here" in capsys.readouterr().err


def test_aws_that_cannot_be_asked_is_code_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unreachable(stack: str | None, *, local: bool) -> Deployment:
        raise Unavailable("GetCallerIdentity: NoCredentialsError: Unable to locate credentials")

    monkeypatch.setattr("sharewarden_tools.cli.deployment.open_deployment", unreachable)
    assert run("audit", "list", "--share", "x", "--stack", "warden") == 3
    assert capsys.readouterr().err.startswith("AWS could not be asked: GetCallerIdentity")


@pytest.mark.parametrize(
    "args",
    [["bump"], ["bump", ID], ["bump", ID, "--reason", "x", "--to", "10000"], ["demo", "--seed", "x"], ["no"]],
)
def test_a_wrong_option_is_code_2(args: list[str]) -> None:
    assert run(*args) == 2


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert re.fullmatch(r"sharewarden \d+\.\d+\.\d+\n", capsys.readouterr().out)


def test_help_names_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("bump", "--help") == 0
    assert "Exit codes" in capsys.readouterr().out
