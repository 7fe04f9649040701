"""``sharewarden usage``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from sharewarden.domain.accelerators import table_source
from sharewarden.domain.base import last_part
from sharewarden.domain.booking import KEPT
from sharewarden.domain.periods import Period, periods_between
from sharewarden.domain.stored import DAY, HOUR
from sharewarden.domain.usage import Window
from sharewarden.usecases.usage import QueueUsage, queue_usage

from sharewarden_tools.operations.progress import progress
from sharewarden_tools.policy.problems import BadFile
from sharewarden_tools.prices import Prices, load_prices
from sharewarden_tools.usage_report import Budget, Frame, Row, other_budgets, rows

from .audit import parse_since
from .deployment import Deployment
from .output import OK, BadInput, full_time, note, print_json, say, unreadable


class Asked(NamedTuple):
    """The options as they were given."""

    team: str | None
    period: Period
    since: str | None
    until: str | None
    prices: Path | None


def show_usage(deployment: Deployment, asked: Asked, *, as_json: bool) -> int:
    """Print what each team used in each period. Raises BadInput, Unavailable."""
    prices = None if asked.prices is None else _prices(asked.prices)
    frame = _frame(asked, deployment.runtime.clock.now())
    policy = deployment.runtime.policies.current()
    found = _read(deployment, frame)
    table = [row for used in found for row in rows(used, frame, policy, prices)]
    if as_json:
        print_json(_as_json(table, found, prices))
    else:
        _show(table, prices)
    _explain(table, found, frame)
    for period in other_budgets(policy, deployment.runtime.queues, frame.period):
        note(f"the policy has budgets for each {period}: --period {period} shows them")
    return OK


def _prices(path: Path) -> Prices:
    try:
        return load_prices(path)
    except OSError as error:
        raise unreadable(path, error) from error
    except BadFile as error:
        raise BadInput(*error.lines) from error


def _frame(asked: Asked, now: int) -> Frame:
    since = now if asked.since is None else parse_since(asked.since, now)
    until = now if asked.until is None else parse_since(asked.until, now, "--until")
    if since > until or since > now:
        raise BadInput(f"--since: {full_time(since)} is later than {full_time(min(until, now))}")
    if since < now - KEPT:
        raise BadInput(f"--since: usage is kept for {KEPT // DAY} days, since {full_time(now - KEPT)}")
    return Frame(asked.period, periods_between(asked.period, since, min(until, now)), now, asked.team)


def _read(deployment: Deployment, frame: Frame) -> list[QueueUsage]:
    window = Window(frame.spans[0].start * DAY, min(frame.now, frame.spans[-1].stop * DAY))
    found = []
    with progress() as tell:
        for queue in sorted(deployment.runtime.queues):
            tell(f"reading the usage of {last_part(queue)}")
            found.append(queue_usage(deployment.runtime, queue, window))
    return found


def _as_json(table: Sequence[Row], found: Iterable[QueueUsage], prices: Prices | None) -> dict[str, object]:
    return {
        "gpus": table_source(),
        "prices": prices.model_dump(include={"currency", "source", "date"}) if prices else None,
        "no_limit": {last_part(used.queue): used.no_limit for used in found if used.no_limit},
        "usage": [row.as_json() for row in table],
    }


def _show(table: Iterable[Row], prices: Prices | None) -> None:
    for (period, queue, until), group in groupby(table, key=lambda row: (row.period, row.queue, row.until)):
        say(f"{period} on {queue}, until {full_time(until)}: GPU-hours")
        money = f"{prices.currency:>12}" if prices else ""
        say(
            f"  {'team':<16}{'owned':>10}{'borrowed':>10}{'total':>10}{'unknown':>10}{money}  budget".rstrip()
        )
        say(*(_line(row) for row in group))


def _line(row: Row) -> str:
    owned, borrowed = row.usage.owned_gpu_hours, row.usage.borrowed_gpu_hours
    figures = (owned, borrowed, owned + borrowed, row.usage.unknown_instance_hours)
    hours = "".join(f"{one:>10.2f}" for one in figures)
    money = "" if row.cost is None else f"{row.cost.amount:>12}"
    return f"  {row.team:<16}{hours}{money}  {'; '.join(map(_budget, row.budgets))}".rstrip()


def _budget(one: Budget) -> str:
    used = "" if one.percent is None else f"{one.percent:.0f}% of "
    left = f"{one.remaining:.2f} left" if one.remaining >= 0 else f"{-one.remaining:.2f} over"
    return f"{used}{one.limit:g} {one.of}, {left}"


def _explain(table: Sequence[Row], found: Iterable[QueueUsage], frame: Frame) -> None:
    """What the figures leave out."""
    if not table:
        whose = "" if frame.team is None else f" by team {frame.team}"
        note(f"nothing was used{whose} since {full_time(frame.spans[0].start * DAY)}")
    if any(row.usage.unknown_instance_hours for row in table):
        note(
            "unknown: instance-hours of types whose number of GPUs is not known; they are in no other column"
        )
    note(*(line for row in table for line in _left_out(row)))
    for used in found:
        for name in used.no_limit:
            note(
                f"{last_part(used.queue)}: no limit is known of {name} (the sweep reads them): "
                "all of it counts as owned"
            )


def _left_out(row: Row) -> Iterator[str]:
    who = f"{row.team}, {row.period}"
    if row.usage.unsized:
        hours = f"{row.usage.unsized / HOUR:.2f} h"
        yield f"{who}: {hours} of attempts whose number of instances is not known are in no column"
    if row.cost and row.cost.unpriced:
        yield f"{who}: no price for {', '.join(row.cost.unpriced)}: not in the cost"
