"""Checks of who may do and see what: the functions' roles, and the trail that tells who did it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sharewarden.aws.errors import asking

from sharewarden_tools.template import load_template

from .checks_wiring import AGAIN
from .findings import Seen
from .site import Site


def trail(site: Site) -> Iterator[Seen]:
    """A trail logs who changes jobs and shares: it only attributes, nothing else needs it."""
    cloudtrail = site.client("cloudtrail")
    with asking("DescribeTrails"):
        trails = cloudtrail.describe_trails()["trailList"]
    logging = [row["Name"] for row in trails if _logs_writes(cloudtrail, row["TrailARN"])]
    if logging:
        yield "ok", f"{logging[0]} logs management events"
    else:
        lost = "drift and share changes are still found, but not who made them"
        yield "warning", f"no trail logs management events: {lost}", "make a trail that does"


def _logs_writes(cloudtrail: Any, arn: str) -> bool:
    with asking("GetTrailStatus"):
        if not cloudtrail.get_trail_status(Name=arn)["IsLogging"]:
            return False
    with asking("GetEventSelectors"):
        found = cloudtrail.get_event_selectors(TrailName=arn)
    plain = any(
        row.get("IncludeManagementEvents") and row.get("ReadWriteType") in ("All", "WriteOnly")
        for row in found.get("EventSelectors", ())
    )
    return plain or any(map(_takes_management_writes, found.get("AdvancedEventSelectors", ())))


def _takes_management_writes(selector: Mapping[str, Any]) -> bool:
    """CloudTrail user guide, Advanced event selectors: no word on ``readOnly`` means both."""
    fields = {row["Field"]: row for row in selector["FieldSelectors"]}
    wanted = fields.get("eventCategory", {}).get("Equals") == ["Management"]
    return bool(wanted and fields.get("readOnly", {}).get("Equals") != ["true"])


def roles(site: Site) -> Iterator[Seen]:
    """What the functions' roles grant, IAM would allow: no boundary and no other policy stands against it."""
    names = [name for name, item in load_template()["Resources"].items() if item["Type"] == "AWS::IAM::Role"]
    iam = site.client("iam")
    for name in names:
        denied = sorted(_denied(iam, site.resources[name])) if name in site.resources else ["everything"]
        if denied:
            yield (
                "problem",
                f"{name} is denied {', '.join(denied)}",
                f"look for a boundary or SCP; else {AGAIN}",
            )
        else:
            yield "ok", f"{name} may do what it needs"


def _denied(iam: Any, role: str) -> Iterator[str]:
    with asking("GetRole"):
        arn = iam.get_role(RoleName=role)["Role"]["Arn"]
    with asking("ListRolePolicies"):
        names = iam.list_role_policies(RoleName=role)["PolicyNames"]
    if not names:
        yield "everything: it has no policy"
    for name in names:
        with asking("GetRolePolicy"):
            document = iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
        for statement in document["Statement"]:
            yield from _denied_of(iam, arn, statement)


def _denied_of(iam: Any, arn: str, statement: Mapping[str, Any]) -> Iterator[str]:
    # The simulator wants an example where a policy has a wildcard.
    targets = [one if one == "*" else one.replace("*", "any") for one in _as_list(statement["Resource"])]
    with asking("SimulatePrincipalPolicy"):
        answer = iam.simulate_principal_policy(
            PolicySourceArn=arn,
            ActionNames=_as_list(statement["Action"]),
            ResourceArns=targets,
            ContextEntries=list(_context(statement.get("Condition", {}))),
        )
    for result in answer["EvaluationResults"]:
        if result["EvalDecision"] != "allowed":
            yield result["EvalActionName"]


def _context(conditions: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The request that each condition is made for: its own values."""
    for operator, keys in conditions.items():
        kind = "numeric" if operator.startswith("Numeric") else "string"
        for key, values in keys.items():
            yield {
                "ContextKeyName": key,
                "ContextKeyType": kind,
                "ContextKeyValues": [str(_as_list(values)[0])],
            }


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
