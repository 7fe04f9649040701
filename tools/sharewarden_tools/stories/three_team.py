"""Three teams share three instances: background lends and borrows, medium too, urgent reserves.

Background borrows what medium leaves idle; medium takes it back; a scientist's bump moves the queue inside
background; urgent is never touched. People submit with plain boto3; every step is checked against what Batch
says and what the audit table holds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from sharewarden.domain.audit import AuditRecord, Kind
from sharewarden.domain.durations import format_duration
from sharewarden.domain.stored import DAY, HOUR, MINUTE
from sharewarden.usecases.bump import BumpRequest, Refused, bump

from sharewarden_tools.local.stack import QUEUE, LocalStack, queue_arn

from .timeline import Line, Timeline

if TYPE_CHECKING:
    from mypy_boto3_batch import BatchClient

#: 14 September 2026, 08:00 UTC.
START = 1_789_372_800_000
INSTANCE = "ml.g5.xlarge"
TRAINS = {"background": 90 * MINUTE, "medium": 45 * MINUTE, "urgent": 120 * MINUTE}
SAVES_EVERY = 5 * MINUTE
PEOPLE = {"background": "ana", "medium": "ben", "urgent": "cleo"}
BUMPED_TO, BASE = 850, 100
LONGEST = 12 * HOUR


@dataclass(frozen=True)
class Share:
    """A quota share with instances of its own."""

    name: str
    strategy: Literal["RESERVE", "LEND", "LEND_AND_BORROW"]
    in_share_preemption: bool = False
    instances: int = 1

    def request(self) -> dict[str, object]:
        """Arguments of CreateQuotaShare."""
        borrows = {"borrowLimit": -1} if self.strategy == "LEND_AND_BORROW" else {}
        return {
            "quotaShareName": self.name,
            "capacityLimits": [{"capacityUnit": INSTANCE, "maxCapacity": self.instances}],
            "resourceSharingConfiguration": {"strategy": self.strategy, **borrows},
            "preemptionConfiguration": {
                "inSharePreemption": "ENABLED" if self.in_share_preemption else "DISABLED"
            },
        }


SHARES = (
    Share("background", "LEND_AND_BORROW", in_share_preemption=True),
    Share("medium", "LEND_AND_BORROW"),
    Share("urgent", "RESERVE"),
)


@dataclass(frozen=True)
class Check:
    """One thing that must come out as AWS documents it."""

    name: str
    expected: object
    seen: object

    @property
    def holds(self) -> bool:
        return self.expected == self.seen


class Clients(Protocol):
    """Where people submit: they make a client under their own name."""

    def client(self, service: Literal["batch"], user: str) -> BatchClient: ...


def create_pool(stack: Clients, shares: tuple[Share, ...] = SHARES) -> None:
    """The queue and its shares, made by the platform admin."""
    batch = stack.client("batch", "admin")
    policy = batch.create_scheduling_policy(
        name="three-team", quotaSharePolicy={"idleResourceAssignmentStrategy": "FIFO"}
    )
    batch.create_service_environment(
        serviceEnvironmentName="three-team",
        serviceEnvironmentType="SAGEMAKER_TRAINING",
        capacityLimits=[{"capacityUnit": INSTANCE, "maxCapacity": sum(share.instances for share in shares)}],
    )
    batch.create_job_queue(
        jobQueueName=QUEUE,
        jobQueueType="SAGEMAKER_TRAINING",
        priority=1,
        schedulingPolicyArn=policy["arn"],
        serviceEnvironmentOrder=[{"order": 1, "serviceEnvironment": "three-team"}],
    )
    for share in shares:
        batch.create_quota_share(jobQueue=QUEUE, **share.request())  # type: ignore[arg-type]


def submit(
    stack: Clients,
    name: str,
    trains: int,
    saves_every: int = SAVES_EVERY,
    *,
    on_request: bool = False,
    tags: Mapping[str, str] | None = None,
) -> str:
    """Submit the job as somebody of its team would; ``name`` begins with the share. Its id.

    ``on_request``: it looks for save requests, too.
    """
    share = name.partition("-")[0]
    payload = {
        "TrainingJobName": name,
        "RoleArn": "arn:aws:iam::123456789012:role/Training",
        "ResourceConfig": {"InstanceType": INSTANCE, "InstanceCount": 1, "VolumeSizeInGB": 50},
        "OutputDataConfig": {"S3OutputPath": "s3://three-team-output/models"},
        "CheckpointConfig": {"S3Uri": f"s3://three-team-checkpoints/{name}"},
        "StoppingCondition": {"MaxRuntimeInSeconds": 86_400},
        "HyperParameters": {
            "sharewarden-lab-runtime-seconds": str(trains // 1000),
            "sharewarden-lab-checkpoint-seconds": str(saves_every // 1000),
            **({"sharewarden-lab-save-request-seconds": "15"} if on_request else {}),
        },
    }
    answer = stack.client("batch", PEOPLE[share]).submit_service_job(
        jobName=name,
        jobQueue=QUEUE,
        quotaShareName=share,
        schedulingPriority=BASE,
        serviceJobType="SAGEMAKER_TRAINING",
        serviceRequestPayload=json.dumps(payload),
        tags={"user": PEOPLE[share], **(tags or {})},
    )
    return answer["jobId"]


class ThreeTeams:
    """The story on a stack in virtual time; ``tell`` plays it once and yields the checks as they are made."""

    def __init__(
        self, stack: LocalStack, show: Callable[[Line], None], shares: tuple[Share, ...] = SHARES
    ) -> None:
        self._stack = stack
        self._shares = shares
        self._jobs: dict[str, str] = {}
        self._batch = stack.client("batch", "admin")
        self._timeline = Timeline(stack.now, show)
        stack.lab.subscribe(self._timeline.hear)

    def tell(self) -> Iterator[Check]:
        create_pool(self._stack, self._shares)
        for scene in (
            self._background_borrows,
            self._urgent_has_its_own,
            self._medium_takes_back,
            self._a_bump_moves_the_queue,
            self._the_bump_ends,
            self._what_it_cost,
            self._all_finish,
            self._urgent_was_never_touched,
        ):
            self._timeline.say("", scene.__doc__ or "", "scene")
            yield from scene()
            self._timeline.tell(self._stack.now())

    def trail(self, share: str) -> list[AuditRecord]:
        """The share's audit records, read back from DynamoDB, oldest first."""
        now = self._stack.now()
        return list(self._stack.runtime.audit.by_share(queue_arn(QUEUE), share, START - DAY, now))

    # Scenes.

    def _background_borrows(self) -> Iterator[Check]:
        """background borrows what is idle"""
        for number in (1, 2, 3):
            self._submit(f"background-{number}")
            self._pass(1 * MINUTE)
        self._pass(10 * MINUTE)
        yield self._is("background-1", "RUNNING", "on its own instance")
        yield self._is("background-2", "RUNNING", "on the instance that medium leaves idle")
        yield self._is("background-3", "RUNNABLE", "urgent's idle instance is reserved, not lent")

    def _urgent_has_its_own(self) -> Iterator[Check]:
        """urgent finds its instance free"""
        self._submit("urgent-1")
        self._pass(10 * MINUTE)
        yield self._is("urgent-1", "RUNNING", "on its reserved instance")
        yield Check("nobody was preempted for urgent-1", {}, self._preemptions())

    def _medium_takes_back(self) -> Iterator[Check]:
        """medium takes its instance back"""
        self._submit("medium-1")
        self._pass(10 * MINUTE)
        yield self._is("medium-1", "RUNNING", "on the instance that it had lent")
        yield self._is("background-2", "RUNNABLE", "requeued by Batch")
        yield Check(
            "medium took its capacity back: cross-share preemption of background-2",
            {"background-2": ["cross-share"]},
            self._preemptions(),
        )

    def _a_bump_moves_the_queue(self) -> Iterator[Check]:
        """a scientist bumps a waiting job"""
        self._bump("background-3", "paper deadline on Friday")
        self._pass(10 * MINUTE)
        yield Check(
            "background-3 has the bumped priority in Batch", BUMPED_TO, self._priority("background-3")
        )
        yield Check(
            "the bump is on record, and so is its effect",
            [("bump", "100", "850"), ("priority-changed", "100", "850")],
            self._changes("background-3"),
        )
        yield self._is("background-3", "RUNNING", "started by the bump")
        yield Check(
            "background-3 pushed out background-1: in-share preemption",
            {"background-1": ["in-share"], "background-2": ["cross-share"]},
            self._preemptions(),
        )

    def _the_bump_ends(self) -> Iterator[Check]:
        """the bump ends by itself"""
        self._pass(60 * MINUTE)
        yield Check("background-3 is back at its base in Batch", BASE, self._priority("background-3"))
        ends = [fact.reason.partition(":")[0] for fact in self._facts("background-3", "boost-ended")]
        yield Check("the end of the bump is on record", ["expired"], ends)
        yield self._is("background-3", "RUNNING", "lowering it preempted nobody")

    def _what_it_cost(self) -> Iterator[Check]:
        """what the two preemptions cost is on record"""
        for victim, preemptor in (("background-2", "medium-1"), ("background-1", "background-3")):
            lost = [_lost(fact) for fact in self._facts(victim, "preemption-measure")]
            within = [0 <= ms <= SAVES_EVERY for ms in lost]
            yield Check(f"{victim} lost what it had done since its last save, {_told(lost)}", [True], within)
            named = [_named(fact) for fact in self._facts(victim, "preemptor")]
            yield Check(f"{preemptor} was behind it, with high confidence", [(preemptor, "high")], named)

    def _all_finish(self) -> Iterator[Check]:
        """the victims resume, and all finish"""
        limit = START + LONGEST
        while any(state not in ("SUCCEEDED", "FAILED") for state in map(self._state, self._jobs)):
            if self._stack.now() >= limit:
                break
            self._pass(10 * MINUTE)
        self._pass(30 * MINUTE)
        for name in self._jobs:
            yield self._is(name, "SUCCEEDED")
            ends = [fact.after for fact in self._facts(name, "job-ended")]
            yield Check(f"the end of {name} is on record once", ["SUCCEEDED"], ends)
        for name in ("background-1", "background-2"):
            yield Check(f"{name} went on from its last checkpoint", True, self._resumed(name))

    def _urgent_was_never_touched(self) -> Iterator[Check]:
        """urgent was never touched"""
        job = self._batch.describe_service_job(jobId=self._jobs["urgent-1"])
        yield Check("urgent-1 needed one attempt", 1, len(job["attempts"]))
        yield Check("urgent-1 was never preempted", None, job.get("preemptionSummary"))
        kinds = sorted({fact.kind for fact in self.trail("urgent") if fact.job})
        yield Check("urgent's trail holds the end of its job alone", ["job-ended", "job-timeline"], kinds)
        yield Check(
            "nothing lies in a dead-letter queue", [], [message.body for message in self._stack.buried()]
        )

    # What people do.

    def _submit(self, name: str) -> None:
        share = name.partition("-")[0]
        self._jobs[name] = submit(self._stack, name, TRAINS[share])
        self._timeline.say(name, f"submitted by {PEOPLE[share]} to {share}, priority {BASE}", "act")

    def _bump(self, name: str, reason: str) -> None:
        request = BumpRequest(
            id=f"demo-{name}", job=self._jobs[name], actor="ana", reason=reason, to=BUMPED_TO, lasts=HOUR
        )
        try:
            answer = bump(self._stack.runtime, request)
        except Refused as refusal:
            self._timeline.say(name, f"bump by ana refused: {refusal}", "bad")
            return
        lasts = format_duration(HOUR)
        self._timeline.say(
            name, f"bumped by ana: {answer.before} -> {answer.after} for {lasts} ({reason})", "act"
        )

    def _pass(self, ms: int) -> None:
        self._stack.run_until(self._stack.now() + ms)
        self._timeline.tell(self._stack.now() - MINUTE)

    # What Batch and the audit say.

    def _is(self, name: str, state: str, why: str = "") -> Check:
        return Check(f"{name} is {state}{why and ': '}{why}", state, self._state(name))

    def _state(self, name: str) -> str:
        return self._batch.describe_service_job(jobId=self._jobs[name])["status"]

    def _priority(self, name: str) -> int:
        return self._batch.describe_service_job(jobId=self._jobs[name])["schedulingPriority"]

    def _facts(self, name: str, kind: Kind) -> list[AuditRecord]:
        return [f for f in self._stack.runtime.audit.by_job(self._jobs[name], 0) if f.kind == kind]

    def _changes(self, name: str) -> list[tuple[str, str | None, str | None]]:
        facts = [*self._facts(name, "bump"), *self._facts(name, "priority-changed")]
        return [(fact.kind, fact.before, fact.after) for fact in facts]

    def _preemptions(self) -> dict[str, list[str]]:
        """Kinds of the audited preemptions by job, where the audit and Batch count the same."""
        found = {
            name: [fact.figures["kind"] for fact in self._facts(name, "preemption")] for name in self._jobs
        }
        counts = {name: self._preempted_count(name) for name in self._jobs}
        return {
            name: kinds if counts[name] == len(kinds) else [f"{counts[name]} in Batch, {kinds} in the audit"]
            for name, kinds in found.items()
            if kinds or counts[name]
        }

    def _preempted_count(self, name: str) -> int:
        job = self._batch.describe_service_job(jobId=self._jobs[name])
        return job.get("preemptionSummary", {}).get("preemptedAttemptCount", 0)

    def _resumed(self, name: str) -> bool:
        """The last attempt trained for less than the whole: it went on from what lay in S3."""
        attempts = self._batch.describe_service_job(jobId=self._jobs[name])["attempts"]
        return bool(attempts) and attempts[-1]["stoppedAt"] - attempts[-1]["startedAt"] < TRAINS["background"]


def _lost(fact: AuditRecord) -> int:
    """Milliseconds; -1 where it is not known."""
    seconds = fact.figures["lost_seconds"]
    return -1 if seconds is None else int(seconds * 1000)


def _told(lost: Sequence[int]) -> str:
    return ", ".join(map(format_duration, lost)) or "which nobody measured"


def _named(fact: AuditRecord) -> tuple[str | None, str | None]:
    return fact.figures["preemptor_name"], fact.figures["confidence"]
