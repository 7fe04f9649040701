"""JSON into models, and what is wrong with it in one plain line."""

import json
from typing import TypeVar

from pydantic import BaseModel, ValidationError

#: Characters of a foreign value that a name may show.
SHOWN = 100

_KINDS: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "a boolean",
    int: "a number",
    float: "a number",
}

Model = TypeVar("Model", bound=BaseModel)


class BadEvent(Exception):
    """An event that no retry can make readable. ``str()`` is one line: the place and what is wrong there."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


def read(model: type[Model], value: object, *path: str) -> Model:
    """``value``, found at ``path``, as ``model``. Raises BadEvent about the first thing wrong in it."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise _bad(error, path) from None


def canonical(value: object) -> str:
    """JSON without spaces, members sorted, in ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def shown(value: object) -> str:
    """What kind of value that is: a message goes to logs and people, and the value may not be for them."""
    return "null" if value is None else _KINDS.get(type(value), "a value")


def _bad(error: ValidationError, path: tuple[str, ...]) -> BadEvent:
    first = error.errors(include_url=False, include_context=False)[0]
    return BadEvent(_place((*path, *first["loc"])), _reason(first["type"], first["msg"], first["input"]))


def _place(path: tuple[str | int, ...]) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".") or "event"


def _reason(kind: str, message: str, value: object) -> str:
    if kind == "missing":
        return kind
    if kind in {"model_type", "dict_type"}:
        return f"{shown(value)} is not an object"
    for subject in ("Value error, ", "Input ", "String "):
        message = message.removeprefix(subject)
    return f"{shown(value)} {message}"
