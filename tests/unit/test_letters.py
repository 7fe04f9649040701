"""What a dead letter says of itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sharewarden_tools.operations.letters import Letter, read_letter
from sharewarden_tools.template import TEMPLATE

EVENTS = sorted((TEMPLATE.parent / "events").glob("*.json"))
RULE = "arn:aws:events:us-east-1:123456789012:rule/stack-ServiceJobRule-1AB"
DELIVERY = {"RULE_ARN": RULE, "TARGET_ARN": "arn:q", "ERROR_CODE": "SDK_CLIENT_ERROR"}


def letter(body: str = "{}", queue: str = "EventsDeadLetters", **attributes: str) -> Letter:
    return Letter("m1", queue, "r1", body, 0, attributes)


@pytest.mark.parametrize(
    ("one", "home", "origin", "reason"),
    [
        (letter(origin="events", reason="Poison: x"), "EventsQueue", "react", "Poison: x"),
        (letter(origin="wishes", reason="Poison: y"), "WishesQueue", "apply", "Poison: y"),
        (letter(origin="notices", reason="KeyError: z"), "NoticesQueue", "notify", "KeyError: z"),
        (letter(origin="looks", reason="KeyError: z"), "LooksQueue", "watch", "KeyError: z"),
        (letter(origin="unheard of", reason="x"), "EventsQueue", "react", "x"),
        (
            letter(queue="NoticesDeadLetters"),
            "NoticesQueue",
            "SQS, from NoticesQueue",
            "received too often without being finished",
        ),
        (letter(), "EventsQueue", "SQS, from EventsQueue", "received too often without being finished"),
        (
            letter(queue="WishesDeadLetters"),
            "WishesQueue",
            "SQS, from WishesQueue",
            "received too often without being finished",
        ),
        (
            letter(**DELIVERY),
            "EventsQueue",
            "EventBridge, rule stack-ServiceJobRule-1AB",
            "SDK_CLIENT_ERROR: no message",
        ),
        (
            letter(**DELIVERY, ERROR_MESSAGE="gone", EXHAUSTED_RETRY_CONDITION="MaximumRetryAttempts"),
            "EventsQueue",
            "EventBridge, rule stack-ServiceJobRule-1AB",
            "SDK_CLIENT_ERROR: gone (exhausted retry condition MaximumRetryAttempts)",
        ),
    ],
)
def test_where_from_why_and_where_to(one: Letter, home: str, origin: str, reason: str) -> None:
    assert (one.home, one.origin, one.reason) == (home, origin, reason)


@pytest.mark.parametrize("file", EVENTS, ids=lambda file: file.stem)
def test_every_event_that_the_code_knows_may_go_back(file: Path) -> None:
    assert letter(file.read_text()).fault is None


@pytest.mark.parametrize(
    ("one", "fault"),
    [
        (letter("no json"), "Expecting value"),
        (letter("[" * 100_000), "recursion"),
        (letter('{"source": "aws.batch"}'), "detail"),
        (letter('{"job": "j", "version": 1}', "WishesDeadLetters"), None),
        (letter('{"job": "j"}', "WishesDeadLetters"), "not a wish"),
        (letter('{"notice": "finding#j"}', origin="notices"), None),
        (letter('{"notices": 1}', "NoticesDeadLetters"), "not a notice"),
        (letter('{"job": "j"}', "LooksDeadLetters"), None),
        (letter('{"job": "j", "version": 1}', origin="looks"), "not a look"),
    ],
)
def test_what_would_fail_again(one: Letter, fault: str | None) -> None:
    assert (one.fault is None) if fault is None else (fault in (one.fault or ""))


def test_the_group_is_the_job() -> None:
    wish = '{"job": "j1", "version": 1}'
    assert letter(wish, origin="wishes").job == "j1"
    message = {
        "MessageId": "m",
        "ReceiptHandle": "r",
        "Body": wish,
        "Attributes": {"SentTimestamp": "5", "MessageGroupId": "j1"},
        "MessageAttributes": {"origin": {"StringValue": "wishes", "DataType": "String"}},
    }
    read = read_letter("WishesDeadLetters", message)
    assert (read.group, read.job, read.sent_at, read.attributes) == ("j1", "j1", 5, {"origin": "wishes"})
    assert letter("{}").job is None


@pytest.mark.parametrize(
    "secret",
    [
        {"HyperParameters": {"api": "S"}},
        {"detail": [{"Environment": {"X": "S"}}]},
        {"userIdentity": {"accessKeyId": "S", "sessionToken": "S"}},
        {"requestParameters": {"serviceRequestPayload": "S"}},
        {"dbPassword": "S"},
    ],
)
def test_what_may_be_private_is_not_shown(secret: dict[str, Any]) -> None:
    shown = letter(json.dumps({"jobName": "visible", **secret})).shown()
    assert "visible" in shown
    assert '"S"' not in shown


@pytest.mark.parametrize("text", ["\x1b[2J", "a\nb", "\u202eabc", "\x9b"])
def test_nothing_moves_the_cursor_or_turns_the_line(text: str) -> None:
    one = letter('{"source": 1}', reason=text, origin="events")
    assert all(sign.isprintable() for sign in one.reason + (one.fault or ""))
