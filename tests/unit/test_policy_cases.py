"""Policy tests run through the deployed decision, and say how the outcome differs from what is expected."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sharewarden_tools.cli import main
from sharewarden_tools.policy.cases import NOON, CaseFile
from sharewarden_tools.policy.file import EXAMPLE, check_document
from sharewarden_tools.policy.reading import read
from sharewarden_tools.policy.running import misnamed, run_cases
from sharewarden_tools.policy.yaml_text import parse

POLICY = """
queues:
  ml:
    mode: enforce
    shares: {background: {team: research}, urgent: {team: serving, protected: true}}
teams: {research: {sla: [silver]}, serving: {}}
sla: {silver: {start_within: 1h}, gold: {start_within: 5m}}
guardrails:
- {rule: max-instances-per-job, limit: 4, action: terminate}
- {rule: sla-not-granted, mode: shadow, action: lower-priority}
- {rule: max-queued-jobs-per-team, limit: 2, teams: [research], action: notify}
- {rule: cannot-fit}
- {rule: share-changed-by-hand, action: notify}
- {rule: training-outside-queue}
- {name: giants-by-night, when: job.instances >= 2 && now.getHours() < 6}
"""
SHARE = "share: {units: {ml.g5.xlarge: {limit: 2, others: 0}}}"
EIGHT = "{share: background, instances: 8}"


def differences(case: str, policy: str = POLICY) -> list[str]:
    checked = check_document(parse(policy.encode()))
    assert checked.policy is not None, checked.problems
    document = parse(f"cases:\n- name: a case\n  {case}".encode())
    cases, problems = read(document, CaseFile)
    assert cases is not None, problems
    assert not [*misnamed(checked.policy, cases, document)]
    (result,) = run_cases(checked.policy, cases)
    return list(result.differences)


@pytest.mark.parametrize(
    "case",
    [
        f"job: {EIGHT}\n  expect: [{{finding: max-instances-per-job}}]",
        f"job: {EIGHT}\n  expect: [{{finding: max-instances-per-job, action: terminate, mode: enforce}}]",
        f"job: {EIGHT}\n  expect: [{{finding: max-instances-per-job, text: asks for 8 instances}}]",
        # a protected share's jobs are told of
        "job: {share: urgent, instances: 8}\n  expect: [{finding: max-instances-per-job, action: notify}]",
        "job: {share: background, instances: 4}\n  expect: []\n  holds: [max-instances-per-job]",
        "job: {share: background}\n  expect: []\n  undecided: [max-instances-per-job, sla-not-granted]",
        # tags are read, the team comes from the share, the class from the policy
        "job: {share: background, tags: {sla: gold}}\n  expect: [{finding: sla-not-granted, mode: shadow}]",
        "job: {share: background, tags: {sla: silver}}\n  expect: []\n  holds: [sla-not-granted]",
        # what only a look at the queue shows
        "job: {share: background}\n  team: {queued_up_to_job: 3}\n"
        "  expect: [{finding: max-queued-jobs-per-team, text: team research}]",
        "job: {share: background}\n  expect: []\n  undecided: [max-queued-jobs-per-team]",
        f"job: {{share: background, instance_type: ml.g5.xlarge, instances: 3}}\n  {SHARE}\n"
        "  expect: [{finding: cannot-fit, text: share background}]",
        "now: 2026-12-01T05:59:00Z\n  job: {instances: 2}\n  expect: [{finding: giants-by-night}]",
        "now: 2026-12-01T05:59:00-01:00\n  job: {instances: 2}\n  expect: []\n  holds: [giants-by-night]",
        "request: {jobName: j, jobQueue: ml, quotaShareName: background, serviceRequestPayload: "
        '"{\\"ResourceConfig\\": {\\"InstanceType\\": \\"ml.g5.xlarge\\", \\"InstanceCount\\": 9}}"}\n'
        "  expect: [{finding: max-instances-per-job, text: asks for 9}]",
        'share_change: {share: background, by: "arn:aws:iam::1:user/ana", change: "x"}\n'
        "  expect: [{finding: share-changed-by-hand, action: notify, mode: enforce, text: ana}]",
        "training: {instance_type: ml.g5.xlarge, instances: 1, pool_types: [ml.g5.xlarge]}\n"
        "  expect: [{finding: training-outside-queue, action: record}]",
        "training: {instance_type: ml.m5.xlarge, instances: 1, pool_types: [ml.g5.xlarge]}\n"
        "  expect: []\n  holds: [training-outside-queue]",
    ],
)
def test_what_is_expected_passes(case: str) -> None:
    assert differences(case) == []


@pytest.mark.parametrize(
    ("case", "told"),
    [
        (
            f"job: {EIGHT}\n  expect: []",
            "max-instances-per-job is not expected, and it fires with terminate: asks for 8 instances,",
        ),
        (
            "job: {share: background, instances: 1}\n  expect: [{finding: max-instances-per-job}]",
            "max-instances-per-job should fire, but it holds",
        ),
        (
            "job: {share: background}\n  expect: [{finding: max-instances-per-job}]",
            "max-instances-per-job should fire, but it is not decided: job.instances is not known",
        ),
        (
            "job: {share: urgent}\n  expect: [{finding: max-queued-jobs-per-team}]\n"
            "  undecided: [sla-not-granted]",
            "max-queued-jobs-per-team should fire, but it is not about this",
        ),
        (
            f"job: {EIGHT}\n  expect: [{{finding: max-instances-per-job, action: notify}}]",
            "max-instances-per-job: action should be notify, and is terminate",
        ),
        (
            "job: {share: urgent, instances: 8}\n"
            "  expect: [{finding: max-instances-per-job, action: terminate}]",
            "max-instances-per-job: action should be terminate, and is notify, since terminate may"
            " not be done here",
        ),
        (
            "job: {share: background}\n  expect: [{finding: max-queued-jobs-per-team}]",
            "max-queued-jobs-per-team should fire, but it is not decided: it takes a look at the whole queue:"
            " team is not known",
        ),
        (
            f"job: {EIGHT}\n  expect: [{{finding: max-instances-per-job, mode: shadow}}]",
            "max-instances-per-job: mode should be shadow, and is enforce",
        ),
        (
            f"job: {EIGHT}\n  expect: [{{finding: max-instances-per-job, text: nine}}]",
            "max-instances-per-job: the text should have 'nine', and is 'asks for 8",
        ),
        (
            f"job: {EIGHT}\n  expect: [{{finding: max-instances-per-job}}]\n  holds: [sla-not-granted]",
            "sla-not-granted should hold, but it is not decided",
        ),
        (
            "job: {instances: 1}\n  expect: []\n  undecided: [max-instances-per-job]",
            "max-instances-per-job should not be decidable, but it holds",
        ),
        (
            "now: 2026-12-01T05:00:00Z\n  job: {share: background}\n  expect: []",
            "nothing was decided, so this tests nothing: max-inst",
        ),
        (
            "share_change: {share: s, by: 'arn:x', change: c}\n  expect: []",
            "share-changed-by-hand is not expected, and it fires with notify",
        ),
    ],
)
def test_a_difference_is_told(case: str, told: str) -> None:
    (line,) = differences(case)
    assert line.startswith(told)


@pytest.mark.parametrize(
    ("case", "place", "told"),
    [
        ("job: {}", (2, 3), "cases[0].expect: is missing"),
        (
            "job: {instnces: 8}\n  expect: []",
            (3, 9),
            "cases[0].job.instnces: there is no key 'instnces' here:",
        ),
        ("job: {instances: '8'}\n  expect: []", (3, 20), "cases[0].job.instances: '8' is text"),
        ("job: {status: RUNING}\n  expect: []", (3, 17), "cases[0].job.status: 'RUNING' is not one of"),
        ("job: {}\n  request: {}\n  expect: []", (2, 3), "cases[0]: a case gives one of job, request,"),
        (
            "expect: []",
            (2, 3),
            "cases[0]: a case gives one of job, request, share_change, training; here is no",
        ),
        (
            "now: 2026-12-01T05:59:00\n  job: {}\n  expect: []",
            (3, 8),
            "cases[0].now: '2026-12-01T05:59:00' is ",
        ),
        ("now: 12\n  job: {}\n  expect: []", (3, 8), "cases[0].now: 12 is not a time with its offset"),
        (
            "job: {}\n  expect: [{finding: cannot-fi}]",
            (4, 22),
            "cases[0].expect[0].finding: the policy has no",
        ),
        (
            "job: {}\n  expect: []\n  holds: [x]",
            (5, 11),
            "cases[0].holds[0]: the policy has no guardrail 'x'",
        ),
        ("job: {}\n  expect: []\n  undecided: [x]", (5, 15), "cases[0].undecided[0]: the policy has no"),
        (
            "job: {}\n  expect: []\n- name: c\n  job: {}\n  expect: []",
            (5, 9),
            "cases[1].name: 'c' is the name",
        ),
        ("request: {jobName: j}\n  expect: []", None, "SubmitServiceJob: Missing required parameter"),
    ],
)
def test_a_bad_file_is_told_as_a_bad_policy_is(
    case: str, place: tuple[int, int] | None, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    cases = tmp_path / "policy.tests.yaml"
    cases.write_text(f"cases:\n- name: c\n  {case}")
    assert run("policy", "test", str(tmp_path / "policy.yaml")) == 2
    where = f"{cases}:{place[0]}:{place[1]}" if place else cases
    assert capsys.readouterr().err.startswith(f"{where}: {told}")


def run(*args: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(args)
    return int(ended.value.code or 0)


def test_the_queue_is_asked_for_where_it_is_not_clear(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY.replace("queues:\n", "queues:\n  other: {}\n"))
    cases = tmp_path / "cases.yaml"
    cases.write_text("cases:\n- {name: c, job: {instances: 1}, expect: []}")
    assert run("policy", "test", str(file), "--cases", str(cases)) == 2
    assert "the policy has 2 queues: write which one" in capsys.readouterr().err
    cases.write_text("cases:\n- {name: c, job: {instances: 1, queue: other}, expect: []}")
    assert run("policy", "test", str(file), "--cases", str(cases)) == 0


def test_the_examples_cases_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("policy", "test", str(EXAMPLE)) == 0
    assert "9 of 9 cases pass" in capsys.readouterr().out
    assert run("policy", "test", str(EXAMPLE), "--json") == 0
    assert all(case["passed"] for case in json.loads(capsys.readouterr().out)["cases"])


def test_a_case_that_fails_is_code_1_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    cases = tmp_path / "policy.tests.yaml"
    cases.write_text(f"cases:\n- {{name: good, job: {{instances: 1}}, expect: []}}\n"
                     f"- name: bad\n  job: {EIGHT}\n  expect: []\n")  # fmt: skip
    assert run("policy", "test", str(tmp_path / "policy.yaml")) == 1
    out = capsys.readouterr().out
    assert "  ok    good\n" in out
    assert f"  FAIL  bad ({cases}:3)\n          max-instances-per-job is not expected" in out
    assert "1 of 2 cases pass" in out


@pytest.mark.parametrize("missing", ["policy.yaml", "policy.tests.yaml"])
def test_a_file_that_is_not_there_is_named(
    missing: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "policy.tests.yaml").write_text("cases: [{name: c, job: {instances: 1}, expect: []}]")
    (tmp_path / missing).unlink()
    assert run("policy", "test", str(tmp_path / "policy.yaml")) == 2
    assert str(tmp_path / missing) in capsys.readouterr().err


def test_a_policy_from_stdin_needs_its_cases(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("policy", "test", "-") == 2
    assert "--cases" in capsys.readouterr().err


def test_the_time_of_a_case_is_noon() -> None:
    cases, _ = read(parse(b"cases: [{name: c, now: 2026-11-30T12:00:00Z, job: {}, expect: []}]"), CaseFile)
    assert cases is not None
    assert cases.cases[0].now == NOON
