"""Each promise broken on purpose: the check that guards it says so."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from sharewarden_tools.template import load_template

from tests.template import checks, roles
from tests.template.api_calls import Unreadable, read_sources
from tests.template.checks import Check
from tests.template.stack import RESUBMIT_ROLE, Stack

RAW = load_template()
Sabotage = Callable[[dict[str, Any]], object]
"""Changes the resources of the template in place."""


def statement(resources: dict[str, Any], role: str, sid: str) -> dict[str, Any]:
    properties = resources[role]["Properties"]
    document = properties.get("Policies", [properties])[0]["PolicyDocument"]
    found: dict[str, Any] = next(each for each in document["Statement"] if each["Sid"] == sid)
    return found


def drop(name: str, key: str) -> Sabotage:
    return lambda resources: resources[name]["Properties"].pop(key)


def put(name: str, **properties: Any) -> Sabotage:
    return lambda resources: resources[name]["Properties"].update(properties)


def edit(role: str, sid: str, **changes: Any) -> Sabotage:
    return lambda resources: statement(resources, role, sid).update(changes)


def optional(role: str, sid: str, **changes: Any) -> Sabotage:
    """``edit`` of a statement that stands in an ``!If``."""

    def change(resources: dict[str, Any]) -> None:
        document = resources[role]["Properties"]["Policies"][0]["PolicyDocument"]
        given = (each["Fn::If"][1] for each in document["Statement"] if "Fn::If" in each)
        next(each for each in given if each["Sid"] == sid).update(changes)

    return change


def at(name: str, change: Callable[[dict[str, Any]], object]) -> Sabotage:
    return lambda resources: change(resources[name]["Properties"])


def without(name: str) -> Sabotage:
    return lambda resources: resources.pop(name)


def source(function: str, event: str, **properties: Any) -> Sabotage:
    return lambda resources: resources[function]["Properties"]["Events"][event]["Properties"].update(
        properties
    )


PITR = "PointInTimeRecoverySpecification"
ANYBODY = {"Statement": [{"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}]}
NOT_ITS_OWN = {"Fn::GetAtt": ["ApplyRole", "Arn"]}
PUT_AND_DELETE = ["dynamodb:PutItem", "dynamodb:DeleteItem"]
ADMINISTRATOR = "arn:aws:iam::aws:policy/AdministratorAccess"

CASES: list[tuple[Check, str, Sabotage]] = [
    (
        checks.rules,
        "PreemptionRule has no dead-letter queue",
        at("PreemptionRule", lambda rule: rule["Targets"][0].pop("DeadLetterConfig")),
    ),
    (checks.rules, "BatchCallsRule is not enabled", put("BatchCallsRule", State="DISABLED")),
    (checks.rules, "QueueBlockedRule is not on the default", put("QueueBlockedRule", EventBusName="x")),
    (checks.queue_policy, "differ in", lambda resources: resources.update(New=resources["ClassicRule"])),
    (checks.queues, "EventsQueue has no dead-letter queue", drop("EventsQueue", "RedrivePolicy")),
    (checks.queues, "WishesQueue is not encrypted", drop("WishesQueue", "SqsManagedSseEnabled")),
    (checks.queues, "are not of one kind", drop("WishesDeadLetters", "FifoQueue")),
    (checks.queues, "EventsDeadLetters forgets", put("EventsDeadLetters", MessageRetentionPeriod=60)),
    (checks.readers, "React may be slower", put("React", Timeout=46)),
    (checks.readers, "Apply does not report", source("Apply", "FromWishes", FunctionResponseTypes=[])),
    (checks.schedules, "Sweep may overlap", put("Sweep", Timeout=300)),
    (checks.tables, "State has no point-in-time recovery", drop("State", PITR)),
    (
        checks.tables,
        "Audit has no point-in-time recovery",
        put("Audit", **{PITR: {"PointInTimeRecoveryEnabled": False}}),
    ),
    (checks.tables, "Audit may be deleted", drop("Audit", "DeletionProtectionEnabled")),
    (checks.tables, "Audit goes with the stack", lambda resources: resources["Audit"].pop("DeletionPolicy")),
    (checks.tables, "Audit: only the state ages out", put("Audit", TimeToLiveSpecification={})),
    (checks.tables, "Audit has no stream", drop("Audit", "StreamSpecification")),
    (checks.audit_guard, "nobody watches the audit", put("AuditGuard", Events={})),
    (
        checks.audit_guard,
        "AuditGuard hears something else",
        source("AuditGuard", "FromAudit", FilterCriteria={"Filters": []}),
    ),
    (checks.functions, "Apply has no alarm for Errors", without("ApplyErrorsAlarm")),
    (checks.functions, "Sweep has no alarm for Throttles", without("SweepThrottlesAlarm")),
    (checks.functions, "React has no log of its own", drop("React", "LoggingConfig")),
    (checks.functions, "SweepLog is kept for ever", drop("SweepLog", "RetentionInDays")),
    (checks.functions, "Sweep has no role of its own", put("Sweep", Role=NOT_ITS_OWN)),
    (checks.machines, "Preemption is started anew", put("Preemption", Type="EXPRESS")),
    (checks.machines, "Preemption has no role of its own", put("Preemption", Role=NOT_ITS_OWN)),
    (
        checks.machines,
        "Preemption has no log of its own",
        at("Preemption", lambda machine: machine["Logging"].update(Level="OFF")),
    ),
    (checks.machines, "no alarm for ExecutionsFailed", without("PreemptionFailedAlarm")),
    (checks.machines, "no alarm for ExecutionsTimedOut", without("PreemptionTimedOutAlarm")),
    (checks.alarms, "EventsQueue has no alarm for ApproximateAge", without("EventsLateAlarm")),
    (checks.alarms, "WishesDeadLetters has no alarm for", without("WishesDeadLettersAlarm")),
    (checks.alarms, "no alarm for behind", without("SilenceAlarm")),
    (checks.alarms, "no alarm for audit_changed", without("AuditChangedAlarm")),
    (checks.alarms, "no alarm for policy_unloadable", without("PolicyUnloadableAlarm")),
    (checks.alarm_texts, "CapHitAlarm tells nobody", drop("CapHitAlarm", "AlarmActions")),
    (checks.alarm_texts, "waits for unred, which nobody", put("UnreadAlarm", MetricName="unred")),
    (checks.names, "State has a fixed TableName", put("State", TableName="sharewarden")),
    (
        roles.no_wider,
        "dynamodb:* is a whole family",
        edit("ReactRole", "ReadAndWriteState", Action="dynamodb:*"),
    ),
    (
        roles.no_wider,
        "dynamodb:DeleteItem on Audit is not agreed on",
        edit("SweepRole", "AppendToAudit", Action=PUT_AND_DELETE),
    ),
    (
        roles.no_wider,
        "batch:ListQuotaShares is about everything",
        edit("SweepRole", "ReadShares", Resource="*"),
    ),
    (
        roles.no_wider,
        "batch:UpdateServiceJob has another condition",
        edit("ApplyRole", "SetPriorityUpToTheCap", Condition={}),
    ),
    (
        roles.no_wider,
        "batch:TerminateServiceJob has another condition",
        edit("ApplyRole", "TerminateJobs", Condition={}),
    ),
    (
        roles.no_wider,
        "ApplyRole: batch:SubmitServiceJob has another condition",
        optional("ApplyRole", "SubmitAgain", Condition={}),
    ),
    (
        roles.no_wider,
        "ApplyRole: iam:PassRole has another condition",
        optional("ApplyRole", "PassItsRole", Condition={}),
    ),
    (
        roles.no_wider,
        "ReactRole: batch:UpdateServiceJob on * is not agreed on",
        edit("ReactRole", "ReadServiceJobs", Action="batch:UpdateServiceJob"),
    ),
    (
        roles.no_wider,
        "iam:PassRole has another condition",
        edit("ScientistPolicy", "PassTrainingRoles", Condition={}),
    ),
    (
        roles.no_wider,
        "ScientistPolicy: batch:UpdateServiceJob on",
        edit("ScientistPolicy", "TagJobs", Action="batch:UpdateServiceJob"),
    ),
    (
        roles.no_wider,
        "AuditorPolicy does not only allow",
        edit("AuditorPolicy", "ReadTheAudit", Effect="Deny"),
    ),
    (
        roles.trusts,
        "ApplyRole may be taken by others",
        put("ApplyRole", AssumeRolePolicyDocument=ANYBODY),
    ),
    (
        roles.trusts,
        "PreemptionRole may be taken by others",
        at(
            "PreemptionRole",
            lambda role: role["AssumeRolePolicyDocument"]["Statement"][0].pop("Condition"),
        ),
    ),
    (
        roles.no_wider,
        "PreemptionRole: batch:TerminateServiceJob on Care is not agreed on",
        edit("PreemptionRole", "TakeSteps", Action=["lambda:InvokeFunction", "batch:TerminateServiceJob"]),
    ),
    (
        roles.as_code_needs,
        "SweepRole: states:StartExecution on Preemption is missing",
        edit("SweepRole", "StartCare", Action="states:StopExecution"),
    ),
    (
        roles.as_code_needs,
        "ApplyRole: states:StartExecution on Preemption is missing",
        put("Apply", Environment={"Variables": {"PREEMPTION_WORKFLOW_ARN": {"Ref": "Preemption"}}}),
    ),
    (
        roles.trusts,
        "ApplyRole has more than its own policy",
        put("ApplyRole", ManagedPolicyArns=[ADMINISTRATOR]),
    ),
    (
        roles.as_code_needs,
        "dynamodb:Query on State/index/open is missing",
        edit("SweepRole", "ListWhatIsOpen", Action="dynamodb:GetItem"),
    ),
    (
        roles.as_code_needs,
        "sqs:SendMessage on EventsQueue is not called",
        edit("SweepRole", "Send", Resource={"Fn::GetAtt": ["EventsQueue", "Arn"]}),
    ),
]


@pytest.mark.parametrize(
    ("check", "fault", "sabotage"), CASES, ids=[f"{case[0].__name__}: {case[1]}" for case in CASES]
)
def test_a_broken_promise_is_reported(check: Check, fault: str, sabotage: Sabotage) -> None:
    template = copy.deepcopy(RAW)
    sabotage(template["Resources"])
    faults = list(check(Stack(template)))
    assert [each for each in faults if fault in each], faults


USE_CASES = "sharewarden.usecases."
CODE: list[tuple[str, str, str, str]] = [
    (
        "SweepRole: batch:UpdateServiceJob on",
        USE_CASES + "sweep",
        "    release(walk)",
        "    walk.runtime.batch.set_priority('', 1)",
    ),
    (
        "SweepRole: dynamodb:Query on Audit/index/* is missing",
        USE_CASES + "untraced",
        "runtime.ledger.commit(",
        "runtime.audit.by_job(",
    ),
    (
        "dynamodb:UpdateItem on Audit is missing",
        "sharewarden.aws.dynamodb",
        "self._client.put_item(",
        "self._client.update_item(",
    ),
    (
        "dynamodb:DeleteItem on State is missing",
        "sharewarden.aws.dynamodb",
        '{"Put": put}',
        '{"Delete": put}',
    ),
    (
        f"batch:UpdateServiceJob on {roles.JOBS} is not called",
        USE_CASES + "set_priority",
        "runtime.batch.set_priority(",
        "print(",
    ),
    (
        f"batch:TerminateServiceJob on {roles.JOBS} is not called",
        USE_CASES + "terminate",
        "runtime.batch.terminate(",
        "print(",
    ),
    (
        f"iam:PassRole on {RESUBMIT_ROLE} is not called",
        USE_CASES + "resubmit",
        "runtime.batch.submit(",
        "str(",
    ),
    (
        "ApplyRole: batch:ListServiceJobs on * is not called",
        USE_CASES + "resubmit",
        "runtime.batch.named(",
        "sorted(",
    ),
    (
        "CareRole: batch:TerminateServiceJob on",
        USE_CASES + "care.close",
        "    return Taken(",
        "    care.runtime.batch.terminate('', '')\n    return Taken(",
    ),
    (
        "dynamodb:PutItem on Audit is not called",
        "sharewarden.bootstrap",
        "given.audit_table",
        "given.state_table",
    ),
]


@pytest.mark.parametrize(("fault", "module", "old", "new"), CODE, ids=[case[0] for case in CODE])
def test_code_that_calls_something_else_is_reported(fault: str, module: str, old: str, new: str) -> None:
    sources = read_sources()
    assert old in sources[module]
    sources[module] = sources[module].replace(old, new)
    faults = list(roles.as_code_needs(Stack(RAW), sources))
    assert [each for each in faults if fault in each], faults


@pytest.mark.parametrize(
    "extra",
    [
        "PORT = lambda runtime: runtime.batch",
        "from . import change as whole\nPORT = whole",
        "from importlib import import_module\nPORT = import_module('x')",
    ],
    ids=["a port handed around", "a module imported whole", "an import by name"],
)
def test_code_that_cannot_be_followed_is_refused(extra: str) -> None:
    sources = read_sources()
    text = sources[USE_CASES + "apply"].replace("    record = ", "    PORT; record = ", 1)
    sources[USE_CASES + "apply"] = f"{text}\n{extra}\n"
    with pytest.raises(Unreadable):
        list(roles.as_code_needs(Stack(RAW), sources))
