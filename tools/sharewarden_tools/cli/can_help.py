"""``sharewarden can-help``: whether a bump would start a job, and what would if not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sharewarden.domain.base import last_part
from sharewarden.domain.durations import format_duration
from sharewarden.domain.helping.answer import Answer, Figures, Kind, Lever, Victim
from sharewarden.domain.record import JobRecord
from sharewarden.domain.rules.base import counted
from sharewarden.usecases.helping import ask

from .deployment import Deployment
from .output import OK, REFUSED, UNAVAILABLE, BadInput, full_time, print_json, say

_CODES: dict[Kind, int] = {"yes-now": OK, "yes-at": OK, "no": REFUSED, "unknown": UNAVAILABLE}


def show_help(deployment: Deployment, job: str, priority: int | None, *, as_json: bool) -> int:
    """Print the answer; the code tells it as well. Raises BadInput, Unavailable."""
    key = last_part(deployment.job(job))
    record = deployment.runtime.ledger.load(JobRecord, key)
    if record is None:
        raise BadInput(f"{job}: Sharewarden has no record of this job")
    answer = ask(deployment.runtime, record, priority)
    if as_json:
        print_json(answer.model_dump())
    else:
        say(*lines(answer))
    return _CODES[answer.kind]


def lines(answer: Answer) -> Iterator[str]:
    """The answer for people."""
    yield f"{answer.name}: {headline(answer)}"
    yield from rows("priority", _priority(answer))
    if answer.figures is not None:
        yield from rows("position", _position(answer))
        yield from rows("capacity", _capacity(answer.share or "", answer.figures))
    yield from consequences(answer)


def headline(answer: Answer) -> str:
    """Whether it helps, and why."""
    return f"{_verdict(answer)}: {answer.text}"


def consequences(answer: Answer) -> Iterator[str]:
    """Who may lose what, and what would help instead."""
    yield from rows("may lose", map(_victim, answer.victims))
    yield from rows("instead", map(_lever, answer.levers))


def rows(name: str, texts: Iterable[str]) -> Iterator[str]:
    """Lines under one another, the first one with the name before it."""
    for index, text in enumerate(texts):
        yield f"  {'' if index else name:<10}{text}"


def _verdict(answer: Answer) -> str:
    bump = f"a bump to {answer.asked}"
    if answer.kind == "yes-at":
        return f"{bump} helps from {full_time(answer.at or 0)} on"
    told = {"yes-now": f"{bump} helps now", "no": f"{bump} does not help"}
    return told.get(answer.kind, f"not known whether {bump} helps")


def _priority(answer: Answer) -> Iterator[str]:
    if answer.priority is not None:
        least = "" if answer.needs is None else f"; {answer.needs} is the least that is known to help"
        yield f"{answer.priority}{least}"


def _position(answer: Answer) -> Iterator[str]:
    yield f"{answer.position} in {answer.share}, {answer.position_after} after the bump"


def _capacity(share: str, figures: Figures) -> Iterator[str]:
    room = "borrow what others lend" if figures.most is None else f"use {figures.most} in all"
    whole = "an unknown number" if figures.environment is None else figures.environment
    yield f"{figures.unit}: asks for {figures.asked}, others would have to give up {figures.lack}"
    yield f"{share} has {figures.own}, uses {figures.used}, may {room}"
    yield f"all shares use {figures.environment_used} of {whole}, {figures.lent} of them borrowed"
    yield f"lenders do not use {figures.idle} of their own themselves"


def _victim(victim: Victim) -> str:
    gpus = "GPUs unknown" if victim.gpus is None else counted(victim.gpus, "GPU")
    whose = "" if victim.sla is None else f", SLA {victim.sla}"
    guarded = ", protected" if victim.protected else ""
    behind = "" if victim.direct else ", for one that waits behind this job"
    size = f"{counted(victim.instances, 'instance')}, {gpus}"
    return (
        f"{victim.name} ({victim.share}, priority {victim.priority}): {size}, {_loss(victim)}"
        f"{whose}{guarded}{behind}"
    )


def _loss(victim: Victim) -> str:
    if victim.loses is None:
        return "since when it runs is not known"
    since = "since its last save" if victim.saved else "of training without a known save"
    return f"{format_duration(victim.loses)} {since}"


def _lever(lever: Lever) -> str:
    return lever.text if lever.at is None else f"{lever.text}, about {full_time(lever.at)}"
