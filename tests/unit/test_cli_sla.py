"""``sharewarden sla forecast``: the text, the JSON, and what is refused."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sharewarden.usecases.forecast import forecast
from sharewarden_tools.cli import main
from sharewarden_tools.cli.deployment import Deployment
from sharewarden_tools.cli.output import BadInput
from sharewarden_tools.cli.sla import lines, show_forecast
from sharewarden_tools.policy.file import check_document
from sharewarden_tools.policy.yaml_text import parse

from tests.simulation.world import NOW, QUEUE, World

from .test_usecases_forecast import MINUTE, place, record_of, shown, waits

HEAD = ["forecast only: this version carries out no step of a ladder"]


def run(made: World, queue: str | None = None, share: str | None = None, *, as_json: bool = False) -> int:
    nobody: Any = None
    deployment = Deployment("here", "1", "r", "ana", made.runtime, nobody)
    return show_forecast(deployment, queue, share, as_json=as_json)


def test_a_job_with_its_time_its_next_step_and_whom_it_may_push_out() -> None:
    found = shown(waits(), waits("other", None))
    assert [*lines([found])] == [
        *HEAD,
        f"ml-train-qm at 2026-09-14T08:00:00Z, policy {found.policy}",
        "mine (vision, team t): SLA gold, waits 1 h of 1 h 20 min (75%) for a start",
        "  due       2026-09-14T08:20:00Z, for its first start",
        "  steps     step 1 (50%) at 2026-09-14T07:40:00Z: +100",
        "  next      step 2 (90%) at 2026-09-14T08:12:00Z: +399",
        "  step 2    a bump to 400 helps now: it may push out jobs of its share that have a lower priority",
        "  may lose  holder (vision, priority 50): 2 instances, 2 GPUs,"
        " 20 min of training without a known save, SLA silver",
        "1 waiting job without an SLA",
    ]


def test_a_job_that_is_late() -> None:
    shown_lines = [*lines([shown(waits(), at=21)])]
    assert shown_lines[2].endswith("waits 1 h 21 min of 1 h 20 min (101%) for a start, LATE by 1 min")
    assert shown_lines[4:6] == [
        "  steps     step 3 (100%) at 2026-09-14T08:20:00Z: the team is told",
        "  next      no step",
    ]
    late = waits(created_at=NOW - 90 * MINUTE)
    found = shown(late, records={"mine": record_of(late, adopted=True, adopted_at=NOW)})
    assert [*lines([found])][4:] == [
        "  next      none: it was late already when Sharewarden first saw it: listed, not escalated",
        "0 waiting jobs without an SLA",
    ]


@pytest.mark.parametrize(
    ("deadline", "told"),
    [
        (
            "2026-09-14T12:00:00Z",
            "1 h left if it started now: 3 h to train until 2026-09-14T12:00:00Z",
        ),
        ("2026-09-14T11:00:00Z", "0 s left if it started now: 3 h to train until 2026-09-14T11:00:00Z"),
        (
            "2026-09-14T10:30:00Z",
            "30 min too late if it started now: 3 h to train until 2026-09-14T10:30:00Z",
        ),
    ],
)
def test_a_deadline(deadline: str, told: str) -> None:
    tags = (("sla", "nightly"), ("deadline", deadline), ("expected-runtime", "3h"))
    assert f"  slack     {told}" in lines([shown(waits(tags=tags))])


def test_what_was_without_time_from_the_beginning_or_is_ignored() -> None:
    tight = (("sla", "nightly"), ("deadline", "2026-09-14T08:00:00Z"), ("expected-runtime", "3h"))
    odd = (("sla", "gold"), ("deadline", "2026-09-14"))
    told = [*lines([shown(waits("a", tags=tight), waits("b", tags=odd))])]
    assert told[2].endswith("waits 1 h; there was no time to wait from the beginning")
    assert "  due       2026-09-14T05:00:00Z, for its deadline" in told
    assert (
        "  ignored   deadline is not a time with an offset, such as 2026-10-01T18:00:00+02:00 (RFC 3339)"
        in told
    )


def test_law_02_what_cannot_be_told_or_read_is_said() -> None:
    made = place(waits("a", "bronze", share=None))
    made.batch.tell(waits("moved", queue="another"))
    made.ledger.commit([record_of(waits("moved"))], [], NOW)
    assert [*lines([forecast(made.runtime, QUEUE)])][2:] == [
        "a (no share): its SLA cannot be told: the policy has no SLA class bronze",
        "not all could be read: moved changed its state while the jobs were listed",
        "0 waiting jobs without an SLA",
    ]


def test_the_json_says_that_nothing_is_carried_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(place(waits(), waits("a", "bronze")), as_json=True) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["carried_out"] is False
    (queue,) = document["queues"]
    (job,) = queue["jobs"]
    assert (job["name"], job["used"], job["next"]["at"]) == ("mine", 75, NOW + 12 * MINUTE)
    assert (job["sla"]["due"], job["help"]["kind"]) == (NOW + 20 * MINUTE, "yes-now")
    assert queue["untold"][0]["why"] == "the policy has no SLA class bronze"


@pytest.mark.parametrize("queue", [None, "ml-train-qm", QUEUE])
@pytest.mark.parametrize(("share", "jobs"), [(None, 2), ("vision", 1), ("nlp", 1)])
def test_a_queue_and_a_share_can_be_picked(
    queue: str | None, share: str | None, jobs: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(place(waits("a"), waits("b", share="nlp")), queue, share) == 0
    out = capsys.readouterr().out
    assert out.count("SLA gold") == jobs
    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("queue", "share", "told"),
    [
        (
            "ml-train",
            None,
            "--queue: 'ml-train' is no queue with shares of this deployment: did you mean 'ml-train-qm'?",
        ),
        (None, "visoin", "--share: no quota share 'visoin' there: did you mean 'vision'?"),
    ],
)
def test_names_that_there_are_not(queue: str | None, share: str | None, told: str) -> None:
    with pytest.raises(BadInput) as caught:
        run(place(), queue, share)
    assert caught.value.lines == (told,)


def test_a_classic_queue_has_no_shares_to_show(capsys: pytest.CaptureFixture[str]) -> None:
    made = place()
    classic = replace(made.runtime, classic_queues=made.runtime.queues)
    made = replace(made, runtime=classic)
    with pytest.raises(
        BadInput, match="'ml-train-qm' is no queue with shares of this deployment: there is none"
    ):
        run(made, "ml-train-qm")
    capsys.readouterr()
    assert run(made) == 0
    assert capsys.readouterr().out.splitlines() == HEAD


def test_the_command_asks_for_a_deployment(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["sla", "forecast"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "give either --stack NAME or --local\n"


def test_the_policy_in_the_document_loads_without_a_word() -> None:
    text = (Path(__file__).parents[2] / "docs" / "sla.md").read_text()
    (policy,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert check_document(parse(policy.encode())).problems == ()
