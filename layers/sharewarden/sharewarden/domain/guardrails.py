"""What the policy's guardrails make of one job: findings, people told, acts begun and ended.

Shadow and enforce run through here alike; only ``acts`` is left out in shadow (design law 9). What a rule
cannot tell (Unknown) begins nothing and ends nothing (law 2).
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Literal, NamedTuple

from .acts import Act, begin, doubt, end
from .base import shortened
from .decide import Decision, joined
from .findings import cleared_fact, finding_fact, finding_key, finding_notice
from .marks import KEPT_MARKS, Mark, standing, with_mark
from .observation import TERMINAL
from .policy import Policy
from .record import JobRecord, status
from .rules.base import ACTING, Action, Fires, Guardrail, Unknown, Verdict
from .rules.facts import Facts
from .stored import MINUTE

#: Actions and facts that one look leaves room for, if nobody says otherwise: a commit holds a hundred.
ROOM = 40
#: What one finding may bring into a commit: its fact and notice, and what beginning or ending an act adds.
COST = 8
#: Bytes of its reason that an act keeps: a record has room for dozens of acts.
ACT_REASON = 1000
#: A rule that fires again after it held is taken up again after this time, doubled each time ...
REST = 10 * MINUTE
#: ... and so often in a job's life. After that the entry leaves this subject of the job alone.
MOST_FINDINGS = 8

Failed = Callable[[Guardrail, Exception], None]
"""Is told of a rule that raised instead of deciding."""


def concerned(policy: Policy, queue: str) -> tuple[Guardrail, ...]:
    """The entries that are about jobs of the queue (its ARN)."""
    return tuple(entry for entry in policy.guardrails if entry.scope == "job" and entry.covers(queue))


def needs_pool(policy: Policy, queue: str) -> bool:
    """Whether some entry about the queue's jobs can be decided only on a look at all of them."""
    return any(entry.needs_pool for entry in concerned(policy, queue))


def is_guarded(record: JobRecord, policy: Policy) -> bool:
    """Whether there is anything to decide: entries, or marks of entries that there were."""
    if record.classic or record.closed_at is not None:
        return False
    return bool(standing(record.marks)) or bool(concerned(policy, record.queue))


class Look(NamedTuple):
    """What one decision is made from."""

    policy: Policy
    facts: Facts
    now: int


Step = Callable[[JobRecord, Look], Decision]


def guard(
    record: JobRecord,
    policy: Policy,
    facts: Facts,
    now: int,
    *,
    room: int = ROOM,
    failed: Failed,
) -> Decision:
    """The record with its marks as the policy's guardrails have them now, and what follows.

    ``room``: how many facts and notices the decision may bring; what has no room is due at the next look.
    ``failed`` is told of a rule that raised; it counts as Unknown.
    """
    decision, look = Decision(record=record), Look(policy, facts, now)
    if not is_guarded(record, policy):
        return decision
    for step in _steps(record, look, failed):
        if len(decision.facts) + len(decision.notices) + COST > room:
            break
        decision = joined(decision, step(decision.record, look))
    return decision


def _steps(record: JobRecord, look: Look, failed: Failed) -> Iterator[Step]:
    """First what ends, then what begins or goes on. What was found of a job that ended stays as it was."""
    entries = {
        entry.label: entry
        for entry in concerned(look.policy, record.queue)
        if entry.concerns(look.facts.job.queue, record.share, look.facts.job.team)
    }
    if status(record) not in TERMINAL:
        yield from _outdated(record, entries, look.policy)
    marked = {mark.label for mark in record.marks}
    for entry in entries.values():
        verdict = decided(entry, lambda one: one.decide(look.facts), failed)
        if isinstance(verdict, Fires) or entry.label in marked:  # else nothing follows
            yield partial(_doubt, entry) if isinstance(verdict, Unknown) else partial(_follow, entry, verdict)


