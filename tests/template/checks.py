"""What the template promises, each as a check that names what is wrong (see `test_sabotage.py`)."""

from collections.abc import Callable, Iterator

from sharewarden.intake.sweeps import MEASURED

from tests.template.stack import Properties, Stack

Check = Callable[[Stack], Iterator[str]]

#: What means trouble when it is not zero, or missing, or high.
OUTCOMES = ("notices_failed", "notices_unsure", "looks_unanswered")
FIGURES = (
    *("behind", "left", "unread", "failed", "queues"),
    *("oldest_wish_ms", "policy_unloadable", "audit_changed"),
    *OUTCOMES,
)

FORTNIGHT = 14 * 24 * 3600
#: A name that we choose would forbid a second stack, or a change that replaces the resource.
NAMES = {
    "AlarmName",
    "FunctionName",
    "LayerName",
    "LogGroupName",
    "ManagedPolicyName",
    "Name",
    "QueueName",
    "RoleName",
    "TableName",
}


def rules(stack: Stack) -> Iterator[str]:
    """Every rule delivers to the events queue and keeps what it cannot deliver."""
    for name, rule in stack.of_type("AWS::Events::Rule").items():
        letters = [target.get("DeadLetterConfig", {}).get("Arn") for target in rule["Targets"]]
        if letters != [stack.arn("EventsDeadLetters")]:
            yield f"{name} has no dead-letter queue"
        if [target["Arn"] for target in rule["Targets"]] != [stack.arn("EventsQueue")]:
            yield f"{name} does not deliver to EventsQueue"
        if rule.get("State", "ENABLED") != "ENABLED":
            yield f"{name} is not enabled"
        if "EventBusName" in rule:
            yield f"{name} is not on the default bus, where AWS services send"


def queue_policy(stack: Stack) -> Iterator[str]:
    """Every rule and nobody else may send to the events queues."""
    (policy,) = stack.of_type("AWS::SQS::QueuePolicy").values()
    (statement,) = policy["PolicyDocument"]["Statement"]
    if (statement["Action"], statement["Principal"]) != (
        "sqs:SendMessage",
        {"Service": "events.amazonaws.com"},
    ):
        yield "EventsQueuePolicy allows more than EventBridge to send"
    if set(statement["Resource"]) != {stack.arn("EventsQueue"), stack.arn("EventsDeadLetters")}:
        yield "EventsQueuePolicy is not about the events queues"
    allowed = set(statement.get("Condition", {}).get("ArnEquals", {}).get("aws:SourceArn", ["anybody"]))
    for odd in allowed ^ {stack.arn(rule) for rule in stack.of_type("AWS::Events::Rule")}:
        yield f"EventsQueuePolicy and the rules differ in {odd}"


def queues(stack: Stack) -> Iterator[str]:
    """A queue is encrypted, keeps messages as long as it can, gives up late and to a queue of its kind."""
    everyone = stack.of_type("AWS::SQS::Queue")
    for name, queue in everyone.items():
        if queue.get("SqsManagedSseEnabled") is not True:
            yield f"{name} is not encrypted"
        if queue["MessageRetentionPeriod"] != FORTNIGHT:
            yield f"{name} forgets messages too soon"
        if not name.endswith("DeadLetters"):
            letters = f"{name.removesuffix('Queue')}DeadLetters"
            redrive = queue.get("RedrivePolicy", {})
            if redrive.get("deadLetterTargetArn") != stack.arn(letters):
                yield f"{name} has no dead-letter queue"
            if redrive.get("maxReceiveCount", 0) < 10:
                yield f"{name} gives up too soon"
            if queue.get("FifoQueue") != everyone[letters].get("FifoQueue"):
                yield f"{name} and {letters} are not of one kind"


def readers(stack: Stack) -> Iterator[str]:
    """A queue hides a message for six time-outs of its reader, which reports failures one by one."""
    everyone = stack.of_type("AWS::SQS::Queue")
    for name, function, source in stack.sources("SQS"):
        queue = everyone[stack.short(source["Queue"])]
        if queue["VisibilityTimeout"] < 6 * function["Timeout"]:
            yield f"{name} may be slower than its queue is patient"
        if source.get("FunctionResponseTypes") != ["ReportBatchItemFailures"]:
            yield f"{name} does not report failed messages one by one"


def schedules(stack: Stack) -> Iterator[str]:
    """The sweep comes every five minutes and ends before the next one."""
    for name, function, source in stack.sources("ScheduleV2"):
        if source["ScheduleExpression"] != "rate(5 minutes)" or function["Timeout"] >= 5 * 60:
            yield f"{name} may overlap with the next one"


def tables(stack: Stack) -> Iterator[str]:
    """A table outlives mistakes; the state ages out, the audit does not and is watched."""
    for name, table in stack.of_type("AWS::DynamoDB::Table").items():
        resource = stack.resources[name]
        if table.get("PointInTimeRecoverySpecification") != {"PointInTimeRecoveryEnabled": True}:
            yield f"{name} has no point-in-time recovery"
        if table.get("DeletionProtectionEnabled") is not True:
            yield f"{name} may be deleted"
        if (resource.get("DeletionPolicy"), resource.get("UpdateReplacePolicy")) != ("Retain", "Retain"):
            yield f"{name} goes with the stack"
        if table.get("SSESpecification") != {"SSEEnabled": True}:
            yield f"{name} is not encrypted with a KMS key"
        if ("TimeToLiveSpecification" in table) is (name == "Audit"):
            yield f"{name}: only the state ages out"
    if (
        "Audit" in stack.resources
        and "StreamSpecification" not in stack.of_type("AWS::DynamoDB::Table")["Audit"]
    ):
        yield "Audit has no stream"


