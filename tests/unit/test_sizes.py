"""What is kept of texts is bounded in bytes, since DynamoDB counts bytes."""

from __future__ import annotations

import pytest
from sharewarden.aws.rows import state_row
from sharewarden.domain.base import KEPT_REASON, shortened
from sharewarden.domain.observation import JobObservation
from sharewarden.domain.record import KEPT_TRANSITIONS, absorb, fold, new_record

from tests.simulation.samples import ARN, JOB, described
from tests.simulation.world import NOW, QUEUE

WIDE = {"ASCII": "x", "CJK": "\N{CJK UNIFIED IDEOGRAPH-6F22}", "emoji": "\U0001f600", "escaped": "\x01"}


@pytest.mark.parametrize("letter", WIDE.values(), ids=WIDE)
@pytest.mark.parametrize("length", [0, 33, 200, 5000])
def test_the_beginning_of_a_reason_is_bounded_in_bytes(letter: str, length: int) -> None:
    kept = shortened(letter * length)
    assert kept is not None
    assert letter * len(kept) == kept
    assert len(kept.encode()) <= KEPT_REASON
    if letter == "x":
        assert len(kept) == min(length, KEPT_REASON)


@pytest.mark.parametrize("letter", WIDE.values(), ids=WIDE)
def test_a_long_timeline_of_long_reasons_fits_into_an_item(letter: str) -> None:
    record = new_record(described())
    for at in range(KEPT_TRANSITIONS + 10):
        seen = JobObservation(
            job=JOB, arn=ARN, queue=QUEUE, at=NOW + at, what="status", status="RUNNABLE", reason=letter * 500
        )
        record = fold(record, seen)
    huge = described(status="FAILED", stopped_at=NOW, reason=letter * 200_000)
    assert state_row(absorb(record, huge))
