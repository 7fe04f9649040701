"""``sharewarden can-help``: the answer as text, as JSON, and as an exit code."""

import json
from typing import Any

import pytest
from sharewarden.domain.helping.answer import Answer
from sharewarden_tools.cli.can_help import lines, show_help
from sharewarden_tools.cli.deployment import Deployment
from sharewarden_tools.cli.output import BadInput

from tests.simulation.world import World

from .helping_kit import MINUTE, NOW, OTHER, UNIT, ask, pool, runs, share, waits
from .test_usecases_helping import JOB, WAITS, place, record_of


def text(answer: Answer) -> list[str]:
    return list(lines(answer))


def test_a_yes_names_the_victims_and_the_arithmetic() -> None:
    saved = runs("old", saved_at=NOW - 2 * MINUTE, sla="silver")
    guarded = share(protected=True, borrow_limit=100)
    assert text(ask(pool(guarded, saved, runs("dark", started_at=None), waits()))) == [
        "mine: a bump to 9 helps now: it may push out jobs of its share that have a lower priority",
        "  priority  5; 9 is the least that is known to help",
        "  position  1 in vision, 1 after the bump",
        "  capacity  ml.g6e.12xlarge: asks for 1, others would have to give up 1",
        "            vision has 2, uses 2, may use 4 in all",
        "            all shares use 2 of 2, 0 of them borrowed",
        "            lenders do not use 0 of their own themselves",
        "  may lose  dark (vision, priority 8): 1 instance, 4 GPUs, since when it runs is not known,"
        " protected",
        "            old (vision, priority 8): 1 instance, 4 GPUs, 2 min since its last save, SLA silver,"
        " protected",
    ]


def test_a_yes_at_says_from_when_and_whom_it_takes_besides() -> None:
    view = pool(
        share(limits={UNIT: 2, OTHER: 1}),
        *(runs("a"), runs("b"), waits()),
        runs("other", unit=OTHER, priority=1, dispatched_at=NOW - MINUTE),
        waits("next", unit=OTHER, priority=4),
    )
    shown = text(ask(view))
    assert shown[0].startswith("mine: a bump to 9 helps from 2026-09-14T08:09:00Z on: it may push out")
    assert "some of them have not had their share's minimum runtime" in shown[0]
    assert shown[-1].endswith(
        "1 instance, 1 GPU, 30 min of training without a known save, for one that waits behind this job"
    )


def test_a_no_says_what_would_help_instead() -> None:
    held = runs("a", instances=2, priority=9999, expected_end=NOW + MINUTE)
    shown = text(ask(pool(share(strategy="LEND"), held, waits())))
    assert shown[0] == (
        "mine: a bump to 9 does not help: vision uses 2 ml.g6e.12xlarge, has 2 and may use 2;"
        " the job asks for 1; jobs of vision with a lower priority do not hold enough"
    )
    assert shown[-1] == "  instead   wait until a (vision) ends, about 2026-09-14T08:01:00Z"


def test_law_02_unknown_is_said_as_such() -> None:
    answer = ask(pool(runs("a"), runs("b"), waits(priority=None)))
    assert text(answer) == [
        "mine: not known whether a bump to 9 helps:"
        " its instance type, number of instances or priority is not known"
    ]
    assert "an unknown number" in "".join(
        text(ask(pool(runs("a"), runs("b"), waits()).model_copy(update={"environment": None})))
    )


def run(made: World, *, to: int | None = None, as_json: bool = False) -> int:
    nobody: Any = None
    return show_help(Deployment("here", "1", "r", "ana", made.runtime, nobody), JOB, to, as_json=as_json)


def test_the_code_tells_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    made = place(WAITS, record_of(WAITS))
    assert run(made, to=7, as_json=True) == 3
    document = json.loads(capsys.readouterr().out)
    assert (document["kind"], document["reason"], document["asked"]) == ("unknown", "moving", 7)
    assert run(made, to=5) == 3, "whether it needs a bump is open, too"
    big = WAITS.model_copy(update={"instance_count": 9})
    assert run(place(big, record_of(big))) == 1
    assert "asks for 9 ml.g5.xlarge" in capsys.readouterr().out


def test_a_job_without_a_record_cannot_be_asked_about() -> None:
    with pytest.raises(BadInput, match="has no record of this job"):
        run(place(WAITS))
