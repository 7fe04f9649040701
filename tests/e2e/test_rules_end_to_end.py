"""Every rule, from what AWS tells to the audit table, in the local stack.

One story holds a case for each rule: a share of its own, an entry about that share, and what breaks the rule
there. A queue has 20 shares at most, so there are two. The story is told twice, enforced and in shadow.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sharewarden.domain.audit import AuditRecord
from sharewarden.domain.notice import Notice, settled_under
from sharewarden.domain.policy import Policy
from sharewarden.domain.rules import names
from sharewarden.domain.rules.base import Mode
from sharewarden.domain.stored import HOUR, MINUTE, SECOND
from sharewarden_tools.lab import Options, VirtualClock
from sharewarden_tools.local.stack import LocalStack, Setup, local_stack, queue_arn
from sharewarden_tools.stories.three_team import INSTANCE, START

QUEUES = ("ml-train-qm", "ml-tune-qm")
EVENTS = Path(__file__).parents[2] / "events"
BUCKET = "checkpoints"
PRIORITY, POINTS = 100, 40
#: The type that the recorded training job outside the queue uses.
OUTSIDE = "ml.g6e.12xlarge"
#: How long every job of the story is SCHEDULED.
PENDING = 12 * MINUTE
MODES: tuple[Mode, ...] = ("enforce", "shadow")

Told = Callable[[LocalStack], None]


@dataclass(frozen=True)
class Job:
    """What somebody submits; it trains for two hours."""

    name: str
    instances: int = 1
    checkpoints: bool = True
    saves_every: int = 10 * MINUTE
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """What breaks one rule. ``culprit`` names the job that is to be found, if it is one.

    Its share has ``own`` instances of ``unit``, and a team of its own unless ``of_a_team`` is false.
    """

    entry: Mapping[str, Any]
    jobs: tuple[Job, ...] = ()
    culprit: str | None = None
    own: int = 1
    of_a_team: bool = True
    unit: str = INSTANCE
    told: Told | None = None


def one_job(entry: Mapping[str, Any], **job: Any) -> Case:
    return Case(entry, (Job("one", **job),), "one")


def changed_by_eve(stack: LocalStack) -> None:
    stack.client("batch", "eve").update_quota_share(
        quotaShareArn=f"{queue_arn(queue_of('share-changed-by-hand'))}/quota-share/share-changed-by-hand",
        capacityLimits=[{"capacityUnit": INSTANCE, "maxCapacity": 2}],
    )


def started_in_a_notebook(stack: LocalStack) -> None:
    text = (EVENTS / "sagemaker_training_job_state_change__started_by_hand.json").read_text(encoding="utf-8")
    stack.delivery.accept(json.loads(text))


CASES = {
    "allowed-instance-types": one_job({"types": ["ml.p5.*"]}),
    "bounded-retries": one_job({"limit": 3}),
    "cannot-fit": one_job({}, instances=2),
    "checkpoint-required": one_job({}, checkpoints=False),
    "conflicting-team": one_job({}, tags={"team": "another"}),
    "custom": one_job({"name": "custom", "when": "job.name.endsWith('one') && job.instances == 1"}),
    "gpu-hour-budget": one_job({"period": "day", "total": 0.2}),
    "max-instances-per-job": one_job({"limit": 1, "action": "lower-priority", "points": POINTS}, instances=2),
    "max-queued-jobs-per-team": Case(
        {"limit": 1}, (Job("runs"), Job("waits"), Job("waits-too")), "waits-too"
    ),
    "max-running-instances-per-team": Case({"limit": 1}, (Job("first"), Job("second")), "second", own=2),
    "max-running-instances-per-user": Case(
        {"limit": 1}, tuple(Job(name, tags={"user": "ana"}) for name in ("first", "second")), "second", own=2
    ),
    "no-team": Case({}, (Job("one"),), "one", of_a_team=False),
    "odd-tags": one_job({}, tags={"deadline": "friday"}),
    "priority-ceiling": one_job({"highest": PRIORITY - 1}),
    "queue-blocked": one_job({}, instances=2),
    "required-tags": one_job({"tags": ["cost-center"], "action": "terminate", "grace": "0s"}),
    "runtime-limit": one_job({"attempt": "10m"}),
    "share-changed-by-hand": Case({"by": ["arn:aws:iam::*:user/admin"]}, told=changed_by_eve),
    "sla-not-granted": one_job({}, tags={"sla": "gold"}),
    "stale-checkpoint": one_job({"interval": "1m", "times": 2}, saves_every=3 * HOUR),
    "stuck-dispatched": one_job({"limit": "4m"}),
    "training-outside-queue": Case({"shares": []}, unit=OUTSIDE, told=started_in_a_notebook),
}


def queue_of(rule: str) -> str:
    return QUEUES[list(CASES).index(rule) % len(QUEUES)]


def policy(mode: Mode) -> Policy:
    shares = {rule: {"team": f"team-{rule}"} for rule, case in CASES.items() if case.of_a_team}
    guardrails = [
        {"rule": rule, "shares": [rule], "action": "notify"} | dict(c.entry) for rule, c in CASES.items()
    ]
    return Policy.model_validate(
        {
            "queues": {queue: {"mode": mode, "shares": shares} for queue in QUEUES},
            "sla": {"gold": {}},
            "guardrails": guardrails,
        }
    )


# --- the story -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What the story left behind. Jobs by ``rule/name``; ``calls``: what the functions changed in Batch."""

    findings: tuple[AuditRecord, ...]
    notices: tuple[Notice, ...]
    ids: Mapping[str, str]
    jobs: Mapping[str, Mapping[str, Any]]
    calls: tuple[str, ...]
    buried: tuple[str, ...]
    log: str