def audit_guard(stack: Stack) -> Iterator[str]:
    """Changed and removed records, and nothing else, reach the guard."""
    sources = list(stack.sources("DynamoDB"))
    if [name for name, _, _ in sources] != ["AuditGuard"]:
        yield "nobody watches the audit"
    for name, _, source in sources:
        patterns = [each["Pattern"] for each in source["FilterCriteria"]["Filters"]]
        if patterns != ['{"eventName": ["MODIFY", "REMOVE"]}']:
            yield f"{name} hears something else than changed and removed records"
        if source["StartingPosition"] != "TRIM_HORIZON":
            yield f"{name} may start behind a change"


def functions(stack: Stack) -> Iterator[str]:
    """A function has a role and a log of its own, and two alarms."""
    for name, function in stack.functions.items():
        if function["Role"] != stack.arn(f"{name}Role"):
            yield f"{name} has no role of its own"
        if "Policies" in function:
            yield f"{name} has policies, which are ignored beside a role"
        if function.get("LoggingConfig") != {"LogGroup": f"{name}Log"}:
            yield f"{name} has no log of its own"
        elif stack.resources[f"{name}Log"]["Properties"].get("RetentionInDays") != 90:
            yield f"{name}Log is kept for ever"
        for metric in ("Errors", "Throttles"):
            if not _watched(stack, "AWS/Lambda", metric, name):
                yield f"{name} has no alarm for {metric}"


def machines(stack: Stack) -> Iterator[str]:
    """An execution is there once by its name; a machine has a role, a log and two alarms of its own."""
    for name, machine in stack.of_type("AWS::Serverless::StateMachine").items():
        if machine["Type"] != "STANDARD":
            yield f"{name} is started anew by each call"
        if machine["Role"] != stack.arn(f"{name}Role"):
            yield f"{name} has no role of its own"
        logs = [each["CloudWatchLogsLogGroup"]["LogGroupArn"] for each in machine["Logging"]["Destinations"]]
        if machine["Logging"]["Level"] == "OFF" or logs != [stack.arn(f"{name}Log")]:
            yield f"{name} has no log of its own"
        for metric in ("ExecutionsFailed", "ExecutionsTimedOut"):
            if not _watched(stack, "AWS/States", metric, stack.arn(name)):
                yield f"{name} has no alarm for {metric}"


def alarms(stack: Stack) -> Iterator[str]:
    """Queues, dead letters and each figure that means trouble are watched."""
    for queue, properties in stack.of_type("AWS::SQS::Queue").items():
        metric = (
            "ApproximateAgeOfOldestMessage"
            if "RedrivePolicy" in properties
            else "ApproximateNumberOfMessagesVisible"
        )
        if not _watched(stack, "AWS/SQS", metric, stack.value({"Fn::GetAtt": [queue, "QueueName"]})):
            yield f"{queue} has no alarm for {metric}"
    for figure in FIGURES:
        if not _watched(stack, "Sharewarden", figure, "sharewarden"):
            yield f"no alarm for {figure}"


def alarm_texts(stack: Stack) -> Iterator[str]:
    """An alarm says what it means, tells people, and waits for a figure that somebody writes."""
    for name, alarm in stack.of_type("AWS::CloudWatch::Alarm").items():
        if alarm.get("AlarmActions") != [stack.parameters["AlarmTopicArn"]]:
            yield f"{name} tells nobody"
        if len(alarm.get("AlarmDescription", "")) < 20:
            yield f"{name} does not say what it means"
        ours = {metric for namespace, metric, _ in _metrics(alarm) if namespace == "Sharewarden"}
        for unknown in ours - {*MEASURED, *OUTCOMES, "audit_changed", "policy_unloadable"}:
            yield f"{name} waits for {unknown}, which nobody writes"


def names(stack: Stack) -> Iterator[str]:
    """Names are CloudFormation's to make."""
    for name, resource in stack.resources.items():
        for fixed in NAMES & resource["Properties"].keys():
            yield f"{name} has a fixed {fixed}"


def _watched(stack: Stack, namespace: str, metric: str, subject: str) -> bool:
    everything = (
        each for alarm in stack.of_type("AWS::CloudWatch::Alarm").values() for each in _metrics(alarm)
    )
    return (namespace, metric, subject) in everything


def _metrics(alarm: Properties) -> Iterator[tuple[str, str, str]]:
    """(namespace, metric, value of its one dimension) of all that an alarm looks at."""
    simple = [alarm] if "MetricName" in alarm else []
    for metric in simple + [
        each["MetricStat"]["Metric"] for each in alarm.get("Metrics", ()) if "MetricStat" in each
    ]:
        (dimension,) = metric["Dimensions"]
        yield metric["Namespace"], metric["MetricName"], dimension["Value"]
