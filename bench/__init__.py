"""`make bench`: what costs time and calls, as ratios side by side in one run. See docs/bench.md.

The environment comes first: Powertools reads it when a handler is imported. No way leads to a real account.
"""

import os

QUEUE = "arn:aws:batch:us-east-1:123456789012:job-queue/ml-train-qm"
_SQS = "https://sqs.us-east-1.amazonaws.com/123456789012"

for name in [name for name in os.environ if name.startswith("AWS_")]:
    del os.environ[name]
os.environ |= {
    "AWS_ACCESS_KEY_ID": "bench",
    "AWS_SECRET_ACCESS_KEY": "bench",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
    "STATE_TABLE": "State",
    "AUDIT_TABLE": "Audit",
    "WISHES_QUEUE_URL": f"{_SQS}/Wishes.fifo",
    "NOTICES_QUEUE_URL": f"{_SQS}/NoticesQueue",
    "EVENTS_DEAD_LETTERS_URL": f"{_SQS}/EventsDeadLetters",
    "QUEUE_ARNS": QUEUE,
    "POWERTOOLS_SERVICE_NAME": "sharewarden",
    "POWERTOOLS_METRICS_NAMESPACE": "Sharewarden",
    "LOG_LEVEL": "INFO",
}