@pytest.fixture(scope="module", params=MODES)
def mode(request: pytest.FixtureRequest) -> Mode:
    chosen: Mode = request.param
    return chosen


@pytest.fixture(scope="module")
def after(mode: Mode) -> Outcome:
    options = Options(submit_rate=None, pending_ms=(PENDING, PENDING))
    setup = Setup(queues=QUEUES, seed=5, policy=policy(mode), options=options)
    with local_stack(VirtualClock(START), setup) as stack:
        calls: list[str] = []
        stack.lab.subscribe(lambda event: calls.extend(_own_call(event, stack.variables["OWN_ROLE"])))
        return _left_behind(stack, _tell(stack), calls)


def _tell(stack: LocalStack) -> dict[str, str]:
    stack.client("s3", "admin").create_bucket(Bucket=BUCKET)
    for queue in QUEUES:
        _create_pool(stack, queue)
    stack.run_until(START + 6 * MINUTE)
    ids = {}
    for rule, case in CASES.items():
        for job in case.jobs:
            ids[f"{rule}/{job.name}"] = _submit(stack, rule, job)
            stack.run_until(stack.now() + SECOND)
        if case.told is not None:
            case.told(stack)
    stack.run_until(START + 40 * MINUTE)
    return ids


def _create_pool(stack: LocalStack, queue: str) -> None:
    """Each share keeps what it has and may borrow nothing, so no case touches another one."""
    batch, cases = stack.client("batch", "admin"), {r: c for r, c in CASES.items() if queue_of(r) == queue}
    scheduling = batch.create_scheduling_policy(
        name=queue, quotaSharePolicy={"idleResourceAssignmentStrategy": "FIFO"}
    )
    units = {case.unit: sum(c.own for c in cases.values() if c.unit == case.unit) for case in cases.values()}
    batch.create_service_environment(
        serviceEnvironmentName=queue,
        serviceEnvironmentType="SAGEMAKER_TRAINING",
        capacityLimits=[{"capacityUnit": unit, "maxCapacity": most} for unit, most in units.items()],
    )
    batch.create_job_queue(
        jobQueueName=queue,
        jobQueueType="SAGEMAKER_TRAINING",
        priority=1,
        schedulingPolicyArn=scheduling["arn"],
        serviceEnvironmentOrder=[{"order": 1, "serviceEnvironment": queue}],
    )
    for rule, case in cases.items():
        batch.create_quota_share(
            quotaShareName=rule,
            jobQueue=queue,
            capacityLimits=[{"capacityUnit": case.unit, "maxCapacity": case.own}],
            resourceSharingConfiguration={"strategy": "RESERVE"},
            preemptionConfiguration={"inSharePreemption": "ENABLED"},
        )