def decided(entry: Guardrail, ask: Callable[[Guardrail], Verdict], failed: Failed) -> Verdict:
    """The entry's verdict; Unknown when its rule raised, and ``failed`` is told."""
    try:
        return ask(entry)
    except Exception as error:  # noqa: BLE001 (a fault in one rule must not cost the event)
        failed(entry, error)
        return Unknown(what="the rule could not be decided")


def _outdated(record: JobRecord, entries: Mapping[str, Guardrail], policy: Policy) -> Iterator[Step]:
    """The end of each finding whose entry is gone, or asks for something else now."""
    for mark in standing(record.marks):
        why = _why_outdated(mark, entries.get(mark.label), record, policy)
        if why is not None:
            yield partial(_end, mark, "changed", why)


def _why_outdated(mark: Mark, entry: Guardrail | None, record: JobRecord, policy: Policy) -> str | None:
    if entry is None:
        return "no guardrail of that name concerns the job any longer"
    if entry.fingerprint != mark.fingerprint:
        return "the guardrail was changed"
    now = f"{policy.mode(entry, record.queue)} {_asked(entry, record, policy)}"
    then = f"{mark.mode} {mark.asked}"
    return None if now == then else f"what the policy asks for was {then} and is {now}"


def _doubt(entry: Guardrail, record: JobRecord, _: Look) -> Decision:
    """Nothing begins and nothing ends; what cannot be taken back waits until the rule has a word again."""
    acts = [mark.act for mark in standing(record.marks) if mark.is_of(entry) and mark.act is not None]
    for act in acts:
        record = doubt(record, act, unsure=True)
    return Decision(record=record)


def _follow(entry: Guardrail, verdict: Fires | None, record: JobRecord, look: Look) -> Decision:
    """What a rule's word makes of the entry's mark."""
    mark = _mark_of(entry, record)
    if mark is not None and mark.ended is None:
        return _go_on(mark, entry, verdict, record, look)
    if verdict is None or not _may_begin(mark, verdict, record, look.now):
        return Decision(record=record)
    return _begin(mark, entry, verdict, record, look)


def _mark_of(entry: Guardrail, record: JobRecord) -> Mark | None:
    return next((mark for mark in record.marks if mark.is_of(entry)), None)


def _go_on(mark: Mark, entry: Guardrail, verdict: Fires | None, record: JobRecord, look: Look) -> Decision:
    """A finding stands. Another subject, or another thing that follows, is another finding."""
    if verdict is None:
        over = status(record) in TERMINAL
        return Decision(record=record) if over else _end(mark, "held", "the rule holds again", record, look)
    action = _action(entry, verdict, record, look.policy)
    if verdict.subject == mark.subject and status(record) in TERMINAL:
        return Decision(record=record)
    if verdict.subject == mark.subject and action == mark.action:
        return _act(mark, entry, verdict, record, look)
    if verdict.subject == mark.subject and mark.count >= MOST_FINDINGS:
        return _without_act(mark, record, look)
    freed = Decision(record=record) if action == mark.action else _without_act(mark, record, look)
    kept = mark if action == mark.action else mark.model_copy(update={"act": None})
    return joined(freed, _begin(kept, entry, verdict, freed.record, look))


def _may_begin(mark: Mark | None, verdict: Fires, record: JobRecord, now: int) -> bool:
    """A rule that goes back and forth is taken up ever more seldom, and at last no more."""
    if len(standing(record.marks)) >= KEPT_MARKS:
        return False
    if mark is None or mark.subject != verdict.subject or mark.ended == "changed":
        return True
    rested = now - (mark.ended_at or 0) >= REST * 2 ** (mark.count - 1)
    return rested and mark.count < MOST_FINDINGS


