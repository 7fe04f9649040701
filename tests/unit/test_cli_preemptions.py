"""``sharewarden preemptions``: what they cost, read back from the audit in memory."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sharewarden.domain.audit import AuditFact
from sharewarden.domain.gaps import is_preemption
from sharewarden.domain.policy import Policy
from sharewarden.domain.stored import DAY, HOUR
from sharewarden_tools.cli.deployment import Deployment
from sharewarden_tools.cli.output import BadInput
from sharewarden_tools.cli.preemptions import show_preemptions

from tests.simulation.world import NOW, QUEUE, world

BASE = {"at": NOW - HOUR, "queue": QUEUE, "share": "background", "job": "j"}


def fact(kind: str, attempt: str, figures: dict[str, Any], **members: Any) -> AuditFact:
    told = {"key": f"{kind}#j#{attempt}", "kind": kind, "figures": figures | {"attempt": attempt}}
    return AuditFact(**BASE | told | members)


def happened(attempt: str, kind: str = "cross-share", **members: Any) -> AuditFact:
    return fact("preemption", attempt, {"kind": kind}, **members)


def measured(attempt: str, lost: float | None = 3600, **update: Any) -> AuditFact:
    members = {name: update.pop(name) for name in ("share", "at") if name in update}
    figures = {"kind": "unknown", "seconds": 1800, "gpu_seconds": 7200, "held_gpu_seconds": 720}
    return fact("preemption-measure", attempt, figures | {"lost_gpu_seconds": lost} | update, **members)


def named(attempt: str, kind: str, by: str | None, confidence: str | None, waited: float | None) -> AuditFact:
    job = None if by is None else f"job-of-{by}"
    told = {"kind": kind, "preemptor": job, "preemptor_share": by, "confidence": confidence}
    return fact("preemptor", attempt, told | {"waited_seconds": waited})


def resumed(attempt: str, pause: float | None, subject: str = "") -> AuditFact:
    return fact("resume", attempt, {"pause_seconds": pause}, key=f"resume#{attempt}#{subject}")


def gap(number: str) -> AuditFact:
    return AuditFact(key=f"gap#j#{number}", kind="gap", **BASE)


STORY = (
    *(happened("a"), measured("a"), named("a", "cross-share", "medium", "high", 300), resumed("a", 600)),
    *(happened("b"), measured("b", None), named("b", "lowered-limit", None, "high", None)),
    *(happened("c", "unknown"), measured("c"), named("c", "in-share", "background", "medium", None)),
    *(happened("d", "in-share"), measured("d", gpu_seconds=None, held_gpu_seconds=None, lost=None)),
    *(
        happened("e"),
        named("e", "cross-share", "urgent", "low", 900),
        resumed("e", None),
        resumed("e", 60, "2"),
    ),
    measured("f", None, seconds=None, gpu_seconds=None, held_gpu_seconds=None),
    *(gap("preemption-1"), gap("preemption-2"), gap("vanished")),
)
OTHER = (happened("g", share="urgent"), measured("g", 360, share="urgent"))
OLD = (happened("h", at=NOW - 8 * DAY), measured("h", at=NOW - 8 * DAY))


def deployment(*facts: AuditFact) -> Deployment:
    one = world()
    one.ledger.commit([], facts, NOW)
    one.policies.policy = Policy.model_validate(
        {"queues": {"ml-train-qm": {"shares": {"urgent": {}, "background": {}}}}}
    )
    nobody: Any = None
    return Deployment("here", "1", "r", "ana", one.runtime, nobody)


def as_json(capsys: pytest.CaptureFixture[str], *facts: AuditFact, **options: Any) -> list[dict[str, Any]]:
    asked = {"share": None, "since": "7d"} | options
    assert show_preemptions(deployment(*facts), as_json=True, **asked) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["since"], told["until"]) == (NOW - 7 * DAY, NOW)
    return list(told["preemptions"])


def test_a_share_s_preemptions_are_added_up(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = as_json(capsys, *STORY, *OLD)
    assert row == {
        "queue": "ml-train-qm",
        "share": "background",
        "preemptions": 6,
        "causes": {"cross-share": 2, "in-share": 2, "lowered-limit": 1, "unknown": 1},
        "lost_gpu_hours": 2.0,
        "lost_at_most_gpu_hours": 4.0,
        "held_gpu_hours": 0.6,
        "bounded": 1,
        "unsized": 1,
        "unmeasured": 2,
        "without_details": 2,
        "pause": 330,
        "owners_wait": 600,
        "by": {"medium": 1, "background": 1},
    }


def test_shares_come_apart_and_together(capsys: pytest.CaptureFixture[str]) -> None:
    rows = as_json(capsys, *STORY, *OTHER)
    assert [(row["share"], row["preemptions"], row["lost_gpu_hours"]) for row in rows] == [
        ("background", 6, 2.0),
        ("urgent", 1, 0.1),
        (None, 7, 2.1),
    ]
    assert [row["without_details"] for row in rows] == [2, 0, 2]
    (one,) = as_json(capsys, *STORY, *OTHER, share="urgent")
    assert one["share"] == "urgent"


def test_a_job_whose_share_is_not_known_has_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    nowhere = deployment(happened("x", share=None), *OTHER)
    assert show_preemptions(nowhere, share=None, since="7d", as_json=False) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row.split("  ")[1] for row in rows] == ["(no share)", "urgent", "in all"]


def test_people_get_a_table_and_what_it_leaves_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert show_preemptions(deployment(*STORY, *OTHER), share=None, since="7d", as_json=False) == 0
    told = capsys.readouterr()
    assert told.out.splitlines() == [
        "preemptions on ml-train-qm since 2026-09-07T08:00:00Z; lost and held in GPU-hours",
        "  share             number  cross-share  in-share  lowered-limit  unknown     lost  at most     held"
        "        pause  owner's wait",
        "  background             6            2         2              1        1     2.00     4.00     0.60"
        "   5 min 30 s        10 min  by medium 1, background 1",
        "  urgent                 1            1         0              0        0     0.10     0.10     0.20"
        "            -             -",
        "  in all                 7            3         2              1        1     2.10     4.10     0.80"
        "   5 min 30 s        10 min  by medium 1, background 1",
    ]
    assert told.err.splitlines() == [
        "background: what 1 had saved is not known: 'at most' has all of the attempt",
        "background: 1 on instances whose GPUs are not known are in no GPU-hours",
        "background: 2 have not been measured, or their stop was never told",
        "background: 2 more are known by number alone",
    ]


def test_none_are_told_as_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert show_preemptions(deployment(*OLD), share=None, since="7d", as_json=False) == 0
    assert capsys.readouterr().err == "no preemption since 2026-09-07T08:00:00Z\n"
    assert show_preemptions(deployment(), share="nlp", since="7d", as_json=False) == 0
    assert capsys.readouterr().err == "no preemption of share nlp since 2026-09-07T08:00:00Z\n"


def test_a_time_that_is_none_is_refused() -> None:
    with pytest.raises(BadInput):
        show_preemptions(deployment(), share=None, since="lately", as_json=False)


def test_a_gap_of_an_attempt_is_no_preemption_known_by_number_alone() -> None:
    assert is_preemption(gap("preemption-3"))
    assert not is_preemption(gap("arn:aws:sagemaker:us-east-1:1:training-job/AWSBatch-preemption-3"))
    assert not is_preemption(happened("preemption-3"))
