"""Save requests through a real S3 server on this machine, and without one."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import boto3
import pytest
from moto.server import ThreadedMotoServer
from sharewarden.aws.s3 import S3Checkpoints
from sharewarden.domain.base import last_part
from sharewarden.domain.save_request import POLL
from sharewarden_checkpoint import Manifest, Requests, Saver
from sharewarden_checkpoint.manifest import NAME
from sharewarden_checkpoint.requests import parse

from tests.simulation.asking_kit import attempt, bumped, full, request_of, uri
from tests.simulation.world import World
from tests.training.kit import python, save

URI = "s3://checkpoints/vision/run-7/"
JOB = "AWSBatchvision0123456789abcdef0123456789abcdef"
REQUEST = f"vision/run-7/.sharewarden/requests/{JOB}.json"
LATER = 4_000_000_000_000


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://{host}:{port}")
    monkeypatch.setenv("SHAREWARDEN_CHECKPOINT_URI", URI)
    monkeypatch.setenv("TRAINING_JOB_NAME", JOB)
    urlopen(Request(f"http://{host}:{port}/moto-api/reset", method="POST")).close()
    client = boto3.client("s3")
    client.create_bucket(Bucket="checkpoints")
    yield client
    client.close()
    server.stop()


def ask(s3: Any, request_id: str = "r-1", deadline: int = LATER) -> None:
    body = {"format": 1, "request_id": request_id, "asked_at": 1, "deadline": deadline}
    s3.put_object(Bucket="checkpoints", Key=REQUEST, Body=json.dumps(body))


def acks(s3: Any) -> dict[str, Any]:
    found = s3.list_objects_v2(Bucket="checkpoints", Prefix=f"vision/run-7/.sharewarden/acks/{JOB}/")
    keys = [each["Key"] for each in found.get("Contents", [])]
    bodies = [s3.get_object(Bucket="checkpoints", Key=key)["Body"].read() for key in keys]
    return {key.rsplit("/", 1)[1]: json.loads(body) for key, body in zip(keys, bodies, strict=True)}


def until(holds: Callable[[], object]) -> None:
    """The other thread's work is waited for, not slept for."""
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        threading.Event().wait(0.01)


def test_a_request_is_a_save_and_an_acknowledgement(s3: Any, tmp_path: Path) -> None:
    with Saver(tmp_path, requests=Requests(seconds=0.05)) as saver:
        save(saver, 1)
        assert not saver.should_save(2)
        ask(s3)
        until(lambda: saver.should_save(2))
        assert acks(s3) == {}
        save(saver, 2)
        until(lambda: acks(s3))
        assert not saver.should_save(3), "the object stays there, the request is done"
        ask(s3, "r-2")
        until(lambda: saver.should_save(3))
        save(saver, 3)
    newest = saver.latest()
    assert newest is not None
    manifest = Manifest.from_json((newest.folder / NAME).read_bytes())
    assert manifest.reason == "request"
    assert {name: ack["step"] for name, ack in acks(s3).items()} == {"r-1.json": 2, "r-2.json": 3}
    assert acks(s3)["r-2.json"] == {
        "format": 1, "request_id": "r-2", "step": 3, "saved_at": manifest.saved_at, "set": newest.folder.name,
    }  # fmt: skip


def test_a_request_seen_during_a_save_waits_for_the_next(s3: Any, tmp_path: Path) -> None:
    requests = Requests(seconds=0.05)
    with Saver(tmp_path, requests=requests) as saver:
        with saver.save(1):
            ask(s3)
            until(requests.pending)
        assert saver.should_save(2)


HELPER = """
import sys, time
from pathlib import Path
from sharewarden_checkpoint import Requests, Saver
with Saver(Path(sys.argv[1]), requests=Requests(seconds=0.05)) as saver:
    step = 0
    while not saver.stopping:
        step += 1
        time.sleep(0.01)
        if saver.should_save(step):
            with saver.save(step) as folder:
                (folder / "model.pt").write_bytes(b"model")
"""