def _begin(before: Mark | None, entry: Guardrail, verdict: Fires, record: JobRecord, look: Look) -> Decision:
    """A new finding: its fact, its notice unless it is only recorded, its act where that is enforced."""
    again = before is not None and before.subject == verdict.subject
    action = _action(entry, verdict, record, look.policy)
    mark = Mark(
        label=entry.label,
        fingerprint=entry.fingerprint,
        subject=verdict.subject,
        fact="",
        since=look.now,
        mode=look.policy.mode(entry, record.queue),
        action=action,
        asked=_asked(entry, record, look.policy),
        about="job" if action in ACTING else verdict.about,  # an act is done to one job
        count=before.count + 1 if before is not None and again else 1,
        act=None if before is None else before.act,
    )
    mark = mark.model_copy(update={"fact": finding_key(record, mark, look.facts)})
    fact = finding_fact(record, mark, entry, verdict, look.policy, look.facts)
    told = () if mark.action == "record" else (finding_notice(fact, mark, entry),)
    acted = _act(mark, entry, verdict, record, look)
    return Decision(record=acted.record, facts=(fact, *acted.facts), notices=(*told, *acted.notices))


def _act(mark: Mark, entry: Guardrail, verdict: Fires, record: JobRecord, look: Look) -> Decision:
    """The record with the mark, and its act begun where there is one to begin."""
    if mark.act is not None:
        return _marked(doubt(record, mark.act, unsure=False), mark)
    act = _act_of(mark, entry, verdict)
    if act is None or mark.mode == "shadow":
        return _marked(record, mark)
    begun = begin(record, act, look.policy, look.now)
    if begun.record == record:  # there is no room for it now
        return _marked(record, mark)
    return joined(begun, _marked(begun.record, mark.model_copy(update={"act": act.id})))


def _act_of(mark: Mark, entry: Guardrail, verdict: Fires) -> Act | None:
    if mark.action in {"record", "notify"}:
        return None
    return Act(
        id="#".join((mark.label, mark.fingerprint, mark.subject, str(mark.count))),
        kind=mark.action,
        label=mark.label,
        fingerprint=mark.fingerprint,
        reason=shortened(verdict.text, ACT_REASON) or "",
        points=entry.points if mark.action == "lower-priority" else 0,
        not_before=mark.since + entry.grace if mark.action == "terminate" else 0,
    )


def _end(mark: Mark, ended: Literal["held", "changed"], why: str, record: JobRecord, look: Look) -> Decision:
    """The finding is over, and so is its act. Of a team's finding only the rule itself can say that."""
    freed = _without_act(mark, record, look)
    over = mark.model_copy(update={"act": None, "ended": ended, "ended_at": look.now})
    told = mark.about == "job" or ended == "held"
    facts = (cleared_fact(record, mark, why, look.policy, look.now),) if told else ()
    return joined(freed, Decision(record=_marked(freed.record, over).record, facts=facts))


def _without_act(mark: Mark, record: JobRecord, look: Look) -> Decision:
    if mark.act is None:
        return Decision(record=record)
    ended = end(record, frozenset({mark.act}), look.policy, look.now)
    return joined(ended, _marked(ended.record, mark.model_copy(update={"act": None})))


def _marked(record: JobRecord, mark: Mark) -> Decision:
    return Decision(record=record.model_copy(update={"marks": with_mark(record.marks, mark)}))


def _asked(entry: Guardrail, record: JobRecord, policy: Policy) -> Action:
    """What the policy asks for here: some jobs are told of and left alone (protected, or there before us)."""
    spared = record.adopted or policy.share(record.queue, record.share).protected
    return _told_only(entry.action) if spared else entry.action


def _action(entry: Guardrail, verdict: Fires, record: JobRecord, policy: Policy) -> Action:
    """What follows: no act where the rule itself says so, or on a job that has ended."""
    asked = _asked(entry, record, policy)
    return _told_only(asked) if verdict.only_told or status(record) in TERMINAL else asked


def _told_only(action: Action) -> Action:
    return action if action == "record" else "notify"
