"""Whose number a job's priority is: bands, confirmations, lost answers, drift."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sharewarden.domain.policy import Bands
from sharewarden.domain.priority import (
    IN_FLIGHT,
    KEPT_ENDED_BOOSTS,
    Boost,
    Done,
    Drift,
    PriorityLedger,
    confirm,
    effective,
    end_boosts,
    intend,
    live_boosts,
    read,
    revoke,
    wish_for,
    with_boost,
)
from sharewarden.domain.stored import DAY

BANDS = Bands()
SETTLE = 60_000
BASE = PriorityLedger(base=200, confirmed=200)


def boost(amount: int, kind: str = "human", **more: object) -> Boost:
    made = Boost(id=f"{kind}{amount}", kind="human", amount=amount, by="U1", reason="r", since=0)
    return made.model_copy(update={"kind": kind} | more)


def raised(*boosts: Boost, base: int = 200) -> PriorityLedger:
    ledger = PriorityLedger(base=base, confirmed=base)
    for one in boosts:
        ledger = with_boost(ledger, one)
    return ledger


def wished(ledger: PriorityLedger, now: int = 0) -> PriorityLedger:
    return wish_for(ledger, BANDS, actor="U1", reason="r", now=now, life=1000)


@pytest.mark.parametrize(
    ("base", "boosts", "expected"),
    [
        (200, [], 200),
        (200, [boost(100)], 300),
        (200, [boost(100), boost(300)], 500),  # the greatest, not the sum
        (200, [boost(9000)], 999),  # the top of the human band
        (200, [boost(9000, "automatic")], 799),  # the automatic one ends lower
        (200, [boost(700, "automatic"), boost(650)], 850),  # each is clamped by its own
        (1500, [boost(100)], 1500),  # a base above every band is left alone, never lowered
        (990, [boost(100)], 999),
        (200, [boost(-50)], 150),
        (200, [boost(100), boost(-50), boost(-20)], 250),
        (10, [boost(-50)], 0),
        (200, [boost(100, end="expired")], 200),
    ],
)
def test_law_04_boosts_are_clamped_and_bases_are_not(base: int, boosts: list[Boost], expected: int) -> None:
    assert effective(raised(*boosts, base=base), BANDS) == expected


@given(st.integers(0, 9999), st.lists(st.integers(-9999, 9999), max_size=5), st.booleans())
def test_law_04_no_boost_leads_above_its_band(base: int, amounts: list[int], automatic: bool) -> None:
    kind = "automatic" if automatic else "human"
    top = (BANDS.automatic if automatic else BANDS.human).highest
    value = effective(raised(*(boost(amount, kind) for amount in amounts), base=base), BANDS)
    assert 0 <= value <= max(base, top)


def test_without_a_base_there_is_nothing_to_build_on() -> None:
    with pytest.raises(ValueError, match="base"):
        effective(PriorityLedger(), BANDS)


def test_the_first_read_gives_the_base() -> None:
    ledger, found = read(PriorityLedger(), 70, 5, SETTLE)
    assert (ledger.base, ledger.confirmed, found) == (70, 70, None)


def test_a_boost_is_given_once() -> None:
    once = raised(boost(100))
    assert with_boost(once, boost(100)) == once


def test_ended_boosts_are_forgotten_oldest_first_and_live_ones_never() -> None:
    ledger = raised(*(boost(n, end="expired") for n in range(1, KEPT_ENDED_BOOSTS + 5)), boost(500))
    ledger = with_boost(ledger, boost(600))
    assert [one.amount for one in live_boosts(ledger)] == [500, 600]
    assert next(one.amount for one in ledger.boosts if one.end) == 5


# Wishes.


def test_no_wish_for_what_batch_shows_already() -> None:
    assert wished(BASE) == BASE


def test_a_newer_wish_takes_the_place_of_an_older_one() -> None:
    first = wished(raised(boost(100)))
    second = wished(with_boost(first, boost(300)))
    assert (first.wish and first.wish.version, first.wish and first.wish.value) == (1, 300)
    assert (second.wish and second.wish.version, second.wish and second.wish.value) == (2, 500)


def test_a_wish_back_to_what_is_shown_is_no_wish() -> None:
    first = wished(raised(boost(100)))
    back, ended = end_boosts(first, frozenset({"human100"}), "revoked", 5)
    assert [one.end for one in ended] == ["revoked"]
    assert wished(back).wish is None


def test_a_wish_back_while_a_value_is_under_way_is_one() -> None:
    """The value may land yet: then Batch does not show any more what the ledger takes for confirmed."""
    sent = intend(wished(raised(boost(100))), 0)
    back, _ = end_boosts(sent, frozenset({"human100"}), "revoked", 5)
    again = wished(back)
    assert (again.wish and again.wish.value, again.version) == (200, 2)


def test_nothing_is_sent_without_a_wish_or_beside_another_value() -> None:
    with pytest.raises(ValueError, match="no wish"):
        intend(BASE, 0)
    with pytest.raises(ValueError, match="no wish"):
        intend(intend(wished(raised(boost(100))), 0), 1)


# What Batch shows.

SENT = intend(wished(raised(boost(100))), 1000)


def test_a_confirmed_value_is_done_once() -> None:
    ledger, done = confirm(SENT, 2000)
    assert (ledger.confirmed, ledger.wish, ledger.sent) == (300, None, None)
    assert done
    assert (done.sent.version, done.sent.before, done.sent.value) == (1, 200, 300)
    assert confirm(ledger, 3000) == (ledger, None)


def test_a_lost_answer_is_found_by_the_next_read() -> None:
    ledger, found = read(SENT, 300, 2000, SETTLE)
    assert isinstance(found, Done)
    assert ledger == confirm(SENT, 2000)[0]


def test_a_lost_request_is_given_up_after_a_while_and_only_then() -> None:
    soon, _ = read(SENT, 200, 1000 + IN_FLIGHT - 1, SETTLE)
    late, found = read(SENT, 200, 1000 + IN_FLIGHT, SETTLE)
    assert soon.sent == SENT.sent
    assert (late.sent, late.wish, found) == (None, SENT.wish, None)


def test_a_value_that_lands_after_its_wish_was_superseded_is_ours() -> None:
    newer = wished(with_boost(SENT, boost(300)))
    ledger, found = read(newer, 300, 2000, SETTLE)
    assert isinstance(found, Done)
    assert found.sent.version == 1
    assert (ledger.confirmed, ledger.wish and ledger.wish.version) == (300, 2)


def test_a_wish_for_the_value_shown_is_idle_once_nothing_is_under_way() -> None:
    back, _ = end_boosts(SENT, frozenset({"human100"}), "revoked", 5)
    waiting, _ = read(wished(back), 200, 2000, SETTLE)
    idle, found = read(waiting, 200, 1000 + IN_FLIGHT, SETTLE)
    assert waiting.wish is not None
    assert (idle.wish, idle.sent, found) == (None, None, None)


def test_an_answer_older_than_what_is_known_says_nothing() -> None:
    """A sweep may read, and ``apply`` act, before the sweep commits."""
    ledger, _ = confirm(SENT, 2000)
    assert read(ledger, 200, 1999, SETTLE) == (ledger, None)


# Drift.


def test_law_03_drift_needs_two_reads_and_the_settle_time() -> None:
    first, found = read(raised(boost(100)), 555, 1000, SETTLE)
    assert (found, first.suspect and first.suspect.first_seen) == (None, 1000)
    early, found = read(first, 555, 1000 + SETTLE - 1, SETTLE)
    assert (found, early.base) == (None, 200)
    settled, found = read(early, 555, 1000 + SETTLE, SETTLE)
    assert isinstance(found, Drift)
    assert (found.before, found.value, found.first_seen) == (200, 555, 1000)
    assert [one.end for one in found.ended] == ["superseded"]
    assert (settled.base, settled.confirmed, settled.wish) == (555, 555, None)
    assert not live_boosts(settled)


@pytest.mark.parametrize("value", [0, 5000, 9999])
def test_law_03_drift_is_taken_as_it_is_also_above_every_band(value: int) -> None:
    first, _ = read(BASE, value, 0, SETTLE)
    settled, _ = read(first, value, SETTLE, SETTLE)
    assert effective(settled, BANDS) == value
    assert wished(settled) == settled


def test_law_05_a_value_that_keeps_changing_settles_as_the_newest() -> None:
    first, _ = read(raised(boost(100)), 555, 0, SETTLE)
    other, found = read(first, 556, SETTLE - 1, SETTLE)
    assert (found, other.suspect and other.suspect.value) == (None, 556)
    settled, found = read(other, 557, SETTLE, SETTLE)
    assert isinstance(found, Drift)
    assert (found.value, found.first_seen, settled.base) == (557, 0, 557)
    assert not live_boosts(settled)


def test_a_value_that_goes_back_is_nothing() -> None:
    first, _ = read(BASE, 555, 0, SETTLE)
    back, found = read(first, 200, 2 * SETTLE, SETTLE)
    assert (found, back.suspect, back.base) == (None, None, 200)


def test_a_clock_that_ran_a_day_ahead_blinds_nobody() -> None:
    ahead, _ = read(BASE, 555, DAY, SETTLE)
    again, _ = read(ahead, 555, 1000, SETTLE)
    _, found = read(again, 555, 1000 + SETTLE, SETTLE)
    assert isinstance(found, Drift)
    assert found.first_seen == 1000
    lost = intend(wished(raised(boost(100))), DAY)
    assert read(lost, 200, 1000, SETTLE)[0].sent is None


def test_drift_over_a_value_of_ours_leaves_its_fate_unknown() -> None:
    first, _ = read(SENT, 555, 2000, SETTLE)
    settled, found = read(first, 555, 2000 + SETTLE, SETTLE)
    assert isinstance(found, Drift)
    assert found.unknown == SENT.sent
    assert settled.sent is None


# Revoking.


def test_revoking_makes_the_boosts_of_people_due_and_no_others() -> None:
    ledger = raised(boost(100, until=50), boost(200), boost(300, "automatic"), boost(400, end="expired"))
    taken = {one.amount: (one.until, one.revoked) for one in revoke(ledger, "u1", 70).boosts}
    assert taken == {100: (50, "u1"), 200: (70, "u1"), 300: (None, None), 400: (None, None)}


def test_a_boost_taken_back_keeps_who_took_it_first() -> None:
    twice = revoke(revoke(raised(boost(100)), "u1", 70), "u2", 90)
    assert [(one.until, one.revoked) for one in twice.boosts] == [(70, "u1")]
