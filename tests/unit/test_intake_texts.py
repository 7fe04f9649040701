"""Texts in events that JSON has and UTF-8 does not."""

from __future__ import annotations

import json

from sharewarden.domain.record import JobRecord
from sharewarden.intake.events import take_in

from tests.simulation.samples import JOB, described, state
from tests.simulation.world import NOW, world


def test_half_a_pair_of_surrogates_in_an_event_can_be_stored() -> None:
    one = world()
    one.batch.tell(described())
    body = json.dumps(state("RUNNABLE", NOW, statusReason="\ud800 by \U0001f600"))
    assert take_in(one.runtime, body).outcome == "tracked"
    record = one.ledger.load(JobRecord, JOB)
    assert record is not None
    assert record.timeline[-1].reason == "? by \U0001f600"
    assert record.model_dump_json()
