"""The JSON Schema of the policy, for editors: names, types, limits and what each key means.

What needs more than one value to see (a share that the policy does not name) is `policy check`'s alone.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema
from sharewarden.domain.policy import Policy
from sharewarden.domain.rules import CUSTOM, names, rule_class
from sharewarden.domain.rules.base import Guardrail

from .shape import is_duration
from .texts import duration_text

#: As ``domain.durations`` reads it.
DURATION = {"type": "string", "pattern": r"^([0-9]{1,6}[smhd] *)+$", "examples": ["90s", "30m", "1h30m"]}


def policy_schema() -> dict[str, Any]:
    """JSON Schema, draft 2020-12."""
    schema = Policy.model_json_schema(schema_generator=_Generator)
    entries = {name: _entry_schema(name) for name in names()}
    for entry in entries.values():
        schema["$defs"] |= entry.pop("$defs", {})
    schema["$defs"] |= entries
    schema["$defs"].pop(Guardrail.__name__, None)
    schema["properties"]["guardrails"]["items"] = {"oneOf": [{"$ref": f"#/$defs/{name}"} for name in entries]}
    return {"$schema": GenerateJsonSchema.schema_dialect, **schema, "title": "Sharewarden policy"}


def _entry_schema(name: str) -> dict[str, Any]:
    """An entry says which rule it is, but one with an expression of its own, which is known by that."""
    rule = rule_class(name)
    schema = rule.model_json_schema(schema_generator=_Generator)
    if name == CUSTOM:
        schema["required"].remove("rule")
    if not rule.acts:
        schema["properties"]["action"]["enum"] = ["record", "notify"]
    return schema | {"title": name}


class _Generator(GenerateJsonSchema):
    """Durations as people write them, and the docstrings of attributes as descriptions."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        made = super().model_schema(schema)
        model: type[BaseModel] = schema["cls"]
        texts = _attribute_docs(model)
        for name, field in model.model_fields.items():
            shown = {key: value for key, value in made["properties"][name].items() if key != "title"}
            if is_duration(field.annotation, tuple(field.metadata)):
                shown = _duration(field)
            made["properties"][name] = shown | ({"description": texts[name]} if name in texts else {})
        made["description"] = _one_line(inspect.getdoc(model) or "")
        made.pop("title", None)
        return made


def _duration(field: FieldInfo) -> dict[str, Any]:
    if field.default is None:
        return DURATION | {"type": ["string", "null"]}
    return DURATION | ({"default": duration_text(field.default)} if isinstance(field.default, int) else {})


@cache
def _attribute_docs(model: type[BaseModel]) -> Mapping[str, str]:
    """The text under each attribute, in the class or in those it comes from."""
    found: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        if issubclass(cls, BaseModel) and cls is not BaseModel:
            found |= _docs_in(cls)
    return found


def _docs_in(cls: type) -> dict[str, str]:
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    lines = tree.body if isinstance(tree, ast.ClassDef) else []
    found = {}
    for line, below in pairwise(lines):
        text = _text_in(below)
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and text is not None:
            found[line.target.id] = _one_line(text)
    return found


def _text_in(line: ast.stmt) -> str | None:
    value = line.value if isinstance(line, ast.Expr) else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None


def _one_line(text: str) -> str:
    return " ".join(text.replace("``", "`").split())
