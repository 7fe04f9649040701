"""What the platform admin allows. Every default is the safe one: shadow, nothing acts."""

import hashlib
import json
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import Field, SerializeAsAny, ValidatorFunctionWrapHandler, WrapValidator, model_validator

from .base import Frozen, Name, last_part
from .durations import Duration
from .percent import Percent
from .rules import CUSTOM, rule_class
from .rules.base import ACTING, MOST_ENTRIES, Guardrail, Listed, Mode, any_matches
from .save_patterns import SavePattern
from .stored import DAY, HOUR, MINUTE, SECOND

Priority = Field(ge=0, le=9999)


class Band(Frozen):
    """The priorities of one kind of boost, both ends included.

    ``highest`` binds. ``lowest`` is where the kind's own range begins: a bump may well stay below it, among
    the automatic ones.
    """

    lowest: int = Priority
    highest: int = Priority

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.lowest > self.highest:
            raise ValueError(f"the band {self.lowest}-{self.highest} ends below its start")
        return self


class Bands(Frozen):
    """Automatic boosts stay below those of people."""

    automatic: Band = Band(lowest=0, highest=799)
    human: Band = Band(lowest=800, highest=999)


class SharePolicy(Frozen):
    """What holds for the jobs of one quota share."""

    team: Name | None = None
    min_runtime: Duration = Field(default=10 * MINUTE, ge=0)
    protected: bool = False
    """No act of a guardrail touches its jobs: what would be done is told instead."""


class QueuePolicy(Frozen):
    """What holds for one job queue."""

    mode: Mode = "shadow"
    """Of guardrails that do not say their own."""
    bumps: Mode = "shadow"
    bands: Bands = Bands()
    shares: dict[Name, SharePolicy] = Field(default_factory=dict)


class TeamPolicy(Frozen):
    """A team: who speaks for it, and which SLA classes its jobs may ask for."""

    owners: tuple[str, ...] = ()
    sla: tuple[Name, ...] = ()


class LadderStep(Frozen):
    """What follows once a part of the time is over in which a job of the class has to start."""

    at: Percent
    """Part of the time between the start of the job's clock and the moment at which it is due."""
    boost: int | None = Field(default=None, ge=1, le=9999)
    """Points on top of the base. They do not add up: the greatest of the steps that are due counts."""
    notify: Literal["team", "oncall"] | None = None
    """Who is told."""


class SlaClass(Frozen):
    """What a class of jobs may expect: a start in time, another after a preemption, a deadline kept."""

    start_within: Duration | None = Field(default=None, gt=0)
    restart_within: Duration | None = Field(default=None, gt=0)
    finish_by: bool = False
    """The deadline tag of its jobs counts: they are due in time to finish by then."""
    expected_runtime: Duration | None = Field(default=None, gt=0)
    """Of its jobs that have no such tag; a deadline needs one of the two."""
    ladder: tuple[LadderStep, ...] = Field(default=(), max_length=10)
    """The steps of its escalation, in their order."""


class TagNames(Frozen):
    """What the tags are called that Sharewarden reads."""

    team: str = Field(default="team", min_length=1)
    user: str = Field(default="user", min_length=1)
    project: str = Field(default="project", min_length=1)
    sla: str = Field(default="sla", min_length=1)
    deadline: str = Field(default="deadline", min_length=1)
    expected_runtime: str = Field(default="expected-runtime", min_length=1)
    lineage: str = Field(default="lineage", min_length=1)


