"""``sharewarden audit lineage JOB``: one list over the jobs that replace each other."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from sharewarden.domain.audit import AuditFact
from sharewarden_tools.cli.audit import list_lineage
from sharewarden_tools.memory import MemoryLedger

NOW = 1_789_372_800_000
ARN = "arn:aws:batch:us-east-1:123456789012:service-job"


def fact(job: str, kind: str, at: int, lineage: str | None, **figures: object) -> AuditFact:
    return AuditFact(
        key=f"{kind}#{job}",
        kind=kind,  # type: ignore[arg-type]
        at=NOW + at,
        job=job,
        job_name=job,
        lineage=lineage,
        figures=figures,
    )


def chain(named: str | None) -> list[AuditFact]:
    """``a`` was submitted again as ``b``, and ``b`` as ``c``; people called the lineage so, or did not."""
    called = named or "a"
    return [
        fact("a", "preemption", 1, named),
        fact("a", "resubmitted", 2, called, next_job=f"{ARN}/b"),
        fact("b", "preemption", 3, called),
        fact("b", "resubmitted", 4, called, next_job=f"{ARN}/c"),
        fact("c", "preemption", 5, called),
        fact("d", "preemption", 6, called),
    ]


def listed(facts: list[AuditFact], capsys: pytest.CaptureFixture[str], job: str) -> list[str]:
    ledger = MemoryLedger()
    ledger.commit([], facts, NOW)
    deployment: Any = SimpleNamespace(runtime=SimpleNamespace(audit=ledger), job=lambda name: f"{ARN}/{name}")
    assert list_lineage(deployment, job, as_json=True) == 0
    return [f"{row['job']} {row['kind']}" for row in json.loads(capsys.readouterr().out)]


ALL = ["a preemption", "a resubmitted", "b preemption", "b resubmitted", "c preemption"]


@pytest.mark.parametrize("job", ["a", "b", "c"])
def test_every_job_of_a_lineage_leads_to_all_of_it(job: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert listed(chain(None), capsys, job) == ALL


@pytest.mark.parametrize(("job", "rows"), [("a", ALL), ("b", ALL[2:]), ("c", ALL[4:])])
def test_of_a_lineage_that_people_named_it_leads_forward(
    job: str, rows: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert listed(chain("vision"), capsys, job) == rows


def test_a_job_of_no_lineage_is_listed_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert listed([fact("a", "preemption", 1, None)], capsys, "a") == ["a preemption"]
    assert listed(chain(None), capsys, "d") == ["d preemption"]


def test_it_is_told_where_there_is_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    deployment: Any = SimpleNamespace(runtime=SimpleNamespace(audit=MemoryLedger()), job=str)
    assert list_lineage(deployment, "x", as_json=False) == 0
    assert capsys.readouterr() == ("", "no records of job x\n")
