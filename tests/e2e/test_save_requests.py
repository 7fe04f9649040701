"""A bump on the local stack that pushes a running job out: the loss with the training helper, and without."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sharewarden.domain.audit import AuditRecord
from sharewarden.domain.base import last_part
from sharewarden.domain.observation import JobDescription
from sharewarden.domain.policy import Policy
from sharewarden.domain.record import JobRecord
from sharewarden.domain.stored import HOUR, MINUTE, SECOND
from sharewarden.usecases.bump import BumpRequest, bump
from sharewarden.usecases.checkpoints import newest
from sharewarden_tools.lab import VirtualClock
from sharewarden_tools.local.stack import LocalStack, Setup, local_stack
from sharewarden_tools.stories.three_team import QUEUE, START, Share, create_pool, submit

WAIT = 2 * MINUTE
#: So often a job saves by itself: what is lost without a request is most of it.
SAVES_EVERY = 20 * MINUTE
BUMPED_AT = START + 40 * MINUTE
POLICY = {"queues": {QUEUE: {"mode": "enforce", "bumps": "enforce"}}}
ASKING = POLICY | {"checkpoints": {"ask_before_bump": WAIT}}


@contextmanager
def bumped(policy: dict[str, Any], *, on_request: bool) -> Iterator[tuple[LocalStack, str, str]]:
    """The share's one instance is taken by a job that saves; another one has just been bumped over it."""
    setup = Setup(seed=5, policy=Policy.model_validate(policy))
    with local_stack(VirtualClock(START), setup) as stack:
        create_pool(stack, (Share("background", "RESERVE", in_share_preemption=True),))
        victim = submit(stack, "background-1", 6 * HOUR, SAVES_EVERY, on_request=on_request)
        stack.run_until(START + MINUTE)
        wanted = submit(stack, "background-2", HOUR)
        stack.run_until(BUMPED_AT)
        bump(stack.runtime, BumpRequest(id="b1", job=wanted, actor="ana", reason="a deadline", to=850))
        yield stack, victim, wanted


def described(stack: LocalStack, job: str) -> JobDescription:
    description = stack.runtime.batch.describe(job)
    assert description is not None
    return description


def told(stack: LocalStack, job: str, kind: str) -> list[AuditRecord]:
    key = described(stack, job).job
    return [fact for fact in stack.runtime.audit.by_job(key, START) if fact.kind == kind]


def lost(stack: LocalStack, job: str) -> int:
    """From the newest save to the stop of the preempted attempt, in ms."""
    (attempt,) = [one for one in described(stack, job).attempts if one.preempted]
    record = stack.runtime.ledger.load(JobRecord, described(stack, job).job)
    assert record is not None
    looked = newest(stack.runtime, record.checkpoint_uri or "", (), stack.now())
    assert looked.save is not None
    assert looked.save.training_job == last_part(attempt.training_job)
    return (attempt.stopped_at or 0) - looked.save.saved_at


def test_with_the_helper_a_bump_costs_its_victim_seconds() -> None:
    with bumped(ASKING, on_request=True) as (stack, victim, wanted):
        stack.run_until(BUMPED_AT + 3 * MINUTE)
        assert described(stack, victim).status == "RUNNABLE"
        (asked,) = told(stack, wanted, "save-request")
        (row,) = asked.figures["victims"]
        assert (row["name"], row["state"]) == ("background-1", "saved")
        assert row["saved_at"] - asked.figures["asked_at"] <= 15 * SECOND
        (raised,) = told(stack, wanted, "priority-changed")
        assert raised.at - asked.figures["asked_at"] <= 30 * SECOND
        assert lost(stack, victim) <= MINUTE
        stack.run_until(BUMPED_AT + 90 * MINUTE)
        assert stack.buried() == []


@pytest.mark.parametrize(
    ("policy", "waits", "asked"), [(ASKING, WAIT, ["asked"]), (POLICY, 0, [])], ids=["no helper", "not asked"]
)
def test_without_it_the_bump_waits_no_longer_than_the_policy_says(
    policy: dict[str, Any], waits: int, asked: list[str]
) -> None:
    with bumped(policy, on_request=False) as (stack, victim, wanted):
        stack.run_until(BUMPED_AT + 10 * MINUTE)
        (raised,) = told(stack, wanted, "priority-changed")
        assert waits <= raised.at - BUMPED_AT <= waits + 10 * SECOND
        facts = told(stack, wanted, "save-request")
        assert [row["state"] for fact in facts for row in fact.figures["victims"]] == asked
        assert lost(stack, victim) > SAVES_EVERY // 2
