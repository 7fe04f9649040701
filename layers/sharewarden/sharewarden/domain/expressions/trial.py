"""An expression is tried at load, part by part: a wrong type is found where it stands, whatever runs later.

The library judges types only where it comes by. So each operand of ``&&``, ``||`` and ``?:`` and each
comparison is run by itself on the samples.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from .library import ERRORS, compiled, plain, undefined
from .names import ROOTS
from .samples import samples
from .syntax import CelError, Node

_TELLS = frozenset({"all", "exists", "exists_one", "filter"})
_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "a yes or no"),
    ((int, float), "a number"),
    (str, "a text"),
    (datetime, "a time"),
    (timedelta, "a duration"),
    ((list, tuple), "a list"),
    (dict, "a map"),
)


class _Part(NamedTuple):
    """A part of the tree, and the macros around it: what they run over, and their variables."""

    node: Node
    around: tuple[tuple[Node, str], ...] = ()

    def inside(self, number: int) -> "_Part":
        """One of its own parts. What a macro runs over lies outside of it."""
        node = self.node
        if not node.is_macro or number == 0:
            return _Part(node.parts[number], self.around)
        return _Part(node.parts[number], (*self.around, (node.parts[0], node.parts[1].name)))


def try_out(text: str, tree: Node) -> None:
    """Raises CelError for a wrong type anywhere, and when the whole is no yes or no."""
    trial = _Trial(text, tree)
    for part in _parts(_Part(tree)):
        trial.check(part)
    trial.must_be_bool(_Part(tree), "a rule is a yes or no")


def _parts(part: _Part) -> Iterator[_Part]:
    """All parts that have a value, the innermost first: what is wrong is told where it begins to be."""
    for number in range(len(part.node.parts)):
        is_variable = part.node.is_macro and number == 1
        if not is_variable:
            yield from _parts(part.inside(number))
    yield part


class _Trial:
    def __init__(self, text: str, tree: Node) -> None:
        self._text = text
        self._keys = frozenset(_keys(tree))
        self._samples = samples(self._keys)
        self._known: dict[_Part, list[Any]] = {}

    def check(self, part: _Part) -> None:
        """The part by itself, and what its kind asks of its own parts."""
        node = part.node
        if node.kind == "logic":
            for number in (0, 1):
                self.must_be_bool(part.inside(number), f"{node.name} joins a yes or no")
        elif node.kind == "choice":
            self.must_be_bool(part.inside(0), "'?' asks for a yes or no")
        elif node.is_macro and node.name in _TELLS:
            self.must_be_bool(part.inside(2), f"{node.name}() asks for a yes or no")
        elif node.kind == "equal":
            self._comparable(part)
        if node.kind != "literal":
            self._values(part)

    def must_be_bool(self, part: _Part, why: str) -> None:
        """Raises CelError when it is anything else on some sample."""
        other = next((value for value in self._values(part) if not isinstance(value, bool)), None)
        if other is not None:
            raise self._error(part.node, f"{why}, and {self._source(part.node)} is {_kind(other)}")

    def _comparable(self, part: _Part) -> None:
        if any(node.name == "null" for node in part.node.parts):
            raise self._error(part.node, "what is not known is left out and never null: use has(...)")
        self._values(part)  # what is no list or map has nothing in it
        left, right = (part.inside(number) for number in (0, 1))
        ones, others = self._values(left), self._values(right)
        if part.node.name == "in":
            others = [item for value in others for item in value]
        kinds, against = {_kind(value) for value in ones}, {_kind(value) for value in others}
        if kinds and against and not kinds & against:
            names = self._source(left.node), min(kinds), self._source(right.node), min(against)
            told = "{0} is {1}, and {2} has {3}" if part.node.name == "in" else "{0} is {1}, and {2} is {3}"
            raise self._error(part.node, told.format(*names) + ": they are never equal")

    def _values(self, part: _Part) -> list[Any]:
        """What the part is on the samples, once for each item of the macros around it."""
        if part not in self._known:
            self._known[part] = self._tried(part)
        return self._known[part]

    def _tried(self, part: _Part) -> list[Any]:
        source = self._source(part.node)
        for ranges, variable in reversed(part.around):
            source = f"{self._source(ranges)}.map({variable}, {source})"
        found: list[Any] = []
        for names in self._samples:
            found += _flat(self._run(part, source, names), len(part.around))
        return found

    def _run(self, part: _Part, source: str, names: dict[str, Any]) -> list[Any]:
        """The value alone in a list; nothing where it depends on the data whether there is one."""
        node = part.node
        try:
            return [compiled(source).execute(names)]
        except ERRORS as error:
            why = self._refusal(node, error)
            if why is not None:
                raise CelError(self._text, node.at, f"{self._source(node)}: {why}") from error
            return []

    def _refusal(self, node: Node, error: Exception) -> str | None:
        """Why an error means that the expression is wrong; None when other data might do."""
        if isinstance(error, TypeError):
            return "these types do not go together"
        if isinstance(error, KeyError):
            return f"there is never {error.args[0]!r}" if error.args[0] in self._keys else None
        name = undefined(error)
        if name is not None:
            return f"{name}() does not take that"
        constant = not any(inner.name in ROOTS for inner in node.walk() if inner.kind == "name")
        return plain(error) if constant or "'matches'" in str(error) else None

    def _error(self, node: Node, why: str) -> CelError:
        return CelError(self._text, node.start, why)

    def _source(self, node: Node) -> str:
        return self._text[node.start : node.end]


def _flat(values: list[Any], depth: int) -> list[Any]:
    for _ in range(depth):
        values = [item for value in values for item in value]
    return values


def _kind(value: Any) -> str:
    return next((name for types, name in _KINDS if isinstance(value, types)), type(value).__name__)


def _keys(tree: Node) -> Iterator[str]:
    """Keys of maps that the expression asks for: the texts in it, and members of what is no fact's name."""
    for node in tree.walk():
        if node.kind == "literal" and node.name[0] in "\"'":
            yield node.name.strip("\"'")
        elif node.kind == "select":
            yield node.name
