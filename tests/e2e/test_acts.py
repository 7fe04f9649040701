"""Acts of guardrails by the deployed pieces on one machine: from an event to what AWS Batch shows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sharewarden.domain.policy import Policy, SharePolicy
from sharewarden.domain.record import JobRecord
from sharewarden.domain.stored import HOUR, MINUTE
from sharewarden_tools.lab import VirtualClock
from sharewarden_tools.local.stack import LocalStack, Setup, local_stack
from sharewarden_tools.stories.three_team import QUEUE, START, create_pool, submit

PROJECT = {"rule": "required-tags", "tags": ["project"], "grace": "10m", "points": 40}
#: A job of background without the tag that the rule asks for is lowered first, and ended later.
RULES = Policy.model_validate(
    {
        "queues": {QUEUE: {"mode": "enforce", "shares": {"urgent": {"protected": True}}}},
        "guardrails": [
            PROJECT | {"name": "lowered", "action": "lower-priority"},
            PROJECT | {"name": "ended", "action": "terminate"},
        ],
        "blast_radius": {"acts": 10, "percent": 100},
    }
)


@pytest.fixture
def stack() -> Iterator[LocalStack]:
    with local_stack(VirtualClock(START), Setup(seed=3, policy=RULES)) as running:
        create_pool(running)
        running.run_until(START + MINUTE)
        yield running


def kinds(stack: LocalStack, job: str) -> list[str]:
    return [fact.kind for fact in stack.runtime.audit.by_job(job, 0)]


def record_of(stack: LocalStack, job: str) -> JobRecord:
    record = stack.runtime.ledger.load(JobRecord, job)
    assert record is not None
    return record


def lowered_at(stack: LocalStack, job: str) -> int:
    return next(fact.at for fact in stack.runtime.audit.by_job(job, 0) if fact.kind == "priority-changed")


def held_until(record: JobRecord) -> int:
    """The lab's jobs save, so what runs is lowered once it has run for its share's ``min_runtime``."""
    dispatched = [entry.at for entry in record.timeline if entry.status == "SCHEDULED"]
    return min(dispatched, default=0) + (SharePolicy().min_runtime if dispatched else 0)


def test_a_job_that_breaks_a_rule_is_lowered_and_then_ended_and_a_protected_one_is_told_of(
    stack: LocalStack,
) -> None:
    jobs = [submit(stack, f"background-{number}", 2 * HOUR) for number in (1, 2, 3, 4)]
    protected = submit(stack, "urgent-1", 2 * HOUR)
    stack.run_until(START + 40 * MINUTE)
    for job in jobs:
        found = stack.runtime.batch.describe(job)
        assert found is not None
        assert (found.status, found.terminated) == ("FAILED", True)
        assert (found.reason or "").startswith("Sharewarden guardrail ended: ")
        told = kinds(stack, job)
        assert told.count("terminated") == told.count("job-ended") == told.count("boost-ended") == 1
        assert told.count("finding") == 2
        assert told.count("priority-changed") == 1
        assert lowered_at(stack, job) >= held_until(record_of(stack, job))
    untouched = stack.runtime.batch.describe(protected)
    assert untouched is not None
    assert untouched.status == "RUNNING"
    assert "terminated" not in kinds(stack, protected)
    assert kinds(stack, protected).count("finding") == 2
