"""Each rule has a table: what it says, exactly, on which facts. And a policy cannot ask it for nonsense."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from sharewarden.domain.rules import names
from sharewarden.domain.rules.base import Fires, Unknown

from tests.unit.rules import table_asks, table_life, table_others, table_pool, table_tags
from tests.unit.rules.kit import Case, entry, facts, fires, word

TABLES: dict[str, list[Case]] = {}
for module in (table_asks, table_life, table_others, table_pool, table_tags):
    TABLES |= module.TABLES

#: What they look at is there, or nothing is said.
NEVER_UNKNOWN = {"queue-blocked", "share-changed-by-hand"}


def test_every_rule_has_a_table() -> None:
    assert sorted(TABLES) == list(names())


@pytest.mark.parametrize("rule", names())
def test_a_table_has_every_kind_of_case(rule: str) -> None:
    kinds = {type(case.says) for case in TABLES[rule]}
    wanted = {str, type(None), Unknown}
    assert kinds == (wanted - {Unknown} if rule in NEVER_UNKNOWN else wanted)


@pytest.mark.parametrize(
    ("rule", "case"),
    [pytest.param(rule, case, id=f"{rule}: {case.name}") for rule in TABLES for case in TABLES[rule]],
)
def test_what_a_rule_says(rule: str, case: Case) -> None:
    verdict = word(entry(rule, case.options), case.given)
    assert (verdict.text if isinstance(verdict, Fires) else verdict) == case.says
    if case.figures is not None:
        assert fires(verdict).figures == case.figures


@pytest.mark.parametrize(
    ("rule", "options", "given", "subject"),
    [
        (
            "runtime-limit",
            {"attempt": "1h"},
            {"status": "RUNNING", "running": 9999, "preemptions": 2},
            "attempt-2",
        ),
        ("runtime-limit", {"total": "1h"}, {"trained": 9999}, "total"),
        ("runtime-limit", {"asked": "1h"}, {"max_runtime": 9999}, "asked"),
        (
            "stuck-dispatched",
            {"limit": "1m"},
            {"status": "STARTING", "in_status": 61, "preemptions": 1},
            "STARTING-1",
        ),
        ("queue-blocked", {}, {"blocked": "CAPACITY:X_Y - z"}, "X_Y"),
        ("queue-blocked", {}, {"blocked": "?"}, "other"),
        ("priority-ceiling", {"highest": 1}, {"base": 7, "drifted": True}, "drift-7"),
        ("max-instances-per-job", {"limit": 1}, {"instances": 2}, ""),
    ],
)
def test_findings_about_one_job_are_told_apart(
    rule: str, options: dict[str, Any], given: dict[str, Any], subject: str
) -> None:
    assert fires(entry(rule, options).decide(facts(job=given))).subject == subject


def test_law_03_a_priority_that_somebody_set_is_told_of_and_not_fought() -> None:
    rule = entry("priority-ceiling", {"highest": 500, "action": "lower-priority"})
    assert fires(rule.decide(facts(job={"base": 900, "drifted": True}))).only_told
    assert not fires(rule.decide(facts(job={"base": 900}))).only_told


@pytest.mark.parametrize(
    ("status", "spared"),
    [("SUBMITTED", False), ("RUNNABLE", False), ("SCHEDULED", True), ("RUNNING", True), ("SUCCEEDED", True)],
)
def test_a_spent_budget_spares_what_runs_and_is_told_of_once_for_the_team(
    status: str, *, spared: bool
) -> None:
    used = {"owned_gpu_hours": {"week": 5.0}, "borrowed_gpu_hours": {"week": 0.0}}
    given = facts(job={"team": "vision", "status": status}, team=used)
    verdict = fires(entry("gpu-hour-budget", {"total": 1}).decide(given))
    assert (verdict.only_told, verdict.about, verdict.subject) == (spared, "team", "2026-W49")


POOL_WIDE = {
    "gpu-hour-budget",
    "max-queued-jobs-per-team",
    "max-running-instances-per-team",
    "max-running-instances-per-user",
}
ONLY_TOLD = {"queue-blocked", "share-changed-by-hand", "stale-checkpoint", "training-outside-queue"}
SCOPES = {"share-changed-by-hand": "share-change", "training-outside-queue": "training"}


@pytest.mark.parametrize("rule", names())
def test_what_a_rule_needs_and_is_about(rule: str) -> None:
    made = entry(rule, TABLES[rule][0].options)
    assert made.needs_pool == (rule in POOL_WIDE)
    assert made.scope == SCOPES.get(rule, "job")


@pytest.mark.parametrize("action", ["record", "notify", "lower-priority", "terminate"])
@pytest.mark.parametrize("rule", names())
def test_an_act_that_makes_no_sense_is_refused(rule: str, action: str) -> None:
    options = TABLES[rule][0].options | {"action": action}
    if action in ("record", "notify") or rule not in ONLY_TOLD:
        assert entry(rule, options).action == action
        return
    with pytest.raises(ValidationError, match=f"{rule} has nothing to act on, so {action} makes no sense"):
        entry(rule, options)


@pytest.mark.parametrize("rule", names())
def test_approval_is_refused_until_there_is_somebody_to_ask(rule: str) -> None:
    with pytest.raises(ValidationError, match="ask-approval arrives with Slack"):
        entry(rule, TABLES[rule][0].options | {"action": "ask-approval"})


@pytest.mark.parametrize(
    ("rule", "options", "why"),
    [
        ("runtime-limit", {}, "runtime-limit needs a limit: asked, attempt or total"),
        ("gpu-hour-budget", {}, "gpu-hour-budget needs a limit: total, owned or borrowed"),
        ("gpu-hour-budget", {"total": -1}, "greater than or equal to 0"),
        ("gpu-hour-budget", {"total": 1, "period": "year"}, "'day', 'week' or 'month'"),
        ("required-tags", {"tags": []}, "at least 1 item"),
        ("allowed-instance-types", {"types": []}, "at least 1 item"),
        ("max-instances-per-job", {"limit": 0}, "greater than or equal to 1"),
        ("max-instances-per-job", {}, "limit\n  Field required"),
        ("bounded-retries", {"limit": -1}, "greater than or equal to 0"),
        ("priority-ceiling", {"highest": 10_000}, "less than or equal to 9999"),
        ("stale-checkpoint", {"times": 0.5}, "greater than or equal to 1"),
        ("stuck-dispatched", {"limit": 0}, "greater than 0"),
        ("runtime-limit", {"total": 0}, "greater than 0"),
        ("custom", {"when": "true"}, "name\n  Field required"),
        ("custom", {"name": "", "when": "true"}, "at least 1 character"),
        ("no-team", {"limit": 1}, "Extra inputs are not permitted"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(rule: str, options: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        entry(rule, options)


@pytest.mark.parametrize(
    ("when", "needs_pool"),
    [
        ("job.instances > 1", False),
        ("team.queued_jobs > 1", True),
        ("job.instances > 1 || user.queued_jobs > 1", True),
        ("job.team == 'team' && has(job.user)", False),
    ],
)
def test_a_custom_rule_needs_the_pool_when_it_reads_of_it(when: str, *, needs_pool: bool) -> None:
    assert entry("custom", {"name": "x", "when": when}).needs_pool == needs_pool


@pytest.mark.parametrize(
    ("rule", "options", "periods"),
    [
        ("cannot-fit", {}, ()),
        ("gpu-hour-budget", {"total": 1, "period": "day"}, ("day",)),
        ("custom", {"when": "team.queued_jobs > 1"}, ()),
        (
            "custom",
            {"when": "team.owned_gpu_hours.week + team.borrowed_gpu_hours.day > 1.0"},
            ("day", "week"),
        ),
        ("custom", {"when": "team.owned_gpu_hours['week'] > 1.0"}, ("day", "week", "month")),
    ],
)
def test_the_gpu_hours_that_are_counted_for_it(
    rule: str, options: dict[str, Any], periods: tuple[str, ...]
) -> None:
    assert entry(rule, {"name": "x"} | options).gpu_periods == periods
