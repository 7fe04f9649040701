"""The Checkpoints port in memory, by the same suite as the one on S3 (tests/contract/test_checkpoints.py)."""

from collections.abc import Iterator, Sequence
from hashlib import md5
from itertools import count, islice
from typing import NamedTuple

from sharewarden.domain.checkpoints import ObjectSeen, Place, Protection, Version, place_of
from sharewarden.ports import Clock, Denied, Unavailable

PAGE_SIZE = 1000


class Kept(NamedTuple):
    """One version; ``body`` None: a deletion."""

    id: str
    body: bytes | None
    modified_at: int
    etag: str


class MemoryCheckpoints:
    """Checkpoints over dictionaries: bucket -> key -> versions, the newest last.

    A bucket is there once something was put into it; ``versioned`` holds those that keep versions, and
    ``expires`` the days of a lifecycle rule by bucket; in those ``encrypted`` by KMS no two ETags are alike.
    While ``down`` holds a text, every call raises Unavailable with it; while ``denied`` does, Denied.
    ``asked`` counts the calls.
    """

    def __init__(self, clock: Clock) -> None:
        self.buckets: dict[str, dict[str, list[Kept]]] = {}
        self.versioned: set[str] = set()
        self.encrypted: set[str] = set()
        self.expires: dict[str, int] = {}
        self.down: str | None = None
        self.denied: str | None = None
        self.asked = 0
        self._clock = clock
        self._ids = count(1)

    def pages(self, uri: str) -> Iterator[tuple[ObjectSeen, ...]]:
        place = self._reach(uri)
        found = sorted(key for key in self._bucket(place) if key.startswith(place.prefix))
        seen = (one for key in found if (one := self._seen(place, key)))
        for number, page in enumerate(_pages(seen)):
            if number:
                self._reach(uri)
            yield page

    def read(self, uri: str, key: str, most: int) -> bytes | None:
        place = self._reach(uri)
        body = self._current(place, place.prefix + key)
        return None if body is None or len(body) > most else body

    def versions(self, uri: str, keys: Sequence[str]) -> dict[str, tuple[Version, ...]]:
        place = self._reach(uri)
        bucket = self._bucket(place)
        found = {key: _newest_first(bucket.get(place.prefix + key, [])) for key in keys}
        return {key: versions for key, versions in found.items() if versions}

    def protection(self, uri: str) -> Protection:
        place = self._reach(uri)
        self._bucket(place)
        return Protection(
            versioned=place.bucket in self.versioned, expires_after_days=self.expires.get(place.bucket)
        )

    def put(self, uri: str, key: str, body: bytes) -> None:
        place = self._reach(uri)
        self.buckets.setdefault(place.bucket, {})
        self._write(place, key, body)

    def restore(self, uri: str, key: str, version: Version) -> str:
        place = self._reach(uri)
        kept = self._bucket(place).get(place.prefix + key, ())
        body = next((one.body for one in kept if (one.id, one.etag) == (version.id, version.etag)), None)
        if body is None:
            raise Denied(f"{uri}: {key} has no version {version.id} any longer")
        return self._write(place, key, body)

    def delete(self, uri: str, key: str) -> None:
        """What a deletion under the training's local path does here, once SageMaker has repeated it."""
        place = place_of(uri)
        if place.bucket in self.versioned:
            self._write(place, key, None)
        else:
            del self.buckets[place.bucket][place.prefix + key]

    def _write(self, place: Place, key: str, body: bytes | None) -> str:
        versions = self.buckets[place.bucket].setdefault(place.prefix + key, [])
        version = f"v{next(self._ids)}" if place.bucket in self.versioned else "null"
        if version == "null":
            versions[:] = [one for one in versions if one.id != "null"]
        unlike = f" {next(self._ids)}".encode() if place.bucket in self.encrypted else b""
        etag = md5((body or b"") + unlike, usedforsecurity=False).hexdigest()
        versions.append(Kept(version, body, self._clock.now(), f'"{etag}"'))
        return version

    def _seen(self, place: Place, key: str) -> ObjectSeen | None:
        newest = self.buckets[place.bucket][key][-1]
        if newest.body is None:
            return None
        return ObjectSeen(key.removeprefix(place.prefix), len(newest.body), newest.modified_at, newest.etag)

    def _current(self, place: Place, key: str) -> bytes | None:
        versions = self._bucket(place).get(key)
        return versions[-1].body if versions else None

    def _bucket(self, place: Place) -> dict[str, list[Kept]]:
        if place.bucket not in self.buckets:
            raise Denied(f"NoSuchBucket: {place.bucket}")
        return self.buckets[place.bucket]

    def _reach(self, uri: str) -> Place:
        self.asked += 1
        if self.down is not None:
            raise Unavailable(self.down)
        if self.denied is not None:
            raise Denied(self.denied)
        try:
            return place_of(uri)
        except ValueError as error:
            raise Denied(str(error)) from error


def _newest_first(kept: list[Kept]) -> tuple[Version, ...]:
    return tuple(
        Version(one.id, len(one.body), one.etag, one is kept[-1])
        for one in reversed(kept)
        if one.body is not None
    )


def _pages(seen: Iterator[ObjectSeen]) -> Iterator[tuple[ObjectSeen, ...]]:
    """One empty page when there is nothing, as S3 answers."""
    page = tuple(islice(seen, PAGE_SIZE))
    yield page
    while page := tuple(islice(seen, PAGE_SIZE)):
        yield page
