"""What other people wrote cannot make a line of ours, nor command the terminal."""

import io
import json
from collections.abc import Callable

import pytest
from rich.console import Console
from sharewarden.domain.audit import AuditRecord
from sharewarden.ports import Unavailable
from sharewarden.usecases.bump import Refused
from sharewarden_tools.cli import main
from sharewarden_tools.cli.output import BadInput, note, plain, print_json, record_line, say, timeline_text
from sharewarden_tools.stories.timeline import Line

HOSTILE = "ok\r\n2026-11-30T19:30:00Z  job-ended\x1b[31m\x9b2J\x07\u202e\u2028\x00\ud800"
FORGED = AuditRecord(
    key="k", kind="unbump", at=0, recorded_at=0, job_name=HOSTILE, actor=f"arn:{HOSTILE}", reason=HOSTILE
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("deadline on Friday, für Ångström 日本 🎉", "deadline on Friday, für Ångström 日本 🎉"),
        ("a\nb", r"a\nb"),
        ("a\tb\r", r"a\tb\r"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\x9b2J\x7f", r"\x9b2J\x7f"),
        ("\u202eright to left\u2028", r"\u202eright to left\u2028"),
        ("\ud800", r"\ud800"),
    ],
)
def test_what_cannot_be_printed_is_spelled_out(text: str, shown: str) -> None:
    assert plain(text) == shown


def _shown(line: Line) -> None:
    out = io.StringIO()
    Console(file=out, soft_wrap=True).print(timeline_text(line))
    print(out.getvalue(), end="")


@pytest.mark.parametrize(
    "show",
    [
        lambda: say(HOSTILE),
        lambda: say(record_line(FORGED, "now")),
        lambda: _shown(Line(0, HOSTILE, HOSTILE, "act")),
    ],
)
def test_a_line_stays_one_line(show: Callable[[], None], capsys: pytest.CaptureFixture[str]) -> None:
    show()
    out = capsys.readouterr().out
    assert out.endswith("\n")
    assert out[:-1].isprintable()


def test_a_note_is_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    note("one\n\x1b[31mtwo", "three")
    assert capsys.readouterr().err == "one\\n\\x1b[31mtwo\nthree\n"


@pytest.mark.parametrize("error", [Refused(HOSTILE), Unavailable(HOSTILE), BadInput(HOSTILE)])
def test_how_a_command_ends_is_one_line(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(stack: str | None, *, local: bool) -> None:
        raise error

    monkeypatch.setattr("sharewarden_tools.cli.deployment.open_deployment", failing)
    with pytest.raises(SystemExit):
        main(["audit", "list", "--share", "x", "--local"])
    err = capsys.readouterr().err
    assert err.endswith("\n")
    assert err[:-1].isprintable()


def test_json_keeps_the_value_and_commands_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"reason": HOSTILE, "who": "Ångström 🎉"})
    out = capsys.readouterr().out
    assert json.loads(out) == {"reason": HOSTILE, "who": "Ångström 🎉"}
    assert out.replace("\n", "").isprintable()
    assert "Ångström 🎉" in out
