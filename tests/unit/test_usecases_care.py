"""The steps that note, find, wait, prove and end: what each keeps in the case, and what it tells."""

from __future__ import annotations

from typing import Any

import pytest
from sharewarden.domain.attempts import Attempt
from sharewarden.domain.checkpoints import Save
from sharewarden.domain.notice import Notice
from sharewarden.domain.observation import AttemptSeen
from sharewarden.domain.preemption.case import Case
from sharewarden.domain.preemption.outcome import GRACE, SHORTEST_PAUSE
from sharewarden.domain.preemption.resuming import LONGEST_WAIT
from sharewarden.domain.record import End, JobRecord, Snapshot, Transition
from sharewarden.domain.saves import UNKNOWN, Saves
from sharewarden.domain.stored import HOUR, MINUTE
from sharewarden.domain.stored import SECOND as S
from sharewarden.intake.care import step_named, take_care
from sharewarden.ports import Unavailable
from sharewarden.usecases import checkpoints
from sharewarden.usecases.care.frame import Answer, take
from sharewarden.usecases.care.resumed import LONGEST

from tests.simulation.samples import ARN, FIRST, JOB, SECOND, described
from tests.simulation.world import NOW, QUEUE, World, facts_of, stored, world
from tests.unit.checkpoint_kit import URI, lay, manifest, saved, store, trainer

BEGAN = NOW + HOUR
STOP = BEGAN + 20 * S
RAN = STOP + 10 * MINUTE


def told(at: int, status: Any, attempt: str | None = None) -> Transition:
    return Transition(at=at, what="status", status=status, attempt=attempt)


AGAIN = (told(RAN - 4 * MINUTE, "SCHEDULED", SECOND), told(RAN, "RUNNING", SECOND))
BEFORE = Save(name="s", step=7, saved_at=NOW, size=1, files=1, layout="manifest")


def job(*more: Transition, **update: Any) -> JobRecord:
    attempt = Attempt(training_job=FIRST, started_at=NOW, stopped_at=STOP, preempted=True, cased=True)
    known = {
        "timeline": (told(NOW, "RUNNING", FIRST), told(STOP, "RUNNABLE"), *more),
        "attempts": (attempt,),
        "preempted_count": 1,
        "checkpoint_uri": URI,
    }
    return JobRecord(job=JOB, arn=ARN, name="pretrain", queue=QUEUE, created_at=NOW, **(known | update))


def place(record: JobRecord, after: int = MINUTE, **case: Any) -> World:
    """The case of that job, so long after the stop."""
    made = world()
    store(made)
    opened = Case(attempt=FIRST, job=JOB, queue=QUEUE, opened_at=BEGAN, **case)
    made.ledger.commit([record, opened], [], NOW)
    made.clock.at = STOP + after
    return made


def taken(made: World, step: Any) -> Answer:
    return take(made.runtime, FIRST, step_named(step))


def case_in(made: World) -> Case:
    found = made.ledger.load(Case, FIRST)
    assert found is not None
    return found


def notices(made: World) -> list[Notice]:
    return [one for one in stored(made.ledger, Notice) if isinstance(one, Notice)]


# --- note and find -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("newest", "expected"),
    [
        (BEFORE, 7),
        (None, None),
        (BEFORE.model_copy(update={"training_job": "AWSBatch1"}), 7),
        (BEFORE.model_copy(update={"training_job": "AWSBatch2"}), None),
        (BEFORE.model_copy(update={"saved_at": RAN}), None),
    ],
)
def test_note_takes_over_what_the_watch_has_seen_of_the_attempt(
    newest: Save | None, expected: int | None
) -> None:
    made = place(job(*AGAIN, saves=Saves(newest=newest)), after=HOUR)
    assert taken(made, "note") == Answer(done=True, wait=0, outcome="")
    case = case_in(made)
    assert (case.save and case.save.step, case.sight) == (expected, None)
    assert store(made).asked == 0


def test_without_a_uri_there_is_nowhere_to_look() -> None:
    made = place(job(checkpoint_uri=None))
    assert taken(made, "note").done
    assert case_in(made).sight == "nowhere"
    assert taken(made, "find").done
    assert (case_in(made).sight, store(made).asked) == ("nowhere", 0)


def test_find_keeps_the_newest_complete_set_and_looks_once() -> None:
    made = place(job())
    lay(made, saved(7) | saved(5) | {"step-000000000009-aaaa/model.pt": b"half"}, NOW)
    assert [taken(made, "find").done, taken(made, "find").done] == [True, True]
    case, asked = case_in(made), store(made).asked
    assert case.save is not None
    assert (case.save.step, case.sight) == (7, "found")
    taken(made, "find")
    assert store(made).asked == asked


