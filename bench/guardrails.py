"""What 100 rules cost an event of react, beside its AWS calls in the local stack."""

import json
from collections.abc import Mapping
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

from sharewarden.domain.policy import Policy
from sharewarden.domain.stored import MINUTE
from sharewarden.ports import Runtime
from sharewarden_tools.lab.clock import VirtualClock
from sharewarden_tools.local.functions import Handler
from sharewarden_tools.local.stack import LocalStack, Setup, local_stack

from .pool import OPTIONS, START, Pool
from .rules import POLICIES, Watch, deciding
from .section import Section

SHARES = 20

Row = dict[str, str | int | float]


class Sample(NamedTuple):
    """Seconds of one event: the handler's, and of that the deciding."""

    handler: float
    deciding: float


def guardrails(jobs: int) -> Section:
    measured = {name: _measured(policy, jobs) for name, policy in POLICIES.items()}
    none, *_ = measured.values()
    return Section(
        f"Deciding 100 rules beside the AWS calls of react, {jobs} open jobs",
        "wall time of the whole handler for the next state change of a known job, calls by boto3 over HTTP; "
        "deciding: gather facts, ask the rules, make findings (each job breaks 10 rules, found before); the "
        "policy, read once a minute, is left out; medians",
        "DynamoDB by moto and Batch by the lab, in this process and on loopback: a call takes another time "
        "than to AWS, and a Query the longer the more is in the table; events by the lab in virtual time",
        [_row(name, seen, none) for name, seen in measured.items()],
    )


def _row(name: str, seen: list[Sample], none: list[Sample]) -> Row:
    handler = median(sample.handler for sample in seen)
    return {
        "rules": name,
        "events": len(seen),
        "handler ms": handler * 1000,
        "deciding ms": median(sample.deciding for sample in seen) * 1000,
        "deciding, % of it": 100 * median(sample.deciding / sample.handler for sample in seen),
        "time against none": handler / median(sample.handler for sample in none),
    }


def _measured(policy: Policy, jobs: int) -> list[Sample]:
    """All jobs wait, are dispatched and run: none ends meanwhile."""
    setup = Setup(seed=1, options=OPTIONS, policy=policy)
    with local_stack(VirtualClock(START), setup) as stack, deciding() as watch:
        pool = Pool(SHARES, max(1, jobs // SHARES), lab=stack.lab)
        stack.run_until(START + 6 * MINUTE)  # a sweep has seen the shares
        timed = _Timed(stack, watch)
        for number in range(jobs):
            pool.submit(number % SHARES)
        stack.run_until(stack.now() + 15 * MINUTE)
        return timed.samples


class _Timed:
    """Stands before the stack's react, and keeps the sweep away."""

    def __init__(self, stack: LocalStack, watch: Watch) -> None:
        self.samples: list[Sample] = []
        self._handler: Handler = stack.handlers["React"]
        self._watch = watch
        self._known: set[str] = set()
        stack.handlers |= {"React": self._react, "Sweep": lambda event, context, runtime: {}}

    def _react(self, event: Mapping[str, Any], context: Any, runtime: Runtime) -> Mapping[str, Any]:
        """One message at a time, so that each is measured by itself."""
        for record in event["Records"]:
            runtime.policies.current()
            decided, began = self._watch.seconds, perf_counter()
            answer = self._handler({"Records": [record]}, context, runtime)
            taken = perf_counter() - began
            assert not answer["batchItemFailures"]
            self._keep(json.loads(record["body"]), Sample(taken, self._watch.seconds - decided))
        return {}

    def _keep(self, event: Mapping[str, Any], sample: Sample) -> None:
        """But for the first sight of a job: moto copies all of its tables for a transaction, such as that of
        its findings.
        """
        if event["detail-type"] != "Batch Service Job State Change":
            return
        job = event["detail"]["jobArn"]
        if job in self._known:
            self.samples.append(sample)
        self._known.add(job)
