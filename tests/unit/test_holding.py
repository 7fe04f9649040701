"""When a job held capacity."""

from __future__ import annotations

import pytest
from sharewarden.domain.attempts import Attempt
from sharewarden.domain.observation import Status
from sharewarden.domain.preemption.holding import Stay, stay_of, stays
from sharewarden.domain.record import End, JobRecord, Snapshot, Transition

EMPTY = JobRecord(job="j", arn="a/j", name="j", queue="q", created_at=500)


def steps(*told: tuple[int, Status, str | None]) -> tuple[Transition, ...]:
    return tuple(Transition(at=at, what="status", status=state, attempt=name) for at, state, name in told)


FIRST = steps(
    (1000, "RUNNABLE", None), (2000, "SCHEDULED", "a"), (3000, "STARTING", "a"), (4000, "RUNNING", "a")
)
REQUEUED = (*FIRST, *steps((9000, "RUNNABLE", None)))
AGAIN = (*REQUEUED, *steps((11000, "SCHEDULED", "b")))
READ = Snapshot(read_at=12_000, status="SCHEDULED", attempt="b", dispatched_at=11_400)


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        ({}, ()),
        ({"timeline": FIRST[:1]}, ()),
        ({"timeline": FIRST}, (Stay("a", 500, 2000, 4000),)),
        ({"timeline": REQUEUED}, (Stay("a", 500, 2000, 4000, 9000),)),
        ({"timeline": AGAIN}, (Stay("a", 500, 2000, 4000, 9000), Stay("b", 9000, 11000))),
        # the event of the requeue was lost
        (
            {"timeline": (*FIRST, *steps((11000, "SCHEDULED", "b")))},
            (Stay("a", 500, 2000, 4000, 11000), Stay("b", 11000, 11000)),
        ),
        # only the last step was told
        ({"timeline": FIRST[-1:]}, (Stay("a", 500, 4000, 4000),)),
        # steps that name no attempt
        (
            {"timeline": steps((2000, "SCHEDULED", None), (3000, "STARTING", "a"))},
            (Stay("a", 500, 2000),),
        ),
        # the stop is known better than the requeue
        (
            {
                "timeline": REQUEUED,
                "attempts": (Attempt(training_job="a", stopped_at=8500, preempted=True),),
            },
            (Stay("a", 500, 2000, 4000, 8500),),
        ),
        ({"timeline": FIRST, "end": End(status="FAILED", at=5000)}, (Stay("a", 500, 2000, 4000, 5000),)),
        # what Batch said is exact, and may be all there is
        ({"snapshot": READ}, (Stay("b", 500, 11_400),)),
        (
            {"timeline": REQUEUED, "snapshot": READ},
            (Stay("a", 500, 2000, 4000, 9000), Stay("b", 9000, 11_400)),
        ),
        (
            {"timeline": (*REQUEUED, *steps((15000, "STARTING", "b"))), "snapshot": READ},
            (Stay("a", 500, 2000, 4000, 9000), Stay("b", 9000, 11_400)),
        ),
        # dispatched in the second of the requeue, and before that
        (
            {"timeline": REQUEUED, "snapshot": READ.model_copy(update={"dispatched_at": 9500})},
            (Stay("a", 500, 2000, 4000, 9000), Stay("b", 9000, 9500)),
        ),
        (
            {"timeline": REQUEUED, "snapshot": READ.model_copy(update={"dispatched_at": 8000})},
            (Stay("a", 500, 2000, 4000, 9000),),
        ),
        # an answer about an attempt that is over adds nothing
        (
            {"timeline": AGAIN, "snapshot": READ.model_copy(update={"attempt": "a", "dispatched_at": 2300})},
            (Stay("a", 500, 2000, 4000, 9000), Stay("b", 9000, 11000)),
        ),
        ({"snapshot": READ.model_copy(update={"status": "RUNNABLE"})}, ()),
    ],
)
def test_a_job_holds_capacity_from_each_dispatch_to_its_stop(
    update: dict[str, object], expected: tuple[Stay, ...]
) -> None:
    assert stays(EMPTY.model_copy(update=update)) == expected


def test_the_stay_of_an_attempt_is_found_by_its_name() -> None:
    record = EMPTY.model_copy(update={"timeline": AGAIN})
    assert stay_of(record, "b") == Stay("b", 9000, 11000)
    assert stay_of(record, "c") is None
