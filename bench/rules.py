"""A policy of 100 rules, and a watch on the time that deciding them takes."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import cycle, islice
from time import perf_counter
from typing import Any

from sharewarden.domain.base import last_part
from sharewarden.domain.policy import Policy
from sharewarden.usecases import guarding

from . import QUEUE
from .pool import UNIT

BUILT_IN, CUSTOM = 90, 10
#: Every built-in rule about jobs. Jobs of the bench say neither how often they are requeued nor where they
#: save, so they break two of them; the others hold, or cannot be decided on an event.
_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "allowed-instance-types": {"types": ["ml.p5.*", UNIT]},
    "bounded-retries": {"limit": 3},
    "cannot-fit": {},
    "checkpoint-required": {},
    "conflicting-team": {},
    "gpu-hour-budget": {"total": 1_000_000},
    "max-instances-per-job": {"limit": 1_000},
    "max-queued-jobs-per-team": {"limit": 1_000_000},
    "max-running-instances-per-team": {"limit": 1_000_000},
    "max-running-instances-per-user": {"limit": 1_000_000},
    "no-team": {},
    "odd-tags": {},
    "priority-ceiling": {"highest": 9_999},
    "queue-blocked": {},
    "required-tags": {"tags": ["team"]},
    "runtime-limit": {"attempt": "1000h", "total": "1000h"},
    "sla-not-granted": {},
    "stale-checkpoint": {"interval": "10m"},
    "stuck-dispatched": {"limit": "1000h"},
}
_EXPRESSIONS = (
    "job.instances > 1000",
    "job.status == 'RUNNING' && job.gpus > 4096",
    "job.priority > 9000 && job.team != 'team-0'",
    "job.tags.exists(tag, tag == 'forbidden')",
    "job.name.startsWith('tmp-') && job.waiting > 3600",
    "!has(job.team) && job.instances > 1",
    "share.strategy == 'RESERVE' && job.preemptions > 5",
    "job.instance_type.matches('^ml[.]p5[.]') && now.getHours() < 6",
    "team.running_gpus > 100000",
    "team.queued_jobs > 100000 && job.priority > 100",
)


def rules() -> Policy:
    """90 built-in entries, the rules in turn, and 10 in CEL."""
    built_in = islice(cycle(_OPTIONS.items()), BUILT_IN)
    entries = [{"rule": rule, "name": f"{rule}-{n}"} | dict(o) for n, (rule, o) in enumerate(built_in)]
    custom = [{"name": f"custom-{n}", "when": when} for n, when in enumerate(_EXPRESSIONS)]
    queues = {last_part(QUEUE): {"mode": "enforce"}}
    return Policy.model_validate({"queues": queues, "guardrails": entries + custom})


#: What is compared, by what it is called.
POLICIES: Mapping[str, Policy] = {"none": Policy(), f"{BUILT_IN} built-in, {CUSTOM} in CEL": rules()}


class Watch:
    """How many seconds some work took in all."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.seconds = 0.0
        self._clock = clock

    def timed(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def measured(*args: Any, **named: Any) -> Any:
            began = self._clock()
            try:
                return work(*args, **named)
            finally:
                self.seconds += self._clock() - began

        return measured


@contextmanager
def deciding(clock: Callable[[], float] = perf_counter) -> Iterator[Watch]:
    """Watches, inside the block, the step of an event that gathers the facts and lets the rules decide."""
    watch, work = Watch(clock), guarding.guarded_in
    guarding.guarded_in = watch.timed(work)
    try:
        yield watch
    finally:
        guarding.guarded_in = work
