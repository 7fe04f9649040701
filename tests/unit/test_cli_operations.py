"""What the operator's commands ask, how they tell how far they are, and how they open a deployed stack."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws
from sharewarden_tools.cli import main
from sharewarden_tools.cli.confirm import confirmed
from sharewarden_tools.cli.output import BadInput
from sharewarden_tools.operations.progress import LINE_EVERY, progress
from sharewarden_tools.operations.site import open_site

QUEUE = "arn:aws:batch:us-east-1:123456789012:job-queue/ml-train-qm"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("typed", "yes", "answer"),
    [
        (Terminal("y\n"), False, True),
        (Terminal("n\n"), False, False),
        (Terminal("\n"), False, False),
        (Terminal(""), True, True),
        (io.StringIO("y\n"), False, False),
        (io.StringIO(""), True, True),
        (None, False, False),  # as ``<&-`` leaves it
    ],
)
def test_a_person_is_asked_and_nobody_means_no(
    monkeypatch: pytest.MonkeyPatch, typed: io.StringIO | None, yes: bool, answer: bool
) -> None:
    monkeypatch.setattr(sys, "stdin", typed)
    assert confirmed("send again 2?", yes=yes) is answer


def test_without_a_terminal_a_line_comes_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter([0.0, 1.0, LINE_EVERY, LINE_EVERY, LINE_EVERY + 1])
    with progress(lambda: next(times)) as tell:
        for text in ("too early", "a line", "too soon"):
            tell(text)
    out, err = capsys.readouterr()
    assert (out, err) == ("", "a line\n")


def test_on_a_terminal_one_line_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    with progress() as tell:
        tell("half way")
    assert "half way" in shown.getvalue()


@pytest.fixture
def stack() -> Iterator[None]:
    """A stack that CloudFormation knows, with the outputs that the commands need."""
    names = (
        "StateTable",
        "AuditTable",
        "WishesQueueUrl",
        "NoticesQueueUrl",
        "EventsDeadLettersUrl",
        "EventsQueueUrl",
    )
    body: dict[str, Any] = {
        "Parameters": {
            "QueueArns": {"Type": "String"},
            "ClassicQueueArns": {"Type": "String", "Default": ""},
        },
        "Resources": {"Q": {"Type": "AWS::SQS::Queue", "Properties": {}}},
        "Outputs": {name: {"Value": f"the-{name}"} for name in names},
    }
    with mock_aws():
        make("s", body)
        del body["Outputs"]["EventsQueueUrl"]
        make("old", body)
        yield


def make(name: str, body: dict[str, Any]) -> None:
    boto3.client("cloudformation").create_stack(
        StackName=name,
        TemplateBody=json.dumps(body),
        Parameters=[{"ParameterKey": "QueueArns", "ParameterValue": QUEUE}],
    )


@pytest.mark.usefixtures("stack")
def test_a_deployed_stack_is_opened_by_its_name() -> None:
    site = open_site("s", local=False)
    assert site.runtime.queues == {QUEUE}
    assert site.queue_url("EventsQueue") == "the-EventsQueueUrl"
    assert site.resources["Q"].startswith("https://")
    assert site.parameters["QueueArns"] == QUEUE
    assert site.variables["STATE_TABLE"] == "the-StateTable"
    with pytest.raises(BadInput, match="the stack has no EventsQueueUrl: another version made it"):
        open_site("old", local=False).queue_url("EventsQueue")
    with pytest.raises(BadInput, match="no such CloudFormation stack"):
        open_site("t", local=False)


@pytest.mark.usefixtures("stack")
@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("doctor", "--stack", "s"), 1),
        (("redrive", "--stack", "s"), 3),
        (("drain", "--stack", "s"), 3),
        (("doctor", "--stack", "none"), 2),
        (("doctor",), 2),
        (("doctor", "--stack", "s", "--local"), 2),
    ],
)
def test_exit_codes(args: tuple[str, ...], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    """The stacks have neither tables nor rules: doctor says so, the others cannot ask."""
    with pytest.raises(SystemExit) as ended:
        main(args)
    assert ended.value.code == code
    assert "Traceback" not in capsys.readouterr().err
