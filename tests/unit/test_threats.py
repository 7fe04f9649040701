"""Threats of docs/threat-model.md that no other test is about."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from sharewarden import messages
from sharewarden.aws.batch import AwsBatch
from sharewarden.domain.record import JobRecord, absorb, new_record
from sharewarden.intake.events import take_in
from sharewarden.usecases.bump import BumpRequest, bump
from sharewarden_tools.local.functions import Context, load_handler
from sharewarden_tools.memory import MemoryClock
from sharewarden_tools.template import TEMPLATE

from tests.simulation.samples import ARN, JOB, api_call, described, state
from tests.simulation.world import ENFORCE, MINUTE, NOW, QUEUE, World, facts_of, world

SECRET = "s3cret-value"


def pool() -> World:
    one = world()
    one.batch.tell(described())
    return one


def test_a_forged_event_changes_nothing_in_batch() -> None:
    one = pool()
    bump(one.runtime, BumpRequest(id="b", job=JOB, actor="U1", reason="r", by=100))
    one.apply_all()
    before = list(one.batch.priorities)
    one.take(state("FAILED", NOW, stoppedAt=NOW, statusReason="forged"), state("RUNNING", NOW + 5000))
    one.settle()
    assert one.batch.priorities == before


def test_a_forged_echo_hides_no_drift() -> None:
    one = pool()
    one.take(state("RUNNABLE", NOW))
    own = f"arn:aws:sts::123456789012:assumed-role/{one.runtime.own_role}/apply"
    told = api_call("UpdateServiceJob", {"jobId": ARN, "schedulingPriority": 900}, NOW + 1000)
    told["detail"]["userIdentity"] = {"type": "AssumedRole", "arn": own}
    one.take(told)
    assert facts_of(one.ledger, "attribution") == []
    one.batch.tell(described(priority=900))
    for _ in range(2):
        one.clock.advance(ENFORCE.drift_settle + MINUTE)
        one.sweep()
    assert [fact.after for fact in facts_of(one.ledger, "drift")] == ["900"]


class Answering:
    """A Batch client that describes one job, whose payload holds a secret."""

    def describe_service_job(self, jobId: str) -> dict[str, Any]:  # noqa: N803 - boto3's signature
        payload = {
            "HyperParameters": {"token": SECRET},
            "Environment": {"TOKEN": SECRET},
            "ResourceConfig": {"InstanceType": "ml.g5.xlarge", "InstanceCount": 1},
        }
        return {
            "jobArn": ARN,
            "jobName": "n",
            "jobQueue": QUEUE,
            "status": "RUNNABLE",
            "createdAt": NOW,
            "serviceRequestPayload": json.dumps(payload),
        }


def test_nothing_private_is_kept_of_payload_or_event() -> None:
    client: Any = Answering()
    description = AwsBatch(client, MemoryClock(NOW)).describe(JOB)
    assert description is not None
    record: JobRecord = absorb(new_record(description), description)
    assert record.instance_type == "ml.g5.xlarge"
    assert SECRET not in record.model_dump_json()

    one = pool()
    sample = TEMPLATE.parent / "events" / "sagemaker_training_job_state_change__inprogress_training.json"
    event = json.loads(sample.read_text())
    event["detail"] |= {"HyperParameters": {"token": SECRET}, "Environment": {"TOKEN": SECRET}}
    assert take_in(one.runtime, json.dumps(event)).outcome == "tracked"
    assert one.ledger.items
    assert all(SECRET not in item.model_dump_json() for item in one.ledger.items.values())


def test_a_log_never_shows_a_body(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages.metrics.provider, "namespace", "Sharewarden")
    one, log = pool(), io.StringIO()
    handler = messages.logger.registered_handler
    before = handler.setStream(log)  # type: ignore[attr-defined]
    bodies = [f'{{"x": "{SECRET}"', f'{{"source": "{SECRET}"}}', json.dumps(state("RUNNABLE", NOW, x=SECRET))]
    records = [
        {"messageId": str(n), "body": body, "attributes": {"ApproximateReceiveCount": "1"}}
        for n, body in enumerate(bodies)
    ]
    react = load_handler(TEMPLATE.parent / "functions" / "react" / "app.py")
    context = Context("r1", one.clock, NOW + MINUTE)
    try:
        one.batch.down = "throttled"
        react({"Records": records}, context, one.runtime)
    finally:
        handler.setStream(before)  # type: ignore[attr-defined]
    assert log.getvalue().count('"buried"') == 2
    assert '"deferred"' in log.getvalue()
    assert SECRET not in log.getvalue()
