"""What every rule has in common: a module here holds one class ``Rule`` with options, decision and text."""

import hashlib
import json
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from sharewarden.domain.base import Frozen, Name, last_part, shown
from sharewarden.domain.durations import Duration
from sharewarden.domain.periods import Period
from sharewarden.domain.stored import MINUTE

from .facts import Facts, ShareChangeFacts, TrainingFacts

Action = Literal["record", "notify", "lower-priority", "terminate"]
#: What changes or ends a job. The others only tell.
ACTING: frozenset[Action] = frozenset({"lower-priority", "terminate"})
Scope = Literal["job", "share-change", "training"]
Mode = Literal["shadow", "enforce"]
#: Guardrails of one policy: each of them is asked about every job.
MOST_ENTRIES = 1000
Label = Annotated[str, Field(max_length=100), AfterValidator(shown)]
"""It is part of the keys of findings, which DynamoDB ends at 2048 bytes."""
Listed = Annotated[tuple[Annotated[str, Field(min_length=1, max_length=600)], ...], Field(max_length=100)]
"""What a rule lists; its texts and figures tell all of it."""


class Fires(Frozen):
    """The rule is broken.

    ``subject`` tells several findings about one thing apart (a budget's period, a preemption's number).
    ``about`` names what the finding is told of once: ``job``, or a team of which many jobs show the same.
    ``only_told``: no act follows on this job, whatever the entry says; told it is.
    """

    text: str
    figures: dict[str, Any] = Field(default_factory=dict)
    subject: str = ""
    about: Literal["job", "team"] = "job"
    only_told: bool = False


class Unknown(Frozen):
    """The rule cannot be decided: ``what`` is not known (yet). Nothing begins and nothing ends by it."""

    what: str


Verdict = Fires | Unknown | None


class Guardrail(Frozen):
    """One entry of the policy's ``guardrails``: which rule, for what, and what follows when it is broken.

    An entry without ``queues``, ``shares`` or ``teams`` is about all of them.
    """

    scope: ClassVar[Scope] = "job"
    needs_pool: ClassVar[bool] = False
    """Whether it can be decided only on a look at the whole queue, that is, in a sweep."""
    acts: ClassVar[bool] = True
    """Whether ``lower-priority`` and ``terminate`` make sense for what it finds."""

    rule: str
    name: Label = ""
    """What findings are called by; the rule's own name unless several entries use it."""
    queues: tuple[Name, ...] = ()
    shares: tuple[Name, ...] = ()
    teams: tuple[Name, ...] = ()
    action: Action = "record"
    mode: Mode | None = None
    """None: as the queue's."""
    points: int = Field(default=100, ge=1, le=9999)
    """By how much ``lower-priority`` lowers."""
    grace: Duration = Field(default=10 * MINUTE, ge=0)
    """How long after it was told ``terminate`` waits; nothing is done if the rule holds again by then."""

    @field_validator("action", mode="before")
    @classmethod
    def _is_here(cls, action: object) -> object:
        if action == "ask-approval":
            raise PydanticCustomError(
                "ask_approval",
                "ask-approval arrives with Slack; until then use record, notify, lower-priority or terminate",
            )
        return action

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if not self.acts and self.action in ACTING:
            raise PydanticCustomError(
                "no_act",
                "{rule} has nothing to act on, so {action} makes no sense: use record or notify",
                {"rule": self.rule, "action": self.action},
            )
        return self

    @property
    def label(self) -> str:
        """The name of its findings."""
        return self.name or self.rule

    @cached_property
    def fingerprint(self) -> str:
        """Names this exact entry: another limit makes another one, another place in the file does not."""
        text = json.dumps(self.model_dump(mode="json", exclude_defaults=True), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def gpu_periods(self) -> tuple[Period, ...]:
        """The periods whose GPU-hours of the team it reads; those of others are not counted for it."""
        return ()

    def covers(self, queue: str) -> bool:
        """Whether the entry may be about jobs of the queue with that ARN."""
        return not self.queues or last_part(queue) in self.queues

    def concerns(self, queue: str, share: str | None, team: str | None) -> bool:
        """Whether the entry is about this queue, share and team; one that is not known is not concerned."""
        chosen = ((self.queues, queue), (self.shares, share), (self.teams, team))
        return all(not names or value in names for names, value in chosen)

    def decide(self, facts: Facts) -> Verdict:
        """The rule's word on a job. Rules of another scope have a method of their own."""
        raise NotImplementedError

    def decide_change(self, facts: ShareChangeFacts) -> Verdict:
        """The rule's word on a change of a share (scope ``share-change``)."""
        raise NotImplementedError

    def decide_training(self, facts: TrainingFacts) -> Verdict:
        """The rule's word on a training job of nobody's queue (scope ``training``)."""
        raise NotImplementedError


def counted(number: int, noun: str) -> str:
    """``1 instance``, ``2 instances``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def any_matches(patterns: tuple[str, ...], value: str) -> bool:
    """Whether one of the shell patterns (``ml.g6e.*``) is all of ``value``; case counts."""
    return any(fnmatchcase(value, pattern) for pattern in patterns)


def unseen(what: str, owner: str | None, facts: Facts) -> Unknown | None:
    """The word on a job whose ``what`` (team, user) is not there: who surely has none breaks no limit."""
    has_none = owner is None and facts.job.tags is not None
    return None if has_none else Unknown(what=what)
