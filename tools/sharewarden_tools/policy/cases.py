"""Policy tests: cases beside the policy, and how they are written."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator
from sharewarden.domain.base import Frozen
from sharewarden.domain.known import deadline_of
from sharewarden.domain.observation import Status
from sharewarden.domain.rules.base import Action, Mode
from sharewarden.domain.rules.facts import (
    JobFacts,
    PartyFacts,
    ShareChangeFacts,
    ShareFacts,
    TeamFacts,
    TrainingFacts,
    UnitFacts,
)

#: Monday, 2026-11-30T12:00:00Z: the time of a case that does not give its own.
NOON = 1_796_040_000_000


def _moment(value: object) -> int:
    moment = deadline_of(value) if isinstance(value, str) else None
    if moment is None:
        raise ValueError(f"{value!r} is not a time with its offset: write for example 2026-11-30T12:00:00Z")
    return moment


Moment = Annotated[int, BeforeValidator(_moment)]


class GivenJob(JobFacts):
    """Facts of a job. What the policy and the tags say is filled in; what else is not given is not known."""

    id: str = "the-job"
    name: str = "the-job"
    queue: str = ""
    """Name; the policy's only queue need not be given."""
    status: Status = "RUNNABLE"


class GivenShare(ShareFacts):
    """Facts of the job's share."""

    name: str = ""
    strategy: str = "RESERVE"
    min_runtime: int = 0
    units: dict[str, UnitFacts] = Field(default_factory=dict)


class GivenTeam(TeamFacts):
    """What a look at the whole queue shows of the job's team."""

    name: str = ""
    running_instances: int = 0
    running_gpus: int = 0
    queued_jobs: int = 0


class GivenUser(PartyFacts):
    """What a look at the whole queue shows of the job's user."""

    name: str = ""
    running_instances: int = 0
    running_gpus: int = 0
    queued_jobs: int = 0


class GivenChange(ShareChangeFacts):
    """A change of a quota share."""

    now: int = NOON
    queue: str = ""
    change: str = ""


class GivenTraining(TrainingFacts):
    """A training job that no queue submitted."""

    now: int = NOON
    name: str = "the-training-job"
    arn: str = "arn:aws:sagemaker:us-east-1:123456789012:training-job/the-training-job"
    status: str = "InProgress"


class Expected(Frozen):
    """A guardrail that fires. What is not given may be anything."""

    finding: str
    """Its name: `name`, or the rule's."""
    action: Action | None = None
    mode: Mode | None = None
    text: str | None = None
    """A part of what people are told."""


class Case(Frozen):
    """One case: exactly one of ``job``, ``request``, ``share_change`` and ``training``."""

    name: str = Field(min_length=1)
    now: Moment = NOON
    job: GivenJob | None = None
    request: dict[str, Any] | None = None
    """A SubmitServiceJob request."""
    share: GivenShare | None = None
    team: GivenTeam | None = None
    user: GivenUser | None = None
    share_change: GivenChange | None = None
    training: GivenTraining | None = None
    expect: tuple[Expected, ...]
    """Every guardrail that fires; an empty list: none does."""
    holds: tuple[str, ...] = ()
    """Guardrails that are decided and not broken."""
    undecided: tuple[str, ...] = ()
    """Guardrails that cannot be decided from what is given."""

    @model_validator(mode="after")
    def _about_one_thing(self) -> Self:
        given = [
            name for name in ("job", "request", "share_change", "training") if getattr(self, name) is not None
        ]
        if len(given) != 1:
            told = " and ".join(given) or "none of them"
            raise ValueError(f"a case gives one of job, request, share_change, training; here is {told}")
        return self


class CaseFile(Frozen):
    """The file beside the policy."""

    cases: tuple[Case, ...] = Field(min_length=1)
