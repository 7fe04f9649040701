"""Figures, prices and rows of `sharewarden usage`."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path

import pytest
import yaml
from sharewarden.domain.accelerators import table_source
from sharewarden.domain.booking import KEPT
from sharewarden.domain.borrowing import Stint
from sharewarden.domain.periods import period_days
from sharewarden.domain.policy import Policy
from sharewarden.domain.stored import DAY, HOUR
from sharewarden.domain.usage import DayOfTeam, UnitTime, Usage, Window, daily, total
from sharewarden.usecases.usage import QueueUsage, budgets
from sharewarden_tools.policy.problems import BadFile
from sharewarden_tools.prices import EXAMPLE, SCHEMA, Prices, cost, load_prices, prices_schema
from sharewarden_tools.usage_report import Frame, Row, other_budgets, rows

from tests.simulation.world import NOW, QUEUE

TODAY = NOW // DAY
MIDNIGHT = TODAY * DAY


def used(**units: tuple[int, int]) -> Usage:
    """Hours of instances, owned and borrowed; ``g5`` stands for ``ml.g5.xlarge``."""
    names = {"g5": "ml.g5.xlarge", "p4d": "ml.p4d.24xlarge", "cpu": "ml.m5.large", "new": "ml.x9.xlarge"}
    return Usage(
        units={names[key]: UnitTime(owned=o * HOUR, borrowed=b * HOUR) for key, (o, b) in units.items()}
    )


@pytest.mark.parametrize(
    ("usage", "owned", "borrowed", "unknown"),
    [
        (used(), 0, 0, 0),
        (used(g5=(3, 1)), 3, 1, 0),
        (used(g5=(3, 1), p4d=(1, 2)), 11, 17, 0),
        (used(cpu=(5, 5)), 0, 0, 0),
        (used(g5=(1, 0), new=(2, 3)), 1, 0, 5),
    ],
)
def test_gpu_hours_count_the_gpus_of_each_type(
    usage: Usage, owned: float, borrowed: float, unknown: float
) -> None:
    assert (usage.owned_gpu_hours, usage.borrowed_gpu_hours, usage.unknown_instance_hours) == (
        owned,
        borrowed,
        unknown,
    )


def test_the_sum_is_of_all_figures() -> None:
    both = total([used(g5=(1, 2)), used(g5=(3, 4), new=(5, 0)), Usage(unsized=7)])
    assert both == used(g5=(4, 6), new=(5, 0)).model_copy(update={"unsized": 7})


@pytest.mark.parametrize(
    ("since", "until", "hours"),
    [
        (MIDNIGHT - HOUR, MIDNIGHT + 2 * HOUR, {-1: 1, 0: 2}),
        (MIDNIGHT - 30 * HOUR, MIDNIGHT + 30 * HOUR, {-2: 6, -1: 24, 0: 24, 1: 6}),
        (MIDNIGHT - HOUR, MIDNIGHT, {-1: 1}),
        (MIDNIGHT - 100 * DAY, MIDNIGHT - 99 * DAY, {}),
        (MIDNIGHT + 3 * DAY, MIDNIGHT + 4 * DAY, {}),
    ],
)
def test_a_stint_is_cut_at_midnight_and_at_the_window(since: int, until: int, hours: dict[int, int]) -> None:
    stint = Stint(since, "job", "a", until, "background", "ml.g5.xlarge", 1, "")
    window = Window(MIDNIGHT - 2 * DAY, MIDNIGHT + 2 * DAY)
    found = daily([stint], {("background", "ml.g5.xlarge"): 1}, {}, window)
    assert {day.day - TODAY: day.usage.owned_gpu_hours for day in found} == hours


def test_shares_and_types_have_limits_of_their_own() -> None:
    def stint(attempt: str, share: str, unit: str) -> Stint:
        return Stint(MIDNIGHT, "job", attempt, MIDNIGHT + HOUR, share, unit, 2, "nlp")

    limits = {("a", "ml.g5.xlarge"): 1, ("b", "ml.g5.xlarge"): 5, ("a", "ml.p4d.24xlarge"): 0}
    stints = [stint("1", "a", "ml.g5.xlarge"), stint("2", "b", "ml.g5.xlarge")]
    (day,) = daily(
        [*stints, stint("3", "a", "ml.p4d.24xlarge")], limits, {}, Window(MIDNIGHT, MIDNIGHT + DAY)
    )
    assert (day.team, day.usage) == ("nlp", used(g5=(3, 1), p4d=(0, 2)))


def prices(**per_hour: float) -> Prices:
    names = {"g5": "ml.g5.xlarge", "p4d": "ml.p4d.24xlarge"}
    named = {names[key]: price for key, price in per_hour.items()}
    return Prices(currency="EUR", source="a contract", date="2026-11-30", per_instance_hour=named)


@pytest.mark.parametrize(
    ("usage", "amount", "unpriced"),
    [
        (used(g5=(3, 1)), "4.40", ()),
        (used(g5=(3, 1), p4d=(1, 0)), "36.90", ()),
        (used(g5=(1, 0), new=(9, 0)), "1.10", ("ml.x9.xlarge",)),
        (used(), "0.00", ()),
        (Usage(units={"": UnitTime(owned=HOUR)}), "0.00", ("(no type)",)),
    ],
)
def test_money_is_instance_time_at_its_price(usage: Usage, amount: str, unpriced: tuple[str, ...]) -> None:
    found = cost(usage, prices(g5=1.1, p4d=32.5))
    assert (found.amount, found.currency, found.unpriced) == (Decimal(amount), "EUR", unpriced)


def test_the_example_says_that_it_is_one_and_loads() -> None:
    assert "EXAMPLE" in EXAMPLE.name
    assert "EXAMPLE" in load_prices(EXAMPLE).source
    assert "made up" in EXAMPLE.read_text()


def test_the_schema_in_the_repository_is_that_of_the_code() -> None:
    assert json.loads(SCHEMA.read_text()) == prices_schema()


GOOD = 'currency: EUR\nsource: contract\ndate: "2026-11-30"\nper_instance_hour:\n  ml.g5.xlarge: 1.5\n'


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("EUR", "euro", "1:11: currency: "),
        ("source: contract\n", "", "1:1: source: is missing: write it"),
        ('"2026-11-30"', "yesterday", "3:7: date: 'yesterday' is not a day: write for example 2026-11-30"),
        ("1.5", "-1", "5:17: per_instance_hour.ml.g5.xlarge: -1 is too small: write 0.0 or more"),
        (
            "1.5",
            '"1.5"',
            "5:17: per_instance_hour.ml.g5.xlarge: '1.5' is text: write a number, without quotes",
        ),
        ("  ml.g5.xlarge: 1.5\n", "  {}\n", "per_instance_hour: "),
        ("source", "sauce", "2:1: sauce: there is no key 'sauce' here: did you mean 'source'?"),
        ("currency: EUR", "currency: EUR\ncurrency: USD", "2:1: currency: given twice"),
    ],
)
def test_a_fault_names_file_place_path_and_fix(tmp_path: Path, old: str, new: str, fault: str) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(GOOD.replace(old, new))
    with pytest.raises(BadFile) as bad:
        load_prices(file)
    assert any(line.startswith(f"{file}:") and fault in line for line in bad.value.lines), bad.value.lines


def budget(**entry: object) -> dict[str, object]:
    return {"rule": "gpu-hour-budget", "period": "day"} | entry


def report(*entries: dict[str, object], team: str | None = None, usage: Usage | None = None) -> list[Row]:
    found = usage or used(g5=(6, 2))
    policy = Policy.model_validate({"guardrails": entries})
    days = (DayOfTeam(day=TODAY, team="nlp", usage=found),)
    frame = Frame("day", (period_days("day", NOW),), NOW, team)
    return list(rows(QueueUsage(queue=QUEUE, days=days), frame, policy, None))


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        (budget(total=10), [("total", 8, 2, 80)]),
        (budget(owned=6, borrowed=1), [("owned", 6, 0, 100), ("borrowed", 2, -1, 200)]),
        (budget(borrowed=0), [("borrowed", 2, -2, None)]),
        (budget(total=10, teams=["nlp"]), [("total", 8, 2, 80)]),
        (budget(total=10, teams=["vision"]), []),
        (budget(total=10, queues=["another"]), []),
        (budget(total=10, period="week"), []),
    ],
)
def test_a_team_stands_beside_its_budgets(entry: dict[str, object], shown: list[tuple[object, ...]]) -> None:
    row = next(one for one in report(entry) if one.team == "nlp")
    assert [(one.of, one.used, one.remaining, one.percent) for one in row.budgets] == shown


def test_a_team_that_a_budget_names_is_there_without_use() -> None:
    found = report(budget(total=10, teams=["vision"]))
    assert [(row.team, row.usage.units == {}) for row in found] == [("nlp", False), ("vision", True)]
    assert [row.team for row in report(budget(total=10, teams=["vision"]), team="vision")] == ["vision"]


def test_a_row_ends_where_the_present_does() -> None:
    (row,) = report()
    assert (row.period, row.since, row.until, row.queue) == ("2026-09-14", MIDNIGHT, NOW, "ml-train-qm")


def test_json_has_every_figure() -> None:
    (row,) = report(budget(total=10), usage=used(g5=(6, 2), new=(1, 0)))
    told = row.as_json()
    assert (told["owned_gpu_hours"], told["borrowed_gpu_hours"], told["total_gpu_hours"]) == (6, 2, 8)
    assert told["unknown_instance_hours"] == 1
    assert told["instance_hours"]["ml.g5.xlarge"] == {"owned": 6, "borrowed": 2}
    assert told["budgets"] == [
        {
            "guardrail": "gpu-hour-budget",
            "of": "total",
            "limit": 10,
            "used": 8,
            "remaining": 2,
            "percent": 80,
        }
    ]


def test_budgets_of_other_periods_are_named() -> None:
    policy = Policy.model_validate(
        {"guardrails": [budget(total=1, name="a"), budget(total=1, name="b", period="week")]}
    )
    assert other_budgets(policy, [QUEUE], "month") == ["day", "week"]
    assert other_budgets(policy, [QUEUE], "day") == ["week"]


def test_the_document_names_the_table_and_shows_a_policy_that_loads() -> None:
    text = (EXAMPLE.parents[1] / "docs" / "usage.md").read_text()
    assert table_source() in " ".join(text.split())
    assert f"kept for {KEPT // DAY} days" in text
    (example,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    policy = Policy.model_validate(yaml.safe_load(example))
    assert len(budgets(policy, QUEUE)) == 1