@pytest.mark.parametrize("known", [BEFORE, None])
def test_find_that_finds_nothing_says_none_and_drops_what_the_watch_had_seen(known: Save | None) -> None:
    made = place(job(), save=known)
    assert taken(made, "find").done
    assert (case_in(made).save, case_in(made).sight) == (None, "none")


def test_law_02_a_look_that_could_not_tell_says_unknown_and_keeps_what_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = place(job(), save=BEFORE)
    lay(made, {"a.txt": b"1", "b.txt": b"1"}, NOW)
    monkeypatch.setattr(checkpoints, "MOST_PAGES", 0)
    assert taken(made, "find").done
    assert (case_in(made).save, case_in(made).sight) == (BEFORE, "unknown")


def test_law_02_refused_is_unknown_and_no_answer_is_tried_again() -> None:
    made = place(job(), save=BEFORE)
    store(made).down = "no answer"
    with pytest.raises(Unavailable):
        taken(made, "find")
    assert case_in(made).sight is None
    store(made).down, store(made).denied = None, "AccessDenied"
    assert taken(made, "find").done
    assert (case_in(made).save, case_in(made).sight) == (BEFORE, "unknown")


@pytest.mark.parametrize(
    ("uri", "end", "doubtful"),
    [
        (URI, None, True),
        (f"{URI}/", NOW + MINUTE, True),
        ("s3://ckpt/team", None, True),
        (f"{URI}/eval", None, True),
        ("s3://ckpt", None, True),
        (f"{URI}-2", None, False),
        ("s3://other/team/run", None, False),
        ("nonsense", None, False),
        (None, None, False),
        (URI, NOW - MINUTE, False),
    ],
)
def test_law_08_what_another_job_may_have_saved_proves_nothing(
    uri: str | None, end: int | None, doubtful: bool
) -> None:
    """Folders of the Trainer do not say who wrote them."""
    made = place(job(*AGAIN), outcome="requeued")
    other = neighbour(made, uri, end)
    lay(made, trainer(100), BEGAN)
    assert taken(made, "find").done
    case = case_in(made)
    assert (case.sight, case.save is None) == (("unknown", True) if doubtful else ("found", False))
    made.ledger.commit([case.model_copy(update={"save": FOLDER, "sight": "found"})], [], NOW)
    lay(made, trainer(140), RAN + 5 * MINUTE)
    made.clock.at = RAN + 6 * MINUTE
    assert taken(made, "resumed").done
    (fact,) = facts_of(made.ledger, "resume")
    saves_still = doubtful and end is None
    assert fact.after == ("not-provable" if saves_still else "resumed")
    assert (f"job {other} saves to the same place" in fact.reason) is saves_still


FOLDER = Save(name="checkpoint-100", step=100, saved_at=BEGAN, size=1, files=1, layout="hugging-face")


def neighbour(made: World, uri: str | None, ended_at: int | None) -> str:
    """Another job of the queue that saves, or saved, there."""
    end = None if ended_at is None else End(status="SUCCEEDED", at=ended_at)
    other = job(checkpoint_uri=uri, end=end).model_copy(update={"job": "other", "name": "beside"})
    made.ledger.commit([other], [], NOW)
    return other.name


def test_law_08_what_the_watch_had_seen_may_be_of_another_job_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = place(job(), save=FOLDER)
    neighbour(made, URI, None)
    lay(made, {"a.txt": b"1", "b.txt": b"1"}, NOW)
    monkeypatch.setattr(checkpoints, "MOST_PAGES", 0)
    assert taken(made, "find").done
    assert (case_in(made).save, case_in(made).sight) == (None, "unknown")


# --- outcome -----------------------------------------------------------------------------------------------


def test_outcome_is_what_the_record_says_and_is_kept() -> None:
    made = place(job())
    assert taken(made, "outcome") == Answer(done=True, wait=0, outcome="requeued")
    made.ledger.commit([made.record(JOB).model_copy(update={"end": End(status="FAILED", at=STOP)})], [], NOW)
    assert taken(made, "outcome").outcome == "requeued"
    assert made.batch.described == []


def silent() -> JobRecord:
    """Its preemption was said to begin, and nothing since."""
    return job(timeline=(told(NOW, "RUNNING", FIRST),), attempts=(), preempted_count=0)


