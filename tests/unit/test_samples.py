"""The functions' payloads are as the lab makes them, and its events have the shape of the samples."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from sharewarden.events import observe
from sharewarden.intake.care import StepRequest
from sharewarden.intake.looks import LookMessage
from sharewarden.intake.notices import NoticeMessage
from sharewarden.intake.wishes import WishMessage
from sharewarden.messages import metrics
from sharewarden_tools.local.functions import load_handler
from sharewarden_tools.samples import lab_events, payloads, write
from sharewarden_tools.template import TEMPLATE, load_template

EVENTS = TEMPLATE.parent / "events"
SAMPLES = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in EVENTS.glob("*.json")}

#: Present or not as whoever submits, or calls, likes.
CHOSEN = (
    ".detail.AlgorithmSpecification.",
    ".detail.CheckpointConfig.LocalPath",
    ".detail.HyperParameters.",
    ".detail.InputDataConfig",
    ".detail.Tags.",
    ".detail.preemptionConfiguration.",
    ".detail.requestParameters.tags.",
    ".detail.retryStrategy.",
    ".detail.timeoutConfig.",
    ".detail.userIdentity.",
)


def test_the_files_are_as_the_lab_makes_them(tmp_path: Path) -> None:
    write(tmp_path)
    made = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    kept = {path.name: path.read_text(encoding="utf-8") for path in (EVENTS / "functions").iterdir()}
    assert kept == made, "run `make events`"


def test_every_function_has_a_payload() -> None:
    functions = [
        Path(item["Properties"]["CodeUri"]).name
        for item in load_template()["Resources"].values()
        if item["Type"] == "AWS::Serverless::Function"
    ]
    assert sorted(payloads()) == sorted(functions)


def test_the_payloads_are_what_the_functions_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = payloads()
    assert all(observe(json.loads(record["body"])) for record in made["react"]["Records"])
    wishes = [WishMessage.model_validate_json(record["body"]) for record in made["apply"]["Records"]]
    assert [wish.version for wish in wishes] == [1]
    (notice,) = [NoticeMessage.model_validate_json(record["body"]) for record in made["notify"]["Records"]]
    assert notice.notice.startswith("finding#")
    (look,) = [LookMessage.model_validate_json(record["body"]) for record in made["watch"]["Records"]]
    assert look.job == wishes[0].job
    assert StepRequest.model_validate(made["care"]).job == look.job
    monkeypatch.setattr(metrics.provider, "namespace", "Sharewarden")
    guard: Any = load_handler(TEMPLATE.parent / "functions" / "audit_guard" / "app.py")
    guard(made["audit_guard"], None)
    assert '"audit_changed":[1.0]' in capsys.readouterr().out


def paths(value: Any, at: str = "") -> Iterator[tuple[str, str]]:
    """Every place in a JSON value, with the type of what is there."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from paths(item, f"{at}.{key}")
    elif isinstance(value, list):
        yield at, "list"
        for item in value:
            yield from paths(item, f"{at}[]")
    else:
        yield at, type(value).__name__


def kind(event: Mapping[str, Any]) -> tuple[str, str]:
    detail = event["detail"]
    state = detail.get("status") or detail.get("TrainingJobStatus") or detail.get("eventName")
    return (event["detail-type"], state)


def shapes_of_the_lab() -> dict[tuple[str, str], dict[str, set[str]]]:
    shapes: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for event in lab_events():
        for place, held in paths(event):
            shapes[kind(event)][place].add(held)
    return shapes


LAB = shapes_of_the_lab()
BOTH = sorted(name for name, event in SAMPLES.items() if kind(event) in LAB)


def test_most_kinds_are_compared() -> None:
    assert len(BOTH) >= 14


@pytest.mark.parametrize("name", BOTH)
def test_an_event_of_the_lab_has_the_shape_of_the_sample(name: str) -> None:
    shape, sample = LAB[kind(SAMPLES[name])], list(paths(SAMPLES[name]))
    assert [place for place, _ in sample if place not in shape and not place.startswith(CHOSEN)] == []
    assert [row for row in sample if row[0] in shape and row[1] not in shape[row[0]]] == []
