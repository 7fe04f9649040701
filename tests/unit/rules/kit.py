"""Facts and cases for the rules' tables."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple

from sharewarden.domain.rules import rule_class
from sharewarden.domain.rules.base import Fires, Guardrail, Unknown, Verdict
from sharewarden.domain.rules.facts import Facts, ShareChangeFacts, TrainingFacts

#: A Monday, 12:00 UTC, in week 49.
NOW = int(datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp() * 1000)

DEFAULTS: dict[str, dict[str, Any]] = {
    "job": {"id": "j-1", "name": "vision-r7", "queue": "ml-train-qm", "status": "RUNNABLE", "tags": {}},
    "share": {"name": "team-vision", "strategy": "LEND", "min_runtime": 600, "units": {}},
    "team": {"name": "vision", "running_instances": 0, "running_gpus": 0, "queued_jobs": 0},
    "user": {"name": "ana", "running_instances": 0, "running_gpus": 0, "queued_jobs": 0},
    "sla": {"name": "gold"},
    "change": {"now": NOW, "queue": "ml-train-qm", "share": "team-vision"},
    "training": {
        "now": NOW,
        "arn": "arn:aws:sagemaker:us-east-1:123456789012:training-job/t",
        "status": "InProgress",
    },
}
SCOPES: dict[str, type[ShareChangeFacts | TrainingFacts]] = {
    "change": ShareChangeFacts,
    "training": TrainingFacts,
}


class Case(NamedTuple):
    """One row: a rule with ``options`` on ``given`` facts says ``says``: a text,"
    " nothing, or what is unknown."""

    name: str
    options: dict[str, Any]
    given: dict[str, Any]
    says: str | Unknown | None
    figures: dict[str, Any] | None = None


def unknown(what: str) -> Unknown:
    return Unknown(what=what)


def facts(**given: Any) -> Facts:
    """Facts of a waiting job whose tags were read and are none, with what is given."""
    now = given.pop("now", NOW)
    parts = {"job": {}} | given
    filled = {name: None if part is None else DEFAULTS[name] | part for name, part in parts.items()}
    return Facts.model_validate({"now": now} | filled)


def entry(rule: str, options: dict[str, Any]) -> Guardrail:
    return rule_class(rule).model_validate({"rule": rule} | options)


def word(rule: Guardrail, given: dict[str, Any]) -> Verdict:
    """The rule's word on the facts; ``change`` and ``training`` are those of the other scopes."""
    for scope, model in SCOPES.items():
        if scope in given:
            seen: Any = model.model_validate(DEFAULTS[scope] | given[scope])
            return rule.decide_change(seen) if scope == "change" else rule.decide_training(seen)
    return rule.decide(facts(**given))


def fires(verdict: Verdict) -> Fires:
    assert isinstance(verdict, Fires)
    return verdict
