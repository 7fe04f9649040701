"""What every part of the lab shares: time, options, repeatable chance, and the way out for events."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from .clock import Clock, Timer, Timers
from .options import Options, Span

Json = dict[str, Any]
Listener = Callable[[Json], None]


def iso_seconds(ms: int) -> str:
    """ISO-8601 in whole seconds, as in the envelope of an event."""
    return _iso(ms // 1000)


@lru_cache(maxsize=256)
def _iso(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class World:
    """One account and Region at one moment.

    Ids and durations come from hashes of seed and key, not from one stream of random numbers, so a story
    that changes in one place stays the same elsewhere.
    """

    def __init__(self, clock: Clock, options: Options, seed: int, account: str, region: str) -> None:
        self.clock = clock
        self.options = options
        self.seed = seed
        self.account = account
        self.region = region
        self.timers = Timers()
        self._serials: Counter[str] = Counter()
        self._listeners: list[Listener] = []
        self._outbox: deque[Json] = deque()
        self._flushing = False

    def now(self) -> int:
        return self.clock.now()

    def after(self, delay_ms: int, action: Callable[[], None]) -> Timer:
        return self.timers.at(self.now() + delay_ms, action)

    def arn(self, service: str, path: str) -> str:
        return f"arn:aws:{service}:{self.region}:{self.account}:{path}"

    def uuid(self, kind: str) -> str:
        """The next id of its kind."""
        self._serials[kind] += 1
        digits = self._hash(f"{kind}/{self._serials[kind]}").hex()
        return "-".join((digits[:8], digits[8:12], f"4{digits[13:16]}", f"8{digits[17:20]}", digits[20:]))

    def draw(self, span: Span, key: str) -> int:
        """A duration within the span, the same for the same seed and key."""
        shortest, longest = span
        return shortest + int(self.chance(key) * (longest - shortest + 1)) if longest > shortest else shortest

    def chance(self, key: str) -> float:
        """A number in [0, 1), the same for the same seed and key."""
        return int.from_bytes(self._hash(key)[:6], "big") / 2**48

    def _hash(self, key: str) -> bytes:
        return blake2b(f"{self.seed}/{key}".encode(), digest_size=16).digest()

    def subscribe(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def emit(self, source: str, detail_type: str, resources: list[str], detail: Json) -> None:
        """Queue one event; listeners hear it when the change that made it is complete (`flush`)."""
        self._outbox.append(
            {
                "version": "0",
                "id": self.uuid("event"),
                "detail-type": detail_type,
                "source": source,
                "account": self.account,
                "time": iso_seconds(self.now()),
                "region": self.region,
                "resources": resources,
                "detail": detail,
            }
        )

    def flush(self) -> None:
        """Hand out queued events in order; what a listener adds by calling the lab comes after them."""
        if self._flushing:
            return
        self._flushing = True
        try:
            while self._outbox:
                event = self._outbox.popleft()
                for listener in self._listeners:
                    listener(event)
        finally:
            self._flushing = False
