"""Whether a job went on from what it had saved: only a save of its next attempt shows it (law 8)."""

from __future__ import annotations

from typing import Any

import pytest
from sharewarden.domain.checkpoints import Layout, Save
from sharewarden.domain.policy import Policy
from sharewarden.domain.preemption.case import Case
from sharewarden.domain.preemption.holding import Stay
from sharewarden.domain.preemption.resuming import (
    COPIED,
    LONGEST_WAIT,
    Resume,
    prove,
    resume_facts,
    saved_in,
    unproved,
)
from sharewarden.domain.record import JobRecord
from sharewarden.domain.saves import Saves, SaveTime
from sharewarden.domain.stored import HOUR, MINUTE

from tests.simulation.samples import ARN, FIRST, JOB, SECOND
from tests.simulation.world import NOW, QUEUE

RAN = NOW + HOUR
STAY = Stay(SECOND, NOW, RAN - 5 * MINUTE, RAN)
CASE = Case(attempt=FIRST, job=JOB, queue=QUEUE, opened_at=NOW)


def save(step: int | None, layout: Layout = "manifest", at: int = RAN + 10 * MINUTE, **more: Any) -> Save:
    return Save(name="s", step=step, saved_at=at, size=1, files=1, layout=layout, **more)


BEFORE = save(100, at=NOW)
RECORD = JobRecord(job=JOB, arn=ARN, name="pretrain", queue=QUEUE, created_at=NOW)


@pytest.mark.parametrize(
    ("found", "proof"),
    [
        (save(140, resumed_from=100), "resumed"),
        (save(100, resumed_from=100), "resumed"),
        (save(140, resumed_from=120), "resumed"),
        (save(90, resumed_from=100), "not-provable"),  # its step and its word exclude each other
        (save(140, resumed_from=500), "not-provable"),
        (save(140, resumed_from=99), "older"),
        (save(20, resumed_from=10), "older"),
        (save(20), "from-zero"),
        (save(100), "from-zero"),
        (save(140), "not-provable"),
        (save(None), "not-provable"),
    ],
)
def test_law_08_by_the_word_of_the_training_helper(found: Save, proof: str) -> None:
    said = prove(BEFORE, found, RAN, 10 * MINUTE)
    assert said is not None
    assert (said.proof, said.save) == (proof, found)


@pytest.mark.parametrize("layout", ["hugging-face", "pytorch", "pattern"])
@pytest.mark.parametrize(
    ("step", "after", "proof"),
    [
        (140, 20 * MINUTE, "resumed"),
        (140, 20 * MINUTE + 1, "not-provable"),
        (100, MINUTE, None),
        (99, MINUTE, "older"),
        (99, 24 * HOUR, "older"),
        (None, MINUTE, "not-provable"),
    ],
)
def test_law_08_by_the_steps_in_names_as_far_as_they_were_seen_in_time(
    layout: Layout, step: int | None, after: int, proof: str | None
) -> None:
    said = prove(BEFORE, save(step, layout, at=RAN + after), RAN, 10 * MINUTE)
    assert (said and said.proof) == proof


def test_law_08_what_had_no_step_proves_nothing() -> None:
    said = prove(save(None, "pytorch"), save(140, resumed_from=100), RAN, MINUTE)
    assert said is not None
    assert said.proof == "not-provable"


@pytest.mark.parametrize(
    ("found", "stay", "expected"),
    [
        (save(1, at=0, training_job="AWSBatch2"), STAY, True),
        (save(1, training_job="AWSBatch1"), STAY, False),
        (save(1, training_job="x"), STAY._replace(attempt=None), True),
        (save(1, at=RAN + COPIED), STAY, True),
        (save(1, at=RAN + COPIED - 1), STAY, False),  # what the one before saved, copied late
        (save(1, at=RAN + HOUR), STAY._replace(until=RAN + HOUR - MINUTE), True),
        (save(1, at=RAN + HOUR), STAY._replace(until=RAN + HOUR - MINUTE - 1), False),
        (save(1, at=STAY.since + COPIED), STAY._replace(running_at=None), True),
    ],
)
def test_law_08_whose_save_it_is(found: Save, stay: Stay, expected: bool) -> None:
    assert saved_in(stay, found) is expected


