"""The freshness watch: look at what a running job has saved, again and again at its own pace.

A look is claimed by a commit before S3 is asked, so a message that came twice costs one read and no look.
Each look of a job sends the next one, or leaves it to the sweep where that is more than a message can wait
for. A chain that broke is taken up by the next event of the job, or by the sweep.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Literal

from sharewarden.domain.decide import Decision
from sharewarden.domain.policy import Policy
from sharewarden.domain.record import JobRecord
from sharewarden.domain.saves import EARLY, begun, seen, unanswered
from sharewarden.domain.watching import is_watched, look_due, refused_look
from sharewarden.ports import Conflict, Denied, Runtime, Unavailable

from .change import ATTEMPTS, change
from .checkpoints import Looked, newest
from .guarding import FailedRules, guarded
from .send_looks import send_next

#: ``over``: the job does not run, or saves to no bucket that is watched; ``early``: another look was begun.
Outcome = Literal["gone", "over", "early", "looked", "looked_partly", "looks_unanswered", "looks_refused"]


def watch(runtime: Runtime, job: str, failed: FailedRules) -> Outcome:
    """Look at the job's checkpoints if a look is due. ``failed`` is told of rules that raised.

    Raises Unavailable when the ledger could not be asked.
    """
    claimed = _claim(runtime, job)
    if not isinstance(claimed, JobRecord):
        return claimed
    began_at, policy = claimed.saves.asked_at, runtime.policies.current()
    outcome, step = _looked(runtime, claimed.checkpoint_uri or "", began_at, policy)
    decision = change(runtime, job, lambda record: guarded(runtime, step(record), policy, failed))
    send_next(runtime, decision.record)
    return outcome


def _claim(runtime: Runtime, job: str) -> JobRecord | Outcome:
    for _ in range(ATTEMPTS):
        record, now = runtime.ledger.load(JobRecord, job), runtime.clock.now()
        if record is None:
            return "gone"
        if not is_watched(record, runtime.checkpoint_buckets):
            return "over"
        if look_due(record) > now + EARLY:
            return "early"
        claimed = record.model_copy(update={"saves": begun(record.saves, now)})
        with suppress(Conflict):
            runtime.ledger.commit([claimed], [], now)
            return claimed
    raise Unavailable(f"job {job}: {ATTEMPTS} commits in a row met another writer")


Step = Callable[[JobRecord], Decision]


def _looked(runtime: Runtime, uri: str, began_at: int, policy: Policy) -> tuple[Outcome, Step]:
    """Ask S3; what came of it, and what that makes of the record."""
    try:
        found = newest(runtime, uri, policy.checkpoints.patterns, began_at)
    except Unavailable:
        now = runtime.clock.now()
        return "looks_unanswered", lambda record: _with(record, unanswered(record.saves, now))
    except Denied as error:
        why = str(error)
        return "looks_refused", lambda record: refused_look(record, why, began_at, policy)
    return "looked_partly" if found.partial else "looked", lambda record: _seen(record, found, began_at)


def _seen(record: JobRecord, found: Looked, began_at: int) -> Decision:
    return _with(record, seen(record.saves, found.save, found.sets, began_at, whole=not found.partial))


def _with(record: JobRecord, saves: object) -> Decision:
    return Decision(record=record.model_copy(update={"saves": saves}))
