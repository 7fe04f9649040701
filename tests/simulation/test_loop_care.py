"""The care of a preempted attempt, whatever is late, doubled, lost or refused (laws 1, 2, 8, 10)."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest
from sharewarden.domain.stored import HOUR

from tests.simulation.care_kit import (
    AGAIN,
    PREEMPTED,
    STOPS,
    Act,
    CareStory,
    begins,
    completed,
    ended,
    goes_on,
    preempted,
    started,
)
from tests.simulation.samples import FIRST, JOB, SECOND, state
from tests.simulation.world import MINUTE, NOW, Unavailable

STOPPED = PREEMPTED + STOPS / MINUTE


def outcome(story: CareStory) -> str | None:
    """Of the only case, which is closed, as is its only execution."""
    (case,) = story.cases()
    assert case.closed_at is not None
    assert [one.status for one in story.machine.executions.values()] == ["SUCCEEDED"]
    return case.outcome


def test_the_whole_story() -> None:
    story = CareStory()
    begins(story)
    preempted(story)
    goes_on(story)
    story.runs(200)
    assert outcome(story) == "requeued"
    (measure,), (resume,) = story.told("preemption-measure"), story.told("resume")
    assert (measure.figures["step"], measure.figures["lost_seconds"]) == (26, 4 * 60 + STOPS / 1000)
    assert (resume.after, resume.figures["saved_step"], resume.figures["step"]) == ("resumed", 26, 38)
    assert resume.figures["pause_seconds"] == (AGAIN - PREEMPTED) * 60 - STOPS / 1000
    assert len(story.told("preemption")) == len(story.told("preemptor")) == 1
    assert not story.notices("resume") + story.notices("care-given-up")


# --- the events of one preemption --------------------------------------------------------------------------


def three(story: CareStory) -> list[Act]:
    """Started, Completed and the requeue, each dated when it happened."""
    base = NOW + PREEMPTED * MINUTE
    requeue = state("RUNNABLE", base + STOPS)
    return [
        story.hears(started(base)),
        story.hears(lambda: completed(story) | {"time": requeue["time"]}),
        story.hears(requeue),
    ]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_law_01_in_any_order_five_times_each_one_case_one_execution_one_measure(
    order: tuple[int, ...],
) -> None:
    story = CareStory()
    begins(story)
    story.at(STOPPED, story.stops())
    for place, number in enumerate(order * 5):
        story.at(STOPPED + 0.1 + place / 2, lambda number=number: three(story)[number]())
    goes_on(story)
    story.runs(200)
    assert outcome(story) == "requeued"
    counts = Counter(fact.kind for fact in story.world.ledger.facts.values())
    assert {counts[kind] for kind in ("preemption", "preemption-measure", "preemptor", "resume")} == {1}


@pytest.mark.parametrize("late", [31, 50, 300])
def test_a_late_started_after_completed_opens_nothing_new(late: int) -> None:
    story = CareStory()
    begins(story)
    story.at(STOPPED, story.stops(), story.hears(lambda: completed(story)), story.becomes("RUNNABLE"))
    goes_on(story)
    story.at(late, story.hears(started(NOW + PREEMPTED * MINUTE)))
    story.runs(400)
    assert outcome(story) == "requeued"


@pytest.mark.parametrize("told", [(), ("RUNNABLE",), ("started",), ("started", "RUNNABLE")])
def test_law_10_completed_lost_is_made_good_by_what_batch_says(told: tuple[str, ...]) -> None:
    story = CareStory()
    begins(story)
    if "started" in told:
        story.at(PREEMPTED, story.hears(started(NOW + PREEMPTED * MINUTE)))
    story.at(STOPPED, story.stops())
    if "RUNNABLE" in told:
        story.at(STOPPED, story.becomes("RUNNABLE"))
    goes_on(story)
    story.runs(200)
    assert outcome(story) == "requeued"
    assert (len(story.told("preemption-measure")), story.told("resume")[0].after) == (1, "resumed")


@pytest.mark.parametrize("status", ["SCHEDULED", "STARTING"])
def test_preempted_before_it_ran(status: Any) -> None:
    """What earlier attempts had saved is what it goes on from; nothing was lost."""
    story = CareStory()
    story.at(0, story.saves(26, "arn:earlier"), story.becomes(status, FIRST))

    def stops() -> None:
        story.stops()()
        (row,) = story.batch.descriptions[JOB].attempts
        story.is_now("RUNNABLE", attempts=(row.model_copy(update={"started_at": None}),))()

    story.at(PREEMPTED, story.hears(started(NOW + PREEMPTED * MINUTE)))
    story.at(STOPPED, stops, story.hears(lambda: completed(story)), story.becomes("RUNNABLE"))
    goes_on(story)
    story.runs(200)
    assert outcome(story) == "requeued"
    (measure,), (resume,) = story.told("preemption-measure"), story.told("resume")
    assert (measure.figures["basis"], measure.figures["lost_seconds"], resume.after) == (
        "not-started",
        0,
        "resumed",
    )


# --- the end of the job ------------------------------------------------------------------------------------


def fails(story: CareStory, reason: str, *, completed_first: bool, status: Any = "FAILED") -> None:
    """Its last preemption: Completed and FAILED come within a minute, in either order."""
    story.at(PREEMPTED, story.hears(started(NOW + PREEMPTED * MINUTE)))
    story.at(STOPPED, story.stops(status="FAILED"), story.is_now("FAILED", FIRST, reason=reason))
    story.at(STOPPED, story.is_now("FAILED", FIRST, stopped_at=NOW + PREEMPTED * MINUTE + STOPS))
    done: tuple[Act, Act] = (
        story.hears(lambda: completed(story, status)),
        ended(story, "FAILED", reason, FIRST),
    )
    for place, act in enumerate(done if completed_first else done[::-1]):
        story.at(STOPPED + (place + 1) / 3, act)


@pytest.mark.parametrize("completed_first", [True, False])
@pytest.mark.parametrize("status", ["FAILED", "RUNNABLE"])
@pytest.mark.parametrize(("retries", "expected"), [(0, "exhausted"), (1, "ended"), (-1, "ended")])
def test_failed_and_completed_race(completed_first: bool, status: Any, retries: int, expected: str) -> None:
    story = CareStory(preemption_retries=retries)
    begins(story)
    fails(story, "preempted", completed_first=completed_first, status=status)
    story.runs(200)
    said = outcome(story)
    if retries and status == "RUNNABLE":  # Batch itself said that it was requeued
        assert said in (expected, "requeued")
    else:
        assert said == expected
    assert [fact.after for fact in story.told("resume")] in ([], ["never-ran"])
    assert not story.notices("care-given-up")


@pytest.mark.parametrize("told", [True, False])
def test_a_job_that_was_terminated_meanwhile_is_not_resubmitted(told: bool) -> None:
    story = CareStory(preemption_retries=0)
    begins(story)
    fails(story, "by hand", completed_first=told)
    story.at(STOPPED, story.is_now("FAILED", FIRST, terminated=True))
    story.runs(200)
    assert outcome(story) == "cancelled"


def test_a_preemption_that_was_another_attempts_is_closed_without_a_word() -> None:
    """The event names no attempt, and what the one before had failed of was not heard yet."""
    story = CareStory()
    begins(story)
    story.at(28, story.is_now("RUNNING", SECOND, scheduled_at=NOW + 27 * MINUTE))
    story.at(PREEMPTED, story.hears(started(NOW + PREEMPTED * MINUTE)))
    story.at(PREEMPTED + 1, story.hears(lambda: state("SCHEDULED", NOW + 27 * MINUTE) | {"id": "late"}))
    story.at(STOPPED, story.stops(SECOND))
    story.runs(240)
    found = {case.attempt: case for case in story.cases()}
    assert (found[FIRST].outcome, found[FIRST].closed_at is None) == ("mistaken", False)
    assert [fact.figures["attempt"] for fact in story.told("preemption-measure")] == [SECOND]
    assert not story.notices("care-given-up")


def test_law_01_a_preemption_after_a_mistaken_one_is_taken_care_of_and_measured() -> None:
    """Batch said that a preemption had begun, the attempt went on, and was preempted hours later."""
    story = CareStory()
    begins(story)
    story.at(PREEMPTED, story.hears(started(NOW + PREEMPTED * MINUTE)))
    story.at(PREEMPTED + 70, story.is_now("RUNNING", FIRST))
    story.runs(200)
    (mistaken,) = story.cases()
    assert (mistaken.outcome, mistaken.closed_at is None) == ("mistaken", False)
    assert not story.told("preemption-measure")
    story.at(210, story.stops(FIRST))
    story.runs(330)
    (again,) = story.cases()
    assert (again.outcome, again.generation) == ("requeued", 2)
    assert [fact.figures["attempt"] for fact in story.told("preemption-measure")] == [FIRST]
    assert not story.notices("care-given-up")


# --- S3 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["down", "denied"])
def test_law_08_what_could_not_be_read_is_not_claimed_and_the_rest_is_done(fault: str) -> None:
    story = CareStory()
    story.at(0, story.becomes("RUNNING", FIRST), lambda: setattr(story.checkpoints, fault, "no answer"))
    preempted(story)
    story.at(AGAIN - 4, story.becomes("SCHEDULED", SECOND))
    story.at(AGAIN, story.becomes("RUNNING", SECOND))
    story.at(180, lambda: setattr(story.checkpoints, fault, None), story.saves(50, SECOND, resumed_from=26))
    story.runs(400)
    assert outcome(story) == "requeued"
    (measure,), (resume,) = story.told("preemption-measure"), story.told("resume")
    assert (measure.figures["basis"], resume.after) == ("unseen", "not-provable")
    assert not story.notices("resume")


# --- the proof ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resumed_from", "step", "proof"), [(26, 38, "resumed"), (14, 20, "older"), (None, 12, "from-zero")]
)
def test_law_08_running_again_is_no_proof(resumed_from: int | None, step: int, proof: str) -> None:
    story = CareStory()
    begins(story)
    preempted(story)
    goes_on(story, (56, step), resumed_from=resumed_from)
    story.runs(200)
    assert outcome(story) == "requeued"
    (resume,) = story.told("resume")
    assert (resume.after, resume.figures["saved_step"], resume.figures["step"]) == (proof, 26, step)
    notices = story.notices("resume")
    assert [notice.severity for notice in notices] == ([] if proof == "resumed" else ["alarm"])
    assert all("step 26" in notice.text and f"step {step}" in notice.text for notice in notices)


def test_law_08_no_save_is_told_once_and_looked_for_further() -> None:
    story = CareStory()
    begins(story)
    preempted(story)
    goes_on(story, (AGAIN + 130, 38), ends=400)
    story.runs(AGAIN + 125)
    assert [fact.after for fact in story.told("resume")] == ["none-yet"]
    assert [notice.severity for notice in story.notices("resume")] == ["alarm"]
    story.runs(500)
    assert [fact.after for fact in story.told("resume")] == ["none-yet", "resumed"]
    assert (outcome(story), len(story.notices("resume"))) == ("requeued", 1)


# --- lost executions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("hours", [1, 12])
def test_law_10_an_execution_that_could_not_be_started_is_by_the_sweep(hours: int) -> None:
    story = CareStory()
    begins(story)
    preempted(story)
    goes_on(story)
    start = story.plain.workflows.start

    def refuses(attempt: str, job: str, generation: int) -> Any:
        if story.world.clock.at < NOW + hours * HOUR:
            raise Unavailable("throttled")
        return start(attempt, job, generation)

    story.plain.workflows.start = refuses  # type: ignore[method-assign]
    story.runs(hours * 60 + 100)
    assert (outcome(story), story.cases()[0].generation) == ("requeued", 1)


def test_law_10_an_execution_that_failed_is_followed_by_the_next_generation() -> None:
    story = CareStory()
    begins(story)
    preempted(story)
    goes_on(story)
    story.at(32, lambda: kill(story))
    story.at(50, lambda: kill(story))
    story.runs(300)
    (case,) = story.cases()
    assert (case.generation, case.closed_at is not None) == (3, True)
    assert len(story.told("preemption-measure")) == len(story.told("resume")) == 1


def kill(story: CareStory) -> None:
    for one in story.machine.executions.values():
        if one.status == "RUNNING":
            one._end("FAILED")
