"""Acts of guardrails on jobs in memory, begun and ended as the rules' engine does it."""

from __future__ import annotations

from functools import partial

from sharewarden.domain.acts import Act, begin, doubt, end
from sharewarden.domain.decide import Decision
from sharewarden.domain.policy import BlastRadius, Policy, QueuePolicy, SharePolicy
from sharewarden.domain.record import JobRecord
from sharewarden.domain.rules.base import Guardrail
from sharewarden.domain.termination import open_terminations
from sharewarden.usecases.change import change

from tests.simulation.samples import JOB, described, state
from tests.simulation.world import ENFORCE, MINUTE, NOW, World, world

GRACE = 10 * MINUTE
#: The entry behind the terminations here. It never fires by itself: the tests begin and end its acts.
GIANTS: Guardrail = Policy.model_validate(
    {"guardrails": [{"rule": "max-instances-per-job", "name": "giants", "limit": 999, "action": "terminate"}]}
).guardrails[0]
#: Guardrails act, and bumps are not done.
RULES_ONLY = Policy(queues={"ml-train-qm": QueuePolicy(mode="enforce")}, guardrails=(GIANTS,))
#: Bumps are done as well.
BOTH = ENFORCE.model_copy(update={"guardrails": (GIANTS,)})
PROTECTED = RULES_ONLY.model_copy(
    update={
        "queues": {
            "ml-train-qm": QueuePolicy(mode="enforce", shares={"background": SharePolicy(protected=True)})
        }
    }
)
TEXT = "Sharewarden guardrail giants: asks for 9 instances"


def lower(name: str = "a1", points: int = 50) -> Act:
    return Act(
        id=name,
        kind="lower-priority",
        label="giants",
        fingerprint="",
        reason="asks for 9 instances",
        points=points,
    )


def kill(name: str = "t1", not_before: int = NOW + GRACE) -> Act:
    return Act(
        id=name,
        kind="terminate",
        label="giants",
        fingerprint=GIANTS.fingerprint,
        reason="asks for 9 instances",
        not_before=not_before,
    )


def begins(one: World, act: Act, job: str = JOB) -> None:
    policy, now = one.policies.current(), one.clock.now()
    change(one.runtime, job, partial(begin, act=act, policy=policy, now=now))


def ends(one: World, *names: str, job: str = JOB) -> None:
    policy, now = one.policies.current(), one.clock.now()
    change(one.runtime, job, partial(end, ids=frozenset(names), policy=policy, now=now))


def still_broken(one: World, job: str = JOB) -> None:
    """The rules behind the job's terminations speak of it again, as it is now."""

    def spoken(record: JobRecord) -> Decision:
        for wish in open_terminations(record.terminations):
            record = doubt(record, wish.id, unsure=False)
        return Decision(record=record)

    change(one.runtime, job, spoken)


def waiting(policy: Policy = RULES_ONLY, **update: object) -> World:
    """A job that waits at priority 200, on record."""
    one = world(policy=policy)
    one.batch.tell(described(**update))
    one.take(state("RUNNABLE", NOW))
    one.clock.advance(1)
    return one


def running(policy: Policy = RULES_ONLY) -> World:
    """A job that was dispatched this minute, on record."""
    one = waiting(policy)
    one.batch.tell(described(status="RUNNING", scheduled_at=NOW))
    one.take(state("RUNNING", NOW))
    return one


def turn(one: World, after: int = 5 * MINUTE) -> list[str]:
    """The next sweep and what ``apply`` makes of it."""
    one.clock.advance(after)
    one.sweep(f"turn-{one.clock.now()}")
    return one.apply_all()


def capped(acts: int) -> Policy:
    return RULES_ONLY.model_copy(update={"blast_radius": BlastRadius(acts=acts, percent=100)})
