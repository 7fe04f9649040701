"""Read a job's record, decide, commit: again when another writer came in between."""

from collections.abc import Callable, Sequence

from sharewarden.domain.decide import Decision
from sharewarden.domain.observation import JobDescription
from sharewarden.domain.record import JobRecord
from sharewarden.domain.stored import Stored
from sharewarden.ports import Conflict, Runtime, Unavailable

from .care.start import start, unopened
from .tell import send, unrecorded
from .untraced import begin
from .usage import booked

#: After this many lost races the work goes back to where it came from.
ATTEMPTS = 5


def change(
    runtime: Runtime, job: str, step: Callable[[JobRecord], Decision], new: JobDescription | None = None
) -> Decision:
    """Apply ``step`` to the stored record (or one of ``new`` where there is none) and commit what it says.

    A record that is closed is booked in the same commit, so that its usage outlives it.
    ``step`` may be called several times, so it must not act on the world. Nothing changed means nothing
    written. Raises KeyError without a record, Unavailable when every commit met another writer.
    """
    for _ in range(ATTEMPTS):
        record, beside = _record(runtime, job, new)
        decision = step(record)
        if decision.record == record and record.version and not decision.facts:
            return decision
        decision, days = booked(runtime, decision, len(beside))
        try:
            commit(runtime, decision, [*beside, *days])
        except Conflict:
            continue
        return decision
    raise Unavailable(f"job {job}: {ATTEMPTS} commits in a row met another writer")


def commit(runtime: Runtime, decision: Decision, beside: Sequence[Stored] = ()) -> None:
    """Keep the decision whole; ask for the delivery of its notices, and for care of the preempted attempts.

    Raises Conflict, Unavailable.
    """
    notices, cases = unrecorded(runtime, decision.notices), unopened(runtime, decision.cases)
    items = [decision.record, *beside, *notices, *cases]
    runtime.ledger.commit(items, decision.facts, runtime.clock.now())
    send(runtime, notices)
    start(runtime, cases)


def _record(runtime: Runtime, job: str, new: JobDescription | None) -> tuple[JobRecord, list[Stored]]:
    stored = runtime.ledger.load(JobRecord, job)
    if stored is not None:
        return stored, []
    if new is None:
        raise KeyError(job)
    return begin(runtime, new)