def _submit(stack: LocalStack, rule: str, job: Job) -> str:
    name = f"{rule}-{job.name}"
    saved = {"CheckpointConfig": {"S3Uri": f"s3://{BUCKET}/{name}"}} if job.checkpoints else {}
    payload = {
        "TrainingJobName": name,
        "RoleArn": "arn:aws:iam::123456789012:role/Training",
        "ResourceConfig": {"InstanceType": INSTANCE, "InstanceCount": job.instances, "VolumeSizeInGB": 50},
        "OutputDataConfig": {"S3OutputPath": "s3://output/models"},
        "StoppingCondition": {"MaxRuntimeInSeconds": 86_400},
        "HyperParameters": {
            "sharewarden-lab-runtime-seconds": str(2 * HOUR // SECOND),
            "sharewarden-lab-checkpoint-seconds": str(job.saves_every // SECOND),
        },
    }
    answer = stack.client("batch", "ana").submit_service_job(
        jobName=name,
        jobQueue=queue_of(rule),
        quotaShareName=rule,
        schedulingPriority=PRIORITY,
        serviceJobType="SAGEMAKER_TRAINING",
        serviceRequestPayload=json.dumps(payload | saved),
        tags=dict(job.tags),
    )
    return answer["jobId"]


def _own_call(event: Mapping[str, Any], role: str) -> list[str]:
    """The name of the call, if the event is CloudTrail's and the functions made it."""
    detail = event["detail"]
    who = detail.get("userIdentity", {}).get("arn", "")
    return [detail["eventName"]] if f"assumed-role/{role}/" in who else []


def _left_behind(stack: LocalStack, ids: Mapping[str, str], calls: list[str]) -> Outcome:
    batch, queues = stack.client("batch", "ana"), tuple(map(queue_arn, QUEUES))
    trail = [
        fact
        for queue in queues
        for share in (*CASES, "")
        for fact in stack.runtime.audit.by_share(queue, share, START - HOUR, stack.now())
    ]
    told = (stack.runtime.ledger.open_items(Notice, settled_under(queue, told=True)) for queue in queues)
    return Outcome(
        findings=tuple(fact for fact in trail if fact.kind == "finding"),
        notices=tuple(notice for notices in told for notice in notices),
        ids=ids,
        jobs={name: dict(batch.describe_service_job(jobId=job)) for name, job in ids.items()},
        calls=tuple(calls),
        buried=tuple(message.body for message in stack.buried()),
        log=stack.parts.log.getvalue(),  # type: ignore[attr-defined]
    )


# --- what must come of it --------------------------------------------------------------------------------


def test_every_rule_has_a_case() -> None:
    assert tuple(sorted(CASES)) == names()


@pytest.mark.parametrize("rule", list(CASES))
def test_what_breaks_the_rule_is_found_once_and_told_once(rule: str, mode: Mode, after: Outcome) -> None:
    case = CASES[rule]
    (found,) = [fact for fact in after.findings if fact.figures["rule"] == rule]
    culprit = after.ids[f"{rule}/{case.culprit}"] if case.culprit else None
    share = None if rule == "training-outside-queue" else rule
    team = f"team-{rule}" if share and case.of_a_team else None
    assert (found.job, found.share, found.team) == (culprit, share, team)
    assert (found.mode, found.policy) == (mode, policy(mode).hash)
    assert [notice.state for notice in after.notices if notice.fact == found.key] == ["sent"]


def test_nothing_failed_on_the_way(after: Outcome) -> None:
    assert len(after.findings) == len(CASES)
    assert after.buried == ()
    assert "could not be decided" not in after.log
    assert "Traceback" not in after.log


def test_law_09_acts_are_done_where_enforced_and_nothing_else_changes_in_batch(
    mode: Mode, after: Outcome
) -> None:
    acts = mode == "enforce"
    assert sorted(after.calls) == (["TerminateServiceJob", "UpdateServiceJob"] if acts else [])
    lowered, ended = after.jobs["max-instances-per-job/one"], after.jobs["required-tags/one"]
    assert lowered["schedulingPriority"] == (PRIORITY - POINTS if acts else PRIORITY)
    assert ended["status"] == ("FAILED" if acts else "RUNNING")
    assert ("required-tags" in ended.get("statusReason", "")) == acts
    others = [job for job in after.jobs.values() if job not in (lowered, ended)]
    assert {job["schedulingPriority"] for job in others} == {PRIORITY}
    assert "FAILED" not in {job["status"] for job in others}
