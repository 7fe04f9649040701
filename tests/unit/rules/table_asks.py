"""Rules about what a job asks for."""

from typing import Any

from tests.unit.rules.kit import Case, unknown

UNIT = "ml.g6e.12xlarge"


def job(instances: int | None, unit: str | None = UNIT, **more: Any) -> dict[str, Any]:
    return {"instances": instances, "instance_type": unit} | more


def share(strategy: str, borrow_limit: int | None = None, others: int | None = None) -> dict[str, Any]:
    return {
        "strategy": strategy,
        "borrow_limit": borrow_limit,
        "units": {UNIT: {"limit": 2, "others": others}},
    }


TABLES = {
    "max-instances-per-job": [
        Case("as many as allowed", {"limit": 4}, {"job": job(4)}, None),
        Case(
            "one more",
            {"limit": 4},
            {"job": job(5)},
            "asks for 5 instances, and one job may have 4: ask for 4 or fewer",
            {"instances": 5, "limit": 4},
        ),
        Case("not known", {"limit": 4}, {"job": job(None)}, unknown("job.instances")),
    ],
    "allowed-instance-types": [
        Case("by name", {"types": [UNIT]}, {"job": job(1)}, None),
        Case("by pattern", {"types": ["ml.g5.*", "ml.g6e.*"]}, {"job": job(1)}, None),
        Case(
            "another one",
            {"types": ["ml.g6.*", "ml.G6E.*"]},
            {"job": job(1)},
            "asks for ml.g6e.12xlarge, and only ml.g6.*, ml.G6E.* may be used here",
            {"instance_type": UNIT, "types": ["ml.g6.*", "ml.G6E.*"]},
        ),
        Case("not known", {"types": [UNIT]}, {"job": job(1, None)}, unknown("job.instance_type")),
    ],
    "priority-ceiling": [
        Case("at it", {"highest": 500}, {"job": {"base": 500}}, None),
        Case(
            "above, as submitted",
            {"highest": 500},
            {"job": {"base": 501}},
            "was submitted with priority 501, and the highest allowed is 500: submit it with 500 or less",
            {"priority": 501, "highest": 500},
        ),
        Case(
            "above, set by somebody",
            {"highest": 500},
            {"job": {"base": 501, "drifted": True}},
            "was set to priority 501 by hand, and the highest allowed is 500: it stays as it was set",
        ),
        Case("a boost is not the base", {"highest": 500}, {"job": {"base": 100, "priority": 900}}, None),
        Case("not known", {"highest": 500}, {"job": {"priority": 900}}, unknown("job.base")),
    ],
    "checkpoint-required": [
        Case("it has them", {}, {"job": job(1, checkpoint_uri="s3://b/c"), "share": None}, None),
        Case("out of reach", {}, {"job": job(1), "share": share("RESERVE")}, None),
        Case(
            "a share that borrows",
            {},
            {"job": job(1), "share": share("LEND_AND_BORROW")},
            "has no CheckpointConfig, and a preemption in share team-vision would cost all its work:"
            " give it an S3Uri for checkpoints and save to it",
            {"strategy": "LEND_AND_BORROW", "in_share_preemption": False},
        ),
        Case(
            "preemption in the share",
            {},
            {"job": job(1), "share": share("RESERVE") | {"in_share_preemption": True}},
            "has no CheckpointConfig, and a preemption in share team-vision would cost all its work:"
            " give it an S3Uri for checkpoints and save to it",
        ),
        Case("share not known", {}, {"job": job(1), "share": None}, unknown("share")),
        Case(
            "payload not read",
            {},
            {"job": job(None, None), "share": share("LEND_AND_BORROW")},
            unknown("job.checkpoint_uri"),
        ),
    ],
    "bounded-retries": [
        Case("as many as allowed", {"limit": 3}, {"job": {"preemption_retries": 3}}, None),
        Case("none at all", {"limit": 0}, {"job": {"preemption_retries": 0}}, None),
        Case(
            "one more",
            {"limit": 3},
            {"job": {"preemption_retries": 4}},
            "is requeued after preemptions up to 4 times, and the policy allows 3:"
            " submit it with preemptionRetriesBeforeTermination of 3 or less",
            {"retries": 4, "limit": 3},
        ),
        Case(
            "without end",
            {"limit": 3},
            {"job": {"preemption_retries": -1}},
            "is requeued after preemptions without end, and the policy allows 3:"
            " submit it with preemptionRetriesBeforeTermination of 3 or less",
        ),
        Case("not known", {"limit": 3}, {"job": {}}, unknown("job.preemption_retries")),
    ],
    "cannot-fit": [
        Case("its own", {}, {"job": job(2), "share": share("RESERVE")}, None),
        Case(
            "one more, and it cannot borrow",
            {},
            {"job": job(3), "share": share("LEND")},
            "asks for 3 ml.g6e.12xlarge, and one job of share team-vision can have at most"
            " 2, and as a LEND share"
            ' it cannot borrow (Batch: "Job requirements exceed quota share capacity limits."):'
            " ask for 2 or fewer, or have the share's capacity limit raised",
            {"unit": UNIT, "asked": 3, "own": 2, "most": 2},
        ),
        Case("borrowed", {}, {"job": job(4), "share": share("LEND_AND_BORROW", 100, 2)}, None),
        Case(
            "beyond the borrow limit",
            {},
            {"job": job(5), "share": share("LEND_AND_BORROW", 100, 9)},
            "asks for 5 ml.g6e.12xlarge, and one job of share team-vision can have at most 4: 2 of its own,"
            " 2 borrowed (borrow limit 100%)"
            ' (Batch: "Job requirements exceed quota share capacity limits and borrow limits."):'
            " ask for 4 or fewer, or have the share's capacity limit or borrow limit raised",
        ),
        Case(
            "a borrow limit without end", {}, {"job": job(5), "share": share("LEND_AND_BORROW", -1, 3)}, None
        ),
        Case(
            "beyond what others can lend",
            {},
            {"job": job(6), "share": share("LEND_AND_BORROW", -1, 3)},
            "asks for 6 ml.g6e.12xlarge, and one job of share team-vision can have at most 5: 2 of its own,"
            " 3 that all other shares together can lend"
            ' (Batch: "Job requires borrowing that exceeds all configured borrowable capacity."):'
            " ask for 5 or fewer, or have the share's capacity limit or a lender's raised",
        ),
        Case(
            "a part of an instance is none",
            {},
            {"job": job(4), "share": share("LEND_AND_BORROW", 99, 9)},
            "asks for 4 ml.g6e.12xlarge, and one job of share team-vision can have at most 3: 2 of its own,"
            " 1 borrowed (borrow limit 99%)"
            ' (Batch: "Job requirements exceed quota share capacity limits and borrow limits."):'
            " ask for 3 or fewer, or have the share's capacity limit or borrow limit raised",
        ),
        Case(
            "a type without limit",
            {},
            {"job": job(1, "ml.p5.48xlarge"), "share": share("LEND")},
            "asks for ml.p5.48xlarge, and share team-vision has no capacity limit for it:"
            " ask for one of its types (ml.g6e.12xlarge)",
            {"unit": "ml.p5.48xlarge", "units": [UNIT]},
        ),
        Case(
            "what others lend is not known",
            {},
            {"job": job(3), "share": share("LEND_AND_BORROW", 100)},
            unknown("share.units.others"),
        ),
        Case("share not known", {}, {"job": job(1)}, unknown("share")),
        Case(
            "type not known", {}, {"job": job(1, None), "share": share("LEND")}, unknown("job.instance_type")
        ),
        Case("number not known", {}, {"job": job(None), "share": share("LEND")}, unknown("job.instances")),
    ],
}
