"""What is decided about submitting an exhausted job again: whether, with what, and what is told of it."""

from typing import TYPE_CHECKING, cast

from .audit import AuditFact, job_key
from .base import last_part
from .boosts import OURSELVES
from .checkpoints import Save
from .decide import Decision
from .facts import job_fact, team
from .findings import notice_of
from .notice import Severity
from .policy import Policy
from .priority import IN_FLIGHT, MOST_REFUSALS
from .record import JobRecord
from .resubmission import (
    LIFE,
    MOST_TAGS,
    NUMBER_TAG,
    PREDECESSOR_TAG,
    Resubmission,
    find_open_resubmission,
    new_name,
    new_token,
    number_of,
    with_our_tags,
)
from .rules.base import Mode, counted
from .stored import HOUR

if TYPE_CHECKING:  # a rule is imported where a policy names it
    from .rules.bounded_retries import Rule as BoundedRetries

BOUNDED_RETRIES = "bounded-retries"
FORGOTTEN = "Batch has forgotten the job, and with it what it was submitted with"
TOO_LATE = f"it could not be done within {LIFE // HOUR} hours"
_BY_HAND = (
    "By hand: submit it with the same CheckpointConfig.S3Uri, and it goes on from its newest checkpoint. As "
    "long as Batch knows it, aws batch describe-service-job --job-id {arn} shows what it was submitted with."
)


def plan(record: JobRecord, attempt: str, save: Save | None, policy: Policy, now: int) -> Decision:
    """The record with the wish for one more job; or why there is none, which is told.

    ``save`` is what the new job can go on from. A record that has its wish stays as it is.
    """
    if record.resubmission is not None:
        return Decision(record=record)
    wish = _wish(record, attempt, save, policy, now)
    why = objection(record, wish, policy) or _stopped(wish, policy)
    if why is not None:
        return _told_why_not(record, wish, why, policy, now)
    return Decision(record=record.model_copy(update={"resubmission": wish, "closed_at": None}))


def objection(record: JobRecord, wish: Resubmission, policy: Policy) -> str | None:
    """Why the policy does not want the job to be submitted again, whatever the mode; None: it does."""
    if record.adopted:
        return "the job was there before Sharewarden looked"
    if wish.save is None and not policy.checkpoints.resubmit.from_zero:
        return "no complete checkpoint of it is known, and the policy does not let it begin anew (from_zero)"
    if not policy.checkpoints.resubmit.allows(record.role):
        role = record.role or "not known"
        return f"its execution role ({role}) is not among the policy's checkpoints.resubmit.roles"
    if len(with_our_tags(record.tags, wish.tags)) > MOST_TAGS:
        return f"it has so many tags that there is no room for ours: a job has {MOST_TAGS} at most"
    return _too_often(record, policy)


def _too_often(record: JobRecord, policy: Policy) -> str | None:
    number, most = number_of(record.tags), policy.checkpoints.resubmit.most_per_lineage
    if number is None:
        return f"its tag {NUMBER_TAG} is no number"
    if number < most:
        return None
    return f"it was submitted again {counted(number, 'time')} already, and the policy allows {most}"


def sent(record: JobRecord, policy: Policy, now: int) -> JobRecord:
    """The record whose wish is about to be carried out, under the bounds of this policy."""
    wish = record.resubmission
    return _with(
        record,
        sent_at=now,
        unsure=wish is not None and wish.in_doubt,
        priority=record.priority.base,
        retries=_most_retries(record, policy),
    )


def looked_for(record: JobRecord, why: str, now: int) -> JobRecord:
    """The record whose wish is not wanted any more, but may have been done before."""
    wish = record.resubmission
    before = None if wish is None else wish.sent_at
    return _with(record, sent_at=now if before is None else before, unsure=True, withdrawn=why)


def not_sent(record: JobRecord) -> JobRecord:
    """The record whose wish is not under way any more."""
    return _with(record, sent_at=None)


def refused(record: JobRecord, why: str, policy: Policy, now: int) -> Decision:
    """AWS did not take it: tried again, given up after a few times."""
    wish = record.resubmission
    if wish is None or wish.end is not None or wish.sent_at is None:
        return Decision(record=record)
    if not wish.withdrawn and wish.refusals + 1 < MOST_REFUSALS:
        return Decision(record=_with(record, sent_at=None, refusals=wish.refusals + 1))
    unknown = "" if wish.withdrawn or not wish.unsure else _not_known(wish)
    return given_up(record, f"{why}{unknown}", policy, now)


def given_up(record: JobRecord, why: str, policy: Policy, now: int) -> Decision:
    """The wish ended without effect."""
    wish = record.resubmission
    if wish is None or wish.end is not None:
        return Decision(record=record)
    told = _told_why_not(record, wish, why, policy, now)
    ended = _with(record, end="refused", ended_at=now, sent_at=None)
    return told.model_copy(update={"record": ended})


def done(record: JobRecord, arn: str, policy: Policy, now: int) -> Decision:
    """The new job is there."""
    wish = record.resubmission
    if wish is None or wish.end is not None:
        return Decision(record=record)
    fact = _done_fact(record, wish, arn, policy, now)
    text = f"its preemption retries ran out; {wish.name} {_goes_on(wish)}"
    notice = notice_of(fact, f"{record.name}: submitted again", text, "info")
    ended = _with(record, end="done", ended_at=now, next_job=arn)
    return Decision(record=ended, facts=(fact,), notices=(notice,))


