"""What a sweep's guardrails may add to a commit leaves room for the cases that it opens."""

from __future__ import annotations

from typing import Any

import pytest
from sharewarden.domain.decide import Decision
from sharewarden.domain.policy import Policy
from sharewarden.domain.preemption.case import Case
from sharewarden.domain.record import JobRecord
from sharewarden.usecases import guarding
from sharewarden.usecases.guarding import Around, FailedRules, guarded_in

RECORD = JobRecord(job="j", arn="a/j", name="j", queue="q", created_at=0)
CASES = tuple(Case(attempt=f"a/{n}", job="j", queue="q", opened_at=0) for n in range(24))


def test_the_room_for_guardrails_leaves_room_for_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    rooms: list[int] = []

    def seen(record: JobRecord, *_: object, room: int, **__: Any) -> Decision:
        rooms.append(room)
        return Decision(record=record)

    monkeypatch.setattr(guarding, "is_guarded", lambda *_: True)
    monkeypatch.setattr(guarding, "guard", seen)
    around = Around(Policy(), 0)
    guarded_in(around, Decision(record=RECORD), FailedRules())
    guarded_in(around, Decision(record=RECORD, cases=CASES), FailedRules())
    assert rooms[0] - rooms[1] == len(CASES)
