"""Checks of what the template made: is it all there, switched on, and able."""

from __future__ import annotations

from collections.abc import Iterator

from sharewarden.aws.errors import asking

from sharewarden_tools.template import load_template

from .findings import Seen
from .redrive import QUEUES
from .site import Site

AGAIN = "deploy this version again: make build && sam deploy"
SETTLED = frozenset({"CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE"})


def stack(site: Site) -> Iterator[Seen]:
    """The stack is in rest and has every output of this version's template."""
    status = site.described["StackStatus"]
    wanted = {name for name, output in load_template()["Outputs"].items() if "Condition" not in output}
    if missing := sorted(wanted - site.outputs.keys()):
        yield "problem", f"no output {', '.join(missing)}", AGAIN
    elif status not in SETTLED:
        yield "warning", f"the stack is in {status}", "look at its events in CloudFormation"
    else:
        yield "ok", f"{len(wanted)} outputs, {status}"


def alarms(site: Site) -> Iterator[Seen]:
    """Alarms tell somebody."""
    if site.parameters.get("AlarmTopicArn"):
        yield "ok", f"they notify {site.parameters['AlarmTopicArn']}"
    else:
        yield "warning", "they only show in CloudWatch", "deploy with AlarmTopicArn=ARN of an SNS topic"


def rules(site: Site) -> Iterator[Seen]:
    """Every rule is on, feeds the events queue, and has its dead-letter queue."""
    wanted = {
        name
        for name, resource in load_template()["Resources"].items()
        if resource["Type"] == "AWS::Events::Rule"
        and ("Condition" not in resource or site.parameters.get("ClassicQueueArns"))
    }
    faults = [fault for name in sorted(wanted) for fault in _rule_faults(site, name)]
    yield from (("problem", fault, AGAIN) for fault in faults)
    if not faults:
        yield "ok", f"{len(wanted)} rules are enabled and feed EventsQueue"


def _rule_faults(site: Site, name: str) -> Iterator[str]:
    physical = site.resources.get(name)
    if physical is None:
        yield f"{name} is not in the stack"
        return
    events = site.client("events")
    with asking("DescribeRule"):
        if events.describe_rule(Name=physical)["State"] == "DISABLED":
            yield f"{name} is disabled"
    with asking("ListTargetsByRule"):
        targets = events.list_targets_by_rule(Rule=physical)["Targets"]
    fed = {target["Arn"]: target.get("DeadLetterConfig", {}).get("Arn") for target in targets}
    queue, letters = (_queue_arn(site, queue) for queue in ("EventsQueue", "EventsDeadLetters"))
    if queue not in fed:
        yield f"{name} does not feed EventsQueue"
    elif fed[queue] != letters:
        yield f"{name} has no dead-letter queue"


def queue_policy(site: Site) -> Iterator[Seen]:
    """EventBridge may send what the rules match."""
    policy = _attributes(site, "EventsQueue", "Policy").get("Policy", "{}")
    shut_out = [
        name
        for name, resource in load_template()["Resources"].items()
        if resource["Type"] == "AWS::Events::Rule" and name in site.resources
        if f'/{site.resources[name]}"' not in policy
    ]
    if shut_out:
        yield "problem", f"EventsQueue does not let in {', '.join(shut_out)}", AGAIN
    else:
        yield "ok", "EventsQueue lets the rules in"


def dead_letters(site: Site) -> Iterator[Seen]:
    """Nothing waits for a person."""
    for queue in QUEUES:
        count = int(_attributes(site, queue, "ApproximateNumberOfMessages")["ApproximateNumberOfMessages"])
        if count:
            yield "problem", f"about {count} in {queue}", "sharewarden redrive tells why"
        else:
            yield "ok", f"{queue} is empty"


def tables(site: Site) -> Iterator[Seen]:
    """Both tables can be restored and not be deleted by mistake."""
    names = [site.outputs["StateTable"], site.outputs["AuditTable"]]
    dynamodb = site.client("dynamodb")
    for table in names:
        with asking("DescribeTable"):
            kept = dynamodb.describe_table(TableName=table)["Table"].get("DeletionProtectionEnabled", False)
        with asking("DescribeContinuousBackups"):
            backups = dynamodb.describe_continuous_backups(TableName=table)["ContinuousBackupsDescription"]
        point = backups.get("PointInTimeRecoveryDescription", {}).get("PointInTimeRecoveryStatus")
        if not kept:
            yield "problem", f"{table} may be deleted", f"{AGAIN} (DeletionProtectionEnabled)"
        if point != "ENABLED":
            yield "problem", f"{table} has no point-in-time recovery", AGAIN
        if kept and point == "ENABLED":
            yield "ok", f"{table} has point-in-time recovery and deletion protection"


def _queue_arn(site: Site, queue: str) -> str:
    return _attributes(site, queue, "QueueArn")["QueueArn"]


def _attributes(site: Site, queue: str, name: str) -> dict[str, str]:
    with asking("GetQueueAttributes"):
        url = site.queue_url(queue)
        answer = site.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=[name])
    return dict(answer.get("Attributes", {}))
