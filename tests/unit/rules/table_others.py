"""Rules about shares and about training jobs of no queue, and the custom one."""

from tests.unit.rules.kit import Case, unknown

ROLE = "arn:aws:sts::123456789012:assumed-role/Deployer/ci-7"
CHANGED = {"change": {"by": ROLE, "operation": "UpdateQuotaShare", "change": "ml.g6e.12xlarge 4 -> 2"}}

TABLES = {
    "share-changed-by-hand": [
        Case("by the pipeline", {"by": ["arn:aws:sts::*:assumed-role/Deployer/*"]}, CHANGED, None),
        Case(
            "by somebody else",
            {"by": ["arn:aws:iam::*:user/root"]},
            CHANGED,
            f"share team-vision of ml-train-qm was changed by {ROLE} with UpdateQuotaShare:"
            " ml.g6e.12xlarge 4 -> 2",
            {"by": ROLE, "operation": "UpdateQuotaShare"},
        ),
        Case(
            "everything is told without a list",
            {},
            CHANGED,
            f"share team-vision of ml-train-qm was changed by {ROLE} with UpdateQuotaShare:"
            " ml.g6e.12xlarge 4 -> 2",
        ),
        Case(
            "found by a sweep",
            {"by": ["*"]},
            {"change": {"change": "borrow limit 100 -> 0"}},
            "share team-vision of ml-train-qm was changed by somebody whom only CloudTrail could name:"
            " borrow limit 100 -> 0",
        ),
    ],
    "training-outside-queue": [
        Case(
            "a type of the pool",
            {},
            {
                "training": {
                    "name": "t",
                    "instance_type": "ml.g5.xlarge",
                    "instances": 2,
                    "pool_types": {"ml.g5.xlarge"},
                }
            },
            "training job t uses 2 instances of ml.g5.xlarge around the queue, a type that the pool shares:"
            " submit it to the queue instead",
            {"instance_type": "ml.g5.xlarge", "instances": 2, "gpus": None},
        ),
        Case(
            "how many is not known",
            {},
            {"training": {"name": "t", "instance_type": "ml.g5.xlarge", "pool_types": {"ml.g5.xlarge"}}},
            "training job t uses ml.g5.xlarge around the queue, a type that the pool shares:"
            " submit it to the queue instead",
        ),
        Case(
            "another type",
            {},
            {"training": {"name": "t", "instance_type": "ml.m5.large", "pool_types": {"ml.g5.xlarge"}}},
            None,
        ),
        Case(
            "not known",
            {},
            {"training": {"name": "t", "pool_types": {"ml.g5.xlarge"}}},
            unknown("training.instance_type"),
        ),
    ],
    "custom": [
        Case(
            "true",
            {"name": "giants", "when": "job.instances >= 8 && now.getHours() == 12", "text": "is a giant"},
            {"job": {"instances": 8}},
            "is a giant",
            {"job.instances": 8},
        ),
        Case("false", {"name": "giants", "when": "job.instances >= 8"}, {"job": {"instances": 7}}, None),
        Case(
            "without a text",
            {"name": "giants", "when": "job.instances >= 8"},
            {"job": {"instances": 8}},
            "is what giants looks for: job.instances >= 8",
        ),
        Case(
            "missing",
            {"name": "giants", "when": "job.instances >= 8"},
            {"job": {}},
            unknown("job.instances"),
        ),
        Case("outside a sweep", {"name": "q", "when": "team.queued_jobs > 3"}, {"job": {}}, unknown("team")),
    ],
}
