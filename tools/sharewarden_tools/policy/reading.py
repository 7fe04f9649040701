"""A document against a model: every fault at once, each with its place, its value and what to write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import filterfalse
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from pydantic_core.core_schema import ErrorType
from sharewarden.domain.hints import hint, meant
from sharewarden.domain.rules.base import Guardrail

from .problems import Loc, Problem
from .shape import Spot, spots
from .texts import duration_text
from .yaml_text import Document

Model = TypeVar("Model", bound=BaseModel)

_SHOWN = 60
#: What to write where pydantic found another type, by its error type (pydantic, Validation Errors).
_WANTED = {
    "string": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    **dict.fromkeys(("tuple", "list", "set", "frozen_set"), "a list: [a, b]"),
    **dict.fromkeys(("dict", "mapping", "model", "model_attributes"), "a mapping: {key: value}"),
}
#: What pydantic says by itself, and not a validator of ours.
_PYDANTICS = frozenset(get_args(ErrorType)) - {"value_error"}
_LIMITS = {
    "greater_than_equal": ("ge", "too small: write {} or more"),
    "greater_than": ("gt", "too small: write more than {}"),
    "less_than_equal": ("le", "too large: write {} or less"),
    "less_than": ("lt", "too large: write less than {}"),
    "too_short": ("min_length", "too short: write at least {}"),
    "string_too_short": ("min_length", "too short: write at least {}"),
    "too_long": ("max_length", "too long: write at most {}"),
    "string_too_long": ("max_length", "too long: write at most {} characters"),
}


def read(document: Document, model: type[Model]) -> tuple[Model | None, tuple[Problem, ...]]:
    """The value, or what is wrong with the document."""
    known = spots(document.value, model)
    faults = {
        loc: Problem(document.place(loc), loc, text)
        for loc, spot in known.items()
        if (text := _too_lax(spot))
    }
    value: Model | None = None
    try:
        value = model.model_validate(document.value)
    except ValidationError as error:
        for row in filterfalse(_is_echo, error.errors(include_url=False)):
            problem = _problem(document, row, known)
            faults.setdefault(problem.loc, problem)
    return None if faults else value, in_order(faults.values())


def in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """As they stand in the file."""
    return tuple(sorted(problems, key=lambda one: one.place or (0, 0)))


def shown(value: Any) -> str:
    """The value, as short as one line can hold."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _too_lax(spot: Spot) -> str | None:
    """What pydantic would let pass, and a schema or another reader would not."""
    value = spot.value
    twin = next((one for one in get_args(spot.kind) if _passes_for(value, one)), None)
    if twin is not None:
        return f"{shown(value)} is not the number {twin}: write {twin}"
    if spot.duration and isinstance(value, int | float):
        return _without_unit(value)
    if spot.duration or spot.kind not in (int, float, bool):
        return None
    wanted = _WANTED[spot.kind.__name__]
    if isinstance(value, str):
        return f"{value!r} is text: write {wanted}, without quotes"
    if value is not None and isinstance(value, bool) != (spot.kind is bool):
        return f"{shown(value)} is not {wanted}"
    return None


def _without_unit(value: float) -> str:
    if isinstance(value, bool):
        return f"{shown(value)} is not a duration: write 10m"
    return f"{value} has no unit: write for example {value}s, {value}m or {value}h"


def _passes_for(value: Any, option: Any) -> bool:
    """Whether the value is an option of a Literal to pydantic, or in a person's eyes, and is none."""
    return (
        isinstance(value, bool | str) and type(option) is not type(value) and value in (option, str(option))
    )


def _problem(document: Document, row: ErrorDetails, known: Mapping[Loc, Spot]) -> Problem:
    loc = _in_document(row, document.value)
    is_name = row["loc"][-1:] == ("[key]",)
    place = document.place(loc, key=is_name or row["type"] == "extra_forbidden")
    return Problem(place, loc, _text(row, loc, {} if is_name else known))


def _in_document(row: ErrorDetails, value: Any) -> Loc:
    """The part of a loc that is in the document: pydantic adds the branches of a union, and ``[key]``."""
    kept: list[str | int] = []
    for part in row["loc"]:
        if not _holds(value, part) and not (isinstance(value, dict) and row["type"] == "missing"):
            break
        kept.append(part)
        value = value[part] if _holds(value, part) else None
    return tuple(kept)


def _holds(value: Any, part: str | int) -> bool:
    if isinstance(part, int):
        return isinstance(value, list) and part < len(value)
    return isinstance(value, dict) and part in value


def _text(row: ErrorDetails, loc: Loc, known: Mapping[Loc, Spot]) -> str:
    kind, value = row["type"], row["input"]
    if kind == "missing":
        return f"is missing{_needed_by(known.get(loc[:-1]))}: write it"
    if kind == "extra_forbidden":
        return _unknown_key(str(loc[-1]), known.get(loc[:-1]))
    if kind == "literal_error":
        return _not_one_of(value, row["ctx"]["expected"])
    if kind in _LIMITS:
        return _beyond(row, known.get(loc))
    family = kind.removesuffix("_type").removesuffix("_parsing").removesuffix("_from_float")
    if family in _WANTED and family != kind:
        spot = known.get(loc)
        return _wrong_type(value, "a duration: 10m" if spot and spot.duration else _WANTED[family])
    return _said(row)


def _is_echo(row: ErrorDetails) -> bool:
    """A list that is too short only because pydantic does not count the items that are wrong."""
    return row["type"] == "too_short" and len(row["input"]) >= row["ctx"]["min_length"]


def _said(row: ErrorDetails) -> str:
    """The words of a validator of ours, or of pydantic about something rare."""
    message = row["msg"].removeprefix("Value error, ")
    if row["type"] not in _PYDANTICS:
        return message
    return f"{shown(row['input'])}: {message[:1].lower()}{message[1:]}"


def _needed_by(spot: Spot | None) -> str:
    name = _rule_name(spot)
    return f", and the rule {name} needs it" if name else ""


def _unknown_key(name: str, spot: Spot | None) -> str:
    model = spot.kind if spot else None
    fields = model.model_fields if isinstance(model, type) and issubclass(model, BaseModel) else {}
    rule = _rule_name(spot)
    whose = f"the rule {rule} has no option {name!r}" if rule else f"there is no key {name!r} here"
    return f"{whose}: {hint(name, fields)}"


def _rule_name(spot: Spot | None) -> str | None:
    is_rule = spot and isinstance(spot.kind, type) and issubclass(spot.kind, Guardrail)
    return str(spot.value.get("rule", "custom")) if spot and is_rule else None


def _not_one_of(value: Any, expected: str) -> str:
    names = [name.strip(" '") for name in expected.replace(" or ", ",").split(",")]
    advice = meant(value, names) if isinstance(value, str) else None
    return f"{shown(value)} is not one of {', '.join(names)}" + (f": {advice}" if advice else "")


def _beyond(row: ErrorDetails, spot: Spot | None) -> str:
    name, text = _LIMITS[row["type"]]
    limit = row["ctx"][name]
    value = spot.value if spot else row["input"]
    told = duration_text(limit) if spot and spot.duration else limit
    return f"{shown(value)} is {text.format(told)}"


def _wrong_type(value: Any, wanted: str) -> str:
    what, _, example = wanted.partition(": ")
    if value is None:
        return f"is empty: write {what}, or leave the key out"
    if wanted == "text" and isinstance(value, int | float):
        return f'{shown(value)} is not text: write "{shown(value)}"'
    return f"{shown(value)} is not {what}: write {example or wanted}"
