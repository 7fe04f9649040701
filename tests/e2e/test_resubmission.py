"""A job whose preemption retries ran out is submitted again on the local stack, and resumes from its save."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from sharewarden.domain.audit import AuditRecord
from sharewarden.domain.base import last_part
from sharewarden.domain.policy import CheckpointPolicy, Policy, ResubmitPolicy
from sharewarden.domain.record import JobRecord
from sharewarden.domain.resubmission import new_name
from sharewarden.domain.stored import HOUR, MINUTE
from sharewarden_tools.cli.audit import list_lineage
from sharewarden_tools.cli.deployment import Deployment
from sharewarden_tools.lab import VirtualClock
from sharewarden_tools.local.stack import ACCOUNT, QUEUE, REGION, LocalStack, Setup, local_stack
from sharewarden_tools.stories.three_team import BASE, INSTANCE, START, create_pool, submit

URI = "s3://three-team-checkpoints/long"
PAYLOAD = json.dumps(
    {
        "TrainingJobName": "long",
        "RoleArn": "arn:aws:iam::123456789012:role/Training",
        "ResourceConfig": {"InstanceType": INSTANCE, "InstanceCount": 1, "VolumeSizeInGB": 50},
        "OutputDataConfig": {"S3OutputPath": "s3://three-team-output/models"},
        "CheckpointConfig": {"S3Uri": URI},
        "StoppingCondition": {"MaxRuntimeInSeconds": 86_400},
        "HyperParameters": {
            "sharewarden-lab-runtime-seconds": "5400",
            "sharewarden-lab-checkpoint-seconds": "300",
        },
    },
    indent=2,
)


def policy(**rules: Any) -> Policy:
    given = {"mode": "enforce", "roles": ("Training",), "most_per_lineage": 1} | rules
    return Policy(checkpoints=CheckpointPolicy(resubmit=ResubmitPolicy.model_validate(given)))


def submit_long(stack: LocalStack) -> str:
    """ARN of a job that may not be preempted even once."""
    return stack.client("batch", "ana").submit_service_job(
        jobName="long",
        jobQueue=QUEUE,
        quotaShareName="background",
        schedulingPriority=BASE,
        serviceJobType="SAGEMAKER_TRAINING",
        serviceRequestPayload=PAYLOAD,
        preemptionConfiguration={"preemptionRetriesBeforeTermination": 0},
        retryStrategy={"attempts": 3},
        timeoutConfig={"attemptDurationSeconds": 36_000},
        tags={"user": "ana", "project": "p"},
    )["jobArn"]


def told(stack: LocalStack, job: str, kind: str) -> list[AuditRecord]:
    return [fact for fact in stack.runtime.audit.by_job(last_part(job), 0) if fact.kind == kind]


def preempt(stack: LocalStack, by: str) -> None:
    """``medium`` takes its instance back, half an hour from now, for twenty minutes."""
    run(stack, 30 * MINUTE)
    submit(stack, by, 20 * MINUTE)
    run(stack, 10 * MINUTE)


def run(stack: LocalStack, ms: int) -> None:
    stack.run_until(stack.now() + ms)


@pytest.fixture(scope="module")
def played() -> Iterator[tuple[LocalStack, str]]:
    """The job ran on borrowed capacity twice, and lost it twice."""
    with local_stack(VirtualClock(START), Setup(seed=5, policy=policy())) as stack:
        create_pool(stack)
        submit(stack, "background-1", 20 * HOUR)
        stack.run_until(START + MINUTE)
        old = submit_long(stack)
        preempt(stack, "medium-1")
        run(stack, 50 * MINUTE)
        preempt(stack, "medium-2")
        run(stack, 2 * HOUR)
        yield stack, old


def test_it_goes_on_as_a_new_job_that_differs_in_name_and_tags_alone(
    played: tuple[LocalStack, str],
) -> None:
    stack, old = played
    batch = stack.client("batch", "ana")
    (fact,) = told(stack, old, "resubmitted")
    before = batch.describe_service_job(jobId=old)
    after = batch.describe_service_job(jobId=fact.figures["next_job"])
    same = ("serviceRequestPayload", "quotaShareName", "schedulingPriority", "serviceJobType", "jobQueue")
    same = (*same, "preemptionConfiguration", "retryStrategy", "timeoutConfig")
    assert {name: after[name] for name in same} == {name: before[name] for name in same}
    assert after["serviceRequestPayload"] == PAYLOAD
    assert after["jobName"] == fact.figures["name"] == new_name("long", last_part(old), 1)
    assert after["tags"] == before["tags"] | {
        "lineage": last_part(old),
        "sharewarden-resubmission": "1",
        "sharewarden-resubmission-of": last_part(old),
    }


def test_it_resumes_where_the_old_one_was_saved(played: tuple[LocalStack, str]) -> None:
    stack, old = played
    (fact,) = told(stack, old, "resubmitted")
    (resume,) = told(stack, old, "resume")
    assert fact.figures["step"] > 0
    assert resume.figures["proof"] == "resumed"
    new = stack.runtime.ledger.load(JobRecord, last_part(fact.figures["next_job"]))
    assert new is not None
    assert (new.checkpoint_uri, new.tag("lineage")) == (URI, last_part(old))


def test_the_cap_of_the_lineage_ends_it_and_people_are_told(played: tuple[LocalStack, str]) -> None:
    stack, old = played
    (fact,) = told(stack, old, "resubmitted")
    new = fact.figures["next_job"]
    (refused,) = told(stack, new, "resubmit-refused")
    assert refused.reason == "it was submitted again 1 time already, and the policy allows 1"
    assert refused.lineage == last_part(old)
    names = [row["jobName"] for row in _jobs(stack)]
    assert sorted(name for name in names if name.startswith("long")) == ["long", fact.figures["name"]]


def _jobs(stack: LocalStack) -> list[dict[str, Any]]:
    filters: Any = [{"name": "JOB_NAME", "values": ["long*"]}]
    rows = stack.client("batch", "ana").list_service_jobs(jobQueue=QUEUE, filters=filters)["jobSummaryList"]
    return [dict(row) for row in rows]


def test_the_audit_is_listed_along_the_lineage(
    played: tuple[LocalStack, str], capsys: pytest.CaptureFixture[str]
) -> None:
    stack, old = played
    new = told(stack, old, "resubmitted")[0].figures["next_job"]
    deployment = Deployment(
        "local stack", ACCOUNT, REGION, "ana", stack.runtime, stack.client("batch", "ana")
    )
    for start in (old, new):
        assert list_lineage(deployment, start, as_json=True) == 0
        found = json.loads(capsys.readouterr().out)
        assert [fact["at"] for fact in found] == sorted(fact["at"] for fact in found)
        kinds = [(fact["job"], fact["kind"]) for fact in found]
        assert (last_part(old), "resubmitted") in kinds
        assert (last_part(new), "resubmit-refused") in kinds
        assert kinds.count((last_part(old), "job-ended")) == kinds.count((last_part(new), "job-ended")) == 1


def test_in_shadow_nothing_is_submitted() -> None:
    with local_stack(VirtualClock(START), Setup(seed=5, policy=policy(mode="shadow"))) as stack:
        create_pool(stack)
        submit(stack, "background-1", 20 * HOUR)
        stack.run_until(START + MINUTE)
        old = submit_long(stack)
        preempt(stack, "medium-1")
        run(stack, HOUR)
        (fact,) = told(stack, old, "resubmit-refused")
        assert (fact.mode, told(stack, old, "resubmitted")) == ("shadow", [])
        assert fact.reason.startswith(f"shadow mode: it would be submitted again as {fact.figures['name']}")
        assert len(_jobs(stack)) == 1
