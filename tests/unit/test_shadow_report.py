"""What guardrails would have done, read back from the audit in memory."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sharewarden.domain.audit import AuditFact
from sharewarden.domain.observation import ShareDescription
from sharewarden.domain.policy import Policy
from sharewarden.domain.share import ShareRecord
from sharewarden.domain.stored import DAY, HOUR
from sharewarden_tools.cli.deployment import Deployment
from sharewarden_tools.cli.output import BadInput
from sharewarden_tools.cli.shadow import Asked, report

from tests.simulation.world import NOW, QUEUE, World, world

OTHER = QUEUE.replace("ml-train-qm", "other")
WEEK = Asked("7d")


def finding(job: str, label: str = "max-instances-per-job", **members: Any) -> AuditFact:
    action = members.pop("action", "lower-priority")
    key = f"finding#{job}#{label}#f1#{members.pop('subject', '')}"
    base = {
        "key": key,
        "kind": "finding",
        "at": NOW - HOUR,
        "queue": QUEUE,
        "share": "background",
        "team": "research",
        "job": job,
        "job_name": f"train-{job}",
        "actor": f"guardrail:{label}",
        "mode": "shadow",
        "reason": "asks for 8 instances, 4 are allowed",
        "figures": {"rule": "max-instances-per-job", "label": label, "action": action},
        "policy": "0123456789abcdef",
    }
    return AuditFact(**base | members)


def cleared(found: AuditFact, at: int) -> AuditFact:
    figures = found.figures | {"finding": found.key}
    update = {"key": f"finding-cleared#{found.key}", "kind": "finding-cleared", "at": at, "figures": figures}
    return found.model_copy(update=update)


def pool(*facts: AuditFact) -> World:
    """A pool whose shares are known by record (background), by policy (urgent), or not at all."""
    one = world()
    arn = f"{QUEUE}/quota-share/background"
    description = ShareDescription(arn=arn, name="background", queue=QUEUE, limits=(), strategy="LEND")
    one.ledger.commit([ShareRecord(arn=arn, queue=QUEUE, description=description)], facts, NOW)
    one.policies.policy = Policy.model_validate({"queues": {"ml-train-qm": {"shares": {"urgent": {}}}}})
    return one


def deployment(one: World) -> Deployment:
    return Deployment("local stack", "123456789012", "us-east-1", "ana", one.runtime, one.batch)


def listed(
    one: World, capsys: pytest.CaptureFixture[str], asked: Asked = WEEK
) -> list[tuple[str, str, str, list[str]]]:
    assert report(deployment(one), asked, as_json=True) == 0
    return [
        (group["label"], group["action"], group["mode"], [found["job"] for found in group["findings"]])
        for group in json.loads(capsys.readouterr().out)
    ]


def test_findings_are_told_by_guardrail_action_and_mode(capsys: pytest.CaptureFixture[str]) -> None:
    one = pool(
        finding("b", at=NOW - 2),
        finding("a", at=NOW - 3),
        finding("c", mode="enforce"),
        finding("d", action="notify"),
        finding("e", label="another"),
    )
    assert listed(one, capsys) == [
        ("another", "lower-priority", "shadow", ["e"]),
        ("max-instances-per-job", "lower-priority", "shadow", ["a", "b"]),
        ("max-instances-per-job", "notify", "shadow", ["d"]),
        ("max-instances-per-job", "lower-priority", "enforce", ["c"]),
    ]


def test_findings_of_every_share_and_of_none_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    by_share = {share: finding(f"in-{share}", share=share) for share in ("background", "urgent", "", None)}
    elsewhere = [finding("elsewhere", queue=OTHER), finding("nowhere", queue=None)]
    one = pool(*by_share.values(), *elsewhere)
    ((*_, jobs),) = listed(one, capsys)
    assert sorted(jobs) == ["in-", "in-None", "in-background", "in-urgent"]
    for share in ("background", "urgent"):
        ((*_, jobs),) = listed(one, capsys, Asked("7d", None, share))
        assert jobs == [f"in-{share}"]


def test_findings_in_a_share_that_was_deleted_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    one = pool(finding("1", share="gone"))
    record = ShareRecord(arn=f"{QUEUE}/quota-share/gone", queue=QUEUE, read_at=NOW)
    assert record.deleted
    one.ledger.commit([record], [], NOW)
    assert [jobs for *_, jobs in listed(one, capsys)] == [["1"]]
    assert record.arn not in {share.arn for share in one.ledger.open_items(ShareRecord, QUEUE)}


def test_a_finding_without_its_figures_is_shown_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert listed(pool(finding("1", figures={})), capsys) == [("unknown", "unknown", "shadow", ["1"])]


@pytest.mark.parametrize(
    ("since", "jobs"), [("1h", ["new"]), ("2d", ["old", "new"]), ("2026-09-14T07:59:59Z", [])]
)
def test_only_those_since_then(since: str, jobs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    one = pool(finding("old", at=NOW - DAY), finding("new", at=NOW - HOUR))
    found = [job for *_, group in listed(one, capsys, Asked(since)) for job in group]
    assert found == jobs


def test_the_lines_say_which_jobs_when_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = finding("a", at=NOW - HOUR), finding("b", at=NOW - 2000, team=None, job_name="x\x1b[31m")
    one = pool(first, second, cleared(first, NOW - 1000), finding("c", mode="enforce", action="terminate"))
    assert report(deployment(one), WEEK, as_json=False) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "max-instances-per-job: found 2 times, lower-priority would have been asked for (shadow)",
        "  2026-09-14T07:00:00Z  train-a  a  research  asks for 8 instances, 4 are allowed"
        " (until 2026-09-14T07:59:59Z)",
        r"  2026-09-14T07:59:58Z  x\x1b[31m  b  (no team)  asks for 8 instances, 4 are allowed",
        "max-instances-per-job: found once, terminate asked for (enforce);"
        " the audit of a job says what was done",
        "  2026-09-14T07:00:00Z  train-c  c  research  asks for 8 instances, 4 are allowed",
    ]
    assert err == (
        "local stack, account 123456789012, us-east-1, as ana; guardrails since 2026-09-07T08:00:00Z\n"
    )


@pytest.mark.parametrize(
    ("guardrails", "told"),
    [
        ([], "has no guardrail for these queues"),
        ([{"rule": "max-instances-per-job", "limit": 4, "queues": ["other"]}], "has no guardrail for these"),
        ([{"rule": "max-instances-per-job", "limit": 4}], "has max-instances-per-job"),
    ],
)
def test_nothing_found_says_what_was_looked_for(
    guardrails: list[Any], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    one = pool()
    one.policies.policy = Policy.model_validate({"guardrails": guardrails})
    assert report(deployment(one), WEEK, as_json=False) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert told in err


def test_queues_by_name_or_arn_and_none_that_is_not_looked_after(capsys: pytest.CaptureFixture[str]) -> None:
    one = pool(finding("a"))
    for name in ("ml-train-qm", QUEUE):
        assert listed(one, capsys, Asked("7d", name)) != []
    with pytest.raises(BadInput, match="--queue: other is not looked after; there is ml-train-qm"):
        report(deployment(one), Asked("7d", "other"), as_json=False)
    with pytest.raises(BadInput, match="--since"):
        report(deployment(one), Asked("yesterday"), as_json=False)
