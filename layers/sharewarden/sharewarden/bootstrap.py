"""The one composition root: the environment is read here, and the ports are made here."""

import os
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

import boto3
from botocore.config import Config
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from .aws.batch import AwsBatch
from .aws.clock import SystemClock
from .aws.dynamodb import DynamoAuditReader, DynamoLedger
from .aws.lazy import Lazy
from .aws.policies import DynamoPolicies
from .aws.s3 import S3Checkpoints
from .aws.sns import SnsTopic
from .aws.sqs import SqsDeadLetters, SqsLookQueue, SqsNoticeQueue, SqsWishQueue
from .aws.stepfunctions import StepFunctionsWorkflows
from .aws.webhook import Webhook
from .domain.notice import Channel
from .messages import policy_unloadable
from .ports import Clock, Nowhere, NoWorkflows, Runtime, Unwatched

#: A handler that waits long is paid twice: give up soon, the message comes again. A call takes 15 seconds at
#: most, three attempts and the pauses between them: a third of the time of the function that has the least.
CONFIG = Config(
    retries={"mode": "standard", "total_max_attempts": 3},
    connect_timeout=1,
    read_timeout=3,
)
#: For what must not be done twice: a try whose answer was lost may have been done.
ONCE = Config(retries={"mode": "standard", "total_max_attempts": 1}, connect_timeout=3, read_timeout=10)


def _split(text: object) -> object:
    return [part.strip() for part in text.split(",") if part.strip()] if isinstance(text, str) else text


Text = Annotated[str, Field(min_length=1)]
Arns = Annotated[frozenset[str], BeforeValidator(_split)]


class Settings(BaseModel):
    """The environment of a function, as the template sets it. Lists are separated by commas."""

    # The error names the variable and hides the values: an environment holds credentials too.
    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    state_table: Text = Field(alias="STATE_TABLE")
    audit_table: Text = Field(alias="AUDIT_TABLE")
    wishes_queue_url: Text = Field(alias="WISHES_QUEUE_URL")
    notices_queue_url: Text = Field(alias="NOTICES_QUEUE_URL")
    events_dead_letters_url: Text = Field(alias="EVENTS_DEAD_LETTERS_URL")
    queue_arns: Arns = Field(alias="QUEUE_ARNS", min_length=1)
    classic_queue_arns: Arns = Field(alias="CLASSIC_QUEUE_ARNS", default=frozenset())
    looks_queue_url: str = Field(alias="LOOKS_QUEUE_URL", default="")
    checkpoint_bucket_arns: Arns = Field(alias="CHECKPOINT_BUCKET_ARNS", default=frozenset())
    preemption_workflow_arn: str = Field(alias="PREEMPTION_WORKFLOW_ARN", default="")
    """Of the state machine; only those that start executions know it."""
    own_role: str | None = Field(alias="OWN_ROLE", default=None)
    """Name of the role of ``apply``."""
    notice_topic_arn: str = Field(alias="NOTICE_TOPIC_ARN", default="")
    webhook_secret_arn: str = Field(alias="WEBHOOK_SECRET_ARN", default="")

    @property
    def channels(self) -> frozenset[Channel]:
        """Those of which the environment tells: only that of ``notify`` does."""
        given: dict[Channel, str] = {"topic": self.notice_topic_arn, "webhook": self.webhook_secret_arn}
        return frozenset(channel for channel, address in given.items() if address)


def settings(env: Mapping[str, str]) -> Settings:
    """The settings in ``env``. Raises pydantic's ValidationError, which names each variable at fault."""
    return Settings.model_validate(dict(env))


def aws_runtime(
    env: Mapping[str, str], clock: Clock | None = None, clients: Mapping[str, Any] | None = None
) -> Runtime:
    """The ports over boto3, which takes Region, credentials and endpoints from the process's environment.

    ``clients`` by service (``s3``, ``stepfunctions``): those that are otherwise made at first use, for a
    caller whose environment will be another one by then. Raises pydantic's ValidationError.
    """
    given = settings(env)
    made = clients or {}
    clock = clock or SystemClock()
    dynamodb: Any = boto3.client("dynamodb", config=CONFIG)
    sqs: Any = boto3.client("sqs", config=CONFIG)
    s3: Any = made.get("s3") or Lazy(lambda: boto3.client("s3", config=CONFIG))
    states: Any = made.get("stepfunctions") or Lazy(lambda: boto3.client("stepfunctions", config=CONFIG))
    return Runtime(
        batch=AwsBatch(boto3.client("batch", config=CONFIG), clock),
        ledger=DynamoLedger(dynamodb, given.state_table, given.audit_table),
        audit=DynamoAuditReader(dynamodb, given.audit_table),
        wishes=SqsWishQueue(sqs, given.wishes_queue_url),
        notices=SqsNoticeQueue(sqs, given.notices_queue_url),
        dead_letters=SqsDeadLetters(sqs, given.events_dead_letters_url),
        checkpoints=S3Checkpoints(s3),
        policies=DynamoPolicies(dynamodb, given.state_table, clock, policy_unloadable),
        clock=clock,
        queues=given.queue_arns,
        classic_queues=given.classic_queue_arns,
        looks=SqsLookQueue(sqs, given.looks_queue_url) if given.looks_queue_url else Unwatched(),
        workflows=StepFunctionsWorkflows(states, given.preemption_workflow_arn)
        if given.preemption_workflow_arn
        else NoWorkflows(),
        checkpoint_buckets=given.checkpoint_bucket_arns,
        own_role=given.own_role,
        channels=given.channels,
        # Each client takes a part of a cold start, so none is made without need.
        topic=SnsTopic(boto3.client("sns", config=ONCE), given.notice_topic_arn)
        if given.notice_topic_arn
        else Nowhere(),
        webhook=Webhook(boto3.client("secretsmanager", config=CONFIG), given.webhook_secret_arn, clock)
        if given.webhook_secret_arn
        else Nowhere(),
    )


@cache
def lambda_runtime() -> Runtime:
    """The runtime of this process, made at first use and kept while Lambda keeps the process."""
    return aws_runtime(os.environ)
