"""Requests to save: what is written and read, and when there is one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sharewarden.domain.policy import Policy
from sharewarden.domain.save_request import (
    SOON,
    SPARE,
    SaveRequest,
    State,
    Victim,
    ack_object,
    acknowledged,
    body,
    can_wait,
    is_answered,
    open_request,
    raises_waiting,
    request_fact,
    request_object,
    victim_of,
)
from sharewarden_checkpoint.requests import REQUEST_ID, parse

from tests.simulation.asking_kit import WAIT, attempt, bumped, full
from tests.simulation.samples import HOUR, JOB, described
from tests.simulation.world import ENFORCE, MINUTE, NOW, QUEUE

REQUEST = SaveRequest(job=JOB, wish=1, queue=QUEUE, value=300, asked_at=NOW, until=NOW + WAIT)
ACK = {"format": 1, "request_id": "r-1", "step": 7, "saved_at": NOW, "set": "step-000000000007-ab12"}


def victim(state: State = "planned", **update: Any) -> Victim:
    known = {"job": "low", "name": "low", "attempt": attempt("low"), "uri": "s3://b/x", "request_id": "r-1"}
    return Victim(**known | {"state": state} | update)


def test_the_training_helper_reads_what_is_written() -> None:
    one = full()
    asked = victim_of(one.record("low"), attempt("low"), REQUEST)
    request = parse(body(asked, REQUEST))
    assert (request.id, request.deadline) == (asked.request_id, NOW + WAIT)
    assert REQUEST_ID.fullmatch(asked.request_id)
    assert request_object(asked) == ".sharewarden/requests/AWSBatchlow.json"
    assert ack_object(asked, "r-1") == ".sharewarden/acks/AWSBatchlow/r-1.json"


def test_the_id_is_that_of_the_wish_and_the_attempt() -> None:
    record = full().record("low")
    again = REQUEST.model_copy(update={"wish": 2})
    ids = [
        victim_of(record, attempt(job), request).request_id
        for request, job in ((REQUEST, "low"), (REQUEST, "low"), (REQUEST, "lower"), (again, "low"))
    ]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3


@pytest.mark.parametrize(
    ("change", "read"),
    [
        ({}, True),
        ({"more": 1}, True),
        ({"format": 2}, False),
        ({"request_id": "r-2"}, False),
        ({"step": -1}, False),
        ({"step": "7"}, False),
        ({"step": True}, False),
        ({"saved_at": None}, False),
        ({"saved_at": 253_402_300_800_000}, False),
        ({"step": 8}, False),
        ({"step": 10**30}, False),
        ({"set": "../../x"}, False),
        ({"set": "step-7-a/b"}, False),
        ({"set": "step-7-a\n"}, False),
    ],
)
def test_what_is_an_acknowledgement(change: dict[str, Any], *, read: bool) -> None:
    found = acknowledged(json.dumps(ACK | change).encode(), "r-1")
    assert (found is not None) == read


@pytest.mark.parametrize("text", [None, b"", b"\xff", b"[]", b"null", b"[" * 100_000])
def test_garbage_says_nothing(text: bytes | None) -> None:
    assert acknowledged(text, "r-1") is None
    assert open_request(text, NOW) is None


@pytest.mark.parametrize(
    ("change", "open_id"),
    [
        ({}, "r-1"),
        ({"deadline": NOW + SOON - 1}, None),
        ({"deadline": "soon"}, None),
        ({"deadline": True}, None),
        ({"request_id": "../x"}, None),
        ({"request_id": 1}, None),
        ({"format": 2}, None),
    ],
)
def test_which_request_can_still_be_taken_up(change: dict[str, Any], open_id: str | None) -> None:
    told = {"format": 1, "request_id": "r-1", "asked_at": 1, "deadline": NOW + SOON}
    assert open_request(json.dumps(told | change).encode(), NOW) == open_id


@pytest.mark.parametrize(
    ("update", "asks"),
    [
        ({}, True),
        ({"status": "SUBMITTED"}, True),
        ({"status": "RUNNING"}, False),
        ({"status": "SCHEDULED"}, False),
        ({"status": "SUCCEEDED"}, False),
        ({"priority": 777}, False),  # somebody else's
        ({"priority": None}, False),
    ],
)
def test_what_waits_is_asked_for(update: dict[str, object], *, asks: bool) -> None:
    one = full()
    bumped(one)
    record = one.record(JOB)
    assert record.priority.wish is not None
    assert raises_waiting(record, record.priority.wish, described(**update)) == asks


def test_lowering_pushes_nobody_out() -> None:
    one = full()
    bumped(one)
    record = one.record(JOB)
    assert record.priority.wish is not None
    lower = record.priority.wish.model_copy(update={"value": 200})
    assert not raises_waiting(record, lower, described())


def test_a_wish_that_would_die_of_waiting_does_not_wait() -> None:
    one = full()
    bumped(one)
    wish = one.record(JOB).priority.wish
    assert wish is not None
    last = wish.not_after - WAIT - SPARE
    assert can_wait(wish, WAIT, last)
    assert not can_wait(wish, WAIT, last + 1)


@pytest.mark.parametrize(
    ("states", "answered"),
    [
        ((), True),
        (("saved", "refused", "unreadable"), True),
        (("saved", "asked"), False),
        (("planned",), False),
        (("uploading",), False),
    ],
)
def test_whom_is_waited_for(states: tuple[State, ...], *, answered: bool) -> None:
    assert is_answered(REQUEST.model_copy(update={"victims": tuple(map(victim, states))})) == answered


def test_the_record_of_it() -> None:
    saved = victim("saved", step=7, saved_at=NOW + 5, set="step-7-a")
    done = {"victims": (saved, victim("asked", job="lower")), "settled_at": NOW + 20_000, "unasked": 3}
    (fact,) = request_fact(REQUEST.model_copy(update=done), full().record(JOB), ENFORCE)
    assert (fact.key, fact.at, fact.mode) == (f"save-request#{JOB}#v1", NOW, "enforce")
    assert fact.reason == "1 of 2 jobs had a new save in S3 before pretrain is raised to 300; it waited 20 s"
    assert [one["state"] for one in fact.figures["victims"]] == ["saved", "asked"]
    assert (fact.figures["waited"], fact.figures["unasked"]) == (20, 3)
    assert "uri" not in fact.figures["victims"][0]


@pytest.mark.parametrize("victims", [None, ()])
def test_nobody_asked_is_nothing_to_record(victims: tuple[()] | None) -> None:
    request = REQUEST.model_copy(update={"victims": victims})
    assert request_fact(request, full().record(JOB), ENFORCE) == ()


@pytest.mark.parametrize(
    ("wait", "life", "fault"),
    [
        ("29s", HOUR, "greater than or equal"),
        ("11m", HOUR, "less than or equal"),
        ("10m", 19 * MINUTE, "10m longer"),
    ],
)
def test_waits_that_the_policy_refuses(wait: str, life: int, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        Policy.model_validate({"checkpoints": {"ask_before_bump": wait}, "wish_life": life})


def test_nobody_is_asked_by_default() -> None:
    assert Policy().checkpoints.ask_before_bump is None
    assert Policy.model_validate({"checkpoints": {"ask_before_bump": "10m"}, "wish_life": "20m"})
