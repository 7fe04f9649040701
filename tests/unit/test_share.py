"""Which change a call of CloudTrail made, told in whole seconds, minutes late, and more than once."""

from __future__ import annotations

import pytest
from sharewarden.domain.share import FoundChange, ShareRecord, content_hash, found_at, told_of

FIRST = FoundChange(after=10_500, before=20_500, key="first")
SECOND = FoundChange(after=20_500, before=30_500, key="second")
RECORD = ShareRecord(arn="a", queue="q", read_at=30_500, found=(FIRST, SECOND))


@pytest.mark.parametrize(
    ("at", "key"),
    [
        (9_000, None),
        (10_000, "first"),  # the call was made in that second, so perhaps at 10.9
        (15_000, "first"),
        (20_000, "first"),
        (21_000, "second"),
        (30_000, "second"),
        (31_000, "second"),  # our clock may be behind
        (36_000, None),
    ],
)
def test_a_late_call_belongs_to_the_change_it_made(at: int, key: str | None) -> None:
    found = found_at(RECORD, at)
    assert (found and found.key) == key


def test_a_call_that_was_told_of_first_is_no_late_one_when_it_comes_again() -> None:
    """The sweep that read after it knew of it: what it found next is another change."""
    assert found_at(RECORD.model_copy(update={"told_at": 20_000}), 20_000) is None


@pytest.mark.parametrize(
    ("at", "told"),
    [
        (29_000, False),  # the last read showed what it did
        (30_000, True),  # in the second of the read, which did not show it: after the read
        (31_000, True),
    ],
)
def test_a_call_after_the_last_read_explains_the_next_change(at: int, told: bool) -> None:
    record = ShareRecord(arn="a", queue="q", read_at=30_500)
    after = told_of(record, at)
    assert (after.told, after.told_at) == (told, at)
    read = after.model_copy(update={"told": False, "read_at": 40_500})
    assert told_of(read, at) == read  # told again: nothing new


def test_the_hash_names_the_settings() -> None:
    assert content_hash(None) == "deleted"
