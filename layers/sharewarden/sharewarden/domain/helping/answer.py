"""The answer to "can a bump help?", with all that a person or a workflow needs to go on."""

from typing import Literal

from sharewarden.domain.base import Frozen

from .reading import How

Kind = Literal["yes-now", "yes-at", "no", "unknown"]
Refusal = Literal[
    "ended",
    "dispatched",
    "not-a-raise",
    "never-fits",
    "priority-too-low",
    "outranked",
    "in-share-off",
    "share-full",
    "nothing-idle",
    "environment-full",
]
Doubt = Literal["not-seen", "not-queued-yet", "unread", "under-way", "moving", "undocumented", "ages-unknown"]
Reason = Literal[How, Refusal, Doubt]
Change = Literal["priority", "in-share-preemption", "capacity-limit", "borrow-limit", "strategy", "wait"]


class Victim(Frozen):
    """A dispatched job that Batch may push out. ``None``: not known."""

    job: str
    name: str
    share: str
    team: str | None
    priority: int | None
    instances: int
    gpus: int | None
    loses: int | None
    """Milliseconds of training that are not saved; without a known save: since it began to run."""
    saved: bool
    """``loses`` counts from a complete checkpoint."""
    old_enough_at: int | None
    """When it has run for its share's minimum runtime."""
    protected: bool
    sla: str | None
    direct: bool = True
    """False: it would be pushed out for a job that is held up behind the one asked about."""


class Lever(Frozen):
    """What would help instead, alone, at the priority that was asked about."""

    change: Change
    text: str
    share: str | None = None
    unit: str | None = None
    """Of ``capacity-limit``: the instance type."""
    value: int | None = None
    """The priority, limit, or percentage to set."""
    job: str | None = None
    """Of ``wait``: the job whose end makes room."""
    at: int | None = None
    """Of ``wait``: about when, where that is known."""


class Figures(Frozen):
    """The arithmetic, in instances of one type. ``None``: no limit, or not known for ``environment``."""

    unit: str
    asked: int
    used: int
    own: int
    most: int | None
    """What the share may use: its own, and what its borrow limit lets it borrow."""
    borrowed: int
    """By the share."""
    lent: int
    """What all shares borrow now."""
    idle: int
    """What lenders do not use of their own."""
    lack: int
    """What others would have to give up for the job."""
    environment: int | None
    environment_used: int


class Answer(Frozen):
    """``yes-now``: the job starts without other capacity becoming free. ``yes-at``: so from ``at`` on, when
    no eligible victim is younger than its share's minimum runtime (design law 7). ``no``: it does not.

    ``victims``: whichever of them Batch chooses, the likeliest first. None of them need be chosen.
    """

    kind: Kind
    reason: Reason
    text: str
    job: str
    name: str
    share: str | None = None
    priority: int | None = None
    """As it is."""
    asked: int
    """The priority that was asked about."""
    needs: int | None = None
    """The smallest priority that is known to help, now or later."""
    at: int | None = None
    position: int | None = None
    """Place in its share, 1 is the first; the last it may have where the order among equals is not known."""
    position_after: int | None = None
    victims: tuple[Victim, ...] = ()
    levers: tuple[Lever, ...] = ()
    figures: Figures | None = None
