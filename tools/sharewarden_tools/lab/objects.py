"""Where training jobs keep their checkpoints: S3 in the local stack, a dictionary in tests."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Protocol


class ObjectStore(Protocol):
    """Objects by `s3://bucket/key`."""

    def put(self, uri: str, body: bytes) -> None: ...

    def get(self, uri: str) -> bytes:
        """The body; KeyError when there is none."""

    def list(self, prefix: str) -> list[str]:
        """All uris that start with `prefix`, sorted."""


class MemoryObjects:
    """An object store in memory; the sorted index keeps listing cheap when many jobs save."""

    def __init__(self) -> None:
        self._bodies: dict[str, bytes] = {}
        self._index: list[str] = []

    def put(self, uri: str, body: bytes) -> None:
        if uri not in self._bodies:
            insort(self._index, uri)
        self._bodies[uri] = body

    def get(self, uri: str) -> bytes:
        return self._bodies[uri]

    def list(self, prefix: str) -> list[str]:
        start = bisect_left(self._index, prefix)
        end = bisect_left(self._index, prefix + "\U0010ffff")
        return self._index[start:end]
