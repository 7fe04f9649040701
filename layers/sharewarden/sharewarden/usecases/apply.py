"""The one hand: nothing else in Sharewarden changes a job in Batch (design law 3).

Read policy and wish, Describe, remember the act as ours, do it, record what happened. Each step may be the
last one before a crash: the next delivery starts over, and what Batch already shows is only recorded, never
done twice.
"""

from contextlib import suppress

from sharewarden.domain.decide import Decision
from sharewarden.domain.observation import JobDescription
from sharewarden.domain.policy import Policy
from sharewarden.domain.record import JobRecord
from sharewarden.ports import Denied, Runtime, Unavailable

from .change import change
from .deed import Deed, Outcome, Verdict
from .resubmit import Resubmit
from .save_requests import saves_awaited
from .set_priority import SetPriority
from .terminate import Terminate
from .wake import wake

#: An act is done on the word of an answer no older than this: "just before" in design law 2.
FRESH = 5_000


def apply(runtime: Runtime, job: str, wish: int | str) -> Outcome:
    """Carry out a wish of the job, if it is still wanted: a version of its priority, or an act's id.

    ``paused``, ``shadow``, ``missing``, ``drifting``, ``held``, and the first ``refused`` leave the wish open
    for the next sweep; ``saving`` until those that it may push out have saved, or not in time. Raises
    Unavailable when Batch or the ledger could not be asked, or when an act begun just before may still take
    effect: nothing was done, or what was done is remembered as ours.
    """
    record = runtime.ledger.load(JobRecord, job)
    deed = None if record is None else _deed(record, wish)
    if record is None or deed is None:
        return "superseded"
    policy = runtime.policies.current()
    if waits := deed.waits(record, policy):
        return waits
    description = runtime.batch.describe(record.arn)
    if description is None:
        return "missing"
    if description.queue not in runtime.queues:
        return _drop_foreign(runtime, description, deed, policy)
    if isinstance(deed, SetPriority) and saves_awaited(runtime, record, deed.wish, description, policy):
        return "saving"
    return _act(runtime, description, deed, policy)


def _deed(record: JobRecord, wish: int | str) -> Deed | None:
    if isinstance(wish, int):
        return SetPriority.wanted(record, wish)
    return Resubmit.wanted(record, wish) or Terminate.wanted(record, wish)


def _act(runtime: Runtime, description: JobDescription, deed: Deed, policy: Policy) -> Outcome:
    verdicts: list[Verdict] = []

    def judge(record: JobRecord) -> Decision:
        decision, verdict = deed.judge(record, description, policy, runtime.clock.now())
        verdicts.append(verdict)
        return decision

    judged = change(runtime, description.job, judge)
    verdict = verdicts[-1]
    if verdict == "busy":
        raise Unavailable(f"job {description.job}: what Batch shows may still change")
    if verdict == "send":
        return _send(runtime, description, deed, policy)
    if verdict == "superseded":
        with suppress(Unavailable):  # the wish is committed: the next sweep brings it back
            wake(runtime, judged.record)
    return verdict


def _send(runtime: Runtime, description: JobDescription, deed: Deed, policy: Policy) -> Outcome:
    job = description.job
    if runtime.clock.now() - description.read_at > FRESH:
        change(runtime, job, deed.withdraw)
        raise Unavailable(f"job {job}: what Batch said grew old before it could be acted on")
    try:
        done = deed.do(runtime, description.arn)
    except Denied as error:
        why = str(error)
        change(runtime, job, lambda record: deed.refused(record, why, policy, runtime.clock.now()))
        return "refused"
    change(runtime, job, lambda record: done.confirm(record, policy, runtime.clock.now()))
    return "done"


def _drop_foreign(runtime: Runtime, description: JobDescription, deed: Deed, policy: Policy) -> Outcome:
    why, now = f"the job is in {description.queue}, which is not ours", runtime.clock.now()
    change(runtime, description.job, lambda record: deed.drop(record, why, policy, now))
    return "foreign"
