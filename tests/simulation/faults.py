"""Ports that do something at one of their calls: crash, lose the answer, or let somebody else go first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from sharewarden.ports import Runtime, Unavailable

When = Literal["before", "after"]
Hook = Callable[[int, str, When], None]

#: The ports that stand for a call over the network.
REMOTE = (
    *("batch", "ledger", "wishes", "notices", "looks", "workflows"),
    *("checkpoints", "policies", "topic", "webhook"),
)


class Crash(BaseException):
    """The process is gone: nothing may catch this."""


class Watched:
    """One port; ``calls`` is shared by all of a runtime and numbers their calls."""

    def __init__(self, port: Any, calls: Calls) -> None:
        self._port = port
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)

        def call(*args: Any) -> Any:
            number = self._calls.start(name)
            answer = method(*args)
            if name == "open_items":
                answer = list(answer)
            self._calls.end(number, name)
            return answer

        return call


class Calls:
    """Numbers the calls of one runtime from 1 on, and tells ``hook`` of each before and after it."""

    def __init__(self, hook: Hook) -> None:
        self.number = 0
        self.names: list[str] = []
        self._hook = hook

    def start(self, name: str) -> int:
        self.number += 1
        self.names.append(name)
        number = self.number
        self._hook(number, name, "before")
        return number

    def end(self, number: int, name: str) -> None:
        self._hook(number, name, "after")


def watched(runtime: Runtime, hook: Hook) -> tuple[Runtime, Calls]:
    """The runtime with every call over the network seen by ``hook``."""
    calls = Calls(hook)
    ports = {name: Watched(getattr(runtime, name), calls) for name in REMOTE}
    return replace(runtime, **ports), calls


def nothing(number: int, name: str, when: When) -> None:
    """No fault."""


def once(at: int, when: When, act: Callable[[], None]) -> Hook:
    """``act`` at the call of that number, before or after it."""

    def hook(number: int, name: str, now: When) -> None:
        if (number, now) == (at, when):
            act()

    return hook


def crash() -> None:
    raise Crash


def lose() -> None:
    """The request never arrives, or (after the call) its answer does not."""
    raise Unavailable("lost")
