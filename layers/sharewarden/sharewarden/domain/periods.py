"""The periods of budgets and reports: UTC days, ISO weeks from Monday 00:00 UTC, calendar months.

Every period is made of whole UTC days, numbered from the epoch.
"""

from datetime import UTC, date, datetime, timedelta
from typing import Literal

from .stored import DAY, SECOND

Period = Literal["day", "week", "month"]

_EPOCH = date(1970, 1, 1)


def period_days(period: Period, at: int) -> range:
    """The numbers of the days of the period that ``at`` lies in."""
    today = datetime.fromtimestamp(at / SECOND, UTC).date()
    first, following = _BOUNDS[period](today)
    return range((first - _EPOCH).days, (following - _EPOCH).days)


def periods_between(period: Period, since: int, until: int) -> tuple[range, ...]:
    """The days of each period that the time between the two, ends included, touches; oldest first."""
    found = [period_days(period, since)]
    while found[-1].stop * DAY <= until:
        found.append(period_days(period, found[-1].stop * DAY))
    return tuple(found)


def period_name(period: Period, days: range) -> str:
    """``2026-09-14``, ``2026-W38`` or ``2026-09``."""
    first = _EPOCH + timedelta(days=days.start)
    if period == "week":
        year, week, _ = first.isocalendar()
        return f"{year}-W{week:02}"
    return first.isoformat() if period == "day" else f"{first:%Y-%m}"


def _day(today: date) -> tuple[date, date]:
    return today, today + timedelta(days=1)


def _week(today: date) -> tuple[date, date]:
    monday = today - timedelta(days=today.weekday())
    return monday, monday + timedelta(weeks=1)


def _month(today: date) -> tuple[date, date]:
    first = today.replace(day=1)
    return first, (first + timedelta(days=31)).replace(day=1)


_BOUNDS = {"day": _day, "week": _week, "month": _month}
