"""One event in: what is looked up, what is left alone, what is put on record."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from sharewarden.domain.decide import PREEMPTIONS_AT_ONCE
from sharewarden.domain.foreign import ForeignJob
from sharewarden.domain.observation import AttemptSeen
from sharewarden.domain.preemption.case import Case
from sharewarden.domain.record import status
from sharewarden.domain.stored import DAY
from sharewarden.domain.training import TrainingRecord
from sharewarden.domain.untraced import UntracedJob
from sharewarden.intake.events import take_in
from sharewarden.intake.wishes import carry_out
from sharewarden.messages import Poison
from sharewarden.ports import Unavailable
from sharewarden.usecases.bump import BumpRequest, bump
from sharewarden.usecases.react import Reaction

from tests.simulation.faults import nothing, watched
from tests.simulation.samples import (
    ARN,
    FIRST,
    JOB,
    SECOND,
    SHARE,
    api_call,
    attempt_row,
    described,
    event,
    share,
    state,
)
from tests.simulation.world import NOW, QUEUE, Json, World, facts_of, stored, world

OTHER = QUEUE.replace("ml-train-qm", "other")
CLASSIC = QUEUE.replace("ml-train-qm", "classic")
TASK = "arn:aws:ecs:us-east-1:123456789012:task/spot/0a1b"


def pool(**update: object) -> World:
    one = world(classic=frozenset({CLASSIC}))
    one.batch.tell(described(**update))
    return one


def react(one: World, told: Json) -> Reaction:
    return take_in(one.runtime, json.dumps(told))


def preemption(what: str, at: int = NOW, **more: object) -> Json:
    detail = {"preemptedJobArn": ARN, "status": "RUNNING"} | more
    return event(f"Batch Service Job Preemption {what}", detail, at)


def classic(arn_job: str, queue: str, at: int = NOW, **more: object) -> Json:
    arn = f"arn:aws:batch:us-east-1:123456789012:job/{arn_job}"
    detail = {"jobArn": arn, "jobName": "c", "jobQueue": queue, "status": "RUNNABLE", "createdAt": NOW}
    return event("Batch Job State Change", detail | more, at)


def test_a_job_is_described_when_first_seen_and_then_left_alone() -> None:
    one = pool()
    for at, step in enumerate(("RUNNABLE", "SCHEDULED", "STARTING", "RUNNING")):
        react(one, state(step, NOW + 2000 * at))  # type: ignore[arg-type]
    assert one.batch.described == [JOB]
    record = one.record(JOB)
    assert (record.share, record.tags, record.instance_count) == ("background", (("team", "research"),), 2)


def test_a_steady_event_costs_one_read_and_one_write() -> None:
    one = pool()
    react(one, state("RUNNABLE", NOW))
    runtime, calls = watched(one.runtime, nothing)
    take_in(runtime, json.dumps(state("SCHEDULED", NOW + 2000)))
    assert [name for name in calls.names if name != "current"] == ["load", "commit"]


def test_law_09_the_same_event_again_writes_nothing() -> None:
    one = pool()
    react(one, state("RUNNABLE", NOW))
    before = one.record(JOB)
    assert react(one, state("RUNNABLE", NOW)).outcome == "unchanged"
    assert one.record(JOB) == before


def test_a_step_back_is_settled_by_one_describe() -> None:
    one = pool()
    react(one, state("RUNNING", NOW))
    one.clock.advance(60_000)
    react(one, state("RUNNABLE", NOW + 20_000))
    assert one.batch.described == [JOB, JOB]
    assert status(one.record(JOB)) == "RUNNABLE"


def test_an_end_without_details_is_settled_by_one_describe() -> None:
    one = pool()
    react(one, state("RUNNING", NOW))
    one.batch.tell(described(status="FAILED", stopped_at=NOW + 5678, reason="by hand"))
    react(one, state("FAILED", NOW + 9000))
    (fact,) = facts_of(one.ledger, "job-ended")
    assert (fact.at, fact.reason) == (NOW + 5678, "by hand")


@pytest.mark.parametrize("told", [state("FAILED", NOW), state("RUNNABLE", NOW), preemption("Started")])
def test_law_02_when_batch_cannot_be_asked_nothing_is_concluded(told: Json) -> None:
    one = pool()
    one.batch.down = "throttled"
    with pytest.raises(Unavailable):
        react(one, told)
    assert not one.ledger.items
    assert not one.ledger.facts


@pytest.mark.parametrize(
    "told",
    [
        state("RUNNABLE", NOW, jobQueue=OTHER),
        classic("c-1", OTHER),
        classic("c-1", QUEUE),  # a service-job queue has no classic jobs
    ],
)
def test_jobs_of_other_queues_leave_nothing(told: Json) -> None:
    one = pool()
    assert react(one, told).outcome == "foreign"
    assert not one.ledger.items
    assert one.batch.described == []


def test_a_preemption_elsewhere_is_looked_up_once() -> None:
    one = pool(queue=OTHER)
    for at in (NOW, NOW + 5000, NOW):
        assert react(one, preemption("Started", at)).outcome == "foreign"
    assert one.batch.described == [JOB]
    assert list(one.ledger.items) == [("FOREIGN", JOB)]
    assert one.ledger.load(ForeignJob, JOB) is not None
    assert not one.ledger.facts


def test_a_reclaimed_host_of_a_classic_job_is_a_preemption_on_record_without_a_case() -> None:
    one = pool()
    host = "Host EC2 (instance i-0abc) terminated."
    row = {"container": {"taskArn": TASK}, "startedAt": NOW, "stoppedAt": NOW + 5_000, "statusReason": host}
    for at in (NOW + 6_000, NOW + 6_000, NOW + 90_000):
        react(one, classic("c-1", CLASSIC, at, attempts=[row], statusReason=host))
    (fact,) = facts_of(one.ledger, "preemption")
    assert (fact.key, fact.at) == (f"preemption#c-1#{TASK}", NOW + 5_000)
    assert (fact.figures["kind"], fact.reason, fact.share) == ("host-reclaimed", host, None)
    assert stored(one.ledger, Case) == []


def test_a_classic_job_is_what_its_events_say() -> None:
    one = pool()
    react(one, classic("c-1", CLASSIC, tags={"team": "nlp", "resourceArn": "x"}))
    react(
        one, classic("c-1", CLASSIC, NOW + 9000, status="FAILED", stoppedAt=NOW + 8765, statusReason="exit 1")
    )
    assert one.batch.described == []
    record = one.record("c-1")
    assert (record.classic, record.tags) == (True, (("team", "nlp"),))
    (fact,) = facts_of(one.ledger, "job-ended")
    assert (fact.at, fact.team, fact.reason) == (NOW + 8765, "nlp", "exit 1")


@pytest.mark.parametrize("preemption_first", [True, False])
def test_law_01_a_preemption_of_a_forgotten_job_is_told_in_either_order(preemption_first: bool) -> None:
    one = world()
    row = {**attempt_row(FIRST), "startedAt": NOW, "stoppedAt": NOW + 5000, "statusReason": "Cross-share"}
    summary = {"preemptedAttemptCount": 1, "recentPreemptedAttempts": [row]}
    told = [preemption("Completed", NOW + 6000, preemptionSummary=summary), state("RUNNABLE", NOW + 6000)]
    for seen in told if preemption_first else reversed(told):
        react(one, seen)
    assert [fact.key for fact in facts_of(one.ledger, "preemption")] == [f"preemption#{JOB}#{FIRST}"]
    waiting = one.ledger.load(UntracedJob, JOB)
    assert waiting is None or waiting.closed_at is not None


def test_an_event_nobody_can_place_is_remembered_once() -> None:
    one = world()
    assert [react(one, preemption("Started")).outcome for _ in range(2)] == ["untraced", "untraced"]
    waiting = one.ledger.load(UntracedJob, JOB)
    assert waiting is not None
    assert (len(waiting.events), waiting.version) == (1, 1)


def test_training_events_are_kept_apart_in_any_order() -> None:
    details = [
        {"TrainingJobArn": SECOND, "TrainingJobStatus": "InProgress", "SecondaryStatus": step}
        for step in ("Pending", "Downloading", "Training")
    ]
    told = [
        event("SageMaker Training Job State Change", detail, NOW + 1000 * n, "aws.sagemaker")
        for n, detail in enumerate(details)
    ]
    kept = []
    for order in (told, list(reversed(told)), told * 2):
        one = world()
        one.take(*order)
        record = one.ledger.load(TrainingRecord, SECOND)
        assert record is not None
        kept.append([step.secondary_status for step in record.steps])
    assert kept == [["Pending", "Downloading", "Training"]] * 3


def test_law_01_an_unknown_type_is_told_once() -> None:
    one = world()
    for number in range(3):
        react(one, event("Batch Something New", {"n": number}, NOW + number))
    react(one, state("PAUSED", NOW))  # type: ignore[arg-type]
    assert len(facts_of(one.ledger, "unrecognised")) == 2


@pytest.mark.parametrize("body", ["", "{", "[]", '{"source": "aws.batch"}', "null", "1e999"])
def test_what_is_no_event_is_poison(body: str) -> None:
    with pytest.raises(Poison, match="not an event"):
        take_in(world().runtime, body)


@pytest.mark.parametrize(
    "body", ["", "{}", '{"job": "j", "version": "x"}', '{"job": "j", "version": 1, "more": 1}']
)
def test_what_is_no_wish_is_poison(body: str) -> None:
    with pytest.raises(Poison, match="not a wish"):
        carry_out(world().runtime, body)


# CloudTrail.


def _by(principal: str, told: Json) -> Json:
    return told | {"detail": told["detail"] | {"userIdentity": {"arn": principal}}}


UPDATE = api_call("UpdateServiceJob", {"jobId": JOB, "schedulingPriority": 500}, NOW)


def test_a_call_of_somebody_else_is_attributed_once_with_or_without_a_record() -> None:
    told = []
    for known in (True, False):
        one = pool()
        if known:
            react(one, state("RUNNABLE", NOW))
        for _ in range(2):
            react(one, UPDATE)
        (fact,) = facts_of(one.ledger, "attribution")
        told.append(fact.model_dump(exclude={"recorded_at"}))
    assert told[0] == told[1]
    assert (told[0]["actor"], told[0]["after"]) == ("arn:aws:iam::123456789012:user/alice", "500")


def test_our_own_echo_and_calls_elsewhere_are_no_news() -> None:
    one = pool()
    ours = "arn:aws:sts::123456789012:assumed-role/sharewarden-apply/sharewarden-apply"
    react(one, _by(ours, UPDATE))
    react(one, api_call("UpdateQuotaShare", {"quotaShareArn": f"{OTHER}/quota-share/background"}, NOW))
    react(one, api_call("UpdateServiceJob", {"jobId": "nobody", "schedulingPriority": 5}, NOW))
    react(one, api_call("RegisterJobDefinition", {}, NOW))
    assert not one.ledger.facts


@pytest.mark.parametrize(
    "principal",
    [
        "arn:aws:iam::123456789012:user/sharewarden-apply/mallory",
        "arn:aws:sts::999999999999:assumed-role/sharewarden-apply/x",
        "arn:aws:sts::123456789012:federated-user/sharewarden-apply/x",
        "arn:aws:sts::123456789012:assumed-role/sharewarden-apply-2/sharewarden-apply/x",
    ],
)
def test_law_01_nobody_passes_for_us(principal: str) -> None:
    one = pool()
    react(one, _by(principal, UPDATE))
    assert [fact.actor for fact in facts_of(one.ledger, "attribution")] == [principal]


LOST = {
    "preemptionSummary": {
        "preemptedAttemptCount": 1,
        "recentPreemptedAttempts": [attempt_row(FIRST) | {"startedAt": NOW, "stoppedAt": NOW + 5000}],
    }
}
FIRST_TOLD: dict[str, Callable[[World], object]] = {
    "event": lambda one: react(one, state("RUNNABLE", NOW + 7000)),
    "sweep": lambda one: one.sweep(),
    "bump": lambda one: bump(one.runtime, BumpRequest(id="b", job=ARN, actor="U1", reason="r", by=5)),
}


@pytest.mark.parametrize("first", FIRST_TOLD)
def test_law_01_whoever_makes_the_record_takes_the_untraced_events_in(first: str) -> None:
    one = world()
    assert react(one, preemption("Completed", NOW + 6000, **LOST)).outcome == "untraced"
    one.batch.tell(described())
    FIRST_TOLD[first](one)
    one.settle(3)
    assert len(facts_of(one.ledger, "preemption")) == 1
    assert not facts_of(one.ledger, "gap")


def test_law_01_an_event_that_waits_beside_a_record_goes_to_it() -> None:
    """It came in while the record was made."""
    one = world()
    react(one, preemption("Completed", NOW + 6000, **LOST))
    waiting = one.ledger.items.pop((UntracedJob.item, JOB))
    one.batch.tell(described())
    one.sweep()
    one.ledger.items[UntracedJob.item, JOB] = waiting
    one.settle(3)
    assert len(facts_of(one.ledger, "preemption")) == 1
    assert not facts_of(one.ledger, "gap")


def test_a_job_once_foreign_is_ours_when_an_event_names_our_queue_or_when_long_enough_has_passed() -> None:
    one = pool(queue=OTHER)
    assert react(one, preemption("Started")).outcome == "foreign"
    one.runtime = replace(one.runtime, queues=frozenset({QUEUE, OTHER}))
    assert react(one, preemption("Started", NOW + 1000)).outcome == "foreign"
    assert react(one, state("RUNNABLE", NOW + 2000, jobQueue=OTHER)).outcome == "tracked"
    late = pool(queue=OTHER)
    for _ in range(2):
        assert react(late, preemption("Started")).outcome == "foreign"
        late.clock.advance(DAY)
    late.runtime = replace(late.runtime, queues=frozenset({QUEUE, OTHER}))
    assert react(late, preemption("Started")).outcome == "tracked"


@pytest.mark.parametrize(
    "arn",
    [
        ARN.replace("123456789012", "999999999999"),
        ARN.replace("us-east-1", "us-west-2"),
        ARN.replace("arn:aws:", "arn:aws-cn:"),
    ],
)
def test_a_job_of_another_account_or_region_is_not_ours(arn: str) -> None:
    one = pool()
    react(one, state("RUNNABLE", NOW))
    before = dict(one.ledger.items)
    assert react(one, preemption("Completed", NOW, **LOST, preemptedJobArn=arn)).outcome == "foreign"
    react(one, api_call("UpdateServiceJob", {"jobId": arn, "schedulingPriority": 5}, NOW))
    assert one.ledger.items == before
    assert not one.ledger.facts


def test_a_call_about_many_jobs_is_attributed_to_each() -> None:
    one = pool()
    one.batch.tell(described(job="job-2", arn=f"{ARN[:-1]}2"))
    react(one, api_call("TerminateServiceJobs", {"jobs": [JOB, "job-2"], "reason": "r"}, NOW))
    assert sorted(fact.job or "" for fact in facts_of(one.ledger, "attribution")) == [JOB, "job-2"]


def test_a_share_change_is_told_by_whom() -> None:
    one = pool()
    one.batch.quota_shares[QUEUE] = [share(1)]
    react(one, api_call("UpdateQuotaShare", {"quotaShareArn": SHARE}, NOW))
    (fact,) = facts_of(one.ledger, "quota-share-change")
    assert (fact.queue, fact.share, fact.actor) == (
        QUEUE,
        "background",
        "arn:aws:iam::123456789012:user/alice",
    )


def test_many_preempted_attempts_in_one_answer_fit_into_a_commit() -> None:
    rows = tuple(
        AttemptSeen(training_job=f"{FIRST}{n}", started_at=NOW, stopped_at=NOW + 1, preempted=True)
        for n in range(120)
    )
    one = pool(attempts=rows, preempted_count=120, status="FAILED", stopped_at=NOW, reason="r")
    react(one, state("RUNNING", NOW))
    assert len(facts_of(one.ledger, "preemption")) == PREEMPTIONS_AT_ONCE
