"""The function ``notify`` as Lambda calls it: bodies, poison, metrics, a table that is away."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from sharewarden import messages
from sharewarden.ports import Denied, Unavailable
from sharewarden_tools.local.functions import load_handler
from sharewarden_tools.memory import MemoryLedger
from sharewarden_tools.template import TEMPLATE

from tests.simulation.notices import People, notice, people

ONE = notice("vision-1")


class Context:
    def get_remaining_time_in_millis(self) -> int:
        return 60_000


class Away(MemoryLedger):
    def load(self, *_: Any) -> Any:
        raise Unavailable("GetItem: throttled")


@pytest.fixture(autouse=True)
def namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages.metrics.provider, "namespace", "Sharewarden")
    monkeypatch.setattr(messages.metrics.provider, "service", "sharewarden")


def called(told: People, *bodies: str) -> list[str]:
    """Numbers of the messages that must come again."""
    handler = load_handler(TEMPLATE.parent / "functions" / "notify" / "app.py")
    records = [
        {"messageId": str(number), "body": body, "attributes": {"ApproximateReceiveCount": "1"}}
        for number, body in enumerate(bodies)
    ]
    answer = handler({"Records": records}, Context(), told.runtime)
    return [row["itemIdentifier"] for row in answer["batchItemFailures"]]


def body(key: str) -> str:
    return json.dumps({"notice": key})


def test_a_batch_is_told_and_what_is_unknown_is_done() -> None:
    told = people()
    told.commit(ONE)
    assert called(told, body(ONE.key), body("finding#gone")) == []
    assert told.told("topic") == told.told("webhook") == [ONE.fact]


@pytest.mark.parametrize("poison", ["no JSON", "{}", '{"notice": 7}', '{"notice": "x", "more": 1}'])
def test_what_names_no_notice_is_buried_as_the_queues(poison: str) -> None:
    told = people()
    assert called(told, poison) == []
    (buried,) = told.runtime.dead_letters.buried  # type: ignore[attr-defined]
    assert (buried.body, buried.origin) == (poison, "notices")
    assert buried.reason.startswith("Poison: not a notice")


def test_a_table_that_is_away_brings_the_message_again() -> None:
    told = people()
    assert called(replace_ledger(told, Away()), body(ONE.key)) == ["0"]
    assert told.topic.sent == []


@pytest.mark.parametrize("count", [1, 2])
def test_what_alarms_is_a_metric(count: int, capsys: pytest.CaptureFixture[str]) -> None:
    told = people(frozenset(("topic",)))
    notices = [notice(f"n{number}", share=f"s{number}") for number in range(count)]
    told.commit(*notices)
    told.topic.fault = Denied("NotFound")
    assert called(told, *(body(each.key) for each in notices)) == []
    assert f'"notices_failed":[{",".join(["1.0"] * count)}]' in capsys.readouterr().out


def replace_ledger(told: People, ledger: MemoryLedger) -> People:
    return replace(told, runtime=replace(told.runtime, ledger=ledger))
