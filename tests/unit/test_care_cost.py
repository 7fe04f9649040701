"""The steps that measure a preemption and name who was behind it: once, late enough, whatever comes twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sharewarden.domain.attempts import Attempt
from sharewarden.domain.audit import AuditRecord
from sharewarden.domain.checkpoints import Save
from sharewarden.domain.observation import Status
from sharewarden.domain.preemption.case import Case
from sharewarden.domain.preemption.preemptor import WINDOW
from sharewarden.domain.priority import Boost, PriorityLedger
from sharewarden.domain.record import End, JobRecord, Transition
from sharewarden.domain.share import Lowered, ShareRecord
from sharewarden.domain.stored import HOUR, MINUTE, SECOND, Stored
from sharewarden.ports import Unavailable
from sharewarden.usecases.care import measure as measuring
from sharewarden.usecases.care import preemptor as naming
from sharewarden.usecases.care.frame import Answer, Step, take
from sharewarden.usecases.care.measure import measure
from sharewarden.usecases.care.preemptor import preemptor

from tests.simulation.faults import Crash, When, crash, lose, nothing, once, watched
from tests.simulation.world import NOW, QUEUE, World, facts_of, world
from tests.unit.share_kit import UNIT, lending

BEGAN = NOW - NOW % SECOND
STOP = BEGAN + 17_669
TRAINING = "arn:aws:sagemaker:us-east-1:123456789012:training-job/AWSBatch-1"
DONE = Answer(done=True, wait=0, outcome="requeued")


def steps(*told: tuple[int, Status], attempt: str) -> tuple[Transition, ...]:
    return tuple(
        Transition(at=at, what="status", status=state, attempt=None if state == "RUNNABLE" else attempt)
        for at, state in told
    )


def job(name: str, share: str, *timeline: Transition, **more: Any) -> JobRecord:
    known = JobRecord(
        job=name,
        arn=f"arn:aws:batch:us-east-1:123456789012:service-job/{name}",
        name=f"{name}-name",
        queue=QUEUE,
        created_at=BEGAN - HOUR,
        share=share,
        instance_type=UNIT,
        instance_count=1,
        priority=PriorityLedger(base=100, confirmed=100),
        timeline=timeline,
    )
    return known.model_copy(update=more)


ATTEMPT = Attempt(
    training_job=TRAINING,
    started_at=BEGAN - 30 * MINUTE,
    stopped_at=STOP,
    preemption_reason="Cross-share preemption triggered to reclaim borrowed capacity",
    preempted=True,
    cased=True,
)
STARTED = Transition(at=BEGAN, what="preemption-started", status="RUNNING")
VICTIM = job(
    "victim",
    "background",
    *steps((BEGAN - 34 * MINUTE, "SCHEDULED"), (BEGAN - 30 * MINUTE, "RUNNING"), attempt=TRAINING),
    STARTED,
    *steps((BEGAN + 20 * SECOND, "RUNNABLE"), attempt=TRAINING),
    attempts=(ATTEMPT,),
)
OLDER = job("older", "background", *steps((BEGAN - 50 * MINUTE, "SCHEDULED"), attempt="older-1"))
DISPATCHED, RUNNING = BEGAN + 20 * SECOND, BEGAN + 5 * MINUTE
OWNER = job(
    "owner",
    "medium",
    *steps((BEGAN - 2 * SECOND, "RUNNABLE"), (DISPATCHED, "SCHEDULED"), attempt="owner-1"),
    created_at=BEGAN - 4 * SECOND,
)
RUNS = OWNER.model_copy(
    update={"timeline": (*OWNER.timeline, *steps((RUNNING, "RUNNING"), attempt="owner-1"))}
)
SAVE = Save(name="s", step=12, saved_at=STOP - MINUTE, size=1, files=1, layout="manifest")
CASE = Case(
    attempt=TRAINING,
    job="victim",
    queue=QUEUE,
    opened_at=BEGAN,
    save=SAVE,
    sight="found",
    outcome="requeued",
)


def share(name: str, limit: int = 1, **more: Any) -> ShareRecord:
    known = lending(name, QUEUE, limit)
    return ShareRecord(arn=known.arn, queue=QUEUE, description=known).model_copy(update=more)


SHARES = (share("background"), share("medium"))


def told_world(*items: Stored, after: int = 0, shares: tuple[ShareRecord, ...] = SHARES) -> World:
    """A world that knows these, so long after the stop."""
    one = world()
    one.clock.at = STOP + after
    one.ledger.commit([*items, *shares], [], NOW)
    return one


def replace_record(one: World, record: JobRecord) -> None:
    known = one.record(record.job)
    one.ledger.commit([record.model_copy(update={"version": known.version})], [], NOW)


def only(one: World, kind: str) -> AuditRecord:
    (fact,) = facts_of(one.ledger, kind)
    return fact


def case_of(one: World) -> Case:
    case = one.ledger.load(Case, TRAINING)
    assert case is not None
    return case


# --- measure --------------------------------------------------------------------------------------------


def test_law_01_a_preempted_attempt_is_measured_once() -> None:
    one = told_world(CASE, VICTIM)
    assert [take(one.runtime, TRAINING, measure) for _ in range(3)] == [DONE] * 3
    fact = only(one, "preemption-measure")
    assert (fact.at, fact.job, fact.share) == (STOP, "victim", "background")
    assert fact.reason == "lost 1 min (0.02 GPU-hours): since the save of step 12"
    assert (fact.figures["kind"], fact.figures["held_seconds"]) == ("cross-share", 240)
    assert case_of(one).measured


def test_it_waits_for_the_stop() -> None:
    unstopped = VICTIM.model_copy(update={"attempts": (ATTEMPT.model_copy(update={"stopped_at": None}),)})
    one = told_world(CASE, unstopped)
    assert take(one.runtime, TRAINING, measure) == Answer(done=False, wait=60, outcome="requeued")
    replace_record(one, VICTIM)
    assert take(one.runtime, TRAINING, measure) == DONE
    assert only(one, "preemption-measure").figures["basis"] == "save"


def test_a_stop_that_nobody_tells_is_on_record_as_not_known() -> None:
    unstopped = VICTIM.model_copy(update={"attempts": (ATTEMPT.model_copy(update={"stopped_at": None}),)})
    one = told_world(CASE, unstopped)
    one.clock.at = BEGAN + measuring.PATIENCE
    assert take(one.runtime, TRAINING, measure) == DONE
    fact = only(one, "preemption-measure")
    assert (fact.at, fact.figures["basis"], fact.figures["lost_seconds"]) == (BEGAN, "no-stop", None)
    assert take(one.runtime, TRAINING, preemptor) == DONE
    named = only(one, "preemptor")
    assert (named.at, named.figures["preemptor"], named.figures["kind"]) == (BEGAN, None, "unknown")


MISTAKEN = VICTIM.model_copy(update={"attempts": (ATTEMPT.model_copy(update={"preempted": False}),)})


@pytest.mark.parametrize("record", [MISTAKEN, VICTIM.model_copy(update={"attempts": ()})])
def test_law_01_an_attempt_that_was_not_preempted_is_never_measured(record: JobRecord) -> None:
    one = told_world(CASE, record)
    assert not take(one.runtime, TRAINING, measure).done
    one.clock.at = BEGAN + measuring.PATIENCE
    assert take(one.runtime, TRAINING, measure) == DONE
    assert take(one.runtime, TRAINING, preemptor) == DONE
    assert not one.ledger.facts
    assert not case_of(one).measured


def test_nobody_waits_for_a_job_that_has_ended() -> None:
    ended = MISTAKEN.model_copy(update={"end": End(status="SUCCEEDED", at=STOP)})
    one = told_world(CASE, ended)
    assert take(one.runtime, TRAINING, measure) == DONE
    assert not one.ledger.facts


def test_an_attempt_whose_start_only_an_event_told_has_trained() -> None:
    untold = ATTEMPT.model_copy(update={"started_at": None})
    one = told_world(CASE, VICTIM.model_copy(update={"attempts": (untold,)}))
    take(one.runtime, TRAINING, measure)
    assert only(one, "preemption-measure").figures["seconds"] == (STOP - BEGAN + 30 * MINUTE) / SECOND


def test_preempted_before_it_ran_it_lost_nothing_and_had_held_its_instances() -> None:
    scheduled = steps((BEGAN - MINUTE, "SCHEDULED"), attempt=TRAINING)
    update = {
        "timeline": (*scheduled, STARTED),
        "attempts": (ATTEMPT.model_copy(update={"started_at": None}),),
    }
    one = told_world(CASE, VICTIM.model_copy(update=update))
    take(one.runtime, TRAINING, measure)
    figures = only(one, "preemption-measure").figures
    assert (figures["basis"], figures["lost_gpu_seconds"]) == ("not-started", 0)
    assert figures["held_seconds"] == 60 + 17.669


# --- preemptor ------------------------------------------------------------------------------------------

JUDGED = WINDOW + naming.LATE


def test_the_preemptor_is_told_once_with_the_owner_s_wait() -> None:
    one = told_world(CASE, VICTIM, OLDER, RUNS, after=JUDGED)
    assert [take(one.runtime, TRAINING, preemptor) for _ in range(3)] == [DONE] * 3
    fact = only(one, "preemptor")
    assert (fact.at, fact.share, fact.job) == (STOP, "background", "victim")
    figures = fact.figures
    assert (figures["kind"], figures["confidence"]) == ("cross-share", "high")
    assert (figures["preemptor"], figures["preemptor_name"]) == ("owner", "owner-name")
    assert (figures["preemptor_share"], figures["preemptor_attempt"]) == ("medium", "owner-1")
    assert (figures["running_at"], figures["waited_seconds"]) == (RUNNING, 304)
    assert figures["evidence"]["freed"] == 1
    assert fact.reason == (
        "cross-share by owner-name of share medium (confidence high): alone of those who had waited, "
        "it was dispatched 2 s after the stop; it had waited 5 min 4 s until it ran"
    )


def test_it_waits_until_the_window_is_over() -> None:
    one = told_world(CASE, VICTIM, OLDER, RUNS)
    answer = take(one.runtime, TRAINING, preemptor)
    assert answer == Answer(done=False, wait=JUDGED // SECOND, outcome="requeued")
    one.clock.advance(answer.wait * SECOND)
    assert take(one.runtime, TRAINING, preemptor) == DONE


@pytest.mark.parametrize("after", [MINUTE, WINDOW])
def test_what_is_left_of_the_window_is_waited_for(after: int) -> None:
    one = told_world(CASE, VICTIM, OLDER, RUNS, after=after)
    assert take(one.runtime, TRAINING, preemptor).wait == (JUDGED - after) // SECOND


#: The owner had run before, and was requeued when the preemption was about to begin.
EARLIER = steps(
    (BEGAN - 40 * MINUTE, "SCHEDULED"),
    (BEGAN - 30 * MINUTE, "RUNNING"),
    (BEGAN - 2 * SECOND, "RUNNABLE"),
    attempt="owner-0",
)


@pytest.mark.parametrize("named_late", [False, True])
def test_the_wait_is_that_of_the_attempt_that_came_then(named_late: bool) -> None:
    """Its name may come late."""
    scheduled = Transition(
        at=DISPATCHED, what="status", status="SCHEDULED", attempt=None if named_late else "owner-1"
    )
    owner = OWNER.model_copy(update={"created_at": BEGAN - HOUR, "timeline": (*EARLIER, scheduled)})
    one = told_world(CASE, VICTIM, OLDER, owner, after=JUDGED)
    assert not take(one.runtime, TRAINING, preemptor).done
    running = steps((RUNNING, "RUNNING"), attempt="owner-1")
    replace_record(one, owner.model_copy(update={"timeline": (*owner.timeline, *running)}))
    assert take(one.runtime, TRAINING, preemptor) == DONE
    figures = only(one, "preemptor").figures
    assert (figures["preemptor_attempt"], figures["running_at"]) == ("owner-1", RUNNING)
    assert figures["waited_seconds"] == 302


def test_the_owner_is_waited_for_until_it_runs() -> None:
    one = told_world(CASE, VICTIM, OLDER, OWNER, after=JUDGED)
    assert take(one.runtime, TRAINING, preemptor) == Answer(False, 120, "requeued")
    assert not facts_of(one.ledger, "preemptor")
    replace_record(one, OLDER.model_copy(update={"closed_at": 1}))  # what was inferred stays
    replace_record(one, RUNS)
    one.clock.advance(2 * MINUTE)
    assert take(one.runtime, TRAINING, preemptor) == DONE
    assert only(one, "preemptor").figures["waited_seconds"] == 304


@pytest.mark.parametrize(
    ("after", "outcome", "owner"),
    [
        (naming.PATIENCE, "requeued", OWNER),
        (JUDGED, "exhausted", OWNER),  # its resubmission waits for this step
        (
            JUDGED,
            "requeued",  # it did not come to run
            OWNER.model_copy(
                update={
                    "timeline": (
                        *OWNER.timeline,
                        *steps((RUNNING, "RUNNABLE"), attempt="owner-1"),
                    )
                }
            ),
        ),
    ],
)
def test_a_wait_whose_end_is_not_known_has_no_figure(after: int, outcome: str, owner: JobRecord) -> None:
    one = told_world(CASE.model_copy(update={"outcome": outcome}), VICTIM, OLDER, owner, after=after)
    assert take(one.runtime, TRAINING, preemptor).done
    figures = only(one, "preemptor").figures
    assert (figures["preemptor"], figures["running_at"]) == ("owner", None)
    assert figures["waited_seconds"] is None


def test_nobody_is_named_before_two_sweeps_have_looked_at_the_shares() -> None:
    one = told_world(CASE, VICTIM, OLDER, after=JUDGED)
    answer = take(one.runtime, TRAINING, preemptor)
    assert answer.wait == (naming.SWEPT - JUDGED) // SECOND
    one.clock.advance(answer.wait * SECOND)
    assert take(one.runtime, TRAINING, preemptor) == DONE
    fact = only(one, "preemptor")
    assert fact.reason.startswith("cross-share: who was behind it is not known")
    assert (fact.figures["preemptor"], fact.figures["confidence"]) == (None, None)


def test_a_lowered_limit_is_the_cause() -> None:
    lowered = Lowered(share="medium", unit=UNIT, before=1, after=0, not_before=BEGAN, at=BEGAN)
    shares = (share("background"), share("medium", 0, lowered=(lowered,)))
    one = told_world(CASE, VICTIM, OLDER, after=JUDGED, shares=shares)
    assert take(one.runtime, TRAINING, preemptor) == DONE
    figures = only(one, "preemptor").figures
    assert (figures["kind"], figures["confidence"]) == ("lowered-limit", "high")
    assert figures["preemptor"] is None


def test_a_bump_of_ours_that_made_the_preemptor_rise_is_named() -> None:
    boosts = (
        Boost(id="b0", kind="human", amount=900, by="U0", reason="", since=0, end="expired", ended_at=9),
        Boost(id="b1", kind="human", amount=750, by="U1", reason="", since=BEGAN - SECOND),
        Boost(id="b2", kind="automatic", amount=50, by="sla", reason="", since=BEGAN - SECOND),
        Boost(id="b3", kind="human", amount=800, by="U3", reason="", since=BEGAN + HOUR),
    )
    ledger = PriorityLedger(base=100, confirmed=850, boosts=boosts)
    bumped = OWNER.model_copy(update={"share": "background", "priority": ledger})
    victim = VICTIM.model_copy(update={"attempts": (ATTEMPT.model_copy(update={"preemption_reason": None}),)})
    one = told_world(CASE, victim, OLDER, bumped, after=JUDGED)
    assert take(one.runtime, TRAINING, preemptor) == DONE
    fact = only(one, "preemptor")
    assert (fact.figures["kind"], fact.figures["waited_seconds"]) == ("in-share", None)
    assert fact.figures["bump"] == {"id": "b1", "kind": "human", "amount": 750, "by": "U1"}
    assert fact.reason.endswith("; U1 had raised it by +750")


@pytest.mark.parametrize("name", ["share", "instance_type", "instance_count"])
def test_of_a_job_of_which_too_little_is_known_nobody_is_named(name: str) -> None:
    one = told_world(CASE, VICTIM.model_copy(update={name: None}), OLDER, RUNS, after=naming.SWEPT)
    assert take(one.runtime, TRAINING, preemptor) == DONE
    assert only(one, "preemptor").figures["preemptor"] is None


def test_a_beginning_that_is_no_part_of_this_stop_is_not_taken_for_it() -> None:
    late = VICTIM.model_copy(
        update={"timeline": tuple(entry for entry in VICTIM.timeline if entry != STARTED)}
    )
    case = CASE.model_copy(update={"opened_at": STOP})
    one = told_world(case, late, OLDER, RUNS, after=JUDGED)
    assert take(one.runtime, TRAINING, preemptor) == DONE
    assert only(one, "preemptor").figures["confidence"] == "medium"


# --- crashes, and two at once ---------------------------------------------------------------------------


def cared(one: World) -> World:
    """Both steps until they are done, as the workflow takes them."""
    for step in (measure, preemptor):
        for _ in range(5):
            answer = take(one.runtime, TRAINING, step)
            if answer.done:
                break
            one.clock.advance(answer.wait * SECOND)
    return one


def told(one: World) -> dict[str, object]:
    return {key: fact.model_dump(exclude={"recorded_at"}) for key, fact in one.ledger.facts.items()}


def fresh() -> World:
    return told_world(CASE, VICTIM, OLDER, RUNS, after=JUDGED)


def calls(step: Step) -> list[str]:
    runtime, seen = watched(fresh().runtime, nothing)
    take(runtime, TRAINING, step)
    return seen.names


UNDISTURBED = told(cared(fresh()))
CALLS = [(step, number) for step in (measure, preemptor) for number in range(1, len(calls(step)) + 1)]


@pytest.mark.parametrize(("step", "number"), CALLS)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("fault", [crash, lose])
def test_law_10_any_call_of_a_step_may_be_the_last(
    step: Step, number: int, when: When, fault: Callable[[], None]
) -> None:
    one = fresh()
    shaky, _ = watched(one.runtime, once(number, when, fault))
    with pytest.raises((Crash, Unavailable)):
        take(shaky, TRAINING, step)
    assert told(cared(one)) == UNDISTURBED


@pytest.mark.parametrize(("step", "number"), CALLS)
def test_law_01_a_step_beside_itself_is_taken_once(step: Step, number: int) -> None:
    one = fresh()
    shaky, _ = watched(one.runtime, once(number, "before", lambda: _take_beside(one, step)))
    assert take(shaky, TRAINING, step) == DONE
    assert told(cared(one)) == UNDISTURBED


def _take_beside(one: World, step: Step) -> None:
    assert take(one.runtime, TRAINING, step) == DONE