class BlastRadius(Frozen):
    """The most acts that one sweep may set off: the smaller of a number and a percentage of the open jobs.

    One act is always allowed, or a small pool would never see any.
    """

    acts: int = Field(default=50, ge=1)
    percent: int = Field(default=10, ge=1, le=100)

    def of(self, open_jobs: int) -> int:
        """The cap for a pool of so many open jobs."""
        return max(1, min(self.acts, open_jobs * self.percent // 100))


class ResubmitPolicy(Frozen):
    """What becomes of a job whose preemption retries ran out."""

    mode: Mode = "shadow"
    most_per_lineage: int = Field(default=3, ge=1, le=100)
    """How often a job and those that replace it are submitted again, all together."""
    roles: Listed = ()
    """The execution roles that a job submitted by us may have: names or ARNs, ``*`` stands for anything.
    None listed: no job is submitted."""
    from_zero: bool = False
    """Also a job without a complete checkpoint, which has to begin anew."""

    def allows(self, role: str | None) -> bool:
        """Whether the role with that ARN is among them."""
        return role is not None and any(any_matches(self.roles, name) for name in (role, last_part(role)))


class CheckpointPolicy(Frozen):
    """How checkpoints are found."""

    patterns: tuple[SavePattern, ...] = Field(default=(), max_length=20)
    """Layouts of checkpoint sets beside those that are known without: docs/checkpoints.md."""
    resubmit: ResubmitPolicy = ResubmitPolicy()
    keep_pins: Duration = Field(default=30 * DAY, ge=1 * DAY)
    """How long a pinned set is remembered after the last preemption that found it."""
    ask_before_bump: Duration | None = Field(default=None, ge=30 * SECOND, le=10 * MINUTE)
    """Running jobs that a bump may push out of their share are asked to save, and it waits so long at most.
    Not given: they are not asked."""


def _entry(value: Any, _: ValidatorFunctionWrapHandler) -> Guardrail:
    """An entry is checked by its rule's own class; one with ``when`` is a custom rule."""
    if isinstance(value, Guardrail):
        return value
    if not isinstance(value, dict):
        raise ValueError("an entry is a mapping such as {rule: max-instances-per-job, limit: 4}")
    given = {"rule": CUSTOM, **value} if "when" in value else value
    name = given.get("rule")
    if not isinstance(name, str):
        raise ValueError("an entry names its rule, or has an expression of its own (when)")
    return rule_class(name).model_validate(given)


Entry = Annotated[SerializeAsAny[Guardrail], WrapValidator(_entry)]


def hash_of(text: str) -> str:
    """The hash of a policy by its canonical text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Policy(Frozen):
    """The policy in force. Queues are named, not given by ARN: one stack is one account and Region."""

    version: Literal[1] = 1
    """Of the language, not of the text."""
    paused: bool = False
    queues: dict[Name, QueuePolicy] = Field(default_factory=dict)
    teams: dict[Name, TeamPolicy] = Field(default_factory=dict)
    sla: dict[Name, SlaClass] = Field(default_factory=dict)
    tags: TagNames = TagNames()
    guardrails: tuple[Entry, ...] = Field(default=(), max_length=MOST_ENTRIES)
    checkpoints: CheckpointPolicy = CheckpointPolicy()
    drift_settle: Duration = Field(default=1 * MINUTE, gt=0)
    """How long somebody else's priority must stand, seen twice, before it is taken as the new base."""
    hold: Duration = Field(default=30 * MINUTE, ge=0)
    """How long a boost that started a job is kept when no complete checkpoint is known."""
    wish_life: Duration = Field(default=1 * HOUR, ge=10 * MINUTE)
    """After this time an act that could not be done is given up; it must outlast two sweeps and a retry."""
    blast_radius: BlastRadius = BlastRadius()

    @model_validator(mode="after")
    def _labels_differ(self) -> Self:
        labels = [entry.label for entry in self.guardrails]
        twice = next((label for label in labels if labels.count(label) > 1), None)
        if twice is not None:
            raise ValueError(f"two guardrails are called {twice!r}: give each a name of its own")
        return self

    @model_validator(mode="after")
    def _wishes_outlive_their_wait(self) -> Self:
        wait = self.checkpoints.ask_before_bump
        if wait is not None and self.wish_life < wait + 10 * MINUTE:
            raise ValueError("wish_life has to be 10m longer than checkpoints.ask_before_bump: raise it")
        return self

    def queue(self, arn: str) -> QueuePolicy:
        """The rules of the queue, or the safe defaults when the policy does not name it."""
        return self.queues.get(last_part(arn), QueuePolicy())

    def stops(self, queue: str) -> Literal["paused", "shadow"] | None:
        """Why nothing at all may be done to the queue's jobs now; None when something is enforced there."""
        if self.paused:
            return "paused"
        rules = self.queue(queue)
        modes = {rules.mode, rules.bumps} | {entry.mode for entry in self.guardrails if entry.covers(queue)}
        return None if "enforce" in modes else "shadow"

    @property
    def resubmission_stops(self) -> Literal["paused", "shadow"] | None:
        """Why no exhausted job may be submitted again now; None when one may."""
        if self.paused:
            return "paused"
        return "shadow" if self.checkpoints.resubmit.mode == "shadow" else None

    def mode(self, entry: Guardrail, queue: str) -> Mode:
        """The mode of a guardrail on jobs of the queue: its own, else the queue's."""
        return entry.mode or self.queue(queue).mode

    def acting(self, queue: str) -> tuple[str, ...]:
        """The guardrails that may act on jobs of the queue: others record and tell, or are in shadow mode."""
        return tuple(
            entry.label
            for entry in self.guardrails
            if entry.action in ACTING and entry.covers(queue) and self.mode(entry, queue) == "enforce"
        )

    def enforced(
        self, queue: str, label: str, action: Literal["lower-priority", "terminate"]
    ) -> Guardrail | None:
        """The guardrail of that name, if it does that to jobs of the queue."""
        entry = next((entry for entry in self.guardrails if entry.label == label), None)
        if entry is None or entry.action != action or not entry.covers(queue):
            return None
        return entry if self.mode(entry, queue) == "enforce" else None

    def share(self, queue: str, share: str | None) -> SharePolicy:
        """The rules of a share, or the defaults."""
        return self.queue(queue).shares.get(share or "", SharePolicy())

    @cached_property
    def canonical(self) -> str:
        """The policy as the one JSON text that says it: sorted, without what is at its default."""
        return json.dumps(self.model_dump(mode="json", exclude_defaults=True), sort_keys=True)

    @cached_property
    def hash(self) -> str:
        """Names the exact policy that a decision was made under; a default spelled out is the same policy."""
        return hash_of(self.canonical)
