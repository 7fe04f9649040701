"""What an expression may name: every name in it is looked up at load, in branches that never run as well."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from sharewarden.domain.hints import hint
from sharewarden.domain.rules.facts import Facts
from sharewarden.domain.stored import SECOND

from .syntax import CelError, Node

#: Tags have up to 50 entries: two macros inside each other run 2500 times, three would 125,000 times.
MOST_MACROS = 2
#: Parts of what a macro does each time: a hundred times `x + x` would make a text ten thousand times as long.
MOST_PARTS = 40
FUNCTIONS = frozenset(
    {"bytes", "double", "duration", "dyn", "has", "int", "size", "string", "timestamp", "type", "uint"}
)
METHODS = frozenset(
    {"contains", "endsWith", "matches", "size", "startsWith"}
    | {"getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getHours"}
    | {"getMilliseconds", "getMinutes", "getMonth", "getSeconds"}
)
TYPES = frozenset({"bool", "bytes", "double", "int", "list", "map", "string", "type", "uint"})

Shape = object
"""A type annotation of the facts; ``Any`` for what is computed."""


def _bare(annotation: Shape) -> Shape:
    """The annotation without None: a fact that is not known is left out."""
    if get_origin(annotation) not in (Union, UnionType):
        return annotation
    return next(one for one in get_args(annotation) if one is not NoneType)


ROOTS: dict[str, Shape] = {name: _bare(field.annotation) for name, field in Facts.model_fields.items()} | {
    "now": datetime
}
_TIMES = frozenset({"now", "job.deadline"})


def check_names(text: str, tree: Node) -> None:
    """Raises CelError for the first name that is not there, with the nearest one that is."""
    _Names(text).shape(tree, ROOTS)
    macros = sorted((node for node in tree.walk() if node.is_macro), key=lambda node: node.at)
    for node in macros[MOST_MACROS:]:
        raise CelError(text, node.at, f"{node.name}(): at most {MOST_MACROS} of such may be in a rule")


def members(read: Iterable[str]) -> tuple[str, ...]:
    """The facts behind the paths: ``job.tags`` for ``job.tags.x``, and all that a job has for ``job``."""
    found = {member for path in read for member in _members(path)}
    return tuple(sorted(found))


def _members(path: str) -> Iterator[str]:
    root, _, rest = path.partition(".")
    shape = ROOTS[root]
    if isinstance(shape, type) and issubclass(shape, BaseModel):
        for name in [rest.partition(".")[0]] if rest else shape.model_fields:
            yield f"{root}.{name}"
    else:
        yield root


def named(facts: Facts, wanted: tuple[str, ...]) -> dict[str, Any]:
    """The wanted facts as expressions see them; what is not known is left out.

    No others: to hand over all of them would take twenty times as long as to evaluate.
    """
    names: dict[str, Any] = {}
    for path in wanted:
        root, _, member = path.partition(".")
        owner = getattr(facts, root)
        if not member:
            names[root] = _plain(path, owner)
        elif owner is not None:
            value = getattr(owner, member)
            names.setdefault(root, {}).update({} if value is None else {member: _plain(path, value)})
    return names


def _plain(path: str, value: Any) -> Any:
    if path in _TIMES:
        return datetime.fromtimestamp(value / SECOND, UTC)
    if isinstance(value, dict):
        return {
            key: inner.model_dump(exclude_none=True) if isinstance(inner, BaseModel) else inner
            for key, inner in value.items()
        }
    return value


def paths(tree: Node) -> Iterator[str]:
    """The facts that it reads, as they are written: ``job.instances``."""
    path = _path(tree)
    if path is not None:
        yield path
        return
    for part in tree.parts:
        yield from paths(part)


def _path(node: Node) -> str | None:
    if node.kind == "name":
        return node.name if node.name in ROOTS else None
    above = _path(node.parts[0]) if node.kind == "select" else None
    return above and f"{above}.{node.name}"


class _Names:
    """Looks up the names of one expression."""

    def __init__(self, text: str) -> None:
        self._text = text

    def shape(self, node: Node, scope: dict[str, Shape]) -> Shape:
        """What the part is, as far as that shows; its own parts are looked up on the way."""
        if node.kind == "name":
            return self._variable(node, scope)
        if node.kind in ("select", "index"):
            return self._inside(node, scope)
        if node.is_macro:
            return self._macro(node, scope)
        if node.kind in ("call", "method"):
            self._function(node)
        shapes = [self.shape(part, scope) for part in node.parts]
        if node.kind == "equal":
            self._values(shapes[0], node.parts[1])
            self._values(shapes[1], node.parts[0])
        return Any

    def _values(self, shape: Shape, other: Node) -> None:
        """What has a few values only (a status) is compared with one of them."""
        if get_origin(shape) is not Literal:
            return
        for node in other.parts if other.kind == "list" else (other,):
            if node.kind == "literal" and (value := node.name.strip("\"'")) not in get_args(shape):
                raise self._no_such(node._replace(name=value), node.name, get_args(shape))

    def _variable(self, node: Node, scope: dict[str, Shape]) -> Shape:
        if node.name not in scope and node.name not in TYPES:
            raise self._no_such(node, node.name, scope)
        return scope.get(node.name, Any)

    def _inside(self, node: Node, scope: dict[str, Shape]) -> Shape:
        outer = self.shape(node.parts[0], scope)
        for key in node.parts[1:]:
            self.shape(key, scope)
        if isinstance(outer, type) and issubclass(outer, BaseModel):
            return self._member(node, outer)
        if get_origin(outer) is not None and get_args(outer):
            return get_args(outer)[-1] if get_origin(outer) is dict else self._item(node, outer)
        if outer is not Any:
            source = self._source(node.parts[0])
            hint = f": write for example {source}.getHours()" if outer is datetime else ""
            raise CelError(self._text, node.at, f"{source} has nothing inside{hint}")
        return Any

    def _member(self, node: Node, outer: type[BaseModel]) -> Shape:
        if node.kind == "index":
            name = self._source(node.parts[0])
            raise CelError(self._text, node.at, f"write {name}.member, not {self._source(node)}")
        if node.name not in outer.model_fields:
            raise self._no_such(node, self._source(node), outer.model_fields)
        return _bare(outer.model_fields[node.name].annotation)

    def _item(self, node: Node, outer: Shape) -> Shape:
        if node.kind == "select":
            raise CelError(self._text, node.at, f"{self._source(node.parts[0])} has no members")
        return get_args(outer)[0]

    def _macro(self, node: Node, scope: dict[str, Shape]) -> Shape:
        if len(node.parts) < 3 or node.parts[1].kind != "name":
            wanted = f"{node.name}(name, expression)"
            raise CelError(self._text, node.at, f"{node.name}() is written as {wanted}")
        ranges, variable, *bodies = node.parts
        if variable.name in scope or variable.name in TYPES:
            raise CelError(self._text, variable.start, f"{variable.name!r} is taken: use another name")
        inner = scope | {variable.name: _element(self.shape(ranges, scope))}
        for body in bodies:
            shape = self.shape(body, inner)
            self._cheap(body)
            if node.name == "map" and (body.kind == "choice" or _is_many(body, shape)):
                raise CelError(self._text, body.start, "map() collects single values, without '?'")
        return Any

    def _cheap(self, body: Node) -> None:
        """It is done for each of many. A pattern is compiled each time, in up to some milliseconds."""
        parts = sum(1 for _ in body.walk())
        if parts > MOST_PARTS:
            why = f"what is done for each of many has {parts} parts, and {MOST_PARTS} are allowed"
            raise CelError(self._text, body.start, why)
        made = next((node for node in body.walk() if _is_made(node)), None)
        if made is not None:
            why = "a list or map that is made for each of many holds constants only"
            raise CelError(self._text, made.start, why)
        found = next((node for node in body.walk() if node.kind == "method" and node.name == "matches"), None)
        if found is not None:
            why = "matches() may not be used for each of many: use startsWith, endsWith or contains"
            raise CelError(self._text, found.at, why)

    def _function(self, node: Node) -> None:
        known = METHODS if node.kind == "method" else FUNCTIONS
        if node.name not in known:
            raise self._no_such(node, f"{node.name}()", known)
        if node.name == "has" and not (len(node.parts) == 1 and node.parts[0].kind == "select"):
            raise CelError(self._text, node.at, "has() asks for a member, as in has(job.user)")

    def _no_such(self, node: Node, told: str, known: Any) -> CelError:
        return CelError(self._text, node.at, f"there is no {told}: {hint(node.name, known)}")

    def _source(self, node: Node) -> str:
        return self._text[node.start : node.end]


def _is_made(node: Node) -> bool:
    """Whether it is a list or map of anything but constants: the library copies it again and again."""
    return node.kind in ("list", "map") and any(part.kind != "literal" for part in node.parts)


def _is_many(node: Node, shape: Shape) -> bool:
    """Whether the value may hold many: the time to collect such grows with the square of their number."""
    if (node.kind == "call" and node.name == "dyn") or node.kind in ("list", "map"):
        return True
    if node.is_macro:
        return node.name in ("map", "filter")
    is_model = isinstance(shape, type) and issubclass(shape, BaseModel)
    return is_model or get_origin(shape) in (dict, tuple)


def _element(shape: Shape) -> Shape:
    """What a macro's variable stands for: a map's keys, a list's items."""
    return get_args(shape)[0] if get_origin(shape) in (dict, tuple) else Any
