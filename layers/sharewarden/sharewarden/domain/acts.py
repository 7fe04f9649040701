"""Acts that guardrails set off: lower a job's priority while a rule is broken, or terminate the job.

Both are written into the job's record as wishes; only ``apply`` carries them out.
"""

from typing import Literal

from .base import Frozen
from .decide import Decision
from .policy import Policy
from .record import JobRecord


class Act(Frozen):
    """What a broken rule asks for. ``id`` names it: beginning the same act twice is beginning it once."""

    id: str
    kind: Literal["lower-priority", "terminate"]
    label: str
    """The guardrail's name."""
    reason: str
    points: int = 0
    """By how much ``lower-priority`` lowers."""
    not_before: int = 0
    """``terminate`` is not done earlier."""


def begin(record: JobRecord, act: Act, policy: Policy, now: int) -> Decision:
    """The record with the act wished for. The same id twice changes nothing."""
    raise NotImplementedError


def end(record: JobRecord, ids: frozenset[str], policy: Policy, now: int) -> Decision:
    """The record without those acts: their rules hold again, or are no longer in force.

    Unknown ids are ignored. A termination that was sent already is not taken back.
    """
    raise NotImplementedError
