"""What each role may do: as people agreed on it, and as the code needs it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.template.api_calls import Action, Code, read_sources
from tests.template.stack import (
    PARAMETERS,
    QUEUE_ARN,
    RESUBMIT_ROLE,
    SHARE_ARN,
    TRAINING_ROLE,
    Grant,
    Stack,
    as_list,
)

RECEIVE = "sqs:ReceiveMessage sqs:DeleteMessage sqs:GetQueueAttributes"
LOG = "logs:CreateLogStream logs:PutLogEvents"
FOLLOW = "dynamodb:DescribeStream dynamodb:GetRecords dynamodb:GetShardIterator"
STACK_ARN = "arn:aws:cloudformation:us-east-1:123456789012:stack/sharewarden/*"
JOBS = "arn:aws:batch:us-east-1:123456789012:service-job/*"
SHARES = f"{QUEUE_ARN}/quota-share/*"
BUCKETS: list[str] = PARAMETERS["CheckpointBucketArns"]
MANIFESTS = [f"{bucket}/*/_SAVED.json" for bucket in BUCKETS]
REQUESTS = [f"{bucket}/*/.sharewarden/requests/*" for bucket in BUCKETS]
ACKS = [f"{bucket}/*/.sharewarden/acks/*" for bucket in BUCKETS]

EXECUTIONS = "arn:aws:states:us-east-1:123456789012:execution:Preemption:*"
VERSIONS = "s3:ListBucketVersions s3:GetBucketVersioning s3:GetLifecycleConfiguration"
LOG_DELIVERY = (
    "logs:CreateLogDelivery logs:GetLogDelivery logs:UpdateLogDelivery logs:DeleteLogDelivery "
    "logs:ListLogDeliveries logs:PutResourcePolicy logs:DescribeResourcePolicies logs:DescribeLogGroups"
)

#: Actions by what they are about. A function that needs more has to be argued for here.
FUNCTIONS: dict[str, dict[str, str]] = {
    "React": {
        "EventsQueue": RECEIVE,
        "NoticesQueue": "sqs:SendMessage",
        "LooksQueue": "sqs:SendMessage",
        "EventsDeadLetters": "sqs:SendMessage",
        "State": "dynamodb:GetItem dynamodb:PutItem",
        "State/index/open": "dynamodb:Query",
        "Audit": "dynamodb:PutItem",
        "*": "batch:DescribeServiceJob",
        "Preemption": "states:StartExecution",
        EXECUTIONS: "states:DescribeExecution",
        "ReactLog": LOG,
    },
    "Apply": {
        "WishesQueue": f"{RECEIVE} sqs:SendMessage",
        "NoticesQueue": "sqs:SendMessage",
        "LooksQueue": "sqs:SendMessage",
        "EventsDeadLetters": "sqs:SendMessage",
        "State": "dynamodb:GetItem dynamodb:PutItem",
        "Audit": "dynamodb:PutItem",
        "*": "batch:DescribeServiceJob batch:ListServiceJobs",
        "QueueArns": "batch:SubmitServiceJob",
        SHARES: "batch:SubmitServiceJob",
        JOBS: "batch:UpdateServiceJob batch:TerminateServiceJob batch:SubmitServiceJob batch:TagResource",
        RESUBMIT_ROLE: "iam:PassRole",
        "ApplyLog": LOG,
    },
    "Sweep": {
        "WishesQueue": "sqs:SendMessage",
        "NoticesQueue": "sqs:SendMessage",
        "LooksQueue": "sqs:SendMessage",
        "State": "dynamodb:GetItem dynamodb:PutItem",
        "State/index/open": "dynamodb:Query",
        "Audit": "dynamodb:PutItem",
        "*": "batch:DescribeServiceJob batch:ListServiceJobs",
        "QueueArns": "batch:ListQuotaShares",
        "Preemption": "states:StartExecution",
        EXECUTIONS: "states:DescribeExecution",
        "SweepLog": LOG,
    },
    "Notify": {
        "NoticesQueue": RECEIVE,
        "EventsDeadLetters": "sqs:SendMessage",
        "State": "dynamodb:GetItem dynamodb:PutItem",
        "State/index/open": "dynamodb:Query",
        "Audit": "dynamodb:PutItem",
        "NoticeTopicArn": "sns:Publish",
        "WebhookSecretArn": "secretsmanager:GetSecretValue",
        "NotifyLog": LOG,
    },
    "Watch": {
        "LooksQueue": f"{RECEIVE} sqs:SendMessage",
        "WishesQueue": "sqs:SendMessage",
        "NoticesQueue": "sqs:SendMessage",
        "EventsDeadLetters": "sqs:SendMessage",
        "State": "dynamodb:GetItem dynamodb:PutItem",
        "State/index/open": "dynamodb:Query",
        "Audit": "dynamodb:PutItem",
        **dict.fromkeys(BUCKETS, "s3:ListBucket"),
        **dict.fromkeys([*MANIFESTS, *ACKS], "s3:GetObject"),
        **dict.fromkeys(REQUESTS, "s3:GetObject s3:PutObject"),
        "WatchLog": LOG,
    },
    "Care": {
        "NoticesQueue": "sqs:SendMessage",
        "State": "dynamodb:GetItem dynamodb:PutItem",
        "State/index/open": "dynamodb:Query",
        "Audit": "dynamodb:PutItem",
        "*": "batch:DescribeServiceJob",
        **dict.fromkeys(BUCKETS, f"s3:ListBucket {VERSIONS}"),
        **dict.fromkeys(MANIFESTS, "s3:GetObject"),
        "CareLog": LOG,
    },
    "AuditGuard": {
        "Audit/stream/2026-01-01T00:00:00.000": FOLLOW,
        "*": "dynamodb:ListStreams",
        "AuditGuardLog": LOG,
    },
}
PEOPLE: dict[str, dict[str, str]] = {
    "ReaderPolicy": {
        "*": "batch:DescribeServiceJob batch:ListServiceJobs "
        "batch:DescribeJobQueues batch:DescribeServiceEnvironments",
        "QueueArns": "batch:GetJobQueueSnapshot batch:ListQuotaShares",
        "State": "dynamodb:GetItem dynamodb:Query",
        "State/index/*": "dynamodb:GetItem dynamodb:Query",
        STACK_ARN: "cloudformation:DescribeStacks",
        "arn:aws:s3:::ckpt-a": "s3:ListBucket",
        "arn:aws:s3:::ckpt-b": "s3:ListBucket",
        "arn:aws:s3:::ckpt-a/*/_SAVED.json": "s3:GetObject",
        "arn:aws:s3:::ckpt-b/*/_SAVED.json": "s3:GetObject",
    },
    "AuditorPolicy": {
        "Audit": "dynamodb:DescribeTable dynamodb:GetItem dynamodb:Query dynamodb:Scan",
        "Audit/index/*": "dynamodb:DescribeTable dynamodb:GetItem dynamodb:Query dynamodb:Scan",
    },
    "ScientistPolicy": {
        "QueueArns": "batch:SubmitServiceJob batch:GetJobQueueSnapshot",
        SHARE_ARN: "batch:SubmitServiceJob",
        JOBS: "batch:SubmitServiceJob batch:TagResource",
        TRAINING_ROLE: "iam:PassRole",
        "*": "batch:DescribeServiceJob batch:ListServiceJobs",
    },
    "AdminPolicy": {
        "*": "batch:DescribeServiceJob batch:ListServiceJobs",
        "State": "dynamodb:GetItem dynamodb:PutItem dynamodb:Query",
        "State/index/open": "dynamodb:Query",
        "Audit": "dynamodb:PutItem",
        STACK_ARN: "cloudformation:DescribeStacks",
        "EventsDeadLetters": f"{RECEIVE} sqs:ChangeMessageVisibility",
        "WishesDeadLetters": f"{RECEIVE} sqs:ChangeMessageVisibility",
        "NoticesDeadLetters": f"{RECEIVE} sqs:ChangeMessageVisibility",
        "LooksDeadLetters": f"{RECEIVE} sqs:ChangeMessageVisibility",
        "EventsQueue": "sqs:SendMessage sqs:GetQueueAttributes",
        "WishesQueue": "sqs:SendMessage sqs:GetQueueAttributes",
        "NoticesQueue": "sqs:SendMessage sqs:GetQueueAttributes",
        "LooksQueue": "sqs:SendMessage sqs:GetQueueAttributes",
        "Sweep": "lambda:InvokeFunction",
    },
}
#: A state machine starts its function and delivers its log, nothing else.
MACHINES: dict[str, dict[str, str]] = {"Preemption": {"Care": "lambda:InvokeFunction", "*": LOG_DELIVERY}}
ALLOWED = {f"{name}Role": allowed for name, allowed in (FUNCTIONS | MACHINES).items()} | PEOPLE

#: No resource type of theirs exists (Service Authorization Reference: AWS Batch, Amazon DynamoDB; Step
#: Functions developer guide, "Using CloudWatch Logs to log execution history").
UNSCOPED = {
    *LOG_DELIVERY.split(),
    "batch:DescribeJobQueues",
    "batch:DescribeServiceEnvironments",
    "batch:DescribeServiceJob",
    "batch:ListServiceJobs",
    "dynamodb:ListStreams",
}
#: What has to come with an action wherever it is allowed; in a role of its own, where that is named.
CONDITIONS: dict[str, dict[str, Any]] = {
    "batch:UpdateServiceJob": {
        "NumericLessThanEquals": {"batch:SchedulingPriority": 900},
        "StringEquals": {"aws:ResourceTag/team": ["vision", "nlp"]},
    },
    "batch:TerminateServiceJob": {"StringEquals": {"aws:ResourceTag/team": ["vision", "nlp"]}},
    "batch:SubmitServiceJob": {"NumericLessThanEqualsIfExists": {"batch:SchedulingPriority": 500}},
    "ApplyRole batch:SubmitServiceJob": {
        "NumericLessThanEqualsIfExists": {"batch:SchedulingPriority": 900},
        "StringEquals": {"aws:RequestTag/team": ["vision", "nlp"]},
    },
    "iam:PassRole": {"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}},
}
#: AWS Batch authorises these on a resource; the rest of what the functions call there on none.
BATCH_RESOURCES = {
    "batch:UpdateServiceJob": JOBS,
    "batch:TerminateServiceJob": JOBS,
    "batch:ListQuotaShares": "QueueArns",
}
#: What a submission needs beside itself: tags, and the execution role in its payload (the same reference).
SUBMIT_GRANTS: list[Grant] = [
    *(("batch:SubmitServiceJob", target) for target in ("QueueArns", SHARES, JOBS)),
    ("batch:TagResource", JOBS),
    ("iam:PassRole", RESUBMIT_ROLE),
]
#: What a call to S3 needs (Service Authorization Reference, Amazon S3); of objects, manifests alone are read.
#: Watch also asks jobs to save, and sees what they answer.
S3_GRANTS: dict[str, list[Grant]] = {
    "s3:ListObjectsV2": [("s3:ListBucket", bucket) for bucket in BUCKETS],
    "s3:ListObjectVersions": [("s3:ListBucketVersions", bucket) for bucket in BUCKETS],
    "s3:GetBucketVersioning": [("s3:GetBucketVersioning", bucket) for bucket in BUCKETS],
    "s3:GetBucketLifecycleConfiguration": [("s3:GetLifecycleConfiguration", bucket) for bucket in BUCKETS],
    "s3:GetObject": [("s3:GetObject", manifest) for manifest in MANIFESTS],
    "Watch s3:GetObject": [("s3:GetObject", key) for key in (*MANIFESTS, *REQUESTS, *ACKS)],
    "Watch s3:PutObject": [("s3:PutObject", request) for request in REQUESTS],
}
#: What a call to Step Functions needs.
STATES_GRANTS: dict[str, Grant] = {
    "stepfunctions:StartExecution": ("states:StartExecution", "Preemption"),
    "stepfunctions:DescribeExecution": ("states:DescribeExecution", EXECUTIONS),
}


def no_wider(stack: Stack) -> Iterator[str]:
    """Roles and policies allow what is agreed on, under the agreed conditions."""
    roles = {*stack.of_type("AWS::IAM::Role"), *stack.of_type("AWS::IAM::ManagedPolicy")}
    for odd in roles ^ ALLOWED.keys():
        yield f"{odd} is not agreed on, or gone"
    for name in sorted(roles & ALLOWED.keys()):
        yield from _differences(name, stack.grants(name).keys(), _flat(ALLOWED[name]), "agreed on")
        for (action, target), condition in stack.grants(name).items():
            if target == "*" and action not in UNSCOPED:
                yield f"{name}: {action} is about everything"
            if "*" in action:
                yield f"{name}: {action} is a whole family of actions"
            if json.loads(condition) != CONDITIONS.get(f"{name} {action}", CONDITIONS.get(action, {})):
                yield f"{name}: {action} has another condition"
        if any(statement["Effect"] != "Allow" for statement in stack.statements(name)):
            yield f"{name} does not only allow"


#: Who takes a role: its principal, and on what condition.
LAMBDA = ({"Service": "lambda.amazonaws.com"}, {})
STATES = (
    {"Service": "states.amazonaws.com"},
    {"StringEquals": {"aws:SourceAccount": "123456789012"}},
)


def trusts(stack: Stack) -> Iterator[str]:
    """Its service alone takes a role, which has no other policy than its own."""
    for name, role in stack.of_type("AWS::IAM::Role").items():
        (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
        taker = STATES if name.removesuffix("Role") in MACHINES else LAMBDA
        if (trust["Principal"], trust.get("Condition", {}), trust["Action"]) != (*taker, "sts:AssumeRole"):
            yield f"{name} may be taken by others than its service"
        if role.keys() != {"AssumeRolePolicyDocument", "Policies"}:
            yield f"{name} has more than its own policy"


def as_code_needs(stack: Stack, sources: Mapping[str, str] | None = None) -> Iterator[str]:
    """Each function's role allows what its code calls: nothing is missing, nothing is left over."""
    code = Code(dict(sources or read_sources()))
    for name, function in stack.functions.items():
        folder = function["CodeUri"].rpartition("/")[2]
        called = {grant for action in code.actions(folder) for grant in _grants(stack, name, action)}
        needed = called | set(_lambdas_own(stack, name))
        yield from _differences(f"{name}Role", stack.grants(f"{name}Role").keys(), needed, "called")


