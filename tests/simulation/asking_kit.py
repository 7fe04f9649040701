"""A full share with in-share preemption: two jobs that save run in it, and a third one waits for a bump."""

from __future__ import annotations

import json
from typing import Any

from sharewarden.domain.base import last_part
from sharewarden.domain.observation import DISPATCHED
from sharewarden.domain.policy import Policy
from sharewarden.domain.save_request import SaveRequest, request_key
from sharewarden.usecases.bump import BumpRequest, bump

from tests.simulation.samples import ARN, JOB, attempt_row, described, event, share
from tests.simulation.world import ENFORCE, MINUTE, NOW, QUEUE, Json, World, stored, world
from tests.unit.checkpoint_kit import manifest

WAIT = 2 * MINUTE
BUCKETS = frozenset({"arn:aws:s3:::ckpt"})
ASKING = Policy.model_validate(ENFORCE.model_dump() | {"checkpoints": {"ask_before_bump": WAIT}})
VICTIMS = ("low", "lower")
PRIORITIES = {"low": 150, "lower": 100}


def arn(job: str) -> str:
    return f"{ARN.rpartition('/')[0]}/{job}"


def uri(job: str) -> str:
    return f"s3://ckpt/team/{job}"


def attempt(job: str) -> str:
    return f"arn:aws:sagemaker:us-east-1:123456789012:training-job/AWSBatch{job}"


def changed(job: str, status: str, at: int) -> Json:
    """The event of a job's new state."""
    detail = {"jobArn": arn(job), "jobName": job, "jobQueue": QUEUE, "status": status, "createdAt": NOW}
    dispatched = {"latestAttempt": attempt_row(attempt(job))} if status in DISPATCHED else {}
    return event("Batch Service Job State Change", detail | dispatched, at)


def running(one: World, job: str, priority: int, **update: Any) -> None:
    """A job that runs since now and has saved once, by the helper."""
    now = one.clock.at
    known = {"job": job, "arn": arn(job), "name": job, "status": "RUNNING", "priority": priority}
    dispatch = {"attempt": attempt(job), "scheduled_at": now, "instance_count": 1, "checkpoint_uri": uri(job)}
    one.batch.tell(described(**known | dispatch | update))
    one.take(changed(job, "RUNNING", now))
    saves(one, job, 1)


def set_of(step: int) -> str:
    return f"step-{step:012d}-aaaa"


def saves(one: World, job: str, step: int) -> None:
    """A complete set of the helper's layout."""
    folder = set_of(step)
    told = manifest(step, saved_at=one.clock.at, training_job=last_part(attempt(job)))
    one.runtime.checkpoints.put(uri(job), f"{folder}/model.pt", b"model")
    one.runtime.checkpoints.put(uri(job), f"{folder}/_SAVED.json", told)


def full(policy: Policy = ASKING, buckets: frozenset[str] = BUCKETS, *, in_share: bool = True) -> World:
    """The share's two instances are taken, and what the jobs save has been seen."""
    one = world(policy=policy, buckets=buckets)
    one.batch.quota_shares[QUEUE] = [share(2).model_copy(update={"in_share_preemption": in_share})]
    for job in VICTIMS:
        running(one, job, PRIORITIES[job])
    one.batch.tell(described(instance_count=1))
    one.take(changed(JOB, "RUNNABLE", one.clock.at))
    one.sweep("first")
    one.clock.advance(MINUTE)
    one.watch()
    return one


def bumped(one: World, by: int = 100, name: str = "b1", job: str = JOB) -> None:
    bump(one.runtime, BumpRequest(id=name, job=job, actor="U1", reason="a deadline", by=by))


def request_of(one: World, job: str = JOB, version: int = 1) -> SaveRequest | None:
    return one.ledger.load(SaveRequest, request_key(job, version))


def requests(one: World) -> list[SaveRequest]:
    return stored(one.ledger, SaveRequest)  # type: ignore[return-value]


def written(one: World, job: str) -> Json | None:
    """The request that the job's helper would read now."""
    text = one.runtime.checkpoints.read(uri(job), _request(job), 65_536)
    return None if text is None else json.loads(text)


def answers(one: World, job: str, step: int = 2, *, uploaded: bool = True) -> None:
    """As the helper does: save, then acknowledge the request that lies there."""
    told = written(one, job)
    assert told is not None, f"{job} was not asked"
    if uploaded:
        saves(one, job, step)
    ack = {"request_id": told["request_id"], "step": step, "saved_at": one.clock.at, "set": set_of(step)}
    key = f".sharewarden/acks/{last_part(attempt(job))}/{told['request_id']}.json"
    one.runtime.checkpoints.put(uri(job), key, json.dumps({"format": 1} | ack).encode())


def objects(one: World) -> list[str]:
    """Everything of ours in the bucket."""
    bucket = one.runtime.checkpoints.buckets["ckpt"]  # type: ignore[attr-defined]
    return sorted(key for key in bucket if ".sharewarden/" in key)


def _request(job: str) -> str:
    return f".sharewarden/requests/{last_part(attempt(job))}.json"
