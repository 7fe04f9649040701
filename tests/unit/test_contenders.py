"""What of the queue's records is looked at around a preemption."""

from __future__ import annotations

from typing import Any

import pytest
from sharewarden.domain.attempts import Attempt
from sharewarden.domain.observation import ShareDescription, Status
from sharewarden.domain.preemption.case import Case
from sharewarden.domain.preemption.contenders import LONGEST_STOP, look_around, victim_of
from sharewarden.domain.preemption.preemptor import GRACE, REACTION, WINDOW, Bump, Victim
from sharewarden.domain.priority import Boost, PriorityLedger
from sharewarden.domain.record import JobRecord, Transition
from sharewarden.domain.share import Lowered, ShareRecord
from sharewarden.domain.stored import HOUR, SECOND

UNIT, QUEUE = "ml.g5.xlarge", "q"
BEGAN = 100 * HOUR
STOP = BEGAN + 17_669


def began(at: int, what: str = "preemption-started") -> Transition:
    return Transition(at=at, what=what, status="RUNNING")


def record(name: str, *timeline: Transition, **more: Any) -> JobRecord:
    known = JobRecord(
        job=name,
        arn=name,
        name=name,
        queue=QUEUE,
        created_at=BEGAN - HOUR,
        share="background",
        instance_type=UNIT,
        instance_count=2,
        priority=PriorityLedger(base=100, confirmed=100),
        timeline=timeline,
    )
    return known.model_copy(update=more)


ATTEMPT = Attempt(training_job="t1", stopped_at=STOP, preempted=True)


def victim(
    *timeline: Transition, opened_at: int = BEGAN, stopped_at: int = STOP, reason: str | None = None
) -> Victim:
    case = Case(attempt="t1", job="victim", queue=QUEUE, opened_at=opened_at)
    attempt = ATTEMPT.model_copy(update={"preemption_reason": reason})
    found = victim_of(record("victim", *timeline), attempt, stopped_at, case)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("at", "stopped_at", "told", "began_at"),
    [
        (BEGAN, STOP, True, BEGAN),
        (BEGAN, BEGAN, True, BEGAN),
        # events tell whole seconds; what is later than the stop began no stop
        (BEGAN + SECOND, BEGAN, True, BEGAN),
        (BEGAN + SECOND + 1, BEGAN, False, BEGAN),
        (BEGAN, BEGAN + LONGEST_STOP - SECOND, True, BEGAN),
        (BEGAN, BEGAN + LONGEST_STOP, False, BEGAN + LONGEST_STOP),
    ],
)
def test_a_beginning_that_was_told_belongs_to_the_stop_soon_after_it(
    at: int, stopped_at: int, told: bool, began_at: int
) -> None:
    found = victim(began(at), opened_at=at, stopped_at=stopped_at)
    assert (found.began_told, found.began_at, found.stopped_at) == (told, began_at, stopped_at)


@pytest.mark.parametrize("entry", [began(BEGAN + SECOND), began(BEGAN, "queue-blocked")])
def test_what_the_case_was_opened_by_may_be_no_beginning(entry: Transition) -> None:
    assert not victim(entry).began_told


def test_a_stop_takes_no_longer_than_the_grace() -> None:
    assert LONGEST_STOP >= GRACE


@pytest.mark.parametrize(
    ("reason", "said"),
    [(None, "unknown"), ("Cross-share preemption", "cross-share"), ("IN-SHARE", "in-share")],
)
def test_batch_s_words_are_kept(reason: str | None, said: str) -> None:
    assert victim(reason=reason).said == said


# --- around it ------------------------------------------------------------------------------------------


def dispatched(at: int, attempt: str = "a", until: int | None = None) -> tuple[Transition, ...]:
    told: list[tuple[int, Status]] = [(at, "SCHEDULED")]
    told += [] if until is None else [(until, "RUNNABLE")]
    return tuple(
        Transition(at=one, what="status", status=state, attempt=attempt if state == "SCHEDULED" else None)
        for one, state in told
    )