def _differences(name: str, granted: Any, wanted: set[Grant], how: str) -> Iterator[str]:
    yield from (f"{name}: {action} on {target} is not {how}" for action, target in sorted(granted - wanted))
    yield from (f"{name}: {action} on {target} is missing" for action, target in sorted(wanted - granted))


def _grants(stack: Stack, function: str, action: Action) -> list[Grant]:
    if action.name == "batch:SubmitServiceJob":
        return SUBMIT_GRANTS
    if action.setting is None:
        plain = [(action.name, BATCH_RESOURCES.get(action.name, "*"))]
        return S3_GRANTS.get(f"{function} {action.name}", S3_GRANTS.get(action.name, plain))
    if action.setting not in stack.declared_variables(function):
        return []  # bootstrap makes a port only where it is set up
    if action.name in STATES_GRANTS:
        return [STATES_GRANTS[action.name]]
    resource = _first_reference(stack.declared_variables(function)[action.setting])
    return [(action.name, f"{resource}/index/{action.index}" if action.index else resource)]


def _first_reference(node: Any) -> str:
    """The resource that a variable stands for: `!Ref X`, or the first of an `!If`."""
    return str(node["Ref"]) if "Ref" in node else _first_reference(node["Fn::If"][1])


def _lambdas_own(stack: Stack, function: str) -> Iterator[Grant]:
    """What the service needs to feed the function and to keep its log (Lambda developer guide)."""
    yield from ((action, f"{function}Log") for action in LOG.split())
    for name, _, source in stack.sources("SQS"):
        if name == function:
            yield from ((action, stack.short(source["Queue"])) for action in RECEIVE.split())
    for name, _, source in stack.sources("DynamoDB"):
        if name == function:
            yield from ((action, stack.short(source["Stream"])) for action in FOLLOW.split())
            yield "dynamodb:ListStreams", "*"


def _flat(allowed: Mapping[str, str]) -> set[Grant]:
    return {(action, target) for target, actions in allowed.items() for action in as_list(actions.split())}
