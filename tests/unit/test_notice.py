"""Notices at rest, and the words of the messages that tell them."""

import json
from typing import Any

import pytest
from sharewarden.domain.notice import (
    KEPT,
    Channel,
    Delivery,
    claimed,
    due,
    is_lost,
    sent,
    settled_under,
    unsure,
    untold,
)
from sharewarden.domain.stored import MINUTE
from sharewarden.domain.telling import LISTED, LONGEST_SUBJECT, compose

from tests.simulation.notices import BOTH, notice
from tests.simulation.world import NOW, QUEUE

#: SNS takes so much, attributes included (SNS API reference, Publish).
SNS_BYTES = 256 * 1024


def with_states(*states: str) -> Any:
    channels: tuple[Channel, ...] = ("topic", "webhook")
    rows: list[Any] = [
        Delivery(channel=channel, state=state, at=NOW + MINUTE)  # type: ignore[arg-type]
        for channel, state in zip(channels, states, strict=False)
    ]
    return notice("vision-1", deliveries=tuple(rows))


@pytest.mark.parametrize(
    ("states", "state"),
    [
        ([], "waiting"),
        (["waiting"], "waiting"),
        (["sent", "waiting"], "waiting"),
        (["waiting", "sending"], "sending"),
        (["unsure", "sending"], "sending"),
        (["sent", "failed"], "failed"),
        (["unsure", "failed"], "failed"),
        (["sent", "unsure"], "unsure"),
        (["sent", "sent"], "sent"),
    ],
)
def test_the_state_of_a_notice_is_that_of_its_channels(states: list[str], state: str) -> None:
    found = with_states(*states)
    assert found.state == state
    is_open = state in {"waiting", "sending"}
    assert found.is_open is is_open
    assert found.expires_at == (None if is_open else NOW + MINUTE + KEPT)
    assert found.open_queue == (QUEUE if is_open else settled_under(QUEUE, told=state == "sent"))


def test_what_nobody_was_told_is_forgotten_too() -> None:
    found = untold(notice("vision-1"), NOW + MINUTE)
    assert (found.state, found.expires_at) == ("untold", NOW + MINUTE + KEPT)
    assert not due(found, NOW + 2 * KEPT)


def test_a_delivery_begins_on_one_channel_of_those_set_up() -> None:
    begun = claimed(notice("vision-1"), "webhook", BOTH, NOW)
    assert [(one.channel, one.state, one.tries) for one in begun.deliveries] == [
        ("topic", "waiting", 0),
        ("webhook", "sending", 1),
    ]
    assert sent(begun, "webhook", NOW).state == "waiting"
    assert not is_lost(begun.deliveries[0], NOW + KEPT)


def test_why_is_kept_short() -> None:
    begun = claimed(notice("vision-1"), "topic", BOTH, NOW)
    kept = unsure(begun, "topic", "x" * 5000, NOW).deliveries[0].why
    assert kept is not None
    assert len(kept) == 200


def test_one_notice_in_words() -> None:
    told = compose([notice("vision-1", mode="shadow")])
    assert told.subject == "Sharewarden warning (shadow): checkpoint-required: vision-1"
    assert told.text == (
        "checkpoint-required: vision-1\n"
        "it may be preempted and saves nothing\n"
        "job: vision-1 (vision-1)\n"
        "time: 2026-09-14T08:00:00Z\n"
        "record: finding#vision-1#checkpoint-required\n"
        "\n"
        "kind: finding\n"
        "severity: warning\n"
        "team: research\n"
        "share: background\n"
        "queue: ml-train-qm\n"
        "mode: shadow (nothing was done)\n"
        "policy: 0123456789abcdef\n"
    )
    assert told.attributes == {
        "kind": "finding",
        "severity": "warning",
        "mode": "shadow",
        "team": "research",
        "share": "background",
    }


def test_one_notice_for_machines() -> None:
    assert compose([notice("vision-1")]).document == {
        "version": 1,
        "id": "finding#vision-1#checkpoint-required",
        "kind": "finding",
        "severity": "warning",
        "mode": "enforce",
        "queue": QUEUE,
        "share": "background",
        "team": "research",
        "policy": "0123456789abcdef",
        "count": 1,
        "notices": [
            {
                "record": "finding#vision-1#checkpoint-required",
                "title": "checkpoint-required: vision-1",
                "text": "it may be preempted and saves nothing",
                "job": "vision-1",
                "job_name": "vision-1",
                "at": "2026-09-14T08:00:00Z",
            }
        ],
    }


def test_what_is_not_known_is_left_out() -> None:
    told = compose([notice("x", share=None, team=None, job=None, job_name=None, policy=None)])
    assert told.attributes.keys() == {"kind", "severity", "mode"}
    assert "team: (no team)" in told.text
    assert not any(f"\n{name}:" in told.text for name in ("share", "job", "policy"))


@pytest.mark.parametrize(
    ("count", "listed", "more"),
    [(1, 1, None), (2, 2, None), (LISTED, LISTED, None), (LISTED + 1, LISTED, 1), (100, LISTED, 80)],
)
def test_several_are_listed_and_the_rest_is_counted(count: int, listed: int, more: int | None) -> None:
    told = compose([notice(f"vision-{number}", at=NOW + number * MINUTE) for number in range(count)])
    assert (f" and {count - 1} more" in told.subject) is (count > 1)
    assert told.text.count("record: ") == len(told.document["notices"]) == listed
    assert told.document["count"] == count
    listed = "sharewarden audit list --share background --since 2026-09-14T08:00:00Z"
    assert (f"and {more} more of this kind: {listed}" in told.text) is (more is not None)


def test_where_the_rest_is_found_without_a_share() -> None:
    told = compose([notice(f"vision-{number}", share=None) for number in range(LISTED + 1)])
    assert "and 1 more of this kind: the audit" in told.text


@pytest.mark.parametrize(
    "odd",
    ["x" * 100_000, "\u00fc" * 100_000, "\U0001f600" * 50_000, "a\nrecord: forged\x1b[2J\u202e", "\ud800"],
    ids=["long", "accents", "emoji", "control", "surrogate"],
)
def test_other_peoples_words_stay_on_their_line_and_a_message_within_bounds(odd: str) -> None:
    odd = odd.encode(errors="replace").decode()
    fields = {"title": odd, "text": odd, "job_name": odd, "team": odd, "share": odd}
    told = compose([notice(f"n{number}", **fields) for number in range(100)])
    assert told.subject.isascii()
    assert told.subject.isprintable()
    assert len(told.subject) <= LONGEST_SUBJECT
    assert told.text.count("\nrecord: ") == LISTED
    assert all(line.isprintable() for line in told.text.splitlines())
    attributes = json.dumps(told.attributes, ensure_ascii=False)
    assert len(told.text.encode()) + len(attributes.encode()) < SNS_BYTES / 4
    assert len(json.dumps(told.document, ensure_ascii=False).encode()) < SNS_BYTES / 4
