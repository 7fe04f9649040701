"""Stopped between any two calls, or left without an answer, and run again: the same end (law 10)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import pairwise

import pytest
from sharewarden.domain.observation import AttemptSeen
from sharewarden.domain.priority import live_boosts
from sharewarden.usecases.bump import BumpRequest, UnbumpRequest, bump, unbump
from sharewarden_tools.memory import MemoryBatch

from tests.simulation.faults import Calls, Crash, Hook, When, crash, lose, nothing, once, watched
from tests.simulation.samples import (
    ARN,
    FIRST,
    HOUR,
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
from tests.simulation.world import (
    MINUTE,
    NOW,
    QUEUE,
    Json,
    TickingClock,
    Unavailable,
    World,
    world,
)

Step = Callable[[World], None]


class Story:
    """The steps of one job's life; each may be run again. Events are stamped when their step first runs."""

    def __init__(self, hook: Hook) -> None:
        self.world = world(clock=TickingClock(NOW))
        self.batch: MemoryBatch = self.world.batch
        self.plain = self.world.runtime
        self.world.runtime, self.calls = watched(self.plain, hook)
        self.batch.tell(described())
        self.batch.quota_shares[QUEUE] = [share(1)]

    # What the world does: it cannot crash.

    def passes(self, ms: int) -> None:
        self.world.clock.advance(ms)

    def becomes(self, **update: object) -> None:
        self.batch.tell(self.batch.descriptions[JOB].model_copy(update=update))

    # What Sharewarden does.

    def does(self, step: Step) -> None:
        """Run, and run again six minutes later, until it comes to its end."""
        for _ in range(5):
            try:
                return step(self.world)
            except (Crash, Unavailable):
                self.passes(6 * MINUTE)
        raise AssertionError("the step never came to its end")

    def takes(self, told: Json) -> None:
        self.does(lambda one: one.take(told))

    def applies(self) -> None:
        self.does(World.apply_until_done)

    def sweeps(self) -> None:
        """As Scheduler does: with a new lease holder each time, once an earlier lease has run out."""
        holder = f"sweep-{self.world.clock.now()}"
        self.does(lambda one: _swept(one, holder))

    def acts(self) -> None:
        """What a wish leads to: at the latest, the next sweep brings it to ``apply``."""
        self.applies()
        self.sweeps()
        self.applies()

    def settles(self) -> None:
        for _ in range(3):
            self.passes(20 * MINUTE)
            self.sweeps()
            self.applies()

    def now(self) -> int:
        return self.world.clock.now()


def _swept(one: World, holder: str) -> None:
    if one.sweep(holder).unread:
        raise Unavailable("the sweep could not read all")


def starts(story: Story) -> None:
    story.takes(state("RUNNABLE", story.now()))
    story.does(lambda one: bump(one.runtime, _bump("b1", by=100, lasts=HOUR)) and None)
    story.acts()
    story.becomes(status="SCHEDULED", attempt=FIRST, scheduled_at=story.now())
    story.takes(state("SCHEDULED", story.now(), latestAttempt=attempt_row(FIRST)))
    story.passes(MINUTE)
    story.becomes(status="RUNNING", started_at=story.now())
    story.takes(state("RUNNING", story.now(), latestAttempt=attempt_row(FIRST)))


def is_preempted(story: Story) -> None:
    story.passes(10 * MINUTE)
    reason = "Cross-share preemption triggered to reclaim borrowed capacity"
    started = {
        "preemptedJobArn": ARN,
        "status": "RUNNING",
        "statusReason": f"PREEMPTION_IN_PROGRESS: {reason}",
    }
    story.takes(event("Batch Service Job Preemption Started", started, story.now()))
    stopped_at = story.now()
    seen = AttemptSeen(
        training_job=FIRST, started_at=NOW + MINUTE, stopped_at=stopped_at, reason=reason, preempted=True
    )
    story.becomes(status="RUNNABLE", attempts=(seen,), preempted_count=1, attempt=None)
    row = {**attempt_row(FIRST), "startedAt": NOW + MINUTE, "stoppedAt": stopped_at, "statusReason": reason}
    summary = {"preemptedAttemptCount": 1, "recentPreemptedAttempts": [row]}
    completed = {"preemptedJobArn": ARN, "status": "RUNNABLE", "preemptionSummary": summary}
    story.takes(event("Batch Service Job Preemption Completed", completed, story.now()))
    story.takes(state("RUNNABLE", story.now()))
    story.passes(MINUTE)
    story.becomes(status="RUNNING", attempt=SECOND, scheduled_at=story.now())
    story.takes(state("RUNNING", story.now(), latestAttempt=attempt_row(SECOND)))


def boost_expires(story: Story) -> None:
    story.passes(2 * HOUR)
    story.acts()


def drifts(story: Story) -> None:
    story.becomes(priority=500)
    story.takes(api_call("UpdateServiceJob", {"jobId": JOB, "schedulingPriority": 500}, story.now()))
    for _ in range(2):
        story.sweeps()
        story.passes(5 * MINUTE)


def is_taken_back(story: Story) -> None:
    story.does(lambda one: bump(one.runtime, _bump("b2", to=900)) and None)
    story.acts()
    asked = UnbumpRequest(id="u1", job=JOB, actor="U2", reason="no longer")
    story.does(lambda one: unbump(one.runtime, asked) and None)
    story.acts()


