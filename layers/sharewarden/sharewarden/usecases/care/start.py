"""Cases are committed with the record that opens them; after that their workflow is started."""

from collections.abc import Iterable
from contextlib import suppress

from sharewarden.domain.preemption.case import Case, lost_since, renewed, reopened
from sharewarden.ports import Conflict, Runtime, Unavailable

#: Executions that one sweep starts for a queue at most, those that are lost for longest first.
MOST_STARTED = 100


def unopened(runtime: Runtime, cases: Iterable[Case]) -> list[Case]:
    """Those that are not on record yet, or were closed as mistakes. Raises Unavailable."""
    found = ((case, runtime.ledger.load(Case, case.key)) for case in cases)
    return [
        case if known is None else reopened(known, case)
        for case, known in found
        if known is None or (known.closed_at is not None and known.outcome == "mistaken")
    ]


def start(runtime: Runtime, cases: Iterable[Case]) -> None:
    """Start their workflows. They are committed: what is lost here, a sweep brings back."""
    for case in cases:
        with suppress(Unavailable):
            runtime.workflows.start(case.attempt, case.job, case.generation)


def start_lost(runtime: Runtime, queue: str, now: int) -> int:
    """Start the workflows of a queue's open cases of which nothing is heard. Returns how many were started.

    Where an execution has ended and left its case open, the next generation begins. Raises Unavailable.
    """
    open_cases = runtime.ledger.open_items(Case, queue)
    found = [(since, case) for case in open_cases if (since := lost_since(case, now)) is not None]
    found.sort(key=lambda one: (one[0], one[1].attempt))
    return sum(_is_started(runtime, case, now) for _, case in found[:MOST_STARTED])


def _is_started(runtime: Runtime, case: Case, now: int) -> bool:
    answer = runtime.workflows.start(case.attempt, case.job, case.generation)
    if answer != "over":
        return answer == "started"
    again = renewed(case, now)
    try:
        runtime.ledger.commit([again], [], now)
    except Conflict:
        return False  # a step was taken at this moment
    return runtime.workflows.start(again.attempt, again.job, again.generation) == "started"
