"""An exhausted job is submitted again: whether, with what, and that the audit says what happened."""

from __future__ import annotations

from typing import Any

import pytest
from sharewarden.domain.policy import Policy, QueuePolicy, ResubmitPolicy
from sharewarden.domain.resubmission import LIFE, new_name
from sharewarden.ports import Unavailable
from sharewarden.usecases.apply import FRESH, apply

from tests.simulation.faults import crash, once, watched
from tests.simulation.resubmit_kit import (
    ACT,
    NAME,
    NEW,
    PAYLOAD,
    ROLE,
    RULES,
    SAVE,
    TOKEN,
    call_number,
    case_of,
    ended,
    exhausted,
    notices,
    refusal,
    ruled,
    step,
    stopped,
    turn,
    wanted,
)
from tests.simulation.samples import FIRST, HOUR, JOB
from tests.simulation.world import MINUTE, NOW, QUEUE, facts_of


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
    runtime, _ = watched(
        one.runtime, once(call_number("commit"), "before", lambda: one.clock.advance(FRESH + 1))
    )
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
    stopped(one, call_number("submit"), crash, "before")
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
