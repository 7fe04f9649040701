"""The pool that `can_help` is shown: what Batch lists, what the records add, and what is left open."""

from typing import Any

import pytest
from sharewarden.domain.checkpoints import Save
from sharewarden.domain.helping.view import JobView, PoolView
from sharewarden.domain.observation import JobDescription, JobObservation, ShareDescription
from sharewarden.domain.policy import Policy, QueuePolicy, SharePolicy
from sharewarden.domain.priority import Sent, Suspect
from sharewarden.domain.record import JobRecord, absorb, fold, new_record
from sharewarden.domain.saves import Saves
from sharewarden.domain.stored import MINUTE
from sharewarden.domain.termination import TerminationWish
from sharewarden.ports import Unavailable
from sharewarden.usecases.helping import ask, view

from tests.simulation.world import NOW, QUEUE, World, world

JOB = "53f51099-d4c3-5e90-ac11-be55089a1763"
UNIT = "ml.g5.xlarge"
POLICY = Policy(
    queues={
        "ml-train-qm": QueuePolicy(shares={"vision": SharePolicy(team="t", min_runtime=7, protected=True)})
    }
)
SHARE = ShareDescription(
    arn=f"{QUEUE}/quota-share/vision",
    name="vision",
    queue=QUEUE,
    limits=((UNIT, 2),),
    strategy="LEND_AND_BORROW",
    borrow_limit=50,
    in_share_preemption=True,
    enabled=False,
)


def described(**members: Any) -> JobDescription:
    told = {
        "job": JOB,
        "arn": f"arn:aws:batch:us-east-1:123456789012:service-job/{JOB}",
        "read_at": NOW,
        "name": "train",
        "queue": QUEUE,
        "share": "vision",
        "status": "RUNNING",
        "created_at": NOW - 60 * MINUTE,
        "scheduled_at": NOW - 30 * MINUTE,
        "started_at": NOW - 20 * MINUTE,
        "priority": 5,
        "instance_type": UNIT,
        "instance_count": 2,
        "tags": (("expected-runtime", "1h"), ("sla", "silver")),
    }
    return JobDescription(**{**told, **members})


def event(what: Any, at: int, **members: Any) -> JobObservation:
    return JobObservation(job=JOB, arn=described().arn, what=what, at=at, **members)


def record_of(read: JobDescription, *events: JobObservation, **update: Any) -> JobRecord:
    record = absorb(new_record(read), read)
    for one in events:
        record = fold(record, one)
    ledger = record.priority.model_copy(update={"base": read.priority, "confirmed": read.priority})
    return record.model_copy(update={"priority": ledger} | update)


def place(read: JobDescription, *records: JobRecord) -> World:
    """Batch lists the job like that, and these records are kept."""
    made = world(policy=POLICY)
    made.batch.tell(read)
    made.batch.quota_shares[QUEUE] = [SHARE]
    made.batch.environments[QUEUE] = {UNIT: 4}
    made.ledger.commit(records, [], NOW)
    return made


def seen(read: JobDescription, *records: JobRecord) -> JobView:
    (job,) = view(place(read, *records).runtime, QUEUE).jobs
    return job


def test_a_share_is_as_batch_tells_and_the_policy_adds() -> None:
    shown = view(place(described()).runtime, QUEUE)
    assert shown.environment == {UNIT: 4}
    assert shown.gaps == ()
    assert shown.shares[0].model_dump() == {
        "name": "vision",
        "limits": {UNIT: 2},
        "strategy": "LEND_AND_BORROW",
        "borrow_limit": 50,
        "in_share_preemption": True,
        "enabled": False,
        "min_runtime": 7,
        "protected": True,
    }


def saved(at: int) -> Saves:
    newest = Save(step=1, name="s", saved_at=at, layout="manifest", size=1, files=1)
    return Saves(newest=newest, newest_at=at)


def test_a_running_job() -> None:
    job = seen(described(), record_of(described(), saves=saved(NOW - MINUTE)))
    assert job.model_dump() == {
        "job": JOB,
        "name": "train",
        "share": "vision",
        "status": "RUNNING",
        "unit": UNIT,
        "instances": 2,
        "priority": 5,
        "created_at": NOW - 60 * MINUTE,
        "queued_at": NOW - 60 * MINUTE,
        "dispatched_at": NOW - 30 * MINUTE,
        "started_at": NOW - 20 * MINUTE,
        "saved_at": NOW - MINUTE,
        "expected_end": NOW + 40 * MINUTE,
        "stopping": False,
        "team": "t",
        "sla": "silver",
    }


def test_a_save_of_an_earlier_attempt_is_none() -> None:
    assert seen(described(), record_of(described(), saves=saved(NOW - 40 * MINUTE))).saved_at is None