def test_the_helper_answers_what_the_controller_asks(s3: Any, tmp_path: Path) -> None:
    """Its process, and the controller's own code, over the same S3; SageMaker's upload is done by hand."""
    s3.create_bucket(Bucket="ckpt")
    pool = full()
    pool.runtime = replace(pool.runtime, checkpoints=S3Checkpoints(s3))
    pool.clock.at = int(time.time() * 1000)
    pool.looks.take_due()  # what was saved in the story is not in this S3
    bumped(pool)
    where = {"SHAREWARDEN_CHECKPOINT_URI": uri("low"), "TRAINING_JOB_NAME": last_part(attempt("low"))}
    process = python(HELPER, str(tmp_path), **where)
    try:
        assert pool.apply_all() == ["saving"]
        assert "saves_waiting" in pool.watch()
        until(lambda: s3.list_objects_v2(Bucket="ckpt", Prefix="team/low/.sharewarden/acks/").get("Contents"))
        assert state_of(pool, "low") == "uploading"
        for path in tmp_path.rglob("*"):
            if path.is_file():
                key = f"team/low/{path.relative_to(tmp_path).as_posix()}"
                s3.put_object(Bucket="ckpt", Key=key, Body=path.read_bytes())
        assert state_of(pool, "low") == "saved"
        assert state_of(pool, "lower") == "asked"
    finally:
        process.terminate()
        process.communicate(timeout=30)


def state_of(pool: World, job: str) -> str:
    """After the controller has looked once more."""
    pool.clock.advance(POLL)
    pool.watch()
    request = request_of(pool)
    assert request is not None
    return next(victim.state for victim in request.victims or () if victim.job == job)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b"9" * 70_000,
        b'{"format": 2, "request_id": "r", "deadline": 4000000000000}',
        b'{"format": 1, "request_id": "../../x", "deadline": 4000000000000}',
        b'{"format": 1, "request_id": "r"}',
        b'{"format": 1, "request_id": "r", "deadline": true}',
    ],
)
def test_what_is_no_request_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(body)


def test_garbage_and_requests_that_nobody_waits_for_ask_for_nothing(
    s3: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    requests = Requests(seconds=0.02)
    with Saver(tmp_path, requests=requests) as saver:
        s3.put_object(Bucket="checkpoints", Key=REQUEST, Body=b"{}")
        until(lambda: "not a save request" in caplog.text)
        ask(s3, "too-late", deadline=1)
        ask(s3, "r-1")
        until(lambda: saver.should_save(1))
        assert requests.pending() == {"r-1"}


def test_with_s3_down_the_training_goes_on_and_the_log_stays_short(
    s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """No server at the address; nor is there one when the acknowledgement is due."""
    asked = threading.Semaphore(0)
    look = Requests._look

    def counted(self: Requests) -> None:
        asked.release()
        look(self)

    monkeypatch.setattr(Requests, "_look", counted)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with caplog.at_level(logging.WARNING), Saver(tmp_path, every=0, requests=Requests(seconds=0)) as saver:
        for step in range(5):
            assert asked.acquire(timeout=30)
            assert saver.should_save(step)
            save(saver, step)
    newest = saver.latest()
    assert newest is not None
    assert newest.step == 4
    assert len([each for each in caplog.records if "said once" in each.message]) == 1


def test_an_acknowledgement_that_failed_comes_later(s3: Any, tmp_path: Path) -> None:
    requests = Requests(seconds=0.02)
    with Saver(tmp_path, requests=requests) as saver:
        ask(s3)
        until(lambda: saver.should_save(1))
        put, requests._client.put_object = requests._client.put_object, None
        save(saver, 1)
        until(lambda: requests._logged)
        assert acks(s3) == {}
        requests._client.put_object = put
        until(lambda: acks(s3))


@pytest.mark.parametrize(("uri", "job"), [(None, JOB), (URI, None)])
def test_outside_of_a_job_nothing_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uri: str | None, job: str | None
) -> None:
    monkeypatch.delenv("TRAINING_JOB_NAME", raising=False)
    before = threading.active_count()
    with Saver(tmp_path, requests=Requests(uri, job)):
        assert threading.active_count() == before


@pytest.mark.parametrize("uri", ["checkpoints/vision", "https://example.com/x", "s3://"])
def test_what_is_no_s3_uri_is_said_at_once(uri: str) -> None:
    with pytest.raises(ValueError, match="not an S3 URI"):
        Requests(uri, JOB)
