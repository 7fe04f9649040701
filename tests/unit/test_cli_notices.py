"""``sharewarden notices list`` and doctor's line about it."""

import json
from typing import Any

import pytest
from sharewarden.domain.stored import HOUR
from sharewarden.ports import Denied, Unavailable, Unsure
from sharewarden.usecases.notify import notify
from sharewarden_tools.cli.deployment import Deployment
from sharewarden_tools.cli.notices import list_notices
from sharewarden_tools.operations.checks_pool import LATE, notices
from sharewarden_tools.operations.site import NotHere, Site

from tests.simulation.notices import People, notice, people
from tests.simulation.world import NOW


def site(told: People) -> Site:
    nobody: Any = None

    def client(service: str) -> Any:
        raise NotHere(service)

    return Site(Deployment("here", "1", "r", "ana", told.runtime, nobody), client, {})


def missed() -> People:
    """One failed, one unsure, one waits, one told."""
    told = people(frozenset(("topic",)))
    faults: list[Exception | None] = [
        Denied("NotFound"),
        Unsure("ReadTimeout"),
        Unavailable("Throttled"),
        None,
    ]
    for number, fault in enumerate(faults):
        one = notice(f"job-{number}", at=NOW + number * 1000, share=f"share-{number}")
        told.commit(one)
        told.topic.fault = fault
        notify(told.runtime, one.key)
    return told


def shown(told: People, capsys: pytest.CaptureFixture[str], *, everything: bool = False) -> list[str]:
    assert list_notices(site(told).deployment, told=everything, as_json=False) == 0
    return capsys.readouterr().out.splitlines()


def test_what_people_were_not_told_of_is_listed_with_why(capsys: pytest.CaptureFixture[str]) -> None:
    text = "checkpoint-required: job-{}: it may be preempted and saves nothing"
    assert shown(missed(), capsys) == [
        f"2026-09-14T08:00:00Z  waiting  warning  {text.format(0)}",
        f"{'':<22}topic waiting: NotFound",
        f"2026-09-14T08:00:01Z  unsure   warning  {text.format(1)}",
        f"{'':<22}topic unsure: ReadTimeout",
        f"2026-09-14T08:00:02Z  waiting  warning  {text.format(2)}",
        f"{'':<22}topic waiting: Throttled",
    ]


def test_all_has_those_that_were_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert f"{'':<22}topic sent" in shown(missed(), capsys, everything=True)


def test_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert list_notices(site(missed()).deployment, told=False, as_json=True) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["state"] for row in rows] == ["waiting", "unsure", "waiting"]
    assert rows[1]["deliveries"][0]["why"] == "ReadTimeout"


@pytest.mark.parametrize(("everything", "says"), [(False, "no notice waits"), (True, "no notices")])
def test_nothing_is_said_so(everything: bool, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert list_notices(site(people()).deployment, told=everything, as_json=False) == 0
    assert says in capsys.readouterr().err


def test_other_peoples_words_stay_on_their_line(capsys: pytest.CaptureFixture[str]) -> None:
    told = people(frozenset())
    told.commit(notice("x", title="a\n\x1b[31mb", mode="shadow"))
    (line,) = shown(told, capsys)
    assert line.isprintable()
    assert " (shadow): " in line


def nothing() -> People:
    told = people()
    told.commit(notice("x"))
    return told


def no_channel() -> People:
    told = people(frozenset())
    told.commit(notice("x"))
    notify(told.runtime, notice("x").key)
    return told


def late() -> People:
    told = nothing()
    told.clock.advance(LATE + 1)
    return told


@pytest.mark.parametrize(
    ("make", "state", "words"),
    [
        (nothing, "ok", "nobody missed one, 1 under way"),
        (no_channel, "warning", "1 went to nobody: no channel is set up"),
        (late, "warning", "1 waiting"),
        (missed, "warning", "1 unsure"),
    ],
)
def test_doctor_says_what_people_missed(make: Any, state: str, words: str) -> None:
    assert [(found[0], found[1]) for found in notices(site(make()))] == [(state, words)]


def test_doctor_counts_what_waits_for_long() -> None:
    told = missed()
    told.clock.advance(HOUR)
    assert [found[1] for found in notices(site(told))] == ["1 unsure, 2 waiting"]
