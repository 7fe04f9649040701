"""The sweep's work on one job: ask Batch, settle the record with the answer, let time do its work."""

from sharewarden.domain.boosts import waits
from sharewarden.domain.decide import Decision, decide_read, joined
from sharewarden.domain.observation import JobDescription
from sharewarden.domain.record import JobRecord
from sharewarden.domain.stored import Stored
from sharewarden.domain.sweeping import housekeeping, missing
from sharewarden.ports import Conflict

from .change import change, commit
from .look import Question
from .untraced import begin
from .walk import Walk


def ask(walk: Walk, question: Question) -> None:
    """Describe a job that has a record, and settle it. Raises Unavailable."""
    description = _described(walk, question)
    if description is not None or question.absent:
        tend(walk, question.job, description, gone=description is None)


def meet(walk: Walk, question: Question) -> None:
    """Describe a job that is not among the open records: take it in, or open its record again."""
    description = _described(walk, question)
    if description is None:
        return
    if walk.runtime.ledger.load(JobRecord, description.job) is None:
        _adopt(walk, description)
    else:
        tend(walk, description.job, description)


def tend(walk: Walk, job: str, description: JobDescription | None = None, *, gone: bool = False) -> None:
    """Settle one record with what Batch said, or with its not knowing the job (``gone``)."""
    decision = change(walk.runtime, job, lambda record: _settle(walk, record, description, gone=gone))
    walk.report.closed += decision.record.closed_at == walk.started_at
    walk.report.repaired += (gone or description is not None) and bool(decision.facts)
    if description is not None:
        walk.read[decision.record.job] = decision.record


def _described(walk: Walk, question: Question) -> JobDescription | None:
    """What Batch says. That it does not know a job that it lists, or may list, is no answer."""
    walk.report.described += 1
    description = walk.runtime.batch.describe(question.arn)
    walk.report.unread += description is None and not question.absent
    return description


def _settle(walk: Walk, record: JobRecord, description: JobDescription | None, *, gone: bool) -> Decision:
    policy, now = walk.policy, walk.started_at
    if description is not None:
        first = decide_read(record, description, policy)
    elif gone:
        first = missing(record, policy, now)
    else:
        first = Decision(record=record)
    may_act = description is not None and waits(first.record, policy) is None
    decision = joined(first, housekeeping(first.record, policy, now, may_act=may_act))
    return decision if gone else walk.guarded(decision)  # a job that Batch does not know is not judged


def _adopt(walk: Walk, description: JobDescription) -> None:
    """Take in a job that no event told of."""
    record, beside = begin(walk.runtime, description)
    decision = walk.guarded(decide_read(record, description, walk.policy))
    items: list[Stored] = [*beside]
    if record.adopted:
        state = walk.own_state()
        items.append(state.model_copy(update={"adopted": (*state.adopted, description.name)}))
    try:
        commit(walk.runtime, decision, items)
    except Conflict:
        return  # its first event came in at this moment
    walk.report.adopted += 1
    walk.report.behind += not record.adopted