NEAR = STOP - LONGEST_STOP - REACTION


@pytest.mark.parametrize(
    ("since", "until", "near"),
    [
        (BEGAN - 2 * HOUR, None, True),
        (BEGAN - 2 * HOUR, NEAR, True),
        (BEGAN - 2 * HOUR, NEAR - 1, False),
        (STOP + WINDOW, None, True),
        (STOP + WINDOW + 1, None, False),
        (STOP + WINDOW + 1, STOP + WINDOW + 2, False),
    ],
)
def test_what_was_over_long_before_or_came_long_after_does_not_matter(
    since: int, until: int | None, near: bool
) -> None:
    look = look_around(victim(), [record("other", *dispatched(since, until=until))], [])
    assert (len(look.held), len(look.contenders)) == ((1, 1) if near else (0, 0))


def test_who_holds_instances_is_known_with_how_it_lost_them() -> None:
    attempts = (Attempt(training_job="a", stopped_at=BEGAN + SECOND, preempted=True),)
    other = record("other", *dispatched(BEGAN - HOUR), attempts=attempts)
    whole = record("whole", *dispatched(BEGAN - HOUR), share=None, instance_count=None)
    lost, held = look_around(victim(), [other, whole], []).held
    assert lost == ("other", "background", UNIT, 2, BEGAN - HOUR, BEGAN + SECOND, True, "a")
    assert held == ("whole", "", UNIT, 0, BEGAN - HOUR, None, False, "a")


@pytest.mark.parametrize(
    ("job", "more"),
    [("victim", {}), ("other", {"share": None}), ("other", {"instance_type": "ml.p5.48xlarge"})],
)
def test_who_cannot_have_been_it_is_no_contender(job: str, more: dict[str, Any]) -> None:
    assert not look_around(victim(), [record(job, *dispatched(STOP), **more)], []).contenders


@pytest.mark.parametrize(
    ("update", "counts"),
    [
        ({}, True),
        ({"amount": 0}, False),
        ({"amount": -5}, False),
        ({"since": STOP}, True),
        ({"since": STOP + 1}, False),
        ({"end": "expired", "ended_at": STOP + 1}, True),
        ({"end": "expired", "ended_at": STOP}, False),
    ],
)
def test_a_bump_counts_if_it_was_there_at_the_dispatch(update: dict[str, Any], counts: bool) -> None:
    boost = Boost(id="b", kind="human", amount=5, by="U1", reason="", since=BEGAN).model_copy(update=update)
    ledger = PriorityLedger(base=100, confirmed=105, boosts=(boost,))
    (found,) = look_around(victim(), [record("other", *dispatched(STOP), priority=ledger)], []).contenders
    assert found.bump == (Bump(id="b", kind="human", amount=5, by="U1") if counts else None)
    assert (found.priority, found.unit, found.instances, found.attempt) == (105, UNIT, 2, "a")


def test_limits_of_the_victim_s_type_are_looked_at_the_last_one_last() -> None:
    def low(share: str, at: int, unit: str = UNIT) -> Lowered:
        return Lowered(share=share, unit=unit, before=2, after=1, not_before=at, at=at)

    known = ShareDescription(arn="s", name="one", queue=QUEUE, limits=((UNIT, 1),), strategy="LEND")
    one = ShareRecord(
        arn="s", queue=QUEUE, description=known, lowered=(low("one", 3), low("one", 1, "ml.p5.48xlarge"))
    )
    gone = ShareRecord(arn="g", queue=QUEUE, lowered=(low("gone", 2),))
    look = look_around(victim(), [], [one, gone])
    assert [each.at for each in look.lowered] == [2, 3]
    assert look.shares == (known,)
    assert look.own("one", UNIT) == 1
    assert look.own("gone", UNIT) is None