WAITS = described(status="RUNNABLE", scheduled_at=None, started_at=None)


def test_a_requeued_job_waits_since_then() -> None:
    back = record_of(
        WAITS,
        event("status", NOW - 9 * MINUTE, status="RUNNING"),
        event("status", NOW - 5 * MINUTE, status="RUNNABLE"),
    )
    assert seen(WAITS, record_of(WAITS)).queued_at == NOW - 60 * MINUTE
    assert seen(WAITS, back).queued_at == NOW - 5 * MINUTE


def test_law_02_a_job_without_a_record_has_no_size_and_no_priority() -> None:
    job = seen(described())
    assert (job.share, job.unit, job.instances, job.priority, job.dispatched_at) == (
        "vision",
        None,
        None,
        None,
        None,
    )


def test_law_02_of_a_newer_state_than_that_of_the_record_no_time_is_known() -> None:
    job = seen(described(), record_of(WAITS))
    assert (job.status, job.priority, job.dispatched_at, job.started_at) == ("RUNNING", 5, None, None)
    assert seen(WAITS, record_of(described())).queued_at == NOW, "it was requeued just now, or long ago"
    one, other = (described(attempt=f"{described().arn}-attempt-{number}") for number in (1, 2))
    assert seen(one, record_of(one)).dispatched_at == NOW - 30 * MINUTE
    assert seen(other, record_of(one)).dispatched_at is None, "an attempt that no event has told of"


def test_law_02_the_priority_is_that_which_batch_shows() -> None:
    record = record_of(WAITS)
    sent = Sent(version=1, before=5, value=9, actor="a", reason="r", at=NOW)
    under_way = record.priority.model_copy(update={"sent": sent})
    drifting = record.priority.model_copy(update={"suspect": Suspect(value=3, first_seen=NOW)})
    assert seen(WAITS, record.model_copy(update={"priority": under_way})).priority is None
    assert seen(WAITS, record.model_copy(update={"priority": drifting})).priority == 3


WISH = TerminationWish(
    id="1", label="l", fingerprint="f", reason="r", situation="s", created_at=NOW, not_before=NOW
)


@pytest.mark.parametrize(
    ("record", "stops"),
    [
        (record_of(described(), event("preemption-started", NOW - MINUTE)), True),
        (record_of(described(), event("preemption-started", NOW - 45 * MINUTE)), False),
        (record_of(described(), terminations=(WISH,)), False),
        (record_of(described(), terminations=(WISH.model_copy(update={"sent_at": NOW}),)), True),
        (
            record_of(
                described(), terminations=(WISH.model_copy(update={"sent_at": NOW, "end": "refused"}),)
            ),
            False,
        ),
    ],
)
def test_a_job_stops_once_batch_or_we_have_begun_to_stop_it(record: JobRecord, stops: bool) -> None:
    assert seen(described(), record).stopping is stops


def gaps(made: World) -> tuple[str, ...]:
    return view(made.runtime, QUEUE).gaps


def test_law_02_what_could_not_be_read_is_a_gap() -> None:
    elsewhere = described(queue="another", status="RUNNABLE")
    between = place(elsewhere, record_of(described()))
    assert gaps(between) == ("train changed its state while the jobs were listed",)
    ended = place(described(status="SUCCEEDED"), record_of(described()))
    assert gaps(ended) == ()
    closed = place(elsewhere, record_of(described(status="FAILED", stopped_at=NOW, reason="r")))
    assert gaps(closed) == ()


def test_law_02_rows_that_could_not_be_read_are_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    made = place(described(), record_of(described()))
    page, shares = made.batch.jobs(QUEUE, "RUNNING", None), made.batch.shares(QUEUE)
    monkeypatch.setattr(made.batch, "jobs", lambda *_: page.model_copy(update={"odd": 1}))
    monkeypatch.setattr(made.batch, "shares", lambda _: shares.model_copy(update={"odd": 2}))
    assert gaps(made) == ("2 quota shares could not be read", "6 jobs could not be read")


def test_law_02_an_environment_that_nobody_may_ask_for_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: str) -> None:
        raise Unavailable("DescribeServiceEnvironments: AccessDenied")

    made = place(described())
    monkeypatch.setattr(made.batch, "environment", refused)
    shown: PoolView = view(made.runtime, QUEUE)
    assert shown.environment is None


def test_without_a_priority_the_highest_of_a_bump_is_asked_about() -> None:
    record = record_of(WAITS)
    made = place(WAITS, record)
    assert ask(made.runtime, record).asked == POLICY.queue(QUEUE).bands.human.highest
    assert ask(made.runtime, record, 7).asked == 7
