"""The Checkpoints port in memory, by the same suite as the one on S3 (tests/contract/test_checkpoints.py)."""

from collections.abc import Iterator, Sequence
from itertools import count, islice
from typing import NamedTuple

from sharewarden.domain.checkpoints import ObjectSeen, Place, Protection, place_of
from sharewarden.ports import Clock, Denied, Unavailable

PAGE_SIZE = 1000


class Version(NamedTuple):
    """``body`` None: a deletion."""

    id: str
    body: bytes | None
    modified_at: int


class MemoryCheckpoints:
    """Checkpoints over dictionaries: bucket -> key -> versions, the newest last.

    A bucket is there once something was put into it; ``versioned`` holds those that keep versions, and
    ``expires`` the days of a lifecycle rule by bucket. While ``down`` holds a text, every call raises
    Unavailable with it; while ``denied`` does, Denied. ``asked`` counts the calls.
    """

    def __init__(self, clock: Clock) -> None:
        self.buckets: dict[str, dict[str, list[Version]]] = {}
        self.versioned: set[str] = set()
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

    def versions(self, uri: str, keys: Sequence[str]) -> dict[str, str] | None:
        place = self._reach(uri)
        bucket = self._bucket(place)
        if place.bucket not in self.versioned:
            return None
        there = [key for key in keys if self._current(place, place.prefix + key) is not None]
        return {key: bucket[place.prefix + key][-1].id for key in there}

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

    def restore(self, uri: str, key: str, version_id: str) -> None:
        place = self._reach(uri)
        versions = self._bucket(place).get(place.prefix + key, ())
        body = next((one.body for one in versions if one.id == version_id), None)
        if body is None:
            raise Denied(f"{uri}: {key} has no version {version_id}")
        self._write(place, key, body)

    def delete(self, uri: str, key: str) -> None:
        """What a deletion under the training's local path does here, once SageMaker has repeated it."""
        place = place_of(uri)
        if place.bucket in self.versioned:
            self._write(place, key, None)
        else:
            del self.buckets[place.bucket][place.prefix + key]

    def _write(self, place: Place, key: str, body: bytes | None) -> None:
        versions = self.buckets[place.bucket].setdefault(place.prefix + key, [])
        if place.bucket not in self.versioned:
            versions.clear()
        versions.append(Version(f"v{next(self._ids)}", body, self._clock.now()))

    def _seen(self, place: Place, key: str) -> ObjectSeen | None:
        newest = self.buckets[place.bucket][key][-1]
        if newest.body is None:
            return None
        return ObjectSeen(key.removeprefix(place.prefix), len(newest.body), newest.modified_at, newest.id)

    def _current(self, place: Place, key: str) -> bytes | None:
        versions = self._bucket(place).get(key)
        return versions[-1].body if versions else None

    def _bucket(self, place: Place) -> dict[str, list[Version]]:
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


def _pages(seen: Iterator[ObjectSeen]) -> Iterator[tuple[ObjectSeen, ...]]:
    """One empty page when there is nothing, as S3 answers."""
    page = tuple(islice(seen, PAGE_SIZE))
    yield page
    while page := tuple(islice(seen, PAGE_SIZE)):
        yield page