def expire(record: JobRecord, policy: Policy, now: int) -> Decision:
    """Time alone ends a wish that surely was not done; what came of others, ``apply`` has to find out."""
    wish = record.resubmission
    if wish is None or wish.end is not None or wish.in_doubt or now <= wish.not_after:
        return Decision(record=record)
    return given_up(record, TOO_LATE, policy, now)


def forgotten(record: JobRecord, policy: Policy, now: int) -> Decision:
    """Batch does not know the old job any more: nobody can tell what to submit."""
    wish = record.resubmission
    unknown = _not_known(wish) if wish is not None and wish.in_doubt else ""
    return given_up(record, f"{FORGOTTEN}{unknown}", policy, now)


def waits_for_release(record: JobRecord, now: int) -> Resubmission | None:
    """The wish, if it may be given to ``apply`` now."""
    wish = record.resubmission
    if wish is None or wish.end is not None:
        return None
    under_way = wish.sent_at is not None and abs(now - wish.sent_at) < IN_FLIGHT
    return None if under_way else wish


def released(record: JobRecord, act: str, now: int) -> JobRecord:
    """The record whose wish was given to ``apply``."""
    if find_open_resubmission(record.resubmission, act) is None:
        return record
    return _with(record, released_at=now)


def _not_known(wish: Resubmission) -> str:
    return f"; whether {wish.name} was submitted is not known: look for it"


def _wish(record: JobRecord, attempt: str, save: Save | None, policy: Policy, now: int) -> Resubmission:
    number = (number_of(record.tags) or 0) + 1
    token = new_token(record.job, number)
    lineage = record.tag(policy.tags.lineage) or record.job
    tags = {policy.tags.lineage: lineage, NUMBER_TAG: str(number), PREDECESSOR_TAG: record.job}
    return Resubmission(
        id=f"resubmit-{token[:16]}",
        name=new_name(record.name, record.job, number),
        token=token,
        number=number,
        tags=tuple(sorted(tags.items())),
        attempt=attempt,
        save=None if save is None else save.name,
        step=None if save is None else save.step,
        created_at=now,
        not_after=now + LIFE,
    )


def _stopped(wish: Resubmission, policy: Policy) -> str | None:
    if policy.resubmission_stops == "shadow":
        return f"shadow mode: it would be submitted again as {wish.name}, which {_goes_on(wish)}"
    return "the policy is paused" if policy.resubmission_stops else None


def _goes_on(wish: Resubmission) -> str:
    if wish.save is None:
        return "begins anew"
    return f"goes on from {wish.save}" + ("" if wish.step is None else f" (step {wish.step})")


def _most_retries(record: JobRecord, policy: Policy) -> int | None:
    """The least that guardrails in force allow a job of the share and team."""
    who = (last_part(record.queue), record.share, team(record, policy))
    limits = [
        cast("BoundedRetries", entry).limit
        for entry in policy.guardrails
        if entry.rule == BOUNDED_RETRIES
        and entry.concerns(*who)
        and policy.mode(entry, record.queue) == "enforce"
    ]
    return min(limits, default=None)


def _with(record: JobRecord, **update: object) -> JobRecord:
    wish = record.resubmission
    changed = None if wish is None else wish.model_copy(update=update)
    return record.model_copy(update={"resubmission": changed})


def _told_why_not(record: JobRecord, wish: Resubmission, why: str, policy: Policy, now: int) -> Decision:
    mode: Mode = policy.checkpoints.resubmit.mode
    fact = job_fact(
        record,
        policy,
        key=job_key("resubmit-refused", record.job),
        kind="resubmit-refused",
        at=now,
        actor=OURSELVES,
        mode=mode,
        reason=why,
        figures=_figures(wish),
    )
    severity: Severity = "info" if mode == "shadow" else "warning"
    text = f"{why}. {_BY_HAND.format(arn=record.arn)}"
    notice = notice_of(fact, f"{record.name}: preempted for good, not submitted again", text, severity)
    return Decision(record=record, facts=(fact,), notices=(notice,))


def _done_fact(record: JobRecord, wish: Resubmission, arn: str, policy: Policy, now: int) -> AuditFact:
    fact = job_fact(
        record,
        policy,
        key=job_key("resubmitted", record.job),
        kind="resubmitted",
        at=wish.sent_at or now,
        actor=OURSELVES,
        mode="enforce",
        after=wish.name,
        reason=f"its preemption retries ran out; the new job {_goes_on(wish)}",
        figures=_figures(wish) | {"next_job": arn, "priority": wish.priority, "most_retries": wish.retries},
    )
    return fact.model_copy(update={"lineage": dict(wish.tags).get(policy.tags.lineage)})


def _figures(wish: Resubmission) -> dict[str, object]:
    return {
        "name": wish.name,
        "number": wish.number,
        "attempt": wish.attempt,
        "save": wish.save,
        "step": wish.step,
        "act": wish.id,
    }
