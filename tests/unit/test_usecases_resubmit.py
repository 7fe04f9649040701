"""An exhausted job is submitted again: whether, with what, once, and that the audit says what happened."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from sharewarden.domain.notice import Notice
from sharewarden.domain.policy import Policy, QueuePolicy, ResubmitPolicy
from sharewarden.domain.priority import IN_FLIGHT, MOST_REFUSALS
from sharewarden.domain.record import JobRecord
from sharewarden.domain.resubmission import LIFE, is_open, new_name, new_token
from sharewarden.intake.wishes import carry_out
from sharewarden.ports import Denied, Unavailable
from sharewarden.usecases.apply import FRESH, apply

from tests.simulation.faults import Crash, When, crash, lose, nothing, once, watched
from tests.simulation.resubmit_kit import (
    PAYLOAD,
    ROLE,
    RULES,
    SAVE,
    case_of,
    ended,
    exhausted,
    ruled,
    step,
    turn,
    wanted,
)
from tests.simulation.samples import ARN, FIRST, HOUR, JOB
from tests.simulation.world import MINUTE, NOW, QUEUE, World, facts_of, stored

NAME, TOKEN = new_name("pretrain", JOB, 1), new_token(JOB, 1)
ACT = f"resubmit-{TOKEN[:16]}"
NEW = "arn:aws:batch:us-east-1:123456789012:service-job/submitted-1"


def notices(one: World) -> dict[str, Notice]:
    return {notice.kind: notice for notice in stored(one.ledger, Notice)}  # type: ignore[attr-defined, misc]


def refusal(one: World) -> str:
    """Why it was not done: on record once, and told."""
    (fact,) = facts_of(one.ledger, "resubmit-refused")
    notice = notices(one)["resubmit-refused"]
    assert fact.reason in notice.text
    assert f"describe-service-job --job-id {ARN}" in notice.text
    assert one.batch.submitted == [] == facts_of(one.ledger, "resubmitted")
    return fact.reason


def test_it_is_submitted_as_it_was_and_told_once() -> None:
    one = exhausted()
    assert step(one)._asdict() == {"done": False, "wait": 300, "outcome": "exhausted"}
    assert turn(one) == ["done"]
    ((submission, token),) = one.batch.submitted
    assert (submission.name, token) == (NAME, TOKEN)
    assert (submission.queue, submission.share, submission.priority) == (QUEUE, "background", 200)
    assert submission.payload == PAYLOAD
    assert submission.preemption == {"preemptionRetriesBeforeTermination": 0}
    assert dict(submission.tags) == {
        "team": "research",
        "lineage": JOB,
        "sharewarden-resubmission": "1",
        "sharewarden-resubmission-of": JOB,
    }
    (fact,) = facts_of(one.ledger, "resubmitted")
    assert (fact.key, fact.actor, fact.mode) == (f"resubmitted#{JOB}", "sharewarden", "enforce")
    assert (fact.job, fact.lineage, fact.after) == (JOB, JOB, NAME)
    assert fact.figures == {
        "name": NAME,
        "number": 1,
        "attempt": FIRST,
        "save": SAVE.name,
        "step": 400,
        "act": ACT,
        "next_job": NEW,
        "priority": 200,
        "most_retries": None,
    }
    told = notices(one)["resubmitted"]
    assert (told.severity, told.team) == ("info", "research")
    assert "goes on from step-400-a (step 400)" in told.text
    assert not facts_of(one.ledger, "resubmit-refused")


def test_the_case_goes_on_with_the_new_job() -> None:
    one = exhausted()
    step(one)
    assert not step(one).done
    turn(one)
    assert step(one).done
    assert case_of(one).next_job == "submitted-1"
    assert case_of(one).closed_at is None
    assert step(one).done
    assert len(facts_of(one.ledger, "resubmitted")) == 1


def test_a_case_with_another_outcome_is_not_decided_on() -> None:
    one = exhausted()
    case = case_of(one)
    one.ledger.commit([case.model_copy(update={"outcome": "requeued"})], [], NOW)
    assert step(one).done
    assert not case_of(one).resubmitted
    assert one.record(JOB).resubmission is None


TOO_MANY = tuple((f"t{number}", "") for number in range(48))


@pytest.mark.parametrize(
    ("rules", "update", "why"),
    [
        ({}, {"save": None}, "no complete checkpoint"),
        ({"roles": ()}, {}, f"execution role ({ROLE}) is not among"),
        ({"roles": ("training", "Train")}, {}, "is not among"),
        ({}, {"role": None}, "execution role (not known)"),
        ({}, {"tags": (("sharewarden-resubmission", "3"),)}, "submitted again 3 times already"),
        ({"most_per_lineage": 1}, {"tags": (("sharewarden-resubmission", "1"),)}, "again 1 time already"),
        ({}, {"tags": (("sharewarden-resubmission", "-1"),)}, "is no number"),
        ({}, {"tags": TOO_MANY}, "so many tags"),
    ],
)
def test_what_the_policy_does_not_want_is_not_done_and_told(
    rules: dict[str, Any], update: dict[str, Any], why: str
) -> None:
    one = exhausted(ruled(RULES.model_copy(update=rules)), **update)
    assert step(one).done
    assert why in refusal(one)
    assert turn(one) == []
    assert case_of(one).next_job is None
    assert facts_of(one.ledger, "resubmit-refused")[0].mode == "enforce"


@pytest.mark.parametrize(
    ("rules", "update"),
    [
        ({"from_zero": True}, {"save": None}),
        ({"roles": (ROLE,)}, {}),
        ({"roles": ("arn:aws:iam::123456789012:role/team/*",)}, {}),
        ({"roles": ("Tr*",)}, {}),
        ({}, {"tags": (("sharewarden-resubmission", "2"),)}),
        ({}, {"tags": TOO_MANY[1:]}),
    ],
)
def test_what_the_policy_wants_is_done(rules: dict[str, Any], update: dict[str, Any]) -> None:
    one = exhausted(ruled(RULES.model_copy(update=rules)), **update)
    assert not step(one).done
    assert turn(one) == ["done"]
    assert len(one.batch.submitted) == 1


def test_law_09_shadow_says_what_it_would_do_and_does_nothing() -> None:
    shadow = RULES.model_copy(update={"mode": "shadow"})
    one = exhausted(ruled(shadow))
    assert step(one).done
    assert refusal(one) == (
        f"shadow mode: it would be submitted again as {NAME}, which goes on from step-400-a (step 400)"
    )
    (fact,) = facts_of(one.ledger, "resubmit-refused")
    assert (fact.mode, notices(one)["resubmit-refused"].mode) == ("shadow", "shadow")
    assert one.record(JOB).resubmission is None


def test_the_default_policy_submits_nothing() -> None:
    one = exhausted(Policy(queues={"ml-train-qm": QueuePolicy(mode="enforce", bumps="enforce")}))
    assert step(one).done
    refusal(one)


def test_a_paused_policy_submits_nothing_and_does_not_come_back_to_it() -> None:
    one = exhausted(ruled(paused=True))
    assert step(one).done
    one.policies.policy = ruled()
    assert step(one).done
    assert turn(one) == []
    assert refusal(one) == "the policy is paused"


def test_law_11_an_adopted_job_is_left_alone() -> None:
    one = exhausted()
    one.ledger.commit([one.record(JOB).model_copy(update={"adopted": True})], [], NOW)
    assert step(one).done
    assert "before Sharewarden looked" in refusal(one)


def test_the_base_counts_not_what_batch_showed_last() -> None:
    one = exhausted()
    record = one.record(JOB)
    ledger = record.priority.model_copy(update={"base": 150})
    one.ledger.commit([record.model_copy(update={"priority": ledger})], [], NOW)
    step(one)
    turn(one)
    ((submission, _),) = one.batch.submitted
    assert submission.priority == 150


@pytest.mark.parametrize(
    ("entry", "retries", "expected"),
    [
        ({"limit": 3}, 5, 5),  # shadow: the queue does not say otherwise
        ({"limit": 3, "mode": "enforce"}, 5, 3),
        ({"limit": 3, "mode": "enforce"}, 2, 2),
        ({"limit": 3, "mode": "enforce", "shares": ["other"]}, 5, 5),
        ({"limit": 3, "mode": "enforce", "teams": ["research"]}, 5, 3),
    ],
)
def test_preemption_retries_stay_within_the_guardrail(
    entry: dict[str, Any], retries: int, expected: int
) -> None:
    document = {
        "queues": {"ml-train-qm": {"shares": {"background": {"team": "research"}}}},
        "guardrails": [{"rule": "bounded-retries", **entry}],
        "checkpoints": {"resubmit": {"mode": "enforce", "roles": ["Training"]}},
    }
    one = wanted(Policy.model_validate(document), preemption_retries=retries)
    assert one.apply_all() == ["done"]
    ((submission, _),) = one.batch.submitted
    assert submission.preemption == {"preemptionRetriesBeforeTermination": expected}


def test_a_lineage_is_followed_and_its_number_grows() -> None:
    tags = (("aws:batch:x", "y"), ("lineage", "vision"), ("sharewarden-resubmission", "1"))
    one = wanted(tags=tags, name=f"{new_name('pretrain', 'job-0', 1)}")
    assert one.apply_all() == ["done"]
    ((submission, _),) = one.batch.submitted
    assert submission.name == new_name("pretrain", JOB, 2)
    assert dict(submission.tags) == {
        "lineage": "vision",
        "sharewarden-resubmission": "2",
        "sharewarden-resubmission-of": JOB,
    }
    assert facts_of(one.ledger, "resubmitted")[0].lineage == "vision"


# --- what may come in between ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "outcome"),
    [
        (ruled(paused=True), "paused"),
        (ruled(RULES.model_copy(update={"mode": "shadow"})), "shadow"),
    ],
)
def test_law_03_paused_or_in_shadow_in_between_it_waits(policy: Policy, outcome: str) -> None:
    one = wanted()
    one.policies.policy = policy
    assert apply(one.runtime, JOB, ACT) == outcome
    list(one.wishes.drain())
    assert turn(one) == []
    assert not step(one).done
    one.policies.policy = ruled()
    assert turn(one) == ["done"]
    assert len(one.batch.submitted) == 1


def test_what_could_not_be_done_for_a_day_is_given_up() -> None:
    one = wanted()
    one.policies.policy = ruled(paused=True)
    list(one.wishes.drain())
    turn(one, LIFE - 10 * MINUTE)
    assert not step(one).done
    turn(one, 10 * MINUTE)
    assert step(one).done
    assert refusal(one) == "it could not be done within 24 hours"
    turn(one, HOUR)
    assert one.record(JOB).closed_at is not None


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        (RULES.model_copy(update={"roles": ("Other",)}), "is not among"),
        (ResubmitPolicy(mode="enforce", roles=("Training",), most_per_lineage=1), ""),
    ],
)
def test_law_03_the_policy_of_the_moment_counts(rules: ResubmitPolicy, why: str) -> None:
    one = wanted()
    one.policies.policy = ruled(rules)
    if not why:
        assert one.apply_all() == ["done"]
        return
    assert one.apply_all() == ["settled"]
    assert why in refusal(one)
    assert step(one).done
    one.policies.policy = ruled()
    assert turn(one) == []


@pytest.mark.parametrize(
    ("update", "why"),
    [
        ({"status": "RUNNABLE", "stopped_at": None}, "shows the job as RUNNABLE"),
        ({"terminated": True}, "somebody has terminated the job"),
    ],
)
def test_law_02_what_batch_shows_just_before_decides(update: dict[str, Any], why: str) -> None:
    one = wanted()
    one.batch.tell(ended(NOW, **update))
    assert one.apply_all() == ["settled"]
    assert why in refusal(one)


def test_law_02_nothing_is_sent_on_an_old_answer() -> None:
    one = wanted()
    runtime, _ = watched(one.runtime, once(_call("commit"), "before", lambda: one.clock.advance(FRESH + 1)))
    with pytest.raises(Unavailable, match="grew old"):
        apply(runtime, JOB, ACT)
    assert one.batch.submitted == []
    assert apply(one.runtime, JOB, ACT) == "done"


def test_law_02_a_job_that_cannot_be_read_is_not_submitted() -> None:
    one = wanted()
    one.batch.down = "throttled"
    assert one.apply_all() == ["unavailable"]
    one.batch.down = None
    assert turn(one) == ["done"]


def test_a_forgotten_job_is_given_up_and_told_how_to_go_on_by_hand() -> None:
    one = wanted()
    del one.batch.descriptions[JOB]
    assert apply(one.runtime, JOB, ACT) == "missing"
    for _ in range(3):
        assert turn(one, 10 * MINUTE) in ([], ["missing"])
    assert refusal(one) == "Batch has forgotten the job, and with it what it was submitted with"
    assert step(one).done


def test_what_is_forgotten_after_a_try_is_not_called_undone() -> None:
    one = wanted()
    _stopped(one, _call("submit"), crash, "before")
    del one.batch.descriptions[JOB]
    for _ in range(3):
        turn(one, 10 * MINUTE)
    (fact,) = facts_of(one.ledger, "resubmit-refused")
    assert fact.reason.endswith(f"; whether {NAME} was submitted is not known: look for it")


def test_a_job_of_another_queue_is_not_touched() -> None:
    one = wanted()
    one.batch.tell(ended(NOW, queue=f"{QUEUE}-other"))
    assert one.apply_all() == ["foreign"]
    assert "which is not ours" in refusal(one)


def test_a_record_that_was_closed_before_is_opened_for_the_wish() -> None:
    one = exhausted()
    turn(one, HOUR)
    assert one.record(JOB).closed_at is not None
    step(one)
    assert turn(one) == ["done"]
    turn(one, HOUR)
    assert one.record(JOB).closed_at is not None
    assert len(facts_of(one.ledger, "job-timeline")) == 1


# --- never twice -------------------------------------------------------------------------------------------


def _call(name: str) -> int:
    """The number of the first call of that name in an undisturbed ``apply``."""
    one = wanted()
    runtime, calls = watched(one.runtime, nothing)
    apply(runtime, JOB, ACT)
    return calls.names.index(name) + 1


def _stopped(one: World, number: int, fault: Any, when: When) -> None:
    list(one.wishes.drain())
    runtime, _ = watched(one.runtime, once(number, when, fault))
    with suppress(Crash, Unavailable):
        apply(runtime, JOB, ACT)


def _calls() -> list[str]:
    one = wanted()
    runtime, calls = watched(one.runtime, nothing)
    apply(runtime, JOB, ACT)
    return calls.names


@pytest.mark.parametrize(("number", "name"), list(enumerate(_calls(), 1)))
@pytest.mark.parametrize("fault", [crash, lose], ids=["crash", "lost"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_law_03_never_twice_wherever_it_stops(number: int, name: str, fault: Any, when: When) -> None:
    one = wanted()
    _stopped(one, number, fault, when)
    with suppress(Unavailable):  # the message comes again at once, which is too early
        apply(one.runtime, JOB, ACT)
    for _ in range(3):
        turn(one)
    assert [name for _, name in one.batch.submitted] == [TOKEN], name
    (fact,) = facts_of(one.ledger, "resubmitted")
    assert fact.figures["next_job"] == NEW
    assert not facts_of(one.ledger, "resubmit-refused")
    assert not is_open(one.record(JOB).resubmission)
    assert step(one).done


@pytest.mark.parametrize(("number", "name"), list(enumerate(_calls(), 1)))
@pytest.mark.parametrize("when", ["before", "after"])
def test_law_03_two_applies_at_once(number: int, name: str, when: When) -> None:
    one = wanted()

    def other() -> None:
        with suppress(Unavailable):
            apply(one.runtime, JOB, ACT)

    runtime, _ = watched(one.runtime, once(number, when, other))
    with suppress(Unavailable):
        apply(runtime, JOB, ACT)
    for _ in range(3):
        turn(one)
    assert len(one.batch.submitted) == 1, name
    assert len(facts_of(one.ledger, "resubmitted")) == 1
    assert not facts_of(one.ledger, "resubmit-refused")


def test_law_03_an_answer_that_was_lost_is_found_by_its_name_at_once() -> None:
    one = wanted()
    runtime, _ = watched(one.runtime, once(_call("submit"), "after", lose))
    assert apply(runtime, JOB, ACT) == "done"
    assert len(one.batch.submitted) == 1


def test_law_03_a_list_that_lags_leads_to_no_second_job() -> None:
    """The first call took effect, its answer was lost, and the list does not show the new job yet."""
    one = wanted()
    _stopped(one, _call("submit"), crash, "after")
    works, one.batch.named = one.batch.named, lambda *_: ()
    assert turn(one) == ["refused"]  # the token: it says nothing of the first job
    one.batch.named = works
    assert turn(one) == ["done"]
    assert len(one.batch.submitted) == 1
    assert len(facts_of(one.ledger, "resubmitted")) == 1


def test_law_01_a_job_that_may_be_there_is_not_called_undone() -> None:
    """No list ever shows it, and Batch refuses the token: it may be that of a first job, or anything else."""
    one = wanted()
    _stopped(one, _call("submit"), crash, "after")
    one.batch.named = lambda *_: ()
    assert turn(one) + turn(one) + turn(one) + turn(one) == ["refused"] * MOST_REFUSALS
    (fact,) = facts_of(one.ledger, "resubmit-refused")
    assert fact.reason.endswith("look for it")
    assert len(one.batch.submitted) == 1


def test_what_is_under_way_is_left_alone() -> None:
    one = wanted()
    _stopped(one, _call("submit"), crash, "before")
    with pytest.raises(Unavailable, match="may still change"):
        apply(one.runtime, JOB, ACT)
    one.clock.advance(IN_FLIGHT)
    assert apply(one.runtime, JOB, ACT) == "done"


@pytest.mark.parametrize("took_effect", [True, False])
def test_law_01_a_wish_that_was_tried_is_looked_for_before_it_is_given_up(*, took_effect: bool) -> None:
    """A role was taken from the list after the call, whose answer nobody had heard."""
    one = wanted()
    _stopped(one, _call("submit"), crash, "after" if took_effect else "before")
    one.policies.policy = ruled(RULES.model_copy(update={"roles": ("Other",)}))
    outcomes = turn(one) + turn(one)
    assert outcomes == (["done"] if took_effect else ["refused"])
    assert len(one.batch.submitted) == took_effect
    assert len(facts_of(one.ledger, "resubmitted")) == took_effect
    assert len(facts_of(one.ledger, "resubmit-refused")) == (not took_effect)


@pytest.mark.parametrize(
    "update",
    [
        {},
        {"tags": (("sharewarden-resubmission-of", "x"),)},
        {"tags": (("sharewarden-resubmission-of", JOB),), "share": "urgent"},
    ],
)
def test_a_name_that_is_taken_by_somebody_else_is_refused_and_told(update: dict[str, Any]) -> None:
    one = wanted()
    theirs = ended(NOW, job="theirs", arn="arn:theirs/theirs", name=NAME, **update)
    one.batch.tell(theirs)
    outcomes = one.apply_all()
    for _ in range(6):
        outcomes += turn(one)
    assert outcomes == ["refused"] * MOST_REFUSALS
    assert refusal(one) == f"the name {NAME} is taken by arn:theirs/theirs, which is not ours"


def test_a_refusal_is_tried_again_a_few_times_and_told() -> None:
    one = wanted()
    tried: list[str] = []

    def refuse(_submission: object, token: str) -> str:
        tried.append(token)
        raise Denied("SubmitServiceJob: AccessDeniedException: no iam:PassRole")

    one.batch.submit = refuse
    outcomes = one.apply_all()
    for _ in range(6):
        outcomes += turn(one)
    assert outcomes == ["refused"] * MOST_REFUSALS
    assert tried == [TOKEN] * MOST_REFUSALS
    assert "no iam:PassRole" in refusal(one)
    assert step(one).done


def test_law_03_a_job_is_never_wished_for_twice() -> None:
    one = wanted()
    one.apply_all()
    case = case_of(one)
    one.ledger.commit([case.model_copy(update={"resubmitted": False, "next_job": None})], [], NOW)
    step(one)
    turn(one)
    assert step(one).done
    assert len(one.batch.submitted) == 1


def test_law_04_resubmissions_stay_under_the_blast_radius() -> None:
    one = exhausted()
    other = one.record(JOB).model_copy(update={"job": "job-2", "arn": f"{ARN[:-1]}2", "version": 0})
    one.batch.tell(ended(NOW, job="job-2", arn=f"{ARN[:-1]}2"))
    step(one)
    wish = one.record(JOB).resubmission
    assert wish is not None
    again = other.model_copy(
        update={"resubmission": wish.model_copy(update={"name": "n2", "token": "t2", "id": "resubmit-2"})}
    )
    one.ledger.commit([again], [], NOW)
    assert turn(one) == ["done"]
    assert turn(one) == ["done"]
    assert len(one.batch.submitted) == 2


def test_a_message_names_it_as_an_act() -> None:
    one = wanted()
    body = f'{{"job": "{JOB}", "termination": "{ACT}"}}'
    assert carry_out(one.runtime, body) == "done"
    assert carry_out(one.runtime, body) == "superseded"


def test_the_payload_is_in_no_text() -> None:
    one = wanted()
    submission = one.batch.submission(ARN)
    assert "s3cr3t" in submission.payload
    assert "s3cr3t" not in f"{submission!r} {submission}"
    one.apply_all()
    kept = "".join(item.model_dump_json() for item in one.ledger.items.values())
    assert "s3cr3t" not in kept + "".join(fact.model_dump_json() for fact in one.ledger.facts.values())


def test_the_record_of_the_new_job_starts_with_its_lineage() -> None:
    one = wanted()
    one.apply_all()
    one.sweep("adopts")
    record = one.ledger.load(JobRecord, "submitted-1")
    assert record is not None
    assert record.tag("lineage") == JOB
    assert not record.adopted