def test_outcome_asks_batch_once_it_should_have_told_and_puts_the_answer_on_record() -> None:
    made = place(silent(), after=GRACE - 21 * S)
    assert taken(made, "outcome") == Answer(done=False, wait=45, outcome="")
    assert made.batch.described == []
    row = AttemptSeen(training_job=FIRST, started_at=NOW, stopped_at=STOP, preempted=True)
    made.batch.tell(described(status="RUNNABLE", attempts=(row,), preempted_count=1, checkpoint_uri=URI))
    made.clock.at = BEGAN + GRACE
    assert taken(made, "outcome") == Answer(done=False, wait=1, outcome="")
    assert [fact.at for fact in facts_of(made.ledger, "preemption")] == [STOP]
    assert taken(made, "outcome").outcome == "requeued"
    assert made.batch.described == [JOB]


def test_law_02_that_batch_knows_no_such_job_is_the_sweeps_to_judge() -> None:
    made = place(silent(), after=GRACE)
    before = made.record(JOB)
    assert taken(made, "outcome") == Answer(done=False, wait=50, outcome="")
    assert made.record(JOB) == before
    made.batch.down = "throttled"
    with pytest.raises(Unavailable):
        taken(made, "outcome")


# --- resumed -----------------------------------------------------------------------------------------------


def proved(made: World) -> list[str | None]:
    return [fact.after for fact in facts_of(made.ledger, "resume")]


def save_again(made: World, step: int, at: int, **members: Any) -> None:
    folder = f"step-{step:012d}-cccc"
    told_of = {"training_job": "AWSBatch2"} | members
    lay(
        made,
        {
            f"{folder}/model.pt": b"model",
            f"{folder}/_SAVED.json": manifest(step, saved_at=at, **told_of),
        },
        at,
    )


FOUND: dict[str, Any] = {"save": BEFORE, "sight": "found", "outcome": "requeued"}


