"""Each rule's pattern, run by moto's matcher over every file in `events/`: it hears its own kind alone."""

import json
from fnmatch import fnmatch
from typing import Any

import pytest
from moto.events.models import EventPattern, EventPatternParser
from sharewarden_tools.template import TEMPLATE, event_patterns, load_template

EVENTS = {path.stem: json.loads(path.read_text()) for path in (TEMPLATE.parent / "events").glob("*.json")}
QUEUES = {
    "QueueArns": ["arn:aws:batch:us-east-1:123456789012:job-queue/ml-train-qm"],
    "ClassicQueueArns": ["arn:aws:batch:us-east-1:123456789012:job-queue/etl-spot"],
}
PATTERNS = event_patterns(load_template(), QUEUES)

MEANT_FOR = {
    "batch_service_job_state_change__*": "ServiceJobRule",
    "batch_service_job_preemption_*": "PreemptionRule",
    "batch_service_job_queue_blocked__*": "QueueBlockedRule",
    "batch_job_*__classic*": "ClassicRule",
    "batch_unrecognised": "UnfamiliarBatchRule",
    "sagemaker_training_job_state_change__*": "TrainingJobRule",
    "cloudtrail_batch_*": "BatchCallsRule",
}
HEARD_BY_NONE = {
    "batch_service_job_state_change__other_queue",
    "cloudtrail_batch_submit_service_job",
}


def matching_rules(event: dict[str, Any], patterns: dict[str, dict[str, Any]] = PATTERNS) -> list[str]:
    return [rule for rule, pattern in patterns.items() if matcher(pattern).matches_event(event)]


def matcher(pattern: dict[str, Any]) -> EventPattern:
    text = json.dumps(pattern)
    return EventPattern(text, EventPatternParser(text).parse())


def meant_for(name: str) -> list[str]:
    if name in HEARD_BY_NONE:
        return []
    return [rule for glob, rule in MEANT_FOR.items() if fnmatch(name, glob)]


@pytest.mark.parametrize("name", sorted(EVENTS))
def test_an_event_reaches_exactly_the_rule_it_is_meant_for(name: str) -> None:
    assert matching_rules(EVENTS[name]) == meant_for(name)


def test_every_rule_hears_some_event() -> None:
    assert {rule for event in EVENTS.values() for rule in matching_rules(event)} == set(PATTERNS)


def test_without_classic_queues_their_events_reach_nothing() -> None:
    patterns = event_patterns(load_template(), QUEUES | {"ClassicQueueArns": ""})
    assert "ClassicRule" not in patterns
    assert matching_rules(EVENTS["batch_job_state_change__classic"], patterns) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [("source", "someone.else"), ("detail-type", "Batch Job State Change"), ("detail", {})],
)
def test_a_service_job_event_needs_source_type_and_queue(field: str, value: Any) -> None:
    event = EVENTS["batch_service_job_state_change__running"] | {field: value}
    assert matching_rules(event) == []


@pytest.mark.parametrize("state", ["Starting", "Downloading", "Stopping", "Completed"])
def test_of_a_training_job_of_nobodys_queue_only_its_beginning_to_train_is_heard(state: str) -> None:
    event = EVENTS["sagemaker_training_job_state_change__started_by_hand"]
    assert matching_rules(event | {"detail": event["detail"] | {"SecondaryStatus": state}}) == []


@pytest.mark.parametrize("call", ["UpdateServiceJob", "TerminateServiceJobs", "DeleteQuotaShare"])
def test_a_writing_call_is_heard_whoever_made_it(call: str) -> None:
    event = EVENTS["cloudtrail_batch_update_service_job"]
    event = event | {"detail": event["detail"] | {"eventName": call}}
    assert matching_rules(event) == ["BatchCallsRule"]


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_a_pattern_fits_the_service_quota(pattern: dict[str, Any]) -> None:
    """2,048 characters (EventBridge quotas), with ten queues of the longest name."""
    longest = f"arn:aws:batch:ap-southeast-2:123456789012:job-queue/{'q' * 128}"
    assert len(json.dumps(pattern)) + 9 * len(longest) < 2048
