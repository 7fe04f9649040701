"""A boto3 client that is made when it is first used."""

from collections.abc import Callable
from functools import cached_property
from typing import Any


class Lazy:
    """Making a client takes a part of a cold start, and most functions never use this one."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    @cached_property
    def _made(self) -> Any:
        return self._make()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)
