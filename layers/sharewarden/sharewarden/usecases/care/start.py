"""Cases are committed with the record that opens them; after that their workflow is started."""

from collections.abc import Iterable
from contextlib import suppress

from sharewarden.domain.case import Case
from sharewarden.ports import Runtime, Unavailable


def unopened(runtime: Runtime, cases: Iterable[Case]) -> list[Case]:
    """Those that are not on record yet. Raises Unavailable."""
    return [case for case in cases if runtime.ledger.load(Case, case.key) is None]


def start(runtime: Runtime, cases: Iterable[Case]) -> None:
    """Start their workflows. They are committed: what is lost here, a sweep brings back."""
    for case in cases:
        with suppress(Unavailable):
            runtime.workflows.start(case.attempt, case.job, case.generation)
