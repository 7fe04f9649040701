"""What ``apply`` does in the same way for every kind of wish, and what the kinds differ in."""

from typing import Literal, Protocol

from sharewarden.domain.decide import Decision
from sharewarden.domain.observation import JobDescription
from sharewarden.domain.policy import Policy
from sharewarden.domain.record import JobRecord
from sharewarden.ports import Runtime

Outcome = Literal[
    "done",
    "superseded",
    "paused",
    "shadow",
    "expired",
    "missing",
    "foreign",
    "settled",
    "drifting",
    "held",
    "saving",
    "refused",
]
Verdict = Outcome | Literal["send", "busy"]


class Deed(Protocol):
    """One wish of one job. The steps on a record act on nothing and may be called several times."""

    def waits(self, record: JobRecord, policy: Policy) -> Literal["paused", "shadow"] | None:
        """Why it may not be done under this policy; None when it may."""
        ...

    def judge(
        self, record: JobRecord, description: JobDescription, policy: Policy, now: int
    ) -> tuple[Decision, Verdict]:
        """What the Describe showed makes of the wish. ``send``: it is remembered as under way."""
        ...

    def do(self, runtime: Runtime, arn: str) -> "Deed":
        """The call; the deed with what came of it. Raises Denied, Unavailable."""
        ...

    def withdraw(self, record: JobRecord) -> Decision:
        """It was not called after all."""
        ...

    def refused(self, record: JobRecord, why: str, policy: Policy, now: int) -> Decision:
        """AWS refused the call: nothing took effect, and after a few tries it is given up."""
        ...

    def confirm(self, record: JobRecord, policy: Policy, now: int) -> Decision:
        """AWS accepted the call; unless another reader has seen it first, that is told."""
        ...

    def drop(self, record: JobRecord, why: str, policy: Policy, now: int) -> Decision:
        """It dies without effect, unless it is under way."""
        ...
