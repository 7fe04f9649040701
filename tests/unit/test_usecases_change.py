"""Two writers of one record: read again, and give up at last."""

from __future__ import annotations

import json

import pytest
from sharewarden.domain.decide import Decision
from sharewarden.domain.record import JobRecord
from sharewarden.intake.events import take_in
from sharewarden.ports import Conflict, Unavailable
from sharewarden.usecases.change import ATTEMPTS, change

from tests.simulation.faults import When, watched
from tests.simulation.samples import JOB, described, state
from tests.simulation.world import NOW, World, world


def pool() -> World:
    one = world()
    one.batch.tell(described())
    one.take(state("RUNNABLE", NOW))
    return one


class Losing:
    """Somebody else commits first, so many times."""

    def __init__(self, times: int) -> None:
        self.times = times

    def __call__(self, number: int, name: str, when: When) -> None:
        if (name, when) == ("commit", "before") and self.times:
            self.times -= 1
            raise Conflict("lost")


def raised(record: JobRecord) -> Decision:
    return Decision(record=record.model_copy(update={"gaps": record.gaps + 1}))


def test_a_lost_race_is_run_again_on_what_is_stored_then() -> None:
    one = pool()
    runtime, _ = watched(one.runtime, Losing(ATTEMPTS - 1))
    assert change(runtime, JOB, raised).record.gaps == 1
    assert one.record(JOB).gaps == 1


def test_a_race_lost_too_often_goes_back_to_the_queue() -> None:
    one = pool()
    before = one.record(JOB)
    with pytest.raises(Unavailable, match="another writer"):
        change(watched(one.runtime, Losing(ATTEMPTS))[0], JOB, raised)
    with pytest.raises(Unavailable, match="another writer"):
        take_in(watched(one.runtime, Losing(ATTEMPTS))[0], json.dumps(state("SCHEDULED", NOW + 2000)))
    assert one.record(JOB) == before


def test_law_09_what_changes_nothing_writes_nothing() -> None:
    one = pool()
    before = one.record(JOB)
    change(one.runtime, JOB, lambda record: Decision(record=record))
    assert one.record(JOB) == before


def test_a_job_without_a_record_has_nothing_to_change() -> None:
    with pytest.raises(KeyError):
        change(world().runtime, "nobody", raised)
