"""The example script against the lab: what is refused gets one line."""

import runpy

import pytest
from sharewarden_tools.lab import Lab, VirtualClock
from sharewarden_tools.lab.server import LabServer
from sharewarden_tools.local.environment import aws_environment, credentials
from sharewarden_tools.template import TEMPLATE

SCRIPT = TEMPLATE.parent / "examples" / "submit_with_boto3.py"


def test_a_refusal_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = VirtualClock(0)
    monkeypatch.setattr("sys.argv", [str(SCRIPT), "my-run", "--queue", "nowhere"])
    with (
        LabServer(Lab(clock=clock), clock) as server,
        aws_environment({**server.environment(), **credentials("ana", "us-east-1")}),
        pytest.raises(SystemExit, match=r"^not submitted: .*nowhere") as ended,
    ):
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert "\n" not in str(ended.value.code)
