"""Terminations that guardrails ask for, as a job's record keeps them. ``apply`` carries them out.

A wish is one act of one guardrail. It ends when it was done, when its rule holds again, when AWS refuses it
for good, or with the job; while its rule is broken no time runs out on it. One at a time is under way.
"""

from typing import Literal

from .audit import rule_actor
from .base import Frozen
from .observation import TERMINAL, JobDescription
from .priority import IN_FLIGHT

#: Terminations of one job that may be open at once: each would have the same effect.
MOST_OPEN = 3
#: Those that ended are remembered up to this many, so that the same act does not begin again.
KEPT_ENDED = 10
#: The API gives no limit for the reason; Batch matches up to 512 characters of it (EvaluateOnExit), and shows
#: it in lists. This leaves room for whatever it puts around it.
LONGEST_TEXT = 256

TerminationEnd = Literal["done", "withdrawn", "refused", "foreign", "job-ended"]


class TerminationWish(Frozen):
    """A job to terminate, and why. ``id`` is that of the act."""

    id: str
    label: str
    fingerprint: str
    """Of the exact entry of the policy that asks for it."""
    reason: str
    situation: str
    """State and attempt of the job when its rule last spoke: in another one the rule is asked again first."""
    created_at: int
    not_before: int
    """The grace: nothing is done earlier."""
    released_at: int = 0
    """When a sweep last gave it to ``apply``; 0: never."""
    not_after: int = 0
    """When that release runs out: what it has set off is then too old, and another sweep gives it again."""
    refusals: int = 0
    unsure: bool = False
    """Its rule could not be decided at the last look: nothing is done on an earlier word."""
    withdrawn_at: int | None = None
    """Since when it is not wanted any more, and ``withdrawn`` why. One that was sent before may still take
    effect; if it did not, it is not tried again."""
    withdrawn: str = ""
    sent_at: int | None = None
    """Since when it is under way: committed before the call, and its outcome is not known yet."""
    found: str | None = None
    """The state of the job just before the call."""
    end: TerminationEnd | None = None
    ended_at: int | None = None

    @property
    def actor(self) -> str:
        """Who acts, in the audit."""
        return rule_actor(self.label)

    @property
    def text(self) -> str:
        """What stands on the job."""
        return " ".join(f"{self._mark} {self.reason}".split())[:LONGEST_TEXT]

    @property
    def _mark(self) -> str:
        return " ".join(f"Sharewarden guardrail {self.label}:".split())

    def is_on(self, reason: str | None) -> bool:
        """Whether that reason of Batch's is ours."""
        return reason is not None and reason.startswith(self._mark[:LONGEST_TEXT])


Terminations = tuple[TerminationWish, ...]


def open_terminations(wishes: Terminations) -> Terminations:
    """Those that have not ended."""
    return tuple(wish for wish in wishes if wish.end is None)


def find_open(wishes: Terminations, act: str) -> TerminationWish | None:
    """The open one of that id."""
    return next((wish for wish in open_terminations(wishes) if wish.id == act), None)


def under_way(wishes: Terminations) -> TerminationWish | None:
    """The one whose call was about to be made, or was made, and whose outcome is not known."""
    return next((wish for wish in open_terminations(wishes) if wish.sent_at is not None), None)


def due_terminations(wishes: Terminations, now: int) -> Terminations:
    """Those that may be given to ``apply`` now."""
    return tuple(
        wish
        for wish in open_terminations(wishes)
        if wish.sent_at is None and wish.withdrawn_at is None and wish.not_before <= now and not wish.unsure
    )


def with_termination(wishes: Terminations, wish: TerminationWish) -> Terminations:
    """One more; an id that is known changes nothing, nor does one for which there is no room."""
    known = any(one.id == wish.id for one in wishes)
    if known or len(open_terminations(wishes)) >= MOST_OPEN:
        return wishes
    over = [one.id for one in wishes if one.end is not None][:-KEPT_ENDED]
    return (*(one for one in wishes if one.id not in over), wish)


def changed(wishes: Terminations, act: str, **update: object) -> Terminations:
    """The wishes with that one changed."""
    return tuple(wish.model_copy(update=update) if wish.id == act else wish for wish in wishes)


def withdrawn_terminations(wishes: Terminations) -> Terminations:
    """Those that are not wanted any more and are not, or no longer, under way."""
    return tuple(
        wish for wish in open_terminations(wishes) if wish.sent_at is None and wish.withdrawn_at is not None
    )


def end_open(wishes: Terminations, why: TerminationEnd, at: int) -> Terminations:
    """All of them ended."""
    return tuple(
        wish.model_copy(update={"end": why, "ended_at": at}) if wish.end is None else wish for wish in wishes
    )


def settle_terminations(
    wishes: Terminations, reason: str | None, at: int
) -> tuple[Terminations, TerminationWish | None]:
    """What is known once the job has stopped, or is being stopped, for ``reason``; and the one that did it.

    Only a reason that is ours says that ours took effect: whatever else ended the job, we did not.
    """
    sent = under_way(wishes)
    if sent is None or not sent.is_on(reason):
        return wishes, None
    return changed(wishes, sent.id, end="done", ended_at=at), sent


def read_terminations(
    wishes: Terminations, read: JobDescription
) -> tuple[Terminations, TerminationWish | None]:
    """What a Describe shows of the one under way: a call that nothing shows after ``IN_FLIGHT`` was lost."""
    sent = under_way(wishes)
    if sent is None or sent.sent_at is None or read.status in TERMINAL:
        return wishes, None
    if read.terminated:
        return settle_terminations(wishes, read.reason, read.read_at)
    if abs(read.read_at - sent.sent_at) < IN_FLIGHT:
        return wishes, None
    return changed(wishes, sent.id, sent_at=None, found=None), None
