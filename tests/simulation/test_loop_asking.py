"""Jobs are asked to save before a bump may push them out: once, for a bounded time, whatever fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

import pytest
from sharewarden.domain.observation import JobDescription
from sharewarden.domain.policy import Policy
from sharewarden.domain.save_request import POLL, SaveRequest
from sharewarden.ports import Runtime, Unavailable
from sharewarden.usecases.apply import apply
from sharewarden.usecases.bump import UnbumpRequest, unbump
from sharewarden.usecases.save_answers import MOST_ASKED, follow_saves

from tests.simulation.asking_kit import (
    ASKING,
    PRIORITIES,
    VICTIMS,
    WAIT,
    answers,
    arn,
    attempt,
    bumped,
    changed,
    full,
    objects,
    request_of,
    requests,
    running,
    set_of,
    uri,
    written,
)
from tests.simulation.faults import Calls, Crash, Hook, When, crash, lose, nothing, once, watched
from tests.simulation.samples import JOB, described, share
from tests.simulation.world import ENFORCE, MINUTE, NOW, QUEUE, World, facts_of
from tests.unit.checkpoint_kit import manifest, trainer

RAISED = [(JOB, 300)]


def asked(one: World) -> None:
    """The bump waits, and both jobs have been asked."""
    bumped(one)
    assert one.apply_all() == ["saving"]
    assert one.watch() == ["saves_waiting"]


def waiting(wait: str) -> Policy:
    return Policy.model_validate(ENFORCE.model_dump() | {"checkpoints": {"ask_before_bump": wait}})


def passes(one: World, ms: int) -> list[str]:
    one.clock.advance(ms)
    return one.watch()


def passes_until_settled(one: World) -> None:
    while passes(one, POLL) != ["saves_settled"]:
        pass


def states(one: World) -> dict[str, str]:
    """By job, as the one audit record tells it."""
    (fact,) = facts_of(one.ledger, "save-request")
    return {victim["job"]: victim["state"] for victim in fact.figures["victims"]}


# --- how it goes --------------------------------------------------------------------------------------------


def test_the_bump_goes_on_once_all_have_saved() -> None:
    one = full()
    asked(one)
    assert one.batch.priorities == []
    answers(one, "low")
    assert passes(one, POLL) == ["saves_waiting"]
    answers(one, "lower", step=5)
    assert passes(one, POLL) == ["saves_settled"]
    assert one.apply_all() == ["done"]
    assert one.batch.priorities == RAISED
    (fact,) = facts_of(one.ledger, "save-request")
    assert {victim["job"]: victim["step"] for victim in fact.figures["victims"]} == {"low": 2, "lower": 5}
    assert fact.figures["waited"] == 2 * POLL / 1000
    assert one.apply_all() == []


def test_the_likeliest_victim_is_asked_first() -> None:
    one = full()
    asked(one)
    request = request_of(one)
    assert request is not None
    assert [victim.job for victim in request.victims or ()] == ["lower", "low"]


def test_the_wait_is_bounded() -> None:
    one = full()
    asked(one)
    answers(one, "low")
    while one.clock.at < NOW + MINUTE + WAIT:
        assert one.apply_all() == []
        passes(one, POLL)
    assert one.clock.at == NOW + MINUTE + WAIT
    assert one.apply_all() == ["done"]
    assert states(one) == {"low": "saved", "lower": "asked"}


def test_the_wait_ends_at_its_time_to_the_second() -> None:
    one = full(policy=waiting("95s"))
    asked(one)
    while passes(one, 5_000) != ["saves_settled"]:
        pass
    assert one.clock.at == NOW + MINUTE + 95_000


def test_law_08_a_save_that_is_not_in_s3_yet_is_waited_for() -> None:
    one = full()
    asked(one)
    for job in VICTIMS:
        answers(one, job, uploaded=False)
    assert passes(one, POLL) == ["saves_waiting"]
    answers(one, "low")
    passes_until_settled(one)
    assert states(one) == {"low": "saved", "lower": "uploading"}
    assert one.clock.at == NOW + MINUTE + WAIT


def test_law_08_a_set_that_another_job_saved_at_the_same_place_is_no_answer() -> None:
    one = full()
    asked(one)
    answers(one, "low")
    answers(one, "lower", uploaded=False)
    told = manifest(2, saved_at=one.clock.at, training_job="AWSBatchother")
    for name, content in {"model.pt": b"model", "_SAVED.json": told}.items():
        one.runtime.checkpoints.put(uri("lower"), f"{set_of(2)}/{name}", content)
    passes_until_settled(one)
    assert states(one) == {"low": "saved", "lower": "uploading"}
    assert one.clock.at == NOW + MINUTE + WAIT


def test_another_bump_waits_for_the_request_that_is_open() -> None:
    """There is one object a job: a second request in its place would leave the first one unanswered."""
    one = full()
    one.batch.tell(described(job="other", arn=arn("other"), name="other", instance_count=1))
    asked(one)
    first = {job: written(one, job) for job in VICTIMS}
    bumped(one, by=200, name="b2", job=arn("other"))
    assert one.apply_all() == ["saving"]
    one.watch()
    assert {job: written(one, job) for job in VICTIMS} == first
    for job in VICTIMS:
        answers(one, job)
    assert Counter(passes(one, POLL)) == {"saves_settled": 2}
    assert one.apply_all() == ["done", "done"]
    assert len(facts_of(one.ledger, "save-request")) == 2


def test_a_request_that_was_answered_is_no_reason_not_to_ask_again() -> None:
    one = full()
    asked(one)
    for job in VICTIMS:
        answers(one, job)
    passes(one, POLL)
    one.apply_all()
    first = written(one, "low")
    bumped(one, by=200, name="b2")
    assert one.apply_all() == ["saving"]
    one.watch()
    assert written(one, "low") != first


# --- when nobody is asked -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "one",
    [
        lambda: full(policy=ENFORCE),
        lambda: full(in_share=False),
        lambda: full(buckets=frozenset()),
    ],
    ids=["not in the policy", "no in-share preemption", "no bucket is watched"],
)
def test_law_09_a_bump_that_asks_nobody_goes_on_at_once(one: Callable[[], World]) -> None:
    made = one()
    bumped(made)
    assert made.apply_all() == ["done"]
    assert (requests(made), made.looks.next_due() == made.clock.at) == ([], False)
    assert objects(made) == []


@pytest.mark.parametrize(
    "update", [{"bumps": "shadow", "mode": "shadow"}, {"bumps": "shadow"}], ids=["all", "bumps"]
)
def test_law_09_in_shadow_nothing_is_written_to_s3(update: dict[str, str]) -> None:
    queues = {"ml-train-qm": ENFORCE.queues["ml-train-qm"].model_dump() | update}
    one = full(policy=Policy.model_validate(ASKING.model_dump() | {"queues": queues}))
    bumped(one)
    one.apply_all()
    one.sweep("shadow")
    one.apply_all()
    passes(one, MINUTE)
    assert (objects(one), requests(one), one.batch.priorities) == ([], [], [])


def test_law_09_a_policy_that_turns_to_shadow_stops_what_was_not_asked_yet() -> None:
    one = full()
    bumped(one)
    assert one.apply_all() == ["saving"]
    one.policies.policy = ASKING.model_copy(update={"paused": True})
    assert one.watch() == ["saves_settled"]
    assert one.apply_all() == ["paused"]
    assert objects(one) == []
    one.policies.policy = ASKING
    one.clock.advance(5 * MINUTE)
    one.sweep("resumed")
    assert one.apply_all() == ["done"]


def test_a_job_that_does_not_use_the_helper_is_not_asked() -> None:
    one = full()
    _bucket(one).clear()
    for job in VICTIMS:
        for key, content in trainer(7).items():
            one.runtime.checkpoints.put(uri(job), key, content)
    one.clock.advance(10 * MINUTE)
    assert one.watch() == ["looked", "looked"]
    bumped(one)
    assert one.apply_all() == ["saving"]
    assert one.watch() == ["saves_settled"]
    assert one.apply_all() == ["done"]
    request = request_of(one)
    assert request is not None
    assert (request.victims, request.unasked, objects(one)) == ((), 2, [])
    assert facts_of(one.ledger, "save-request") == []


def test_no_more_are_asked_than_one_step_can_reach() -> None:
    one = full()
    one.batch.quota_shares[QUEUE] = [share(40).model_copy(update={"in_share_preemption": True})]
    for number in range(38):
        running(one, f"more-{number:02}", 50)
    one.sweep("more")
    passes(one, MINUTE)
    asked(one)
    request = request_of(one)
    assert request is not None
    assert [victim.job[:5] for victim in request.victims or ()] == ["more-"] * MOST_ASKED
    assert request.unasked == 40 - MOST_ASKED


def test_a_share_with_room_has_no_victims() -> None:
    one = full()
    one.batch.quota_shares[QUEUE] = [share(3).model_copy(update={"in_share_preemption": True})]
    one.sweep("room")
    bumped(one)
    assert one.apply_all() == ["saving"]
    assert one.watch() == ["saves_settled"]
    assert (one.apply_all(), objects(one)) == (["done"], [])


# --- what comes in between ----------------------------------------------------------------------------------


def takes_it_back(one: World) -> None:
    unbump(one.runtime, UnbumpRequest(id="u1", job=JOB, actor="U1", reason="no"))


def bumps_again(one: World) -> None:
    bumped(one, by=200, name="b2")


def pauses(one: World) -> None:
    one.policies.policy = ASKING.model_copy(update={"paused": True})


def ends(one: World) -> None:
    one.batch.tell(described(status="FAILED", reason="no", stopped_at=one.clock.at))
    one.take(changed(JOB, "FAILED", one.clock.at))


def starts(one: World) -> None:
    one.batch.tell(described(status="RUNNING", attempt=attempt(JOB)))


def sets_another(one: World) -> None:
    one.batch.tell(described(priority=777))


@pytest.mark.parametrize(
    ("meanwhile", "sent"),
    [
        (takes_it_back, []),
        (bumps_again, [(JOB, 400)]),
        (pauses, []),
        (ends, []),
        (starts, RAISED),
        (sets_another, []),
    ],
)
def test_law_02_what_was_true_before_the_wait_does_not_count_after_it(
    meanwhile: Callable[[World], None], sent: list[tuple[str, int]]
) -> None:
    """And nothing hangs: what was asked is on record once, at its time."""
    one = full()
    asked(one)
    meanwhile(one)
    for number in range(6):
        for _ in range(30):
            one.apply_all()
            passes(one, POLL)
        one.sweep(f"after-{number}")
    assert one.batch.priorities == sent
    assert [request.settled_at for request in requests(one) if request.settled_at is None] == []
    assert len(facts_of(one.ledger, "save-request")) == len(requests(one))
    assert one.looks.next_due() is None or all(look.asked is None for look in one.looks.take_due())


def test_law_02_after_the_wait_an_unreadable_job_is_left_alone() -> None:
    one = full()
    asked(one)
    for job in VICTIMS:
        answers(one, job)
    passes(one, POLL)
    one.batch.down = "throttled"
    assert one.apply_all() == ["unavailable"]
    one.batch.down = None
    assert one.batch.priorities == []


def test_a_bump_that_was_superseded_before_the_first_step_asks_nobody() -> None:
    one = full()
    bumped(one)
    one.apply_all()
    bumped(one, by=200, name="b2")
    assert "saves_settled" in one.watch()
    assert objects(one) == []


def test_a_message_that_comes_too_late_asks_nobody() -> None:
    one = full()
    bumped(one)
    one.apply_all()
    assert passes(one, WAIT) == ["saves_settled"]
    assert one.apply_all() == ["done"]
    assert (objects(one), facts_of(one.ledger, "save-request")) == ([], [])


def test_a_bump_that_would_die_of_waiting_goes_on_at_once() -> None:
    one = full(policy=ENFORCE)
    bumped(one)
    one.policies.policy = ASKING
    one.clock.advance(50 * MINUTE)
    assert one.apply_all() == ["done"]
    assert requests(one) == []


def test_a_victim_that_does_not_run_again_yet_has_nothing_to_save() -> None:
    one = full()
    told = one.batch.descriptions["low"]
    one.batch.tell(told.model_copy(update={"status": "STARTING"}))
    one.clock.advance(MINUTE)
    one.take(changed("low", "STARTING", one.clock.at))
    bumped(one)
    one.apply_all()
    one.watch()
    request = request_of(one)
    assert request is not None
    assert [victim.job for victim in request.victims or ()] == ["lower"]
    assert request.unasked == 0


def test_the_job_that_started_meanwhile_asks_nobody() -> None:
    one = full()
    bumped(one)
    one.apply_all()
    starts(one)
    one.take(changed(JOB, "RUNNING", one.clock.at))
    assert "saves_settled" in one.watch()
    assert objects(one) == []


# --- what fails ---------------------------------------------------------------------------------------------


def test_law_10_s3_that_does_not_answer_costs_the_answers_not_the_bump() -> None:
    one = full()
    one.runtime.checkpoints.down = "SlowDown"  # type: ignore[attr-defined]
    asked(one)
    passes_until_settled(one)
    assert one.apply_all() == ["done"]
    assert one.clock.at == NOW + MINUTE + WAIT
    assert states(one) == {"low": "planned", "lower": "planned"}


def test_s3_that_answers_when_the_time_is_over_is_not_asked() -> None:
    one = full()
    one.runtime.checkpoints.down = "SlowDown"  # type: ignore[attr-defined]
    asked(one)
    one.runtime.checkpoints.down = None  # type: ignore[attr-defined]
    assert "saves_settled" in passes(one, WAIT)
    assert objects(one) == []


def test_s3_that_answers_late_is_asked_late() -> None:
    one = full()
    one.runtime.checkpoints.down = "SlowDown"  # type: ignore[attr-defined]
    asked(one)
    one.runtime.checkpoints.down = None  # type: ignore[attr-defined]
    passes(one, POLL)
    assert len(objects(one)) == 2


def test_s3_that_refuses_is_not_waited_for() -> None:
    one = full()
    one.runtime.checkpoints.denied = "AccessDenied"  # type: ignore[attr-defined]
    bumped(one)
    assert one.apply_all() == ["saving"]
    assert one.watch() == ["saves_settled"]
    assert one.apply_all() == ["done"]
    (fact,) = facts_of(one.ledger, "save-request")
    assert [victim["state"] for victim in fact.figures["victims"]] == ["refused", "refused"]
    assert fact.figures["victims"][0]["why"] == "AccessDenied"


def test_answers_that_s3_refuses_to_show_are_not_waited_for() -> None:
    one = full()
    asked(one)
    one.runtime.checkpoints.denied = "AccessDenied"  # type: ignore[attr-defined]
    assert passes(one, POLL) == ["saves_settled"]
    assert states(one) == {"low": "unreadable", "lower": "unreadable"}


def test_a_queue_of_looks_that_lost_everything_costs_the_wait_alone() -> None:
    class Lossy:
        def send(self, job: str, delay: int, asked: int | None = None) -> None:
            raise Unavailable("lost")

    one = full()
    one.runtime = replace(one.runtime, looks=Lossy())
    bumped(one)
    assert one.apply_all() == ["saving"]
    one.clock.advance(5 * MINUTE)
    one.sweep("later")
    assert one.apply_all() == ["done"]
    assert [request.settled_at for request in requests(one)] == [one.clock.at]
    assert facts_of(one.ledger, "save-request") == []


def test_a_wish_that_comes_after_its_time_does_not_wait_for_the_record_of_it() -> None:
    one = full(policy=waiting("4m"))
    bumped(one)
    one.apply_all()
    one.looks.take_due()
    one.clock.advance(5 * MINUTE)
    one.sweep("later")
    assert one.apply_all() == ["done"]
    assert [request.settled_at for request in requests(one)] == [None]
    one.clock.advance(5 * MINUTE)
    one.sweep("last")
    assert [request.settled_at for request in requests(one)] == [one.clock.at]


def test_a_message_that_was_lost_is_sent_again_with_the_wish() -> None:
    one = full(policy=waiting("10m"))
    bumped(one)
    one.apply_all()
    one.looks.take_due()
    one.clock.advance(5 * MINUTE)
    one.sweep("later")
    assert one.apply_all() == ["saving"]
    assert "saves_waiting" in one.watch()
    assert len(objects(one)) == 2


@pytest.mark.parametrize("times", [2, 5])
def test_law_01_doubled_messages_are_one_request_and_one_record(times: int) -> None:
    one = full()
    bumped(one)
    assert [apply(one.runtime, JOB, 1) for _ in range(times)] == ["saving"] * times
    assert Counter(one.watch()) == {"saves_waiting": 1, "saves_early": times - 1}
    puts = {key: len(versions) for key, versions in _bucket(one).items() if ".sharewarden" in key}
    assert list(puts.values()) == [1, 1]
    for job in VICTIMS:
        answers(one, job)
    one.clock.advance(POLL)
    for _ in range(times):
        one.looks.send(JOB, 0, 1)
    assert Counter(one.watch()) == {"saves_settled": 1, "saves_over": times}
    assert len(facts_of(one.ledger, "save-request")) == 1
    assert follow_saves(one.runtime, JOB, 9) == "saves_gone"


def _follow(runtime: Runtime) -> None:
    follow_saves(runtime, JOB, 1)


def _bucket(one: World) -> dict[str, list[object]]:
    return one.runtime.checkpoints.buckets["ckpt"]  # type: ignore[attr-defined]


def test_law_01_two_at_a_time_ask_once() -> None:
    """The second one begins before any call of the first."""
    number = 0
    while True:
        number += 1
        one = full()
        bumped(one)
        one.apply_all()
        plain, other = one.runtime, partial(_follow, one.runtime)
        one.runtime, calls = watched(plain, once(number, "before", other))
        outcomes, one.runtime = one.watch(), plain
        assert outcomes in (["saves_waiting"], ["saves_early"])
        assert [len(versions) for key, versions in _bucket(one).items() if ".sharewarden" in key] == [1, 1]
        one.looks.take_due()
        if number > len(calls.names):
            return


# --- any call may be the last -------------------------------------------------------------------------------


class Story:
    """25 minutes from the bump on, in steps of ten seconds; both jobs use the helper."""

    def __init__(self, hook: Hook) -> None:
        self.world = full()
        bumped(self.world)
        self.plain = self.world.runtime
        self.world.runtime, self.calls = watched(self.plain, hook)
        self._failed: list[tuple[int, Callable[[], object]]] = []

    def lives(self) -> None:
        one = self.world
        for step in range(150):
            for wish in one.wishes.drain():
                self._does(6 * MINUTE, lambda wish=wish: apply(one.runtime, *wish))
            for look in one.looks.take_due():
                if look.asked is not None:
                    self._does(18 * MINUTE, lambda look=look: follow_saves(one.runtime, look.job, look.asked))
            if step % 30 == 29:
                self._does(0, lambda: one.sweep(f"sweep-{one.clock.at}"))
            self._comes_again()
            if step % 2 == 0:
                self._helps()
            one.clock.advance(10_000)

    def _does(self, hidden: int, work: Callable[[], object]) -> None:
        """As SQS does: what failed comes again after so long; a sweep comes by itself."""
        try:
            work()
        except (Crash, Unavailable):
            if hidden:
                self._failed.append((self.world.clock.at + hidden, work))

    def _comes_again(self) -> None:
        due = [work for at, work in self._failed if at <= self.world.clock.at]
        self._failed = [(at, work) for at, work in self._failed if at > self.world.clock.at]
        for work in due:
            self._does(6 * MINUTE, work)

    def _helps(self) -> None:
        one = replace(self.world, runtime=self.plain)
        for job in VICTIMS:
            told = written(one, job)
            seen = told is None or any(told["request_id"] in key for key in objects(one))
            if not seen and told["deadline"] > one.clock.at:
                answers(one, job)


def live(hook: Hook = nothing) -> Story:
    story = Story(hook)
    story.lives()
    return story


@cache
def undisturbed() -> Story:
    return live()


def test_the_story_is_what_it_should_be() -> None:
    story = undisturbed()
    assert states(story.world) == dict.fromkeys(VICTIMS, "saved")
    assert story.world.batch.priorities == RAISED
    assert isinstance(story.calls, Calls)
    assert {"put", "read", "pages", "commit", "send", "set_priority", "open_items"} <= set(CALLS)


#: What comes later are sweeps that find nothing to do.
CALLS = undisturbed().calls.names[:80]


@pytest.mark.parametrize(
    ("when", "fault"), [("before", crash), ("after", crash), ("before", lose), ("after", lose)]
)
def test_law_10_any_call_may_be_the_last(when: When, fault: Callable[[], None]) -> None:
    for number, name in enumerate(CALLS, 1):
        story = live(once(number, when, fault))
        where, one = f"{fault.__name__} {when} call {number}, {name}", story.world
        assert one.batch.priorities == RAISED, where
        assert one.record(JOB).priority.wish is None, where
        (request,) = requests(one)
        assert isinstance(request, SaveRequest)
        assert request.settled_at is not None, where
        facts = facts_of(one.ledger, "save-request")
        assert len(facts) == bool(request.victims), where
        asked_in_s3 = {victim.job for victim in request.victims or ()}
        assert {job for job in VICTIMS if written(one, job)} <= asked_in_s3, where


def test_what_the_kit_tells_of_jobs() -> None:
    one = full()
    assert {job: one.record(job).priority.confirmed for job in VICTIMS} == PRIORITIES
    assert one.record("low").checkpoint_uri == uri("low")
    assert isinstance(one.batch.describe(JOB), JobDescription)