SLOW = RECORD.model_copy(
    update={"saves": Saves(times=tuple(SaveTime(step=n, at=NOW + n * HOUR) for n in range(3)))}
)


@pytest.mark.parametrize(
    ("record", "case", "stay", "after", "proof"),
    [
        (RECORD, CASE, STAY, HOUR - 1, None),
        (RECORD, CASE, STAY, HOUR, "none-yet"),
        (SLOW, CASE, STAY, 3 * HOUR - 1, None),
        (SLOW, CASE, STAY, 3 * HOUR, "none-yet"),
        (RECORD, CASE.model_copy(update={"proof": "none-yet"}), STAY, LONGEST_WAIT - 1, None),
        (RECORD, CASE.model_copy(update={"proof": "none-yet"}), STAY, LONGEST_WAIT, "not-provable"),
        (RECORD, CASE, STAY._replace(until=RAN + MINUTE), MINUTE + COPIED - 1, None),
        (RECORD, CASE, STAY._replace(until=RAN + MINUTE), MINUTE + COPIED, "not-provable"),
        (RECORD.model_copy(update={"closed_at": RAN}), CASE, STAY, MINUTE, "not-provable"),
    ],
)
def test_law_08_no_save_is_no_proof(
    record: JobRecord, case: Case, stay: Stay, after: int, proof: str | None
) -> None:
    said = unproved(case, stay, record, RAN + after)
    assert (said and said.proof) == proof


@pytest.mark.parametrize(
    ("found", "severity", "text"),
    [
        (Resume(proof="resumed", save=save(140, resumed_from=100)), None, "step 140"),
        (Resume(proof="from-zero", save=save(20)), "alarm", "step 20"),
        (Resume(proof="older", save=save(70, resumed_from=60)), "alarm", "(step 60): it saved step 70"),
        (Resume(proof="none-yet", why="it runs for 1 h"), "alarm", "it runs for 1 h"),
        (Resume(proof="not-provable", save=save(None), why="no steps"), "warning", "no steps"),
        (Resume(proof="not-provable", why="it ended"), None, "it ended"),
        (Resume(proof="nothing-saved"), None, "nothing to go on from"),
        (Resume(proof="never-ran"), None, "did not run again"),
    ],
)
def test_law_08_what_is_told_names_both_steps(found: Resume, severity: str | None, text: str) -> None:
    case = CASE.model_copy(update={"save": BEFORE})
    fact, notices = resume_facts(RECORD, case, STAY, found, Policy(), RAN + HOUR)
    assert (fact.kind, fact.after, fact.figures["saved_step"]) == ("resume", found.proof, 100)
    assert text in fact.reason
    assert [notice.severity for notice in notices] == ([severity] if severity else [])
    assert all("step 100" in notice.text and notice.fact == fact.key for notice in notices)
    early = found.proof == "none-yet"
    assert fact.key == f"resume#{JOB}#{FIRST}{'#none-yet' if early else ''}"


def test_the_pause_is_from_the_stop_until_it_ran_again() -> None:
    attempts = ({"training_job": FIRST, "stopped_at": RAN - 10 * MINUTE},)
    record = JobRecord.model_validate(RECORD.model_dump() | {"attempts": attempts})
    found = Resume(proof="nothing-saved")
    fact, _ = resume_facts(record, CASE, STAY, found, Policy(), RAN)
    assert (fact.figures["pause_seconds"], fact.figures["next_attempt"]) == (600, SECOND)
    for other, stay in ((RECORD, STAY), (record, None), (record, STAY._replace(running_at=None))):
        assert resume_facts(other, CASE, stay, found, Policy(), RAN)[0].figures["pause_seconds"] is None
    assert fact.at == RAN


@pytest.mark.parametrize(
    ("at", "expected"), [(RAN + 10 * MINUTE, RAN + 10 * MINUTE), (RAN + 2 * HOUR, RAN + HOUR)]
)
def test_the_record_is_dated_by_its_evidence_and_never_ahead(at: int, expected: int) -> None:
    found = Resume(proof="resumed", save=save(140, at=at, resumed_from=100))
    assert resume_facts(RECORD, CASE, STAY, found, Policy(), RAN + HOUR)[0].at == expected
