"""Save requests: an object in S3 by which a controller asks the running training job to save soon.

    <checkpoint S3Uri>/.sharewarden/requests/<training job>.json            written by the controller
    <checkpoint S3Uri>/.sharewarden/acks/<training job>/<request id>.json   written here once it is saved

SageMaker copies objects from S3 to the container at the start of a job only, so they are asked for with
boto3, in a thread of its own. S3 out of reach is logged, once a kind of error, and the training goes on.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

log = logging.getLogger(__name__)

ENVIRONMENT = "SHAREWARDEN_CHECKPOINT_URI"
URI = re.compile(r"s3://([^/]+)/?(.*)")
REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
MOST_BYTES = 65_536
MOST_LOGGED = 10


class Request(NamedTuple):
    id: str
    deadline: int
    """Epoch ms after which nobody waits for it any more."""


class Requests:
    """Asks for requests every ``seconds``; for none without a URI and the name of the training job."""

    def __init__(
        self, uri: str | None = None, training_job: str | None = None, seconds: float = 15.0
    ) -> None:
        uri = uri or os.environ.get(ENVIRONMENT)
        self._job = training_job or os.environ.get("TRAINING_JOB_NAME")
        self._place = URI.fullmatch(uri) if uri else None
        if uri and not self._place:
            raise ValueError(f"not an S3 URI: {uri}")
        self._seconds = seconds
        self._lock = threading.Lock()
        self._pending: set[str] = set()
        self._seen: set[str] = set()
        self._acks: dict[str, dict[str, Any]] = {}
        self._logged: set[str] = set()
        self._wake = threading.Event()
        self._closing = False
        self._client: Any = None
        self._thread: threading.Thread | None = None

    def pending(self) -> frozenset[str]:
        """Ids of the requests that wait for a save."""
        with self._lock:
            return frozenset(self._pending)

    def saved(self, ids: Collection[str], step: int, saved_at: int, set_name: str) -> None:
        """A save that began after these requests were seen is complete: acknowledge them soon."""
        with self._lock:
            self._pending.difference_update(ids)
            for each in ids:
                ack = {"format": 1, "request_id": each, "step": step, "saved_at": saved_at, "set": set_name}
                self._acks[each] = ack
        if ids:
            self._wake.set()

    def start(self) -> None:
        if self._place and self._job and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="sharewarden-requests", daemon=True)
            self._thread.start()

    def close(self, wait: float = 5.0) -> None:
        """Stop asking, after a last try at the acknowledgements that takes so many seconds at most."""
        if self._thread:
            self._closing = True
            self._wake.set()
            self._thread.join(wait)

    def _run(self) -> None:
        while not self._closing:
            self._try(self._look)
            self._wake.wait(self._seconds)
            self._wake.clear()
            self._try(self._acknowledge)

    def _try(self, act: Callable[[], None]) -> None:
        """Whatever goes wrong with S3, boto3 or what somebody wrote there: the training goes on."""
        try:
            act()
        except Exception as error:  # noqa: BLE001
            kind = f"{type(error).__name__} {getattr(error, 'response', {}).get('Error', {}).get('Code', '')}"
            if kind not in self._logged and len(self._logged) < MOST_LOGGED:
                self._logged.add(kind)
                log.warning("save requests cannot be read or acknowledged now (said once): %s", error)

    def _look(self) -> None:
        s3 = self._s3()
        try:
            answer = s3.get_object(Bucket=self._bucket, Key=self._key("requests", f"{self._job}.json"))
        except s3.exceptions.NoSuchKey:
            return
        request = parse(answer["Body"].read(MOST_BYTES))
        if request.deadline > time.time() * 1000 and request.id not in self._seen:
            with self._lock:
                self._seen.add(request.id)
                self._pending.add(request.id)

    def _acknowledge(self) -> None:
        with self._lock:
            acks = dict(self._acks)
        for each, ack in acks.items():
            key = self._key("acks", f"{self._job}", f"{each}.json")
            self._s3().put_object(Bucket=self._bucket, Key=key, Body=json.dumps(ack).encode())
            with self._lock:
                del self._acks[each]

    def _s3(self) -> Any:
        if self._client is None:
            import boto3  # noqa: PLC0415  # local saving works without it
            from botocore.config import Config  # noqa: PLC0415

            quick = Config(connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 2})
            self._client = boto3.session.Session().client("s3", config=quick)
        return self._client

    @property
    def _bucket(self) -> str:
        return self._place[1] if self._place else ""

    def _key(self, *names: str) -> str:
        prefix = self._place[2].strip("/") if self._place else ""
        return "/".join(filter(None, [prefix, ".sharewarden", *names]))


def parse(text: bytes) -> Request:
    """Raises ValueError for what is no request."""
    data = json.loads(text)
    if not isinstance(data, dict) or data.get("format") != 1:
        raise ValueError("not a save request of format 1")
    name, deadline = data.get("request_id"), data.get("deadline")
    if not isinstance(name, str) or not REQUEST_ID.fullmatch(name) or type(deadline) is not int:
        raise ValueError("a save request lacks its id or its deadline")
    return Request(name, deadline)
