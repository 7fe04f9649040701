"""Every member of every sample present, absent, null, joined by a stranger, or replaced by anything."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sharewarden.domain.observation import Observation, Unrecognised
from sharewarden.events import BadEvent, observe

SAMPLES = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted((Path(__file__).parents[2] / "events").glob("*.json"))
}
Path_ = tuple[str | int, ...]

#: Members without which an event says nothing, by the beginning of the file's name ("": of every file).
REQUIRED: dict[str, set[Path_]] = {
    "": {("source",), ("detail-type",), ("time",), ("detail",)},
    "batch_service_job_state_change": {("detail", "status")},
    "batch_job_state_change": {("detail", "status")},
    "sagemaker_training_job_state_change": {("detail", "TrainingJobStatus")},
    "cloudtrail_batch": {("detail", "eventID"), ("detail", "eventSource"), ("detail", "eventName")},
}


def required(name: str) -> set[Path_]:
    return {path for start, paths in REQUIRED.items() if name.startswith(start) for path in paths}


def paths(value: object, at: Path_ = ()) -> Iterator[Path_]:
    """The way to each member of objects and lists, however deep."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in items:
        yield (*at, step)
        yield from paths(inner, (*at, step))


def changed(event: dict[str, Any], path: Path_, value: object) -> dict[str, Any]:
    """A copy with ``value`` at ``path``; ``...`` takes the member away."""
    event = copy.deepcopy(event)
    holder: Any = event
    for step in path[:-1]:
        holder = holder[step]
    if value is ...:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return event


def outcome(event: dict[str, Any]) -> Observation | str | None:
    """What ``observe`` says, or where it finds fault; anything else it raises fails the test."""
    try:
        return observe(event)
    except BadEvent as caught:
        bad = caught
    assert str(bad).isprintable()
    return bad.path


def dotted(path: Path_) -> str:
    return ".".join(map(str, path))


@pytest.mark.parametrize("name", SAMPLES)
def test_only_required_members_are_missed(name: str) -> None:
    event = SAMPLES[name]
    for path in paths(event):
        for gone in (..., None):
            found = outcome(changed(event, path, gone))
            if path in required(name):
                assert found == dotted(path)
            else:
                assert not isinstance(found, str), f"{path} is optional"


@pytest.mark.parametrize("name", SAMPLES)
def test_absent_and_null_mean_the_same(name: str) -> None:
    event = SAMPLES[name]
    for path in paths(event):
        if isinstance(path[-1], str) and "requestParameters" not in path[:-1]:
            assert outcome(changed(event, path, ...)) == outcome(changed(event, path, None)), path


@pytest.mark.parametrize("name", SAMPLES)
def test_without_optional_members_the_kind_of_observation_stays(name: str) -> None:
    event = SAMPLES[name]
    bare = {key: value for key, value in event.items() if (key,) in required(name)}
    bare["detail"] = {
        key: value for key, value in event["detail"].items() if ("detail", key) in required(name)
    }
    seen = observe(bare | {"resources": event["resources"]})
    assert type(seen) is type(observe(event))
    assert isinstance(seen, Unrecognised) == name.endswith("unrecognised")


@pytest.mark.parametrize("name", SAMPLES)
def test_new_members_are_ignored_everywhere(name: str) -> None:
    event = SAMPLES[name]
    objects = [
        (),
        *(path for path in paths(event) if "requestParameters" not in path and path[-1:] != ("tags",)),
    ]
    for path in objects:
        if isinstance(at(event, path), dict):
            assert observe(changed(event, (*path, "newMember"), {"deep": [1, None]})) == observe(event)


def at(value: Any, path: Path_) -> Any:
    for step in path:
        value = value[step]
    return value


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_any_json_is_read_or_refused(value: Any) -> None:
    outcome(value)


@given(
    st.sampled_from(sorted({(event["source"], event["detail-type"]) for event in SAMPLES.values()})),
    st.dictionaries(st.sampled_from(["status", "jobArn", "attempts", "TrainingJobStatus", "eventID"]), JSON),
)
def test_any_detail_is_read_or_refused(kind: tuple[str, str], detail: dict[str, Any]) -> None:
    outcome({"source": kind[0], "detail-type": kind[1], "time": "2026-09-14T10:32:01Z", "detail": detail})


@settings(max_examples=400)
@given(st.data())
def test_any_member_may_be_anything(data: st.DataObject) -> None:
    event = SAMPLES[data.draw(st.sampled_from(sorted(SAMPLES)))]
    path = data.draw(st.sampled_from(list(paths(event))))
    outcome(changed(event, path, data.draw(JSON)))


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize(
    "value", ["\ud800", 10**400, float("nan"), float("-inf"), "x" * 100_000, "\n", {}, []]
)
def test_awkward_values_anywhere(name: str, value: object) -> None:
    event = SAMPLES[name]
    for path in paths(event):
        outcome(changed(event, path, value))
