"""The safety net: read the pool's truth, repair what events did not bring, let time do its work.

A sweep holds a lease, looks at every queue (each sweep begins with another one), and asks Batch about the
jobs that the records leave open, over all queues at once: what is under way first, then what is not known
yet, then what was not read for longest. An answer it could not get changes nothing (design law 2).
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

from sharewarden.domain.stored import MINUTE
from sharewarden.domain.sweeping import SweepState, digest, portions
from sharewarden.ports import Conflict, Runtime

from .care.start import start_lost
from .look import Found, Question, look
from .notify import remind
from .release import release
from .save_requests import settle_overdue
from .send_looks import send_overdue
from .tend import ask, meet, tend
from .untraced import give_up_untraced, untraced_for_long
from .walk import Limits, MustStop, Report, Walk

#: Notices of one queue that a sweep brings back at most; ``notify`` tells those that are alike together.
REMINDERS = 100
#: Longer than the function may run (240 s in the template), so that no lease ends under a living holder.
LEASE = 5 * MINUTE


def sweep(runtime: Runtime, holder: str, limits: Limits) -> Report:
    """Look at all queues once. ``holder`` names this invocation in the lease.

    Raises Unavailable when it could not begin or end in order.
    """
    policy, now = runtime.policies.current(), runtime.clock.now()
    queues = sorted(runtime.queues | runtime.classic_queues)
    state = _lease(runtime, holder, now, len(queues))
    if state is None:
        return Report(leased_elsewhere=True)
    walk = Walk(runtime, policy, limits, holder, now)
    walk.apart("the notices", partial(_remind, walk, queues))
    walk.apart("the save requests", partial(_save_requests, walk))
    walk.apart("the cases", partial(_cases, walk))
    first = state.next_queue % len(queues)
    with suppress(MustStop):
        _work(walk, _look(walk, queues[first:] + queues[:first]))
        walk.whole = True
    walk.apart("the untraced jobs", partial(_untraced, walk))
    release(walk)
    walk.report.failed += len(walk.failed_rules.labels)
    with suppress(MustStop):
        _finish(walk)
    return walk.report


def _lease(runtime: Runtime, holder: str, now: int, queues: int) -> SweepState | None:
    """Our state as it was, the lease taken. A lease longer than any is by a clock that went wrong."""
    state = runtime.ledger.load(SweepState, "all") or SweepState()
    if now < state.until <= now + LEASE and state.holder != holder:
        return None
    update = {"holder": holder, "until": now + LEASE, "next_queue": (state.next_queue + 1) % queues}
    try:
        runtime.ledger.commit([state.model_copy(update=update)], [], now)
    except Conflict:
        return None
    return state


def _finish(walk: Walk) -> None:
    """Write the digest of what was adopted, and let the lease go."""
    state, now = walk.own_state(), walk.runtime.clock.now()
    facts = [digest(state.adopted, walk.started_at, walk.policy, now)] if state.adopted else []
    update = {"holder": None, "until": 0, "adopted": (), "finished_at": now}
    if walk.whole and not (walk.report.left or walk.report.unread):
        update["backlog_since"] = 0
    free = state.model_copy(update=update)
    walk.runtime.ledger.commit([free], facts, now)


def _look(walk: Walk, queues: list[str]) -> Found:
    """Half of the time at most goes into looking, in equal parts: no queue lives at the cost of another."""
    found, stop_at = Found(), walk.limits.stop_at
    half = None if stop_at is None else (walk.started_at + stop_at) // 2
    for left, queue in zip(range(len(queues), 0, -1), queues, strict=True):
        walk.check_time()
        now = walk.runtime.clock.now()
        until = None if half is None else now + (half - now) // left
        walk.apart(queue, partial(look, walk, queue, until, found))
        walk.report.queues += 1
    return found


def _work(walk: Walk, found: Found) -> None:
    """What costs no Describe, then the Describes."""
    walk.apart("the looks", partial(_send_looks, walk, found))
    for job in found.due:
        walk.check_time()
        walk.apart(job, partial(tend, walk, job))
    kinds = (found.urgent, found.unknown, found.quiet)
    urgent, unknown, quiet = portions(walk.limits.describes, [len(kind) for kind in kinds])
    walk.report.left += len(found.urgent) - urgent + len(found.unknown) - unknown
    _each(walk, sorted(found.urgent)[:urgent], ask)
    _each(walk, sorted(found.unknown)[:unknown], meet)
    _each(walk, sorted(found.quiet)[:quiet], ask)


def _each(walk: Walk, questions: Iterable[Question], work: Callable[[Walk, Question], None]) -> None:
    for question in questions:
        walk.check_time()
        walk.apart(question.job, partial(work, walk, question))


def _remind(walk: Walk, queues: list[str]) -> None:
    """Before this sweep finds anything: what it finds it sends itself."""
    for queue in queues:
        walk.report.reminded += remind(walk.runtime, queue, walk.started_at, REMINDERS)


def _save_requests(walk: Walk) -> None:
    for queue in sorted(walk.runtime.queues):
        settle_overdue(walk.runtime, queue, walk.policy, walk.started_at)


def _cases(walk: Walk) -> None:
    """Before this sweep opens any: what it opens it starts itself."""
    for queue in sorted(walk.runtime.queues):
        walk.report.cases += start_lost(walk.runtime, queue, walk.started_at)


def _send_looks(walk: Walk, found: Found) -> None:
    walk.report.looks += send_overdue(walk.runtime, found.looks)


def _untraced(walk: Walk) -> None:
    for waiting in untraced_for_long(walk.runtime, walk.started_at):
        walk.apart(waiting.job, partial(give_up_untraced, walk.runtime, waiting, walk.started_at))
