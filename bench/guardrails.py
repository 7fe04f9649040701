"""What 100 rules cost an event of react, beside its AWS calls in the local stack."""

import json
from collections import defaultdict
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

from .pool import OPTIONS, PAYLOAD, START, Pool
from .rules import POLICIES, Watch, deciding
from .section import Section

SHARES = 20
EVENTS = ("first sight of a job", "known job, next state change")
#: What keeps a job from breaking a rule: moto copies all of its tables for a transaction, as a finding needs.
_LAWFUL: Mapping[str, Any] = {
    "preemptionConfiguration": {"preemptionRetriesBeforeTermination": 3},
    "serviceRequestPayload": json.dumps(PAYLOAD | {"CheckpointConfig": {"S3Uri": "s3://checkpoints/job"}}),
}

Row = dict[str, str | int | float]


class Sample(NamedTuple):
    """Seconds of one event: the handler's, and of that the deciding."""

    handler: float
    deciding: float


Samples = Mapping[str, list[Sample]]


def guardrails(jobs: int) -> Section:
    measured = {name: _measured(policy, jobs) for name, policy in POLICIES.items()}
    none, *_ = measured.values()
    return Section(
        f"Deciding 100 rules beside the AWS calls of react, {jobs} open jobs",
        "wall time of the whole handler, calls by boto3 over HTTP; deciding: gather facts, ask the rules "
        "(of which no job breaks any); the policy, read once a minute, is left out; medians",
        "DynamoDB by moto and Batch by the lab, in this process and on loopback: a call takes another time "
        "than to AWS, and a Query the longer the more is in the table; events by the lab in virtual time",
        [_row(event, name, seen[event], none[event]) for event in EVENTS for name, seen in measured.items()],
    )


def _row(event: str, name: str, seen: list[Sample], none: list[Sample]) -> Row:
    handler = median(sample.handler for sample in seen)
    return {
        "event": event,
        "rules": name,
        "events": len(seen),
        "handler ms": handler * 1000,
        "deciding ms": median(sample.deciding for sample in seen) * 1000,
        "deciding, % of it": 100 * median(sample.deciding / sample.handler for sample in seen),
        "time against none": handler / median(sample.handler for sample in none),
    }


def _measured(policy: Policy, jobs: int) -> Samples:
    """All jobs wait, are dispatched and run: none ends meanwhile."""
    setup = Setup(seed=1, options=OPTIONS, policy=policy)
    with local_stack(VirtualClock(START), setup) as stack, deciding() as watch:
        pool = Pool(SHARES, max(1, jobs // SHARES), lab=stack.lab)
        stack.run_until(START + 6 * MINUTE)  # a sweep has seen the shares
        timed = _Timed(stack, watch)
        for number in range(jobs):
            pool.submit(number % SHARES, **_LAWFUL)
        stack.run_until(stack.now() + 8 * MINUTE)
        return timed.samples


class _Timed:
    """Stands before the stack's react, and keeps the sweep away."""

    def __init__(self, stack: LocalStack, watch: Watch) -> None:
        self.samples: Samples = defaultdict(list)
        self._handler: Handler = stack.handlers["React"]
        self._watch = watch
        self._known: set[str] = set()
        stack.handlers |= {"React": self._react, "Sweep": lambda event, context, runtime: {}}

    def _react(self, event: Mapping[str, Any], context: Any, runtime: Runtime) -> Mapping[str, Any]:
        """One message at a time, each measured by itself; those of training jobs are not decided on."""
        for record in event["Records"]:
            told = json.loads(record["body"])
            if told["detail-type"] != "Batch Service Job State Change":
                continue
            runtime.policies.current()
            decided, began = self._watch.seconds, perf_counter()
            answer = self._handler({"Records": [record]}, context, runtime)
            taken = perf_counter() - began
            assert not answer["batchItemFailures"]
            self._keep(told["detail"]["jobArn"], Sample(taken, self._watch.seconds - decided))
        return {}

    def _keep(self, job: str, sample: Sample) -> None:
        self.samples[EVENTS[job in self._known]].append(sample)
        self._known.add(job)
