"""What rules may know. Built-in rules and CEL expressions see the same facts under the same names.

None is "not known", never "no": a built-in rule answers Unknown, and an expression finds the name missing.
Durations are whole seconds; times are epoch milliseconds here and timestamps in CEL.
"""

from pydantic import Field

from sharewarden.domain.base import Frozen
from sharewarden.domain.observation import Status


class JobFacts(Frozen):
    """One job: a recorded one, or one that is about to be submitted."""

    id: str
    name: str
    queue: str
    """Name of the job queue."""
    share: str | None = None
    team: str | None = None
    """The team of the share, else the tag's."""
    tag_team: str | None = None
    user: str | None = None
    project: str | None = None
    sla: str | None = None
    """The class that the job's tag names, granted or not."""
    deadline: int | None = None
    expected_runtime: int | None = None
    lineage: str | None = None
    tags: dict[str, str] | None = None
    """None while Batch has not been asked about them."""
    odd_tags: dict[str, str] = Field(default_factory=dict)
    """Tags that Sharewarden reads and that say nothing it understands: name and what is wrong."""
    status: Status
    waiting: int | None = None
    """Since it was submitted or last requeued; None once it is dispatched or over."""
    in_status: int | None = None
    running: int | None = None
    """Of the running attempt."""
    trained: int | None = None
    """Of all attempts."""
    priority: int | None = None
    base: int | None = None
    drifted: bool = False
    """Somebody else than the submitter and Sharewarden set the base."""
    instance_type: str | None = None
    instances: int | None = None
    gpus: int | None = None
    """Of all instances; None for a type that is not in the table."""
    preemptions: int = 0
    preemption_retries: int | None = None
    """-1: Batch requeues without end; None: not known."""
    max_runtime: int | None = None
    """Of an attempt, as the job asks for."""
    checkpoint_uri: str | None = None
    role: str | None = None
    blocked: str | None = None
    """Batch's own words for why the head of the queue does not move; None when it did not say so."""
    checkpoint_age: int | None = None
    """Since the newest complete checkpoint of the running attempt, or since it began to run without one: as
    of the last look at S3; None: no look in this attempt could tell."""
    save_interval: int | None = None
    """Usual time between two of its checkpoints."""


class UnitFacts(Frozen):
    """One capacity unit (instance type) of a share, in instances."""

    limit: int
    used: int | None = None
    borrowed: int | None = None
    others: int | None = None
    """What the limits of the other shares that lend add up to."""


class ShareFacts(Frozen):
    """The job's quota share."""

    name: str
    strategy: str
    borrow_limit: int | None = None
    """Percent of the own limit; -1: without limit; None: cannot borrow."""
    in_share_preemption: bool = False
    protected: bool = False
    min_runtime: int
    units: dict[str, UnitFacts]

    @property
    def preemptible(self) -> bool:
        """Whether preemption can reach a job of this share."""
        return self.in_share_preemption or self.strategy == "LEND_AND_BORROW"


class PartyFacts(Frozen):
    """What a team or a user has in the queue, as one look at all of it showed."""

    name: str
    running_instances: int
    running_gpus: int
    queued_jobs: int
    running_up_to_job: int | None = None
    """Instances of its jobs dispatched no later than this one, with it; None when it is not dispatched."""
    queued_up_to_job: int | None = None
    """Its jobs that wait and were submitted no later than this one, with it."""


class TeamFacts(PartyFacts):
    """The job's team. GPU-hours by the name of the current period: ``day``, ``week``, ``month``."""

    granted_sla: tuple[str, ...] = ()
    owned_gpu_hours: dict[str, float] = Field(default_factory=dict)
    borrowed_gpu_hours: dict[str, float] = Field(default_factory=dict)


class SlaFacts(Frozen):
    """The job's SLA class, when the policy has it."""

    name: str
    granted: bool | None = None
    """Whether the policy grants it to the job's team; None when the team is not known."""
    start_within: int | None = None
    restart_within: int | None = None


class Facts(Frozen):
    """Everything that a rule about a job may look at."""

    now: int
    job: JobFacts
    share: ShareFacts | None = None
    team: TeamFacts | None = None
    """None outside a look at the whole queue (a sweep): what it needs cannot be decided then."""
    user: PartyFacts | None = None
    sla: SlaFacts | None = None


class ShareChangeFacts(Frozen):
    """A quota share was changed."""

    now: int
    queue: str
    share: str
    by: str | None = None
    """ARN of the principal; None where only a sweep saw it."""
    operation: str | None = None
    change: str
    """What is different, or the request's parameters."""


class TrainingFacts(Frozen):
    """A training job that SageMaker told of and that no job queue submitted."""

    now: int
    name: str
    arn: str
    status: str
    instance_type: str | None = None
    instances: int | None = None
    gpus: int | None = None
    pool_types: frozenset[str]
    """The capacity units of the pool's shares."""