def share_changes(story: Story) -> None:
    story.batch.quota_shares[QUEUE] = [share(2)]
    at = story.now()
    story.passes(MINUTE)
    story.sweeps()
    story.takes(api_call("UpdateQuotaShare", {"quotaShareArn": SHARE}, at))
    story.passes(MINUTE)
    story.batch.quota_shares[QUEUE] = [share(1)]
    story.takes(api_call("UpdateQuotaShare", {"quotaShareArn": SHARE}, story.now()))
    story.sweeps()


def hears_other_news(story: Story) -> None:
    story.takes(event("Batch Something New", {}, story.now()))
    training = {"TrainingJobArn": SECOND, "TrainingJobStatus": "InProgress", "SecondaryStatus": "Training"}
    story.takes(event("SageMaker Training Job State Change", training, story.now(), "aws.sagemaker"))
    blocked = {"jobArn": ARN, "jobName": "pretrain", "jobQueue": QUEUE, "status": "RUNNABLE"}
    story.takes(event("Batch Service Job Queue Blocked", blocked | {"statusReason": "CAPACITY"}, story.now()))
    other = "arn:aws:batch:us-east-1:123456789012:service-job/job-gone"
    started = {"preemptedJobArn": other, "status": "RUNNING", "statusReason": "x"}
    story.takes(event("Batch Service Job Preemption Started", started, story.now()))
    story.batch.tell(described(job="job-2", arn=f"{ARN[:-1]}2", name="adopted"))


def ends(story: Story) -> None:
    story.becomes(status="SUCCEEDED", stopped_at=story.now(), reason="done")
    told = state("SUCCEEDED", story.now(), stoppedAt=story.now(), statusReason="done")
    told["detail"]["stoppedAt"] = story.batch.descriptions[JOB].stopped_at
    story.takes(told)


LIFE = (
    starts,
    is_preempted,
    boost_expires,
    drifts,
    is_taken_back,
    share_changes,
    hears_other_news,
    ends,
    Story.settles,
)


def _bump(name: str, **what: object) -> BumpRequest:
    return BumpRequest(id=name, job=JOB, actor="U1", reason="a deadline", **what)  # type: ignore[arg-type]


def live(hook: Hook = nothing) -> Story:
    story = Story(hook)
    for chapter in LIFE:
        chapter(story)
    return story


@cache
def undisturbed() -> Story:
    return live()


def told(story: Story) -> Counter[tuple[object, ...]]:
    """The audit set without the times, which follow from how late something was done."""
    return Counter(
        (fact.kind, fact.job, fact.before, fact.after, fact.reason, fact.actor, fact.mode, fact.share)
        for fact in story.world.ledger.facts.values()
        if fact.kind != "attribution" or fact.job
    )


def outcome(story: Story) -> object:
    record = story.world.record(JOB)
    ledger = record.priority
    return (
        Counter((entry.what, entry.status, entry.attempt) for entry in record.timeline),
        [attempt.model_dump(exclude={"started_at", "stopped_at"}) for attempt in record.attempts],
        (ledger.base, ledger.confirmed, ledger.wish, ledger.sent, ledger.suspect),
        [(boost.id, boost.end) for boost in ledger.boosts],
        (record.end and record.end.status, record.end_audited, record.closed_at is not None),
    )


def check_laws(story: Story) -> None:
    record = story.world.record(JOB)
    assert not live_boosts(record.priority)
    assert record.priority.wish is None
    sent = [value for job, value in story.batch.priorities if job == JOB]
    assert all(one != other for one, other in pairwise(sent)), f"a value was sent twice: {sent}"


def test_the_story_is_what_it_should_be() -> None:
    story = undisturbed()
    assert [value for _, value in story.batch.priorities] == [300, 200, 900, 500]
    kinds = Counter(fact.kind for fact in story.world.ledger.facts.values())
    assert kinds == {
        "bump": 2,
        "unbump": 1,
        "boost-ended": 2,
        "priority-changed": 4,
        "preemption": 1,
        "drift": 1,
        "attribution": 2,
        "quota-share-change": 2,
        "unrecognised": 1,
        "gap": 1,
        "job-ended": 1,
        "job-timeline": 1,
        "adoption": 1,
    }


CALLS = undisturbed().calls.names


@pytest.mark.parametrize("number", range(1, len(CALLS) + 1))
@pytest.mark.parametrize(
    ("when", "fault"), [("before", crash), ("after", crash), ("before", lose), ("after", lose)]
)
def test_law_10_any_call_may_be_the_last(number: int, when: When, fault: Callable[[], None]) -> None:
    story = live(once(number, when, fault))
    where = f"{fault.__name__} {when} call {number}, {CALLS[number - 1]}"
    check_laws(story)
    assert outcome(story) == outcome(undisturbed()), where
    assert told(story) == told(undisturbed()), where


def test_calls_are_counted() -> None:
    """The cases above stand for every call there is."""
    assert isinstance(undisturbed().calls, Calls)
    assert {"set_priority", "commit", "load", "describe", "send", "open_items", "jobs", "shares"} <= set(
        CALLS
    )
