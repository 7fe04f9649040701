"""Periods of budgets: UTC days, ISO weeks, calendar months."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from sharewarden.domain.periods import Period, period_days, period_name, periods_between
from sharewarden.domain.stored import DAY


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("period", "moment", "first", "following", "name"),
    [
        ("day", "2026-09-14T08:00", "2026-09-14", "2026-09-15", "2026-09-14"),
        ("day", "2026-09-14T00:00", "2026-09-14", "2026-09-15", "2026-09-14"),
        ("day", "2024-02-28T23:59:59.999", "2024-02-28", "2024-02-29", "2024-02-28"),
        ("week", "2026-09-14T00:00", "2026-09-14", "2026-09-21", "2026-W38"),
        ("week", "2026-09-13T23:59:59.999", "2026-09-07", "2026-09-14", "2026-W37"),
        ("week", "2027-01-01T12:00", "2026-12-28", "2027-01-04", "2026-W53"),
        ("month", "2026-09-14T08:00", "2026-09-01", "2026-10-01", "2026-09"),
        ("month", "2026-12-31T23:59:59.999", "2026-12-01", "2027-01-01", "2026-12"),
        ("month", "2024-02-29T00:00", "2024-02-01", "2024-03-01", "2024-02"),
    ],
)
def test_a_period_has_whole_utc_days(
    period: Period, moment: str, first: str, following: str, name: str
) -> None:
    days = period_days(period, at(moment))
    assert (days.start * DAY, days.stop * DAY) == (at(first), at(following))
    assert period_name(period, days) == name


@pytest.mark.parametrize(
    ("period", "since", "until", "names"),
    [
        ("day", "2026-09-13T23:59", "2026-09-14T00:00", ["2026-09-13", "2026-09-14"]),
        ("week", "2026-09-13T10:00", "2026-09-21T10:00", ["2026-W37", "2026-W38", "2026-W39"]),
        ("month", "2026-11-30T00:00", "2027-01-01T00:00", ["2026-11", "2026-12", "2027-01"]),
        ("month", "2026-11-30T00:00", "2026-11-30T00:00", ["2026-11"]),
    ],
)
def test_every_period_that_is_touched_is_there_once(
    period: Period, since: str, until: str, names: list[str]
) -> None:
    found = periods_between(period, at(since), at(until))
    assert [period_name(period, days) for days in found] == names
    assert all(one.stop == following.start for one, following in pairwise(found))
