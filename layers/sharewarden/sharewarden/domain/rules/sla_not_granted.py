"""A job asks for an SLA class that the policy does not have, or does not grant to its team."""

from typing import Literal

from .base import Fires, Guardrail, Unknown, Verdict
from .facts import Facts


class Rule(Guardrail):
    """A job's SLA class is one that the policy grants to its team."""

    rule: Literal["sla-not-granted"]

    def decide(self, facts: Facts) -> Verdict:
        job, sla = facts.job, facts.sla
        if job.tags is None:
            return Unknown(what="job.tags")
        if job.sla is None:
            return None
        if sla is None:
            return _fires(job.sla, "the policy has no such class: correct the tag")
        if job.team is None:
            return _fires(job.sla, "it belongs to no team that could be granted one: give it a team tag")
        return _of_team(job.sla, job.team, sla.granted)


def _of_team(sla: str, team: str, granted: bool | None) -> Verdict:
    if granted is None:
        return Unknown(what="sla.granted")
    return (
        None
        if granted
        else _fires(sla, f"team {team} is not granted it: ask the platform team, or leave it out")
    )


def _fires(sla: str, why: str) -> Fires:
    return Fires(text=f"asks for SLA class {sla}, and {why}", figures={"sla": sla})
