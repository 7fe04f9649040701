"""Durations as people write and read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sharewarden.domain.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("90s", 90_000),
        ("30m", 1_800_000),
        ("4h", 14_400_000),
        ("2d", 172_800_000),
        ("1h30m", 5_400_000),
        (" 1H 30M ", 5_400_000),
        ("0s", 0),
    ],
)
def test_parse(text: str, ms: int) -> None:
    assert parse_duration(text) == ms


@pytest.mark.parametrize(
    "text", ["", "5", "h", "-5m", "1.5h", "5w", "5 minutes", "1h30", "9999999s", "\u0663m"]
)
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="write for example"):
        parse_duration(text)


def test_a_duration_ends_where_no_time_could_be_written_any_more() -> None:
    assert parse_duration("999998d24h") == parse_duration("999999d")
    with pytest.raises(ValueError, match="too long: write 999999d at most, or for example 30d"):
        parse_duration("999999d1s")


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 s"),
        (999, "0 s"),
        (59_000, "59 s"),
        (60_000, "1 min"),
        (4_320_000, "1 h 12 min"),
        (90_061_000, "1 d 1 h"),
        (-60_000, "1 min"),
        (86_405_000, "1 d 5 s"),
    ],
)
def test_format(ms: int, text: str) -> None:
    assert format_duration(ms) == text


@given(st.integers(0, 999_999), st.sampled_from("smhd"))
def test_every_number_of_every_unit_is_read(number: int, unit: str) -> None:
    assert (
        parse_duration(f"{number}{unit}") == number * {"s": 1, "m": 60, "h": 3600, "d": 86_400}[unit] * 1000
    )
