"""Whether the number of open jobs changes what an event costs, and what 100 rules cost a sweep."""

from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from statistics import median
from time import process_time
from typing import Any

from sharewarden.domain.decide import decide_read
from sharewarden.domain.observation import Status
from sharewarden.domain.policy import Policy
from sharewarden.domain.record import JobRecord, new_record
from sharewarden.domain.share import ShareRecord
from sharewarden.domain.stored import MINUTE, SECOND, Stored
from sharewarden.ports import Runtime
from sharewarden.usecases.guarding import FailedRules, guarded
from sharewarden.usecases.sweep import sweep
from sharewarden.usecases.walk import Limits
from sharewarden_tools.lab.world import iso_seconds
from sharewarden_tools.memory import MemoryBatch, MemoryClock

from functions.react import app

from . import QUEUE
from .memory import described, memory_runtime, share
from .pool import CONTEXT, START, message
from .rules import POLICIES, deciding, rules
from .section import Section

SHARES = 20
#: What each round tells of its jobs.
STATES: tuple[Status, ...] = ("SCHEDULED", "STARTING", "RUNNING")
COMMIT = 100

Row = dict[str, str | int | float]


def open_jobs(numbers: tuple[int, int], events: int) -> Section:
    pools = {number: _Open(number) for number in numbers}
    rounds = [[pool.told(state, events) for pool in pools.values()] for state in STATES]
    return Section(
        f"Open jobs and the cost of an event, 100 rules, {len(STATES)} rounds of {events} events in turn",
        "the whole handler for known jobs that break 10 of the rules, found before; CPU time of one thread; "
        "a ratio of 1.00 means that more jobs cost nothing",
        "ledger (with an index by queue, as the table has) and Batch in memory: no waiting for AWS",
        [_row(number, place, rounds) for place, number in enumerate(numbers)],
    )


def _row(number: int, place: int, rounds: Sequence[Sequence[tuple[float, float]]]) -> Row:
    mine = [one[place] for one in rounds]
    return {
        "open jobs": number,
        "ms an event": 1000 * median(taken for taken, _ in mine),
        "deciding ms": 1000 * median(decided for _, decided in mine),
        "against the first": median(one[place][0] / one[0][0] for one in rounds),
    }


class _Open:
    """A deployment with so many jobs on record, all waiting."""

    def __init__(self, number: int) -> None:
        self._clock = MemoryClock(START)
        self._runtime = memory_runtime(self._clock, MemoryBatch(self._clock), rules())
        shares = [_share_record(one) for one in range(SHARES)]
        _put(self._runtime, shares)
        first = _on_record(self._runtime, self._runtime.policies.current())
        self._jobs = [_another(first, one) for one in range(number)]
        _put(self._runtime, self._jobs)

    def told(self, state: Status, events: int) -> tuple[float, float]:
        """Seconds an event: of the handler, and of deciding. The jobs told of lie all over the ledger."""
        self._clock.advance(MINUTE)
        jobs = self._jobs[:: max(1, len(self._jobs) // events)][:events]
        inputs = [{"Records": [message(_event(job, state, self._clock.now()))]} for job in jobs]
        with redirect_stdout(StringIO()), deciding(process_time) as watch:
            began = process_time()
            for records in inputs:
                assert not app.handler(records, CONTEXT, self._runtime)["batchItemFailures"]
            return (process_time() - began) / len(jobs), watch.seconds / len(jobs)


def _put(runtime: Runtime, items: Sequence[Stored]) -> None:
    for start in range(0, len(items), COMMIT):
        runtime.ledger.commit(items[start : start + COMMIT], [], START)


def _share_record(number: int) -> ShareRecord:
    seen = share(number)
    return ShareRecord(arn=seen.arn, queue=QUEUE, description=seen, read_at=START)


def _on_record(runtime: Runtime, policy: Policy) -> JobRecord:
    """A job as it is once its first event was decided on."""
    read = described(0, START)
    first = decide_read(new_record(read), read, policy)
    return guarded(runtime, first, policy, FailedRules()).record


def _another(record: JobRecord, number: int) -> JobRecord:
    other = described(number, START)
    return record.model_copy(
        update={"job": other.job, "arn": other.arn, "name": other.name, "share": other.share}
    )


def _event(job: JobRecord, state: Status, at: int) -> dict[str, Any]:
    return {
        "version": "0",
        "id": f"{job.job}-{state}",
        "detail-type": "Batch Service Job State Change",
        "source": "aws.batch",
        "account": "123456789012",
        "time": iso_seconds(at),
        "region": "us-east-1",
        "resources": [job.arn],
        "detail": {
            "jobArn": job.arn,
            "jobName": job.name,
            "jobQueue": QUEUE,
            "status": state,
            "createdAt": job.created_at,
        },
    }


# --- the sweep -------------------------------------------------------------------------------------------


def sweeps(records: int, rounds: int) -> Section:
    pools = {name: _Swept(records, policy) for name, policy in POLICIES.items()}
    taken = [[pool.sweep() for pool in pools.values()] for _ in range(rounds)]
    return Section(
        f"A sweep under 100 rules, {records} open jobs, median of {rounds} rounds in turn",
        "one whole sweep in which nothing has changed, up to 500 Describes, with the look at the whole pool "
        "that some of the rules need; CPU time of one thread",
        "ledger and Batch in memory: no waiting for AWS",
        [_swept_row(name, place, taken, records) for place, name in enumerate(pools)],
    )


def _swept_row(name: str, place: int, taken: Sequence[Sequence[float]], records: int) -> Row:
    ratios = [one[place] / one[0] for one in taken]
    return {
        "rules": name,
        "ms per 1000 records": 1e6 * median(one[place] for one in taken) / records,
        "time against none": median(ratios),
        "lowest": min(ratios),
        "highest": max(ratios),
    }


class _Swept:
    """A deployment whose sweeps have nothing more to do; half of the jobs run."""

    def __init__(self, records: int, policy: Policy) -> None:
        self._clock = MemoryClock(START)
        batch = MemoryBatch(self._clock)
        batch.quota_shares[QUEUE] = [share(number) for number in range(SHARES)]
        self._runtime = memory_runtime(self._clock, batch, policy)
        for number in range(records):
            batch.tell(described(number, START, "RUNNING" if number % 2 else "RUNNABLE"))
        while self._swept().left:
            pass
        for _ in range(3):
            self._swept()

    def sweep(self) -> float:
        began = process_time()
        report = self._swept()
        assert (report.unread, report.failed, report.behind) == (0, 0, 0)
        return process_time() - began

    def _swept(self) -> Any:
        self._clock.advance(5 * MINUTE + SECOND)
        with redirect_stdout(StringIO()):
            return sweep(self._runtime, f"sweep-{self._clock.now()}", Limits())
