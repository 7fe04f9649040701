"""One step of the preemption workflow: read case and record, take the step, commit what came of it at once.

A step may come twice, late, or beside itself: it finds in the case what is done already. What it changes, it
changes in one commit, conditional on what it read.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from sharewarden.domain.audit import AuditFact
from sharewarden.domain.notice import Notice
from sharewarden.domain.policy import Policy
from sharewarden.domain.preemption.case import Case
from sharewarden.domain.record import JobRecord
from sharewarden.domain.stored import SECOND, Stored
from sharewarden.ports import Conflict, Runtime, Unavailable
from sharewarden.usecases.tell import send, unrecorded

#: After this many lost races the step comes again by the workflow's own retry.
TRIES = 5


class Care(NamedTuple):
    """What a step is given. ``now`` is the time of this try."""

    runtime: Runtime
    case: Case
    record: JobRecord
    policy: Policy
    now: int


@dataclass(frozen=True)
class Taken:
    """What a step leads to.

    ``wait``: None when the step is done; else in so many milliseconds it is taken again.
    """

    case: Case
    record: JobRecord | None = None
    """The job's record, where the step changes it."""
    facts: tuple[AuditFact, ...] = ()
    notices: tuple[Notice, ...] = ()
    beside: tuple[Stored, ...] = field(default=())
    """Other items of the step."""
    wait: int | None = None


Step = Callable[[Care], Taken]


class Answer(NamedTuple):
    """What the workflow goes by. ``wait`` is in whole seconds; ``outcome`` is "" until it is known."""

    done: bool
    wait: int
    outcome: str


def take(runtime: Runtime, attempt: str, step: Step) -> Answer:
    """Take the step for the case of that attempt. A closed case answers that all is done.

    Raises KeyError without a case, and Unavailable when AWS could not be asked.
    """
    for _ in range(TRIES):
        case = runtime.ledger.load(Case, attempt)
        if case is None:
            raise KeyError(attempt)
        if case.closed_at is not None:
            return Answer(done=True, wait=0, outcome=case.outcome or "")
        try:
            return _taken(runtime, case, step)
        except Conflict:
            continue
    raise Unavailable(f"case {attempt}: {TRIES} commits in a row met another writer")


def _taken(runtime: Runtime, case: Case, step: Step) -> Answer:
    record = runtime.ledger.load(JobRecord, case.job)
    if record is None:
        raise KeyError(case.job)
    now = runtime.clock.now()
    taken = step(Care(runtime, case, record, runtime.policies.current(), now))
    wait = 0 if taken.wait is None else taken.wait
    after = taken.case.model_copy(update={"heard_at": now, "next_at": now + wait})
    notices = unrecorded(runtime, taken.notices)
    items = [after, *taken.beside, *notices]
    if taken.record is not None and taken.record != record:
        items.append(taken.record)
    runtime.ledger.commit(items, taken.facts, now)
    send(runtime, notices)
    return Answer(done=taken.wait is None, wait=-(-wait // SECOND), outcome=after.outcome or "")
