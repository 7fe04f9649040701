"""Short ways to write a pool for `can_help`."""

from typing import Any

from sharewarden.domain.helping.answer import Answer
from sharewarden.domain.helping.can_help import can_help
from sharewarden.domain.helping.view import JobView, PoolView, ShareView
from sharewarden.domain.stored import HOUR, MINUTE

NOW = 1_789_372_800_000
UNIT, OTHER = "ml.g6e.12xlarge", "ml.g5.xlarge"


def share(name: str = "vision", own: int = 2, **members: Any) -> ShareView:
    """A LEND_AND_BORROW share without a borrow limit and with in-share preemption, unless told otherwise."""
    told = {
        "limits": {UNIT: own},
        "strategy": "LEND_AND_BORROW",
        "borrow_limit": -1,
        "in_share_preemption": True,
        "min_runtime": 10 * MINUTE,
    }
    return ShareView(name=name, **{**told, **members})


def waits(name: str = "mine", **members: Any) -> JobView:
    """A job of one instance that waits in ``vision`` with priority 5."""
    told = {
        "share": "vision",
        "status": "RUNNABLE",
        "unit": UNIT,
        "instances": 1,
        "priority": 5,
        "created_at": NOW - HOUR,
        "queued_at": members.get("created_at", NOW - HOUR),
    }
    return JobView(job=name, name=name, **{**told, **members})


def runs(name: str, **members: Any) -> JobView:
    """One of the same kind, with priority 8, that has run for half an hour."""
    started = {"dispatched_at": NOW - 31 * MINUTE, "started_at": NOW - 30 * MINUTE}
    return waits(
        name, **{"status": "RUNNING", "priority": 8, "created_at": NOW - 2 * HOUR, **started, **members}
    )


def pool(*members: ShareView | JobView, environment: dict[str, int] | None = None, **rest: Any) -> PoolView:
    """A pool whose environment holds what its shares own, unless told otherwise."""
    shares = tuple(one for one in members if isinstance(one, ShareView)) or (share(),)
    units = {unit for one in shares for unit in one.limits}
    holds = {unit: sum(one.limits.get(unit, 0) for one in shares) for unit in units}
    jobs = tuple(one for one in members if isinstance(one, JobView))
    return PoolView(queue="q", shares=shares, jobs=jobs, **{"environment": environment or holds, **rest})


def ask(view: PoolView, to: int = 9, job: str = "mine", now: int = NOW) -> Answer:
    return can_help(view, job, to, now)
