"""The grammar of CEL, read into a tree: the library that runs expressions gives none.

The tree serves the checks at load, which look at every branch and say where something is wrong. What runs is
compiled by the library from the same text; what this reader takes and the library refuses is refused.
Grammar: the language definition of the Common Expression Language, without struct literals.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Literal, NamedTuple

LONGEST = 500
DEEPEST = 20

Kind = Literal[
    "literal",
    "name",
    "select",
    "index",
    "call",
    "method",
    "list",
    "map",
    "logic",
    "choice",
    "equal",
    "operator",
]

MACROS = frozenset({"all", "exists", "exists_one", "map", "filter"})


class CelError(ValueError):
    """The expression is refused. ``at`` is the place in its text, from 0."""

    def __init__(self, text: str, at: int, why: str) -> None:
        self.at = at
        line, column = text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1
        where = f"character {column}" if "\n" not in text.strip() else f"line {line}, character {column}"
        super().__init__(f"at {where} of the expression: {why}")


class Node(NamedTuple):
    """One part of an expression. ``text[start:end]`` is its source.

    ``name``: the operator, the function, the member, the variable; of a literal its text.
    A method's first part is what it is called on.
    """

    kind: Kind
    start: int
    end: int
    name: str
    parts: tuple["Node", ...] = ()
    named_at: int | None = None
    """Where the name of a member or method stands."""

    @property
    def at(self) -> int:
        """Where to look for what is wrong with it."""
        return self.start if self.named_at is None else self.named_at

    @property
    def is_macro(self) -> bool:
        """Whether it runs over a list or map with a variable of its own: ``tags.exists(key, key == 'a')``."""
        return self.kind == "method" and self.name in MACROS

    def walk(self) -> Iterator["Node"]:
        """It and all its parts."""
        yield self
        for part in self.parts:
            yield from part.walk()


class _Token(NamedTuple):
    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


_QUOTED = (
    r'"{3}(?:\\.|[^\\])*?"{3}',
    r"'{3}(?:\\.|[^\\])*?'{3}",
    r'"(?:\\.|[^"\\\n])*"',
    r"'(?:\\.|[^'\\\n])*'",
)
_STRING = f"[rRbB]{{0,2}}(?:{'|'.join(_QUOTED)})"
_TOKENS = re.compile(
    rf"(?P<space>(?:\s|//[^\n]*)+)"
    rf"|(?P<string>{_STRING})"
    rf"|(?P<number>0x[0-9a-fA-F]+u?|(?:\d+\.\d+|\.\d+|\d+)(?:[eE][+-]?\d+)?[uU]?)"
    rf"|(?P<name>[A-Za-z_]\w*)"
    rf"|(?P<mark>&&|\|\||==|!=|<=|>=|[-+*/%<>!?:.,()\[\]{{}}])",
    re.DOTALL | re.ASCII,
)
_CONSTANTS = frozenset({"true", "false", "null"})
_RESERVED = _CONSTANTS | {"in"}
#: Operators by how tightly they bind, the loosest first.
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("||",),
    ("&&",),
    ("==", "!=", "in", "<", "<=", ">=", ">"),
    ("+", "-"),
    ("*", "/", "%"),
)
_KINDS: dict[str, Kind] = {"||": "logic", "&&": "logic", "==": "equal", "!=": "equal", "in": "equal"}


#: What other languages write in words.
_WORDS = {"and": "write &&", "or": "write ||"}


def parse(text: str) -> Node:
    """The tree of an expression. Raises CelError for what is no expression, too long or too deep."""
    if len(text) > LONGEST:
        raise CelError(text, LONGEST, f"it has {len(text)} characters, and {LONGEST} are allowed")
    return _Reader(text).whole()


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        found = _TOKENS.match(text, at)
        if found is None:
            raise CelError(text, at, f"{text[at]!r} is not expected here")
        if found.lastgroup != "space":
            yield _Token(found.lastgroup or "", found[0], at)
        at = found.end()


class _Reader:
    """Reads by recursive descent."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [*_tokens(text), _Token("end", "", len(text))]
        self._at = 0
        self._depth = 0

    def whole(self) -> Node:
        node = self._expression()
        if self._next.kind != "end":
            raise self._unexpected()
        return node

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _unexpected(self, wanted: str = "an operator") -> CelError:
        token = self._next
        what = "it ends too early" if token.kind == "end" else f"{token.text!r} is not expected here"
        hint = _WORDS.get(token.text, f"{wanted} is expected")
        return CelError(self._text, token.start, f"{what}, {hint}")

    def _take(self, *marks: str) -> _Token | None:
        """The next token when it is one of ``marks``; texts in quotes are none."""
        token = self._next
        if token.kind in ("string", "end") or token.text not in marks:
            return None
        self._at += 1
        return token

    def _must(self, mark: str) -> _Token:
        token = self._take(mark)
        if token is None:
            raise self._unexpected(repr(mark))
        return token

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            raise CelError(self._text, self._next.start, f"it is nested more than {DEEPEST} deep")
        node = self._choice()
        self._depth -= 1
        return node

    def _choice(self) -> Node:
        test = self._binary(0)
        if not self._take("?"):
            return test
        then = self._binary(0)
        self._must(":")
        other = self._expression()
        return Node("choice", test.start, other.end, "?:", (test, then, other))

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while token := self._take(*_LEVELS[level]):
            right = self._binary(level + 1)
            kind = _KINDS.get(token.text, "operator")
            left = Node(kind, left.start, right.end, token.text, (left, right))
        return left

    def _unary(self) -> Node:
        signs = []
        while token := self._take("!", "-"):
            signs.append(token)
        if any(one.text != other.text for one, other in pairwise(signs)):
            raise CelError(self._text, signs[0].start, "'!' and '-' cannot follow each other")
        node = self._member(self._primary())
        return Node("operator", signs[0].start, node.end, signs[0].text, (node,)) if signs else node

    def _member(self, node: Node) -> Node:
        while token := self._take(".", "["):
            if token.text == "[":
                key = self._expression()
                node = Node("index", node.start, self._must("]").end, "[]", (node, key))
            else:
                node = self._selected(node)
        return node

    def _selected(self, node: Node) -> Node:
        name = self._name("a member")
        if not self._take("("):
            return Node("select", node.start, name.end, name.text, (node,), name.start)
        arguments, end = self._list(")")
        return Node("method", node.start, end, name.text, (node, *arguments), name.start)

    def _name(self, wanted: str) -> _Token:
        token = self._next
        if token.kind != "name" or token.text in _RESERVED:
            raise self._unexpected(wanted)
        self._at += 1
        return token

    def _primary(self) -> Node:
        token = self._next
        if token.kind in ("string", "number") or token.text in _CONSTANTS:
            self._at += 1
            return Node("literal", token.start, token.end, token.text)
        if self._take("("):
            inner = self._expression()
            return inner._replace(start=token.start, end=self._must(")").end)
        if self._take("["):
            items, end = self._list("]")
            return Node("list", token.start, end, "[]", items)
        return self._map(token) if self._take("{") else self._named()

    def _named(self) -> Node:
        name = self._name("a value")
        if not self._take("("):
            return Node("name", name.start, name.end, name.text)
        arguments, end = self._list(")")
        return Node("call", name.start, end, name.text, arguments)

    def _list(self, closing: str) -> tuple[tuple[Node, ...], int]:
        """Expressions up to the closing mark, and where that ends."""
        items = []
        while not (token := self._take(closing)):
            items.append(self._expression())
            if not self._take(","):
                token = self._must(closing)
                break
        return tuple(items), token.end

    def _map(self, opening: _Token) -> Node:
        items = []
        while not (token := self._take("}")):
            items.append(self._expression())
            self._must(":")
            items.append(self._expression())
            if not self._take(","):
                token = self._must("}")
                break
        return Node("map", opening.start, token.end, "{}", tuple(items))
