"""The one hand: when it acts, when it waits, and that there is no other."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest
import sharewarden
from sharewarden.domain.boosts import TOO_LATE
from sharewarden.domain.policy import Band, Bands, Policy, QueuePolicy
from sharewarden.domain.priority import IN_FLIGHT, MOST_REFUSALS, REST
from sharewarden.ports import Denied, Unavailable
from sharewarden.usecases.apply import FRESH, apply
from sharewarden.usecases.bump import BumpRequest, UnbumpRequest, bump, unbump

from tests.simulation.faults import Crash, When, crash, lose, nothing, once, watched
from tests.simulation.samples import HOUR, JOB, described, state
from tests.simulation.world import ENFORCE, MINUTE, NOW, World, facts_of, world


def wishing(**update: object) -> World:
    """A job with a wish, version 1, to raise it from 200 to 300."""
    one = world()
    one.batch.tell(described(**update))
    one.take(state("RUNNABLE", NOW))
    bump(one.runtime, BumpRequest(id="b1", job=JOB, actor="U1", reason="r", by=100))
    return one


def test_a_wish_is_done_and_told_once() -> None:
    one = wishing()
    assert apply(one.runtime, JOB, 1) == "done"
    assert apply(one.runtime, JOB, 1) == "superseded"
    assert one.batch.priorities == [(JOB, 300)]
    (fact,) = facts_of(one.ledger, "priority-changed")
    assert (fact.key, fact.before, fact.after, fact.actor) == (
        f"priority-changed#{JOB}#v1",
        "200",
        "300",
        "U1",
    )


@pytest.mark.parametrize(
    ("policy", "outcome"),
    [(Policy(), "shadow"), (ENFORCE.model_copy(update={"paused": True}), "paused")],
)
def test_law_09_shadow_and_pause_leave_the_wish_open(policy: Policy, outcome: str) -> None:
    one = wishing()
    one.policies.policy = policy
    assert apply(one.runtime, JOB, 1) == outcome
    assert one.batch.priorities == []
    one.policies.policy = ENFORCE
    assert apply(one.runtime, JOB, 1) == "done"


def test_an_old_version_and_an_unknown_job_are_nothing() -> None:
    one = wishing()
    bump(one.runtime, BumpRequest(id="b2", job=JOB, actor="U1", reason="r", by=200))
    assert apply(one.runtime, JOB, 1) == "superseded"
    assert apply(one.runtime, "unknown", 1) == "superseded"
    assert apply(one.runtime, JOB, 2) == "done"
    assert one.batch.priorities == [(JOB, 400)]


def test_a_wish_dies_of_age_and_is_told() -> None:
    one = wishing()
    one.clock.advance(HOUR + 1)
    assert apply(one.runtime, JOB, 1) == "expired"
    assert [fact.reason for fact in facts_of(one.ledger, "wish-dropped")] == [TOO_LATE]
    assert one.batch.priorities == []


def test_a_wish_that_took_effect_before_it_died_of_age_is_told_as_done() -> None:
    one = wishing()
    _stopped(one, lose, "after")
    one.clock.advance(HOUR + 1)
    assert apply(one.runtime, JOB, 1) == "settled"
    assert not facts_of(one.ledger, "wish-dropped")
    assert len(facts_of(one.ledger, "priority-changed")) == 1
    assert one.batch.priorities == [(JOB, 300)]


def test_law_02_a_job_that_cannot_be_read_is_left_alone() -> None:
    one = wishing()
    one.batch.down = "throttled"
    with pytest.raises(Unavailable):
        apply(one.runtime, JOB, 1)
    one.batch.down = None
    assert one.batch.priorities == []
    assert one.record(JOB).priority.sent is None


@pytest.mark.parametrize(
    ("update", "outcome"),
    [
        ({"status": "FAILED", "stopped_at": NOW, "reason": "r"}, "settled"),
        ({"status": "FAILED"}, "settled"),  # without details: the end is not settled, and yet nothing is sent
        ({"priority": None}, "drifting"),
        ({"priority": 777}, "drifting"),
        ({"priority": 300}, "drifting"),  # what we wished for, set by somebody else
    ],
)
def test_what_describe_shows_decides(update: dict[str, object], outcome: str) -> None:
    one = wishing()
    one.batch.tell(described(**update))
    assert apply(one.runtime, JOB, 1) == outcome
    assert one.batch.priorities == []


def test_a_job_that_batch_does_not_know_is_left_to_the_sweep() -> None:
    one = wishing()
    del one.batch.descriptions[JOB]
    assert apply(one.runtime, JOB, 1) == "missing"
    assert one.record(JOB).priority.wish is not None


def test_a_job_that_moved_to_a_queue_of_others_is_not_touched() -> None:
    one = wishing()
    one.batch.tell(described(queue=f"{one.record(JOB).queue}-other"))
    assert apply(one.runtime, JOB, 1) == "foreign"
    assert one.batch.priorities == []
    assert len(facts_of(one.ledger, "wish-dropped")) == 1


def _call(name: str) -> int:
    """Which call of an undisturbed ``apply`` that is."""
    runtime, calls = watched(wishing().runtime, nothing)
    apply(runtime, JOB, 1)
    return calls.names.index(name) + 1


def _stopped(one: World, act: Callable[[], None], when: When, version: int = 1) -> None:
    """``apply``, stopped before or after UpdateServiceJob."""
    runtime, _ = watched(one.runtime, once(_call("set_priority"), when, act))
    with pytest.raises((Crash, Unavailable)):
        apply(runtime, JOB, version)


@pytest.mark.parametrize("act", [crash, lose])
def test_law_03_what_took_effect_is_not_sent_again(act: Callable[[], None]) -> None:
    one = wishing()
    _stopped(one, act, "after")
    assert apply(one.runtime, JOB, 1) == "settled"
    assert one.batch.priorities == [(JOB, 300)]
    assert len(facts_of(one.ledger, "priority-changed")) == 1


@pytest.mark.parametrize("act", [crash, lose])
def test_law_03_what_may_still_be_under_way_is_waited_for(act: Callable[[], None]) -> None:
    one = wishing()
    _stopped(one, act, "before")
    with pytest.raises(Unavailable, match="may still change"):
        apply(one.runtime, JOB, 1)
    one.clock.advance(IN_FLIGHT)
    assert apply(one.runtime, JOB, 1) == "done"
    assert one.batch.priorities == [(JOB, 300)]


def test_law_03_a_newer_wish_waits_for_an_older_value_under_way() -> None:
    one = wishing()
    _stopped(one, lose, "before")
    unbump(one.runtime, UnbumpRequest(id="u1", job=JOB, actor="U1", reason="r"))
    with pytest.raises(Unavailable, match="may still change"):
        apply(one.runtime, JOB, 2)
    one.batch.set_priority(JOB, 300)  # it lands after all
    assert apply(one.runtime, JOB, 2) == "done"
    assert one.batch.priorities == [(JOB, 300), (JOB, 200)]
    told = [(fact.before, fact.after) for fact in facts_of(one.ledger, "priority-changed")]
    assert told == [("200", "300"), ("300", "200")]


def test_law_03_a_slow_apply_confirms_nothing_but_its_own() -> None:
    """It sent, others saw the effect and sent the next value: the slow one comes back only then."""
    one = wishing()

    def meanwhile() -> None:
        one.sweep()
        bump(one.runtime, BumpRequest(id="b2", job=JOB, actor="U1", reason="r", by=200))
        _stopped(one, crash, "before", version=2)

    runtime, _ = watched(one.runtime, once(_call("set_priority"), "after", meanwhile))
    assert apply(runtime, JOB, 1) == "done"
    assert [fact.after for fact in facts_of(one.ledger, "priority-changed")] == ["300"]
    assert one.record(JOB).priority.confirmed == 300


def test_law_03_somebody_elses_value_is_never_fought() -> None:
    one = wishing()
    one.batch.tell(described(priority=777))
    assert apply(one.runtime, JOB, 1) == "drifting"
    one.clock.advance(ENFORCE.drift_settle)
    assert apply(one.runtime, JOB, 1) == "settled"
    assert one.record(JOB).priority.base == 777
    assert one.batch.priorities == []
    assert [fact.kind for fact in one.ledger.facts.values()] == ["bump", "drift", "boost-ended"]


@pytest.mark.parametrize("behind", [1, 50, 3000])
def test_law_03_another_clock_does_not_hide_what_describe_shows(behind: int) -> None:
    one = wishing()
    one.sweep()
    one.batch.tell(described(priority=500))
    one.clock.advance(-behind)
    with pytest.raises(Unavailable, match="may still change"):
        apply(one.runtime, JOB, 1)
    assert one.batch.priorities == []
    one.clock.advance(MINUTE)
    assert apply(one.runtime, JOB, 1) == "drifting"


def test_law_05_a_job_dispatched_under_the_boost_is_held() -> None:
    one = wishing()
    apply(one.runtime, JOB, 1)
    unbump(one.runtime, UnbumpRequest(id="u1", job=JOB, actor="U1", reason="r"))
    dispatched = {"status": "RUNNING", "scheduled_at": NOW + MINUTE, "priority": 300}
    one.batch.tell(described(**dispatched))
    one.clock.advance(2 * MINUTE)
    assert apply(one.runtime, JOB, 2) == "held"
    one.clock.advance(ENFORCE.hold)
    assert apply(one.runtime, JOB, 2) == "done"


def _human_band_to(highest: int) -> Policy:
    bands = Bands(automatic=Band(lowest=0, highest=99), human=Band(lowest=100, highest=highest))
    return ENFORCE.model_copy(update={"queues": {"ml-train-qm": QueuePolicy(bumps="enforce", bands=bands)}})


@pytest.mark.parametrize(("highest", "written"), [(250, [(JOB, 250)]), (150, [])])
def test_law_04_a_boost_is_clamped_to_the_band_in_force(highest: int, written: list[tuple[str, int]]) -> None:
    one = wishing()
    one.policies.policy = _human_band_to(highest)
    one.apply_all()
    assert one.batch.priorities == written
    assert one.record(JOB).priority.wish is None


def test_law_02_nothing_is_sent_on_an_old_answer() -> None:
    one = wishing()
    runtime, _ = watched(one.runtime, once(_call("commit"), "before", lambda: one.clock.advance(FRESH + 1)))
    with pytest.raises(Unavailable, match="grew old"):
        apply(runtime, JOB, 1)
    assert one.batch.priorities == []
    assert apply(one.runtime, JOB, 1) == "done"


def _refusing(one: World) -> list[int]:
    """From now on UpdateServiceJob is refused; the values that were tried."""
    tried: list[int] = []

    def refuse(_job: str, priority: int) -> None:
        tried.append(priority)
        raise Denied("UpdateServiceJob: AccessDeniedException: no")

    one.batch.set_priority = refuse
    return tried


def _days(one: World, hours: int) -> None:
    for step in range(hours * 12):
        one.clock.advance(5 * MINUTE)
        one.sweep(f"s{step}")
        one.apply_all()


def test_law_05_a_boost_that_is_refused_ends_and_is_not_tried_for_ever() -> None:
    one = wishing()
    tried = _refusing(one)
    _days(one, 24)
    assert tried == [300] * MOST_REFUSALS
    assert [fact.reason for fact in facts_of(one.ledger, "boost-ended")] == ["refused: r"]
    (dropped,) = facts_of(one.ledger, "wish-dropped")
    assert "AccessDeniedException" in dropped.reason


def test_law_05_a_restore_that_is_refused_rests_and_is_not_forgotten() -> None:
    one = wishing()
    assert apply(one.runtime, JOB, 1) == "done"
    works, tried = type(one.batch).set_priority, _refusing(one)
    unbump(one.runtime, UnbumpRequest(id="u1", job=JOB, actor="U1", reason="r"))
    _days(one, 24)
    assert 24 <= len(tried) <= 24 * MOST_REFUSALS
    assert len(facts_of(one.ledger, "wish-dropped")) == 1
    one.batch.set_priority = works.__get__(one.batch)
    _days(one, 1 + REST // HOUR)
    assert one.batch.priorities == [(JOB, 300), (JOB, 200)]
    assert one.record(JOB).priority.refusal is None


def test_law_03_only_apply_changes_a_job() -> None:
    """Read from the code: who makes the calls that change or make a job, and that there are no others."""
    root = Path(sharewarden.__file__).parent
    callers: dict[str, set[str]] = {}
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                callers.setdefault(node.func.attr, set()).add(str(path.relative_to(root)))
    assert callers["set_priority"] == {"usecases/set_priority.py"}
    assert callers["terminate"] == {"usecases/terminate.py"}
    assert callers["submit"] == {"usecases/resubmit.py"}
    assert callers["do"] == {"usecases/apply.py"}
    ours = {"update_service_job", "terminate_service_job", "submit_service_job"}
    assert all(callers[name] == {"aws/batch.py"} for name in ours)
    verbs = ("submit_", "terminate_", "cancel_", "stop_", "update_", "delete_", "create_")
    nouns = ("_job", "_jobs", "_share", "_queue", "_environment")
    found = {name for name in callers if name.startswith(verbs) and name.endswith(nouns)}
    assert found == ours
