"""An exhausted job is submitted again once: whatever crashes, is lost, or comes in between (laws 1 and 3)."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from sharewarden.domain.priority import IN_FLIGHT, MOST_REFUSALS
from sharewarden.domain.record import JobRecord
from sharewarden.domain.resubmission import LIFE, is_open
from sharewarden.intake.wishes import carry_out
from sharewarden.ports import Denied, Unavailable
from sharewarden.usecases.apply import FRESH, apply

from tests.simulation.faults import Crash, When, crash, lose, nothing, once, watched
from tests.simulation.resubmit_kit import (
    ACT,
    NAME,
    NEW,
    RULES,
    TOKEN,
    call_number,
    calls_of_apply,
    case_of,
    ended,
    exhausted,
    notices,
    refusal,
    ruled,
    step,
    stopped,
    turn,
    wanted,
)
from tests.simulation.samples import ARN, HOUR, JOB
from tests.simulation.world import MINUTE, NOW, facts_of


@pytest.mark.parametrize(("number", "name"), list(enumerate(calls_of_apply(), 1)))
@pytest.mark.parametrize("fault", [crash, lose], ids=["crash", "lost"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_law_03_never_twice_wherever_it_stops(number: int, name: str, fault: Any, when: When) -> None:
    one = wanted()
    stopped(one, number, fault, when)
    with suppress(Unavailable):  # the message comes again at once, which is too early
        apply(one.runtime, JOB, ACT)
    for _ in range(3):
        turn(one)
    assert [name for _, name in one.batch.submitted] == [TOKEN], name
    (fact,) = facts_of(one.ledger, "resubmitted")
    assert fact.figures["next_job"] == NEW
    assert not facts_of(one.ledger, "resubmit-refused")
    assert not is_open(one.record(JOB).resubmission)
    assert step(one).done


@pytest.mark.parametrize(("number", "name"), list(enumerate(calls_of_apply(), 1)))
@pytest.mark.parametrize("when", ["before", "after"])
def test_law_03_two_applies_at_once(number: int, name: str, when: When) -> None:
    one = wanted()

    def other() -> None:
        with suppress(Unavailable):
            apply(one.runtime, JOB, ACT)

    runtime, _ = watched(one.runtime, once(number, when, other))
    with suppress(Unavailable):
        apply(runtime, JOB, ACT)
    for _ in range(3):
        turn(one)
    assert len(one.batch.submitted) == 1, name
    assert len(facts_of(one.ledger, "resubmitted")) == 1
    assert not facts_of(one.ledger, "resubmit-refused")


def test_law_03_an_answer_that_was_lost_is_found_by_its_name_at_once() -> None:
    one = wanted()
    runtime, _ = watched(one.runtime, once(call_number("submit"), "after", lose))
    assert apply(runtime, JOB, ACT) == "done"
    assert len(one.batch.submitted) == 1


def test_law_03_a_list_that_lags_leads_to_no_second_job() -> None:
    """The first call took effect, its answer was lost, and the list does not show the new job yet."""
    one = wanted()
    stopped(one, call_number("submit"), crash, "after")
    works, one.batch.named = one.batch.named, lambda *_: ()
    assert turn(one) == ["refused"]  # the token: it says nothing of the first job
    one.batch.named = works
    assert turn(one) == ["done"]
    assert len(one.batch.submitted) == 1
    assert len(facts_of(one.ledger, "resubmitted")) == 1


def test_law_01_a_job_that_may_be_there_is_not_called_undone() -> None:
    """No list ever shows it, and Batch refuses the token: it may be that of a first job, or anything else."""
    one = wanted()
    stopped(one, call_number("submit"), crash, "after")
    one.batch.named = lambda *_: ()
    assert turn(one) + turn(one) + turn(one) + turn(one) == ["refused"] * MOST_REFUSALS
    (fact,) = facts_of(one.ledger, "resubmit-refused")
    assert fact.reason.endswith("look for it")
    assert len(one.batch.submitted) == 1


def test_what_is_under_way_is_left_alone() -> None:
    one = wanted()
    stopped(one, call_number("submit"), crash, "before")
    with pytest.raises(Unavailable, match="may still change"):
        apply(one.runtime, JOB, ACT)
    one.clock.advance(IN_FLIGHT)
    assert apply(one.runtime, JOB, ACT) == "done"


@pytest.mark.parametrize("took_effect", [True, False])
def test_law_01_a_wish_that_was_tried_is_looked_for_before_it_is_given_up(*, took_effect: bool) -> None:
    """A role was taken from the list after the call, whose answer nobody had heard."""
    one = wanted()
    stopped(one, call_number("submit"), crash, "after" if took_effect else "before")
    one.policies.policy = ruled(RULES.model_copy(update={"roles": ("Other",)}))
    outcomes = turn(one) + turn(one)
    assert outcomes == (["done"] if took_effect else ["refused"])
    assert len(one.batch.submitted) == took_effect
    assert len(facts_of(one.ledger, "resubmitted")) == took_effect
    assert len(facts_of(one.ledger, "resubmit-refused")) == (not took_effect)


@pytest.mark.parametrize(
    "update",
    [
        {},
        {"tags": (("sharewarden-resubmission-of", "x"),)},
        {"tags": (("sharewarden-resubmission-of", JOB),), "share": "urgent"},
    ],
)
def test_a_name_that_is_taken_by_somebody_else_is_refused_and_told(update: dict[str, Any]) -> None:
    one = wanted()
    theirs = ended(NOW, job="theirs", arn="arn:theirs/theirs", name=NAME, **update)
    one.batch.tell(theirs)
    outcomes = one.apply_all()
    for _ in range(6):
        outcomes += turn(one)
    assert outcomes == ["refused"] * MOST_REFUSALS
    assert refusal(one) == f"the name {NAME} is taken by arn:theirs/theirs, which is not ours"


def test_a_refusal_is_tried_again_a_few_times_and_told() -> None:
    one = wanted()
    tried: list[str] = []

    def refuse(_submission: object, token: str) -> str:
        tried.append(token)
        raise Denied("SubmitServiceJob: AccessDeniedException: no iam:PassRole")

    one.batch.submit = refuse
    outcomes = one.apply_all()
    for _ in range(6):
        outcomes += turn(one)
    assert outcomes == ["refused"] * MOST_REFUSALS
    assert tried == [TOKEN] * MOST_REFUSALS
    assert "no iam:PassRole" in refusal(one)
    assert step(one).done


def test_law_03_a_job_is_never_wished_for_twice() -> None:
    one = wanted()
    one.apply_all()
    case = case_of(one)
    one.ledger.commit([case.model_copy(update={"resubmitted": False, "next_job": None})], [], NOW)
    before = one.record(JOB).resubmission
    step(one)
    turn(one)
    assert step(one).done
    assert len(one.batch.submitted) == 1
    assert one.record(JOB).resubmission == before


def test_the_new_job_belongs_to_the_attempt_that_led_to_it() -> None:
    """Batch went on with the job after all, and it was exhausted once more: there is no second new job."""
    one = wanted()
    one.apply_all()
    record = one.record(JOB)
    assert record.resubmission is not None
    other = record.resubmission.model_copy(update={"attempt": "arn:of/another"})
    one.ledger.commit([record.model_copy(update={"resubmission": other})], [], NOW)
    assert step(one).done
    assert case_of(one).next_job is None


def test_law_01_a_look_that_was_too_slow_forgets_nothing() -> None:
    one = wanted()
    stopped(one, call_number("submit"), crash, "after")
    one.policies.policy = ruled(RULES.model_copy(update={"roles": ("Other",)}))
    one.clock.advance(IN_FLIGHT)
    slow = once(call_number("commit"), "before", lambda: one.clock.advance(FRESH + 1))
    runtime, _ = watched(one.runtime, slow)
    with pytest.raises(Unavailable, match="grew old"):
        apply(runtime, JOB, ACT)
    assert turn(one) == ["done"]
    assert len(one.batch.submitted) == len(facts_of(one.ledger, "resubmitted")) == 1


def test_what_is_under_way_is_not_given_again() -> None:
    one = wanted()
    stopped(one, call_number("submit"), crash, "before")
    one.clock.advance(MINUTE)
    one.sweep("at once")
    assert list(one.wishes.drain()) == []
    assert turn(one) == ["done"]


def test_law_01_time_does_not_end_what_may_have_been_done() -> None:
    one = wanted()
    stopped(one, call_number("submit"), crash, "after")
    one.policies.policy = ruled(paused=True)
    assert turn(one, LIFE + HOUR) == []
    assert not facts_of(one.ledger, "resubmit-refused")
    one.policies.policy = ruled()
    assert turn(one) == ["done"]
    assert len(one.batch.submitted) == len(facts_of(one.ledger, "resubmitted")) == 1


def test_law_04_resubmissions_stay_under_the_blast_radius() -> None:
    one = exhausted()
    other = one.record(JOB).model_copy(update={"job": "job-2", "arn": f"{ARN[:-1]}2", "version": 0})
    one.batch.tell(ended(NOW, job="job-2", arn=f"{ARN[:-1]}2"))
    step(one)
    wish = one.record(JOB).resubmission
    assert wish is not None
    again = other.model_copy(
        update={"resubmission": wish.model_copy(update={"name": "n2", "token": "t2", "id": "resubmit-2"})}
    )
    one.ledger.commit([again], [], NOW)
    assert turn(one) == ["done"]
    assert turn(one) == ["done"]
    assert len(one.batch.submitted) == 2


def test_a_message_names_it_as_an_act() -> None:
    one = wanted()
    body = f'{{"job": "{JOB}", "termination": "{ACT}"}}'
    assert carry_out(one.runtime, body) == "done"
    assert carry_out(one.runtime, body) == "superseded"


def test_the_payload_is_in_no_text() -> None:
    one = wanted()
    submission = one.batch.submission(ARN)
    assert "s3cr3t" in submission.payload
    assert "s3cr3t" not in f"{submission!r} {submission}"
    one.apply_all()
    kept = "".join(item.model_dump_json() for item in one.ledger.items.values())
    assert "s3cr3t" not in kept + "".join(fact.model_dump_json() for fact in one.ledger.facts.values())


def test_the_record_of_the_new_job_starts_with_its_lineage() -> None:
    one = wanted()
    one.apply_all()
    one.sweep("adopts")
    record = one.ledger.load(JobRecord, "submitted-1")
    assert record is not None
    assert record.tag("lineage") == JOB
    assert not record.adopted


def _calls_of_the_step() -> list[str]:
    one = exhausted()
    runtime, calls = watched(one.runtime, nothing)
    step(one, runtime)
    return calls.names


@pytest.mark.parametrize(("number", "name"), list(enumerate(_calls_of_the_step(), 1)))
@pytest.mark.parametrize("fault", [crash, lose], ids=["crash", "lost"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("wants", [True, False])
def test_law_03_one_decision_wherever_the_step_stops(
    number: int, name: str, fault: Any, when: When, *, wants: bool
) -> None:
    one = exhausted(ruled(RULES if wants else RULES.model_copy(update={"roles": ()})))
    runtime, _ = watched(one.runtime, once(number, when, fault))
    with suppress(Crash, Unavailable):
        step(one, runtime)
    for _ in range(2):
        step(one)
        turn(one)
    assert step(one).done
    assert len(one.batch.submitted) == wants, name
    assert len(facts_of(one.ledger, "resubmitted")) == wants
    assert len(facts_of(one.ledger, "resubmit-refused")) == (not wants)
    assert len(notices(one)) == 1
