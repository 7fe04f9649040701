"""The termination that a guardrail asks for, as ``apply`` carries it out.

The rule is not decided again here: a sweep decides it each time, and withdraws the wish once it holds again.
So its word counts only as long as the policy asks for the same, of a job in the same situation.
"""

from dataclasses import dataclass
from typing import Literal, Self

from sharewarden.domain.acts import situation
from sharewarden.domain.base import last_part
from sharewarden.domain.decide import Decision, decide_read
from sharewarden.domain.facts import team, terminated_fact, termination_dropped_fact
from sharewarden.domain.observation import TERMINAL, JobDescription
from sharewarden.domain.policy import Policy
from sharewarden.domain.priority import MOST_REFUSALS
from sharewarden.domain.record import JobRecord
from sharewarden.domain.termination import TerminationWish, changed, find_open, under_way
from sharewarden.ports import Runtime

from .deed import Verdict


@dataclass(frozen=True)
class Terminate:
    """Deed: one termination of the job."""

    wish: TerminationWish

    @classmethod
    def wanted(cls, record: JobRecord, act: str) -> Self | None:
        """The deed, while that act is open."""
        wish = find_open(record.terminations, act)
        return None if wish is None else cls(wish)

    def waits(self, record: JobRecord, policy: Policy) -> Literal["paused", "shadow"] | None:
        return policy.stops(record.queue)

    def judge(
        self, record: JobRecord, description: JobDescription, policy: Policy, now: int
    ) -> tuple[Decision, Verdict]:
        decision = decide_read(record, description, policy)
        wishes = decision.record.terminations
        wish = find_open(wishes, self.wish.id)
        if wish is None or description.status in TERMINAL or description.terminated:
            return decision, "settled"
        if under_way(wishes) is not None:
            return decision, "busy"
        if decision.record.priority.suspect is not None:  # somebody else is at the job
            return decision, "drifting"
        if now < wish.not_before or wish.unsure or not _stands(wish, decision.record, policy):
            return decision, "held"
        if now > wish.not_after:  # a message that came late: the next sweep gives it again
            return decision, "expired"
        return _with(decision, wish.id, sent_at=now, found=description.status), "send"

    def do(self, runtime: Runtime, arn: str) -> Self:
        runtime.batch.terminate(arn, self.wish.text)
        return self

    def withdraw(self, record: JobRecord) -> Decision:
        return self._back(record)

    def refused(self, record: JobRecord, why: str, policy: Policy, now: int) -> Decision:
        wish = self._sent(record)
        if wish is None:
            return Decision(record=record)
        if wish.refusals + 1 < MOST_REFUSALS:
            return self._back(record, refusals=wish.refusals + 1)
        return _ended(record, wish, "refused", why, policy, now)

    def confirm(self, record: JobRecord, policy: Policy, now: int) -> Decision:
        wish = self._sent(record)
        if wish is None:
            return Decision(record=record)
        done = _with(Decision(record=record), wish.id, end="done", ended_at=now)
        return done.model_copy(update={"facts": (terminated_fact(record, wish, policy),)})

    def drop(self, record: JobRecord, why: str, policy: Policy, now: int) -> Decision:
        wish = find_open(record.terminations, self.wish.id)
        if wish is None or wish.sent_at is not None:
            return Decision(record=record)
        return _ended(record, wish, "foreign", why, policy, now)

    def _sent(self, record: JobRecord) -> TerminationWish | None:
        wish = under_way(record.terminations)
        return wish if wish is not None and wish.id == self.wish.id else None

    def _back(self, record: JobRecord, **update: object) -> Decision:
        """It is not under way any more."""
        if self._sent(record) is None:
            return Decision(record=record)
        return _with(Decision(record=record), self.wish.id, sent_at=None, found=None, **update)


def _stands(wish: TerminationWish, record: JobRecord, policy: Policy) -> bool:
    """Whether the policy asks for it now, and the word of its rule was about the job as it is."""
    entry = policy.enforced(record.queue, wish.label, "terminate")
    if entry is None or entry.fingerprint != wish.fingerprint or wish.situation != situation(record):
        return False
    spared = record.adopted or policy.share(record.queue, record.share).protected
    return not spared and entry.concerns(last_part(record.queue), record.share, team(record, policy))


def _with(decision: Decision, act: str, **update: object) -> Decision:
    record = decision.record
    wishes = changed(record.terminations, act, **update)
    return decision.model_copy(update={"record": record.model_copy(update={"terminations": wishes})})


def _ended(
    record: JobRecord,
    wish: TerminationWish,
    end: Literal["refused", "foreign"],
    why: str,
    policy: Policy,
    now: int,
) -> Decision:
    ended = _with(Decision(record=record), wish.id, end=end, ended_at=now, sent_at=None)
    fact = termination_dropped_fact(record, wish, why, policy, now)
    return ended.model_copy(update={"facts": (fact,)})
