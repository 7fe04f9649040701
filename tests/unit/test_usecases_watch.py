"""The freshness watch: who is looked at, when, how often, what comes of it, and what it costs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sharewarden.domain.notice import Notice
from sharewarden.domain.policy import Policy
from sharewarden.domain.rules.base import Guardrail, Verdict
from sharewarden.domain.rules.facts import Facts
from sharewarden.domain.saves import LATE, LOST, REFUSED, SHORTEST, UNKNOWN
from sharewarden.intake.looks import look_at
from sharewarden.messages import Poison, metrics
from sharewarden.ports import Conflict, Unavailable
from sharewarden.usecases.send_looks import LONGEST_DELAY, MOST_SENT, overdue, send_overdue

from tests.simulation.faults import nothing, once, watched
from tests.simulation.samples import ARN, HOUR, JOB, described, share, state
from tests.simulation.world import ENFORCE, MINUTE, NOW, QUEUE, World, facts_of, stored, world
from tests.unit.checkpoint_kit import URI, lay, saved

BUCKETS = frozenset({"arn:aws:s3:::ckpt"})
STALE = {"rule": "stale-checkpoint", "times": 2, "interval": "10m", "action": "notify"}


def pool(*entries: Any, buckets: frozenset[str] = BUCKETS, uri: str | None = URI, **update: Any) -> World:
    """A job that runs since ``NOW``, its bucket there and empty."""
    policy = Policy.model_validate(ENFORCE.model_dump() | {"guardrails": entries})
    one = world(policy=policy, buckets=buckets)
    one.runtime.checkpoints.put("s3://ckpt", "other/x", b"")
    one.batch.tell(described(status="RUNNING", checkpoint_uri=uri, **update))
    one.batch.quota_shares[QUEUE] = [share(8)]
    one.take(state("RUNNING", NOW))
    return one


def passes(one: World, ms: int) -> list[str]:
    one.clock.advance(ms)
    return one.watch()


def asked(one: World) -> int:
    return one.runtime.checkpoints.asked  # type: ignore[attr-defined]


# --- who ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uri", "buckets", "sent"),
    [
        (URI, BUCKETS, 1),
        (URI, frozenset({"arn:aws:s3:::*"}), 1),
        (URI, frozenset(), 0),
        (URI, frozenset({"arn:aws:s3:::ckpt-2"}), 0),
        ("s3://ckpt-2/team/run", BUCKETS, 0),
        ("/opt/ml/checkpoints", frozenset({"arn:aws:s3:::*"}), 0),
        (None, frozenset({"arn:aws:s3:::*"}), 0),
    ],
)
def test_a_running_job_that_saves_to_a_watched_bucket_is_looked_at(
    uri: str | None, buckets: frozenset[str], sent: int
) -> None:
    one = pool(uri=uri, buckets=buckets)
    assert [look.at - NOW for look in one.looks.sent] == [SHORTEST] * sent
    one.clock.advance(HOUR)
    assert one.sweep().looks == sent


@pytest.mark.parametrize("status", ["RUNNABLE", "SCHEDULED", "STARTING", "FAILED", "SUCCEEDED"])
def test_a_job_that_does_not_run_is_not_looked_at(status: Any) -> None:
    one = world(buckets=BUCKETS)
    one.batch.tell(described(status=status, checkpoint_uri=URI))
    one.take(state(status, NOW))
    assert one.looks.sent == []


@pytest.mark.parametrize(("job", "outcome"), [(JOB, "over"), ("job-2", "gone")])
def test_the_looks_end_with_the_job(job: str, outcome: str) -> None:
    one = pool()
    one.take(state("SUCCEEDED", NOW + 30_000))
    before = asked(one)
    assert look_at(one.runtime, json.dumps({"job": job})) == outcome
    assert (asked(one), len(one.looks.sent)) == (before, 1)


@pytest.mark.parametrize("body", ["{}", "no", '{"job": 1}', '{"job": "j", "x": 1}'])
def test_what_is_no_look_is_poison(body: str) -> None:
    with pytest.raises(Poison, match="not a look"):
        look_at(pool().runtime, body)


# --- when ---------------------------------------------------------------------------------------------------


def test_each_look_sends_the_next_one() -> None:
    one = pool()
    assert passes(one, SHORTEST) == ["looked"]
    assert passes(one, UNKNOWN - 1) == []
    lay(one, saved(1, at=one.clock.at), one.clock.at)
    assert passes(one, 1) == ["looked"]
    assert one.record(JOB).saves.newest_at == one.clock.at - 1
    assert len(one.looks.sent) == 3


def test_a_message_that_came_twice_costs_one_read() -> None:
    one = pool()
    passes(one, SHORTEST)
    one.looks.send(JOB, 0)
    one.runtime, calls = watched(one.runtime, nothing)
    assert one.watch() == ["early"]
    assert (calls.names, len(one.looks.sent)) == (["load"], 3)


def test_two_at_a_time_look_once() -> None:
    """The second one begins while the first one is at S3."""
    one = pool()
    plain, outcomes = one.runtime, list[str]()
    at_s3 = once(3, "before", lambda: outcomes.append(look_at(plain, json.dumps({"job": JOB}))))
    one.runtime, calls = watched(plain, at_s3)
    assert passes(one, SHORTEST) == ["looked"]
    assert (calls.names[2:4], outcomes) == (["current", "pages"], ["early"])


def test_a_claim_that_meets_another_writer_reads_again() -> None:
    one = pool()
    runtime, calls = watched(one.runtime, once(2, "before", _conflict))
    one.runtime = runtime
    assert passes(one, SHORTEST) == ["looked"]
    assert calls.names[:4] == ["load", "commit", "load", "commit"]


def _conflict() -> None:
    raise Conflict("another writer")


def test_a_look_that_is_due_later_than_a_message_can_wait_is_left_to_the_sweep() -> None:
    one = pool()
    lay(one, saved(1, at=NOW - 41 * MINUTE) | saved(2, "bbbb", at=NOW - MINUTE), NOW)
    ages = {"step-000000000001-aaaa": NOW - 41 * MINUTE}
    _dated(one, ages)
    passes(one, SHORTEST)
    due = one.record(JOB).saves.next_look_at
    assert due - one.clock.at > LONGEST_DELAY
    assert one.looks.next_due() is None
    one.clock.at = due + LATE - 1
    assert one.sweep().looks == 0
    one.clock.at = due + LATE
    assert one.sweep("next").looks == 1
    assert one.watch() == ["looked"]


def _dated(one: World, times: dict[str, int]) -> None:
    """Move the objects of these folders to these times."""
    bucket = one.runtime.checkpoints.buckets["ckpt"]  # type: ignore[attr-defined]
    for key, versions in bucket.items():
        for folder, at in times.items():
            if folder in key:
                versions[:] = [version._replace(modified_at=at) for version in versions]


def test_a_new_attempt_is_looked_at_before_the_pace_of_the_old_one() -> None:
    one = pool()
    passes(one, SHORTEST)
    one.take(state("RUNNABLE", one.clock.at + 1000), state("RUNNING", one.clock.at + 3000))
    assert one.record(JOB).saves.next_look_at > one.clock.at
    one.clock.advance(3000)
    one.looks.send(JOB, 0)
    assert one.watch() == ["looked"]


def test_a_look_that_never_came_back_is_taken_up_by_the_sweep() -> None:
    one = pool()
    one.runtime, _ = watched(one.runtime, once(3, "before", _die))
    with pytest.raises(SystemExit):
        passes(one, SHORTEST)
    claimed = one.clock.at
    one.clock.at = claimed + LOST + LATE - 1
    assert one.sweep().looks == 0
    one.clock.advance(1)
    assert one.sweep("next").looks == 1
    assert one.watch() == ["looked"]


def _die() -> None:
    raise SystemExit


def test_the_sweep_sends_the_most_overdue_looks_first_and_not_all_at_once() -> None:
    one = world(buckets=BUCKETS)
    assert send_overdue(one.runtime, [(NOW - n, f"job-{n}") for n in range(MOST_SENT + 5)]) == MOST_SENT
    assert one.looks.sent[0].job == f"job-{MOST_SENT + 4}"


def test_looks_that_cannot_be_sent_cost_neither_event_nor_look() -> None:
    class Down:
        def send(self, job: str, delay: int) -> None:
            raise Unavailable("throttled")

    one = world(buckets=BUCKETS)
    object.__setattr__(one.runtime, "looks", Down())
    one.batch.tell(described(status="RUNNING", checkpoint_uri=URI))
    one.runtime.checkpoints.put(URI, "x", b"")
    one.take(state("RUNNING", NOW))
    assert look_at(one.runtime, json.dumps({"job": JOB})) == "looked"
    one.clock.advance(HOUR)
    report = one.sweep()
    assert (report.looks, report.unread, report.described) == (0, 1, 1)


# --- what comes of it ---------------------------------------------------------------------------------------


def test_the_finding_comes_with_the_look_that_shows_it_once_with_its_figures() -> None:
    one = pool(STALE)
    while one.clock.at < NOW + HOUR:
        passes(one, MINUTE)
    (fact,) = facts_of(one.ledger, "finding")
    assert (fact.job, fact.at) == (JOB, NOW + 21 * MINUTE)  # looks come at 1, 6, 11, 16, 21 minutes
    assert {name: fact.figures[name] for name in ("age", "interval", "times")} == {
        "age": 21 * 60,
        "interval": 600,
        "times": 2,
    }
    assert [notice.fact for notice in stored(one.ledger, Notice)] == [fact.key]  # type: ignore[attr-defined]
    one.sweep()
    assert len(facts_of(one.ledger, "finding")) == 1


def test_it_is_over_with_the_look_that_shows_a_save() -> None:
    one = pool(STALE)
    while not facts_of(one.ledger, "finding"):
        passes(one, MINUTE)
    lay(one, saved(7, at=one.clock.at), one.clock.at)
    passes(one, UNKNOWN)
    assert [fact.reason for fact in facts_of(one.ledger, "finding-cleared")] == ["the rule holds again"]


def test_a_look_that_comes_late_makes_nothing_stale() -> None:
    one = pool(STALE)
    lay(one, saved(7, at=NOW + SHORTEST), NOW + SHORTEST)
    passes(one, SHORTEST)
    one.clock.advance(HOUR)
    one.sweep()
    assert facts_of(one.ledger, "finding") == []


def test_s3_that_cannot_be_asked_changes_nothing_and_is_asked_again_soon() -> None:
    one = pool(STALE)
    passes(one, SHORTEST)
    before = one.record(JOB).saves
    one.runtime.checkpoints.down = "SlowDown"  # type: ignore[attr-defined]
    for _ in range(6):
        assert passes(one, UNKNOWN) == ["looks_unanswered"]
    after = one.record(JOB).saves
    update = {"asked_at": after.asked_at, "next_look_at": after.next_look_at}
    assert after == before.model_copy(update=update)
    assert facts_of(one.ledger, "finding") == []


def test_a_refusal_is_told_once_a_job_and_tried_again() -> None:
    one = pool(STALE)
    one.runtime.checkpoints.denied = "AccessDenied: no"  # type: ignore[attr-defined]
    assert passes(one, SHORTEST) == ["looks_refused"]
    for _ in range(5):
        assert passes(one, REFUSED) == ["looks_refused"]
    (fact,) = facts_of(one.ledger, "checkpoint-unreadable")
    assert fact.reason == "its checkpoints cannot be read: AccessDenied: no"
    assert [notice.fact for notice in stored(one.ledger, Notice)] == [fact.key]  # type: ignore[attr-defined]
    one.runtime.checkpoints.denied = None  # type: ignore[attr-defined]
    assert passes(one, REFUSED) == ["looked"]
    assert len(facts_of(one.ledger, "finding")) == 1  # nothing was saved all the while


class Broken(Guardrail):
    rule: str = "broken"

    def decide(self, facts: Facts) -> Verdict:
        raise ZeroDivisionError


def test_a_rule_that_raises_costs_no_look_and_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    metrics.clear_metrics()  # they are the process's: other tests count there, too
    one = pool()
    one.policies.policy = Policy(queues=ENFORCE.queues, guardrails=(Broken(),))
    assert passes(one, SHORTEST) == ["looked"]
    metrics.provider.namespace = "Sharewarden"
    metrics.flush_metrics()
    assert '"rules_failed":[1.0]' in capsys.readouterr().out


def test_a_save_since_the_dispatch_is_known_to_the_hold() -> None:
    one = pool(scheduled_at=NOW - MINUTE)
    lay(one, saved(7, at=NOW + 30_000), NOW + 30_000)
    passes(one, SHORTEST)
    assert one.record(JOB).saves.newest_at == NOW + 30_000


# --- what it costs ------------------------------------------------------------------------------------------


def test_a_thousand_running_jobs_are_looked_at_at_their_pace() -> None:
    """An hour with sweeps; a look is one listing, since nothing is there to verify."""
    one = world(buckets=BUCKETS)
    one.runtime.checkpoints.put("s3://ckpt", "other/x", b"")
    for number in range(1000):
        job = f"job-{number}"
        told = described(
            job=job, arn=ARN.replace(JOB, job), status="RUNNING", checkpoint_uri=f"{URI}-{number}"
        )
        one.batch.tell(told)
        one.take(state("RUNNING", NOW, jobArn=told.arn))
    before, looks = asked(one), 0
    for minute in range(60):
        looks += len(passes(one, MINUTE))
        if minute % 5 == 4:
            one.sweep(str(minute))
    assert looks == 1000 * 12
    assert asked(one) - before == looks


def test_overdue_is_only_what_somebody_should_have_taken_up() -> None:
    one = pool()
    record = one.record(JOB)
    assert overdue(one.runtime, record, NOW + LATE - 1) is None
    assert overdue(one.runtime, record, NOW + LATE) == NOW
