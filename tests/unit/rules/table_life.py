"""Rules about how a job fares."""

from typing import Any

from tests.unit.rules.kit import Case, unknown

HOUR = 3600
UNIT = "ml.g6e.12xlarge"
CAPACITY = "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY - Unable to provision requested compute resources"
ENVIRONMENT = (
    "MISCONFIGURATION:SERVICE_ENVIRONMENT_MAX_RESOURCE - Service environment(s) associated with the job queue"
    " cannot meet the capacity requirement of the job."
)
QUOTA = (
    "MISCONFIGURATION:QUOTA_MANAGEMENT_LIMIT_EXCEEDED - Job requirements exceed quota share capacity limits."
)


def running(**more: Any) -> dict[str, Any]:
    return {"job": {"status": "RUNNING"} | more}


def saving(age: int | None, interval: int | None, **more: Any) -> dict[str, Any]:
    known = {"checkpoint_uri": "s3://b/c", "checkpoint_age": age, "save_interval": interval}
    return running(**known | more)


def blocked(reason: str, instances: int | None = 3, strategy: str = "RESERVE") -> dict[str, Any]:
    share = {"strategy": strategy, "borrow_limit": -1, "units": {UNIT: {"limit": 2}}}
    return {"job": {"blocked": reason, "instance_type": UNIT, "instances": instances}, "share": share}


TABLES = {
    "runtime-limit": [
        Case("just so long", {"attempt": "24h"}, running(running=24 * HOUR), None),
        Case(
            "a second longer",
            {"attempt": "24h"},
            running(running=24 * HOUR + 1),
            "has been running for 1 d 1 s, and an attempt may run for 1 d",
            {"seconds": 86401, "limit": 86400},
        ),
        Case("it does not run", {"attempt": "24h"}, {"job": {"running": 90 * HOUR}}, None),
        Case("since when is not known", {"attempt": "24h"}, running(), unknown("job.running")),
        Case("all attempts: just so long", {"total": "48h"}, {"job": {"trained": 48 * HOUR}}, None),
        Case(
            "all attempts: longer",
            {"total": "48h", "attempt": "24h"},
            running(running=30 * HOUR, trained=50 * HOUR),
            "has run for 2 d 2 h in all its attempts, and a job may run for 2 d",
        ),
        Case("all attempts: not known", {"total": "48h"}, {"job": {}}, unknown("job.trained")),
        Case("asked: as long as allowed", {"asked": "24h"}, {"job": {"max_runtime": 24 * HOUR}}, None),
        Case(
            "asked: longer",
            {"asked": "24h"},
            {"job": {"max_runtime": 120 * HOUR}},
            "asks for up to 5 d an attempt, and a job may ask for 1 d: lower its time-out",
        ),
        Case("asked: not known", {"asked": "24h"}, {"job": {}}, unknown("job.max_runtime")),
        Case(
            "what is known to be too long counts",
            {"total": "1h", "asked": "24h"},
            {"job": {"max_runtime": 25 * HOUR}},
            "asks for up to 1 d 1 h an attempt, and a job may ask for 1 d: lower its time-out",
        ),
    ],
    "stale-checkpoint": [
        Case("just due", {"times": 2}, saving(1200, 600), None),
        Case(
            "overdue",
            {"times": 2},
            saving(1201, 600),
            "has saved no complete checkpoint for 20 min 1 s, and one is due every 10 min:"
            " look whether it still saves to its S3Uri",
            {"age": 1201, "interval": 600, "times": 2.0},
        ),
        Case(
            "no interval of its own yet",
            {"times": 2, "interval": "10m"},
            saving(1201, None),
            "has saved no complete checkpoint for 20 min 1 s, and one is due every 10 min:"
            " look whether it still saves to its S3Uri",
        ),
        Case("its own interval counts first", {"times": 2, "interval": "10m"}, saving(1201, 6000), None),
        Case("it does not run", {}, saving(9999, 600, status="RUNNABLE"), None),
        Case("it saves none (checkpoint-required)", {}, saving(9999, 600, checkpoint_uri=None), None),
        Case("age not known", {}, saving(None, 600), unknown("job.checkpoint_age")),
        Case("interval not known", {}, saving(9999, None), unknown("job.save_interval")),
    ],
    "stuck-dispatched": [
        Case("just so long", {"limit": "30m"}, {"job": {"status": "STARTING", "in_status": 1800}}, None),
        Case(
            "SCHEDULED for longer",
            {"limit": "30m"},
            {"job": {"status": "SCHEDULED", "in_status": 1801}},
            "has been SCHEDULED for 30 min 1 s, and the limit is 30 min: SageMaker has no"
            " instances for it yet",
            {"status": "SCHEDULED", "seconds": 1801, "limit": 1800},
        ),
        Case(
            "STARTING for longer",
            {"limit": "30m"},
            {"job": {"status": "STARTING", "in_status": 3600}},
            "has been STARTING for 1 h, and the limit is 30 min:"
            " its instances are being prepared and its data and image downloaded",
        ),
        Case("it waits", {"limit": "30m"}, {"job": {"in_status": 9999}}, None),
        Case("it runs", {"limit": "30m"}, running(in_status=9999), None),
        Case("not known", {"limit": "30m"}, {"job": {"status": "STARTING"}}, unknown("job.in_status")),
    ],
    "queue-blocked": [
        Case("not said", {}, {"job": {}}, None),
        Case(
            "no capacity",
            {},
            blocked(CAPACITY),
            "blocks the front of its queue, because AWS has no instances of the type that it"
            " asks for at the moment:"
            " wait, ask for another instance type, or reserve capacity with a training plan",
            {"reason": CAPACITY},
        ),
        Case(
            "larger than the environment",
            {},
            blocked(ENVIRONMENT),
            "blocks the front of its queue, because it asks for more than the queue's whole"
            " service environment"
            " may use: ask for fewer instances, or have the environment's capacity limit raised",
        ),
        Case(
            "larger than the share, with the arithmetic",
            {},
            blocked(QUOTA),
            "blocks the front of its queue, because it asks for 3 ml.g6e.12xlarge, and one"
            " job of share team-vision"
            " can have at most 2, and as a RESERVE share it cannot borrow"
            ' (Batch: "Job requirements exceed quota share capacity limits."):'
            " ask for 2 or fewer, or have the share's capacity limit raised",
        ),
        Case(
            "larger than what it may borrow, which is not known",
            {},
            blocked(QUOTA, strategy="LEND_AND_BORROW"),
            "blocks the front of its queue, because it asks for more than its share can ever have:"
            " ask for fewer instances, or have the share's limit raised",
        ),
        Case(
            "larger than the share, whose limits say otherwise",
            {},
            blocked(QUOTA, 2),
            "blocks the front of its queue, because it asks for more than its share can ever have:"
            " ask for fewer instances, or have the share's limit raised",
        ),
        Case(
            "larger than the share, figures not known",
            {},
            blocked(QUOTA, None),
            "blocks the front of its queue, because it asks for more than its share can ever have:"
            " ask for fewer instances, or have the share's limit raised",
        ),
        Case(
            "words that nobody documented",
            {},
            blocked("The moon is full"),
            "blocks the front of its queue, because Batch says: The moon is full",
        ),
    ],
}
