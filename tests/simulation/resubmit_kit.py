"""An exhausted job in memory, its case, and what the sweep and ``apply`` make of it."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from sharewarden.domain.checkpoints import Save
from sharewarden.domain.notice import Notice
from sharewarden.domain.observation import AttemptSeen, JobDescription
from sharewarden.domain.policy import CheckpointPolicy, Policy, ResubmitPolicy
from sharewarden.domain.preemption.case import Case
from sharewarden.domain.resubmission import new_name, new_token
from sharewarden.ports import Runtime, Unavailable
from sharewarden.usecases.apply import apply
from sharewarden.usecases.care.frame import Answer, take
from sharewarden.usecases.care.resubmit import resubmit

from tests.simulation.faults import Crash, When, nothing, once, watched
from tests.simulation.samples import ARN, FIRST, JOB, attempt_row, described, event, state
from tests.simulation.world import MINUTE, NOW, World, facts_of, stored, world

ROLE = "arn:aws:iam::123456789012:role/team/Training"
SAVE = Save(name="step-400-a", step=400, saved_at=NOW, size=9, files=1, layout="manifest")
REASON = "Cross-share preemption triggered to reclaim borrowed capacity"
PAYLOAD = json.dumps({"RoleArn": ROLE, "Environment": {"TOKEN": "s3cr3t"}}, indent=3) + " "
NAME, TOKEN = new_name("pretrain", JOB, 1), new_token(JOB, 1)
ACT = f"resubmit-{TOKEN[:16]}"
NEW = "arn:aws:batch:us-east-1:123456789012:service-job/submitted-1"
#: Submits jobs again.
RULES = ResubmitPolicy(mode="enforce", roles=("Training",))


def ruled(rules: ResubmitPolicy = RULES, **update: object) -> Policy:
    """A policy with those rules, which acts in no other way."""
    return Policy(checkpoints=CheckpointPolicy(resubmit=rules)).model_copy(update=update)


def ended(at: int, **update: object) -> JobDescription:
    """The job as Batch shows it: preempted once, which was once too often."""
    seen = AttemptSeen(training_job=FIRST, started_at=NOW, stopped_at=at, reason=REASON, preempted=True)
    known = described(
        status="FAILED",
        reason=REASON,
        stopped_at=at,
        attempts=(seen,),
        preempted_count=1,
        preemption_retries=0,
        role=ROLE,
    )
    return known.model_copy(update=update)


def exhausted(
    policy: Policy | None = None, save: Save | None = SAVE, *, one: World | None = None, **update: object
) -> World:
    """The job has failed, on record, and its case knows why."""
    one = one or world(policy=policy or ruled())
    one.batch.tell(described(**{"role": ROLE, "preemption_retries": 0, **update}))
    one.batch.payloads[JOB] = PAYLOAD
    one.take(state("RUNNABLE", NOW))
    one.clock.advance(MINUTE)
    at = one.clock.now()
    one.batch.tell(ended(at, **update))
    row = {**attempt_row(FIRST), "startedAt": NOW, "stoppedAt": at, "statusReason": REASON}
    told = {"preemptedAttemptCount": 1, "recentPreemptedAttempts": [row]}
    completed = {"preemptedJobArn": ARN, "status": "FAILED", "preemptionSummary": told}
    one.take(event("Batch Service Job Preemption Completed", completed, at))
    one.take(state("FAILED", at, stoppedAt=at, statusReason=REASON))
    case = one.ledger.load(Case, FIRST)
    assert case is not None
    known = {"outcome": "exhausted", "save": save, "sight": "none" if save is None else "found"}
    one.ledger.commit([case.model_copy(update=known)], [], at)
    return one


def case_of(one: World) -> Case:
    case = one.ledger.load(Case, FIRST)
    assert case is not None
    return case


def step(one: World, runtime: Runtime | None = None) -> Answer:
    """The step of the workflow."""
    return take(runtime or one.runtime, FIRST, resubmit)


def wanted(policy: Policy | None = None, **update: object) -> World:
    """An exhausted job whose wish was given to ``apply``."""
    one = exhausted(policy, **update)  # type: ignore[arg-type]
    step(one)
    one.clock.advance(5 * MINUTE)
    one.sweep("gives")
    return one


def turn(one: World, after: int = 6 * MINUTE) -> list[str]:
    """The next sweep and what ``apply`` makes of it."""
    one.clock.advance(after)
    one.sweep(f"turn-{one.clock.now()}")
    return one.apply_all()


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


def call_number(name: str) -> int:
    """The number of the first call of that name in an undisturbed ``apply``."""
    one = wanted()
    runtime, calls = watched(one.runtime, nothing)
    apply(runtime, JOB, ACT)
    return calls.names.index(name) + 1


def stopped(one: World, number: int, fault: Any, when: When) -> None:
    list(one.wishes.drain())
    runtime, _ = watched(one.runtime, once(number, when, fault))
    with suppress(Crash, Unavailable):
        apply(runtime, JOB, ACT)


def calls_of_apply() -> list[str]:
    one = wanted()
    runtime, calls = watched(one.runtime, nothing)
    apply(runtime, JOB, ACT)
    return calls.names
