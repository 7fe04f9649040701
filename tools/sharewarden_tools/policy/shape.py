"""Which type the language has at each place of a document: for hints, and for what pydantic lets pass."""

from __future__ import annotations

from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator
from pydantic_core import PydanticCustomError
from sharewarden.domain.durations import Duration
from sharewarden.domain.rules import CUSTOM, rule_class
from sharewarden.domain.rules.base import Guardrail

from .problems import Loc

#: What makes an int a duration that may be written as text.
_READS_DURATIONS = get_args(Duration)[1]
_LISTS = (tuple, list, frozenset, set)


class Spot(NamedTuple):
    """``kind`` is a model class, ``dict``, ``list`` or the type of a scalar; None where anything goes."""

    value: Any
    kind: Any
    duration: bool = False


def spots(value: Any, annotation: Any, loc: Loc = (), metadata: tuple[Any, ...] = ()) -> dict[Loc, Spot]:
    """A spot for each part of the value that the annotation knows."""
    return dict(_spots(value, annotation, loc, metadata))


def is_duration(annotation: Any, metadata: tuple[Any, ...] = ()) -> bool:
    """Whether a value of that annotation is written as ``10m``."""
    return _READS_DURATIONS in _bare(annotation, metadata)[1]


def _spots(value: Any, annotation: Any, loc: Loc, metadata: tuple[Any, ...]) -> Iterator[tuple[Loc, Spot]]:
    bare, metadata = _bare(annotation, metadata)
    origin = get_origin(bare) or bare
    if isinstance(origin, type) and issubclass(origin, BaseModel):
        yield from _in_model(value, origin, loc)
    elif origin in _LISTS:
        yield loc, Spot(value, list)
        items = value if isinstance(value, list) else ()
        for index, item in enumerate(items):
            yield from _spots(item, (*get_args(bare), Any)[0], (*loc, index), ())
    elif origin is dict:
        yield loc, Spot(value, dict)
        for name, item in value.items() if isinstance(value, dict) else ():
            yield from _spots(item, (*get_args(bare), Any, Any)[1], (*loc, name), ())
    else:
        duration = _READS_DURATIONS in metadata
        converted = not duration and any(isinstance(one, BeforeValidator) for one in metadata)
        yield loc, Spot(value, None if converted else bare, duration)


def _in_model(value: Any, model: type[BaseModel], loc: Loc) -> Iterator[tuple[Loc, Spot]]:
    found = _rule_of(value) if issubclass(model, Guardrail) else model
    yield loc, Spot(value, found)
    if found is None or not isinstance(value, dict):
        return
    for name, field in found.model_fields.items():
        if name in value:
            yield from _spots(value[name], field.annotation, (*loc, name), tuple(field.metadata))


def _rule_of(entry: Any) -> type[Guardrail] | None:
    if not isinstance(entry, dict):
        return None
    name = entry.get("rule", CUSTOM if "when" in entry else None)
    try:
        return rule_class(name) if isinstance(name, str) else None
    except PydanticCustomError:
        return None


def _bare(annotation: Any, metadata: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """The annotation without what is around it: ``Annotated``, and a union's other branches."""
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation, *more = get_args(annotation)
            metadata = (*metadata, *more)
        elif origin in (Union, UnionType):
            branches = [one for one in get_args(annotation) if one is not type(None)]
            annotation = branches[0] if len(branches) == 1 else Any
        else:
            return annotation, metadata