def test_law_08_resumed_waits_for_running_and_then_for_a_save() -> None:
    made = place(job(*AGAIN[:1]), **FOUND)
    assert taken(made, "resumed") == Answer(done=False, wait=SHORTEST_PAUSE // S, outcome="requeued")
    made.ledger.commit([made.record(JOB).model_copy(update={"timeline": job(*AGAIN).timeline})], [], NOW)
    made.clock.at = RAN + 3 * MINUTE
    assert not taken(made, "resumed").done
    assert (case_in(made).unseen_at, case_in(made).next_attempt) == (RAN + 3 * MINUTE, SECOND)
    save_again(made, 9, RAN + 5 * MINUTE, resumed_from=7)
    made.clock.at = RAN + 6 * MINUTE
    assert taken(made, "resumed").done
    asked = store(made).asked
    assert (taken(made, "resumed").done, store(made).asked) == (True, asked)
    assert (proved(made), case_in(made).proof) == (["resumed"], "resumed")


@pytest.mark.parametrize(
    ("case", "proof"),
    [
        ({"sight": "none"}, "nothing-saved"),
        ({"sight": "nowhere"}, "nothing-saved"),
        ({"sight": "unknown"}, "not-provable"),
        ({}, "not-provable"),
    ],
)
def test_law_08_without_a_save_to_go_on_from_nothing_is_claimed(case: dict[str, Any], proof: str) -> None:
    made = place(job(*AGAIN), after=HOUR, outcome="requeued", **case)
    assert taken(made, "resumed").done
    assert (proved(made), notices(made)) == ([proof], [])


def test_a_job_that_ended_before_it_ran_again_never_ran() -> None:
    made = place(job(end=End(status="FAILED", at=RAN)), after=HOUR, **FOUND)
    assert taken(made, "resumed").done
    assert proved(made) == ["never-ran"]


@pytest.mark.parametrize(("after", "done"), [(HOUR, False), (LONGEST_WAIT + 10 * MINUTE, True)])
def test_law_02_no_answer_is_waited_for_and_not_for_ever(after: int, done: bool) -> None:
    made = place(job(*AGAIN), after=after, **FOUND)
    store(made).down = "no answer"
    answer = taken(made, "resumed")
    assert (answer.done, answer.wait) == (done, 0 if done else UNKNOWN // S)
    assert (proved(made), notices(made)) == (["not-provable"] if done else [], [])


def test_law_02_refused_proves_nothing() -> None:
    made = place(job(*AGAIN), after=HOUR, **FOUND)
    store(made).denied = "AccessDenied"
    assert taken(made, "resumed").done
    assert (proved(made), notices(made)) == (["not-provable"], [])


EXHAUSTED = FOUND | {"outcome": "exhausted"}


def test_an_exhausted_job_without_another_one_in_its_place_has_nothing_to_prove() -> None:
    made = place(job(), **EXHAUSTED)
    assert taken(made, "resumed").done
    assert proved(made) == []


def test_law_08_the_job_in_an_exhausted_ones_place_is_to_resume() -> None:
    made = place(job(), after=HOUR, next_job="job-2", **EXHAUSTED)
    assert taken(made, "resumed").wait == LONGEST // S
    other = job(timeline=(told(RAN, "RUNNING", SECOND),), attempts=(), preempted_count=0)
    other = other.model_copy(update={"job": "job-2"})
    made.ledger.commit([other], [], NOW)
    save_again(made, 4, RAN + 5 * MINUTE)
    assert taken(made, "resumed").done
    (fact,), (notice,) = facts_of(made.ledger, "resume"), notices(made)
    assert (fact.after, fact.figures["next_job"], notice.severity) == ("from-zero", "job-2", "alarm")
    assert fact.figures["pause_seconds"] == (RAN - STOP) / S


def test_a_job_in_its_place_that_is_never_seen_is_not_waited_for_for_ever() -> None:
    made = place(job(), after=LONGEST_WAIT, next_job="job-2", **EXHAUSTED)
    assert taken(made, "resumed").done
    assert proved(made) == ["not-provable"]


# --- the end -----------------------------------------------------------------------------------------------


def test_close_ends_the_case_and_every_later_step_is_done() -> None:
    made = place(job(), **FOUND)
    assert taken(made, "close") == Answer(done=True, wait=0, outcome="requeued")
    closed = case_in(made)
    assert (closed.closed_at, closed.open_queue) == (STOP + MINUTE, None)
    for step in ("note", "find", "outcome", "resumed", "give_up", "close"):
        assert taken(made, step).done
    assert (case_in(made), len(made.ledger.facts)) == (closed, 0)


@pytest.mark.parametrize(
    ("outcome", "text"),
    [(None, "nobody told what became of the job"), ("requeued", "failed for good after the job was found")],
)
def test_law_02_give_up_sounds_an_alarm_once_and_does_nothing(outcome: Any, text: str) -> None:
    made = place(job(), outcome=outcome)
    assert [taken(made, "give_up").done for _ in range(2)] == [True, True]
    (fact,), (notice,) = facts_of(made.ledger, "care-given-up"), notices(made)
    assert (text in fact.reason, text in notice.text, notice.severity) == (True, True, "alarm")
    assert (case_in(made).outcome, case_in(made).closed_at) == (outcome or "unknown", STOP + MINUTE)
    assert made.batch.terminations + made.batch.priorities == []


# --- what the function is called with ----------------------------------------------------------------------


def test_the_function_answers_what_the_workflow_goes_by() -> None:
    made = place(job())
    given = {"step": "outcome", "attempt": FIRST, "job": JOB, "generation": 1}
    assert take_care(made.runtime, given) == {"done": True, "wait": 0, "outcome": "requeued"}


@pytest.mark.parametrize(
    "changes", [{"step": "other"}, {"step": "start"}, {"attempt": None}, {"generation": "x"}]
)
def test_what_it_does_not_know_is_refused(changes: dict[str, Any]) -> None:
    made = place(job())
    with pytest.raises(ValueError, match="validation error"):
        take_care(made.runtime, {"step": "note", "attempt": FIRST, "job": JOB, "generation": 1} | changes)


def test_a_step_of_no_case_is_an_error() -> None:
    made = world()
    with pytest.raises(KeyError):
        take_care(made.runtime, {"step": "note", "attempt": FIRST, "job": JOB, "generation": 1})


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        ({"closed_at": RAN}, "not-provable"),
        ({"end": End(status="SUCCEEDED", at=RAN)}, "not-provable"),
        ({"end": End(status="FAILED", at=RAN)}, "never-ran"),
    ],
)
def test_what_nobody_told_is_not_said_to_have_never_run(update: dict[str, Any], expected: str) -> None:
    made = place(job(**update), 5 * HOUR, save=BEFORE, sight="found", outcome="requeued")
    assert taken(made, "resumed").done
    assert case_in(made).proof == expected


def test_an_attempt_whose_running_only_batch_told_is_the_next_one() -> None:
    read = Snapshot(read_at=RAN + S, status="RUNNING", attempt=SECOND, dispatched_at=RAN - S, started_at=RAN)
    made = place(job(AGAIN[0], snapshot=read), 15 * MINUTE, save=BEFORE, sight="found", outcome="requeued")
    taken(made, "resumed")
    assert case_in(made).next_attempt == SECOND
