"""Which API actions a function can come to call, read from its source.

handler -> what it mentions -> `<runtime>.<port>.<method>` -> the adapter that bootstrap makes for the port ->
`<client>.<operation>`. A name that is mentioned counts as called, so the answer may be too large, not too
small: what this reading cannot follow (a port handed around, a module imported whole) raises Unreadable.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sharewarden_tools.template import TEMPLATE

PACKAGE = TEMPLATE.parent / "layers" / "sharewarden"
FUNCTIONS = TEMPLATE.parent / "functions"
BOOTSTRAP = "sharewarden.bootstrap"
CLIENTS = {"self._client", "client"}
WITHOUT_AWS = {"clock"}
#: What imports by name: the modules of this package, of each the function called as it.
BY_NAME = {"step_named": "sharewarden.usecases.care"}

Place = tuple[str, ast.AST]
"""A definition and the module that it stands in."""


class Unreadable(Exception):
    """The code does something that this reading cannot follow."""


@dataclass(frozen=True)
class Action:
    """``setting``: the variable of the environment that names the table or queue; ``index``: of a query."""

    name: str
    setting: str | None = None
    index: str | None = None


def read_sources() -> dict[str, str]:
    """The text of every deployed module by its name."""
    texts = {f"functions.{path.parent.name}.app": path.read_text() for path in FUNCTIONS.glob("*/app.py")}
    for path in PACKAGE.rglob("*.py"):
        texts[_module_name(path)] = path.read_text()
    return texts


def _module_name(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


class Code:
    """The deployed modules. Raises Unreadable from every method."""

    def __init__(self, sources: dict[str, str]) -> None:
        self._trees = {name: ast.parse(text) for name, text in sources.items()}
        self._packages = {name for name in sources if any(other.startswith(f"{name}.") for other in sources)}
        self._imports = {name: self._imported(name) for name in sources}
        self._definitions = {
            name: {defined: node for node in tree.body for defined in _defined(node)}
            for name, tree in self._trees.items()
        }

    def actions(self, function: str) -> set[Action]:
        """Every action that ``functions/<function>/app.py`` can call."""
        calls = set(
            self._port_calls((f"functions.{function}.app", self._top(f"functions.{function}.app", "handler")))
        )
        return {
            action
            for port, method in calls
            if port not in WITHOUT_AWS
            for action in self._adapter_actions(port, method)
        }

    # From the handler to the ports.

    def _port_calls(self, handler: Place) -> Iterator[tuple[str, str]]:
        ports = self._ports()
        for _, node in self._reachable([handler]):
            yield from _used_ports(node, ports)

    def _ports(self) -> dict[str, set[str]]:
        """Methods of each port by its name in Runtime."""
        runtime = self._top("sharewarden.ports", "Runtime")
        protocols = {
            node.target.id: node.annotation.id
            for node in ast.walk(runtime)
            if isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and isinstance(node.annotation, ast.Name)
        }
        named = {port: self._find("sharewarden.ports", protocol) for port, protocol in protocols.items()}
        return {port: set(_methods(place[1])) for port, place in named.items() if place is not None}

    def _reachable(self, start: Iterable[Place]) -> Iterator[Place]:
        found: set[int] = set()
        todo = list(start)
        while todo:
            module, node = todo.pop()
            if id(node) in found or module == BOOTSTRAP:
                continue
            found.add(id(node))
            yield module, node
            places = (self._find(module, name) for name in _mentioned(node))
            todo.extend(place for place in places if place is not None)
            todo.extend(self._imported_by_name(module, node))

    def _imported_by_name(self, module: str, node: ast.AST) -> Iterator[Place]:
        """The domain, which has no ports, may import what it likes."""
        if "import_module" not in _mentioned(node) or module.startswith("sharewarden.domain."):
            return
        package = BY_NAME.get(getattr(node, "name", ""))
        if package is None:
            raise Unreadable(f"{module} imports by name")
        for place, definitions in self._definitions.items():
            name = place.removeprefix(f"{package}.")
            if name in definitions and place != name:
                yield place, definitions[name]

    def _find(self, module: str, name: str) -> Place | None:
        """Where the name, as used in the module, is defined; None outside the deployed code."""
        if name in self._definitions[module]:
            return module, self._definitions[module][name]
        if name not in self._imports[module]:
            return None
        source, original = self._imports[module][name]
        if f"{source}.{original}" in self._trees:
            raise Unreadable(f"{source}.{original} is imported whole")
        return self._find(source, original) if source in self._trees else None

    def _imported(self, module: str) -> dict[str, tuple[str, str]]:
        """The module and name that each imported name stands for."""
        statements = (node for node in ast.walk(self._trees[module]) if isinstance(node, ast.ImportFrom))
        return {
            alias.asname or alias.name: (self._source(module, node), alias.name)
            for node in statements
            for alias in node.names
        }

    def _source(self, module: str, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = module.split(".")
        keep = len(parts) - node.level + (module in self._packages)
        return ".".join([*parts[:keep], *([node.module] if node.module else [])])

    def _top(self, module: str, name: str) -> ast.AST:
        place = self._find(module, name)
        if place is None:
            raise Unreadable(f"{module} has no {name}")
        return place[1]

    # From the ports to the clients.

    def _adapter_actions(self, port: str, method: str) -> set[Action]:
        made = self._made(port)
        place = self._find(BOOTSTRAP, _text(made.func))
        if place is None:
            raise Unreadable(f"{port} is made by {_text(made.func)}")
        module, adapter = place
        nodes = list(self._of_method(module, adapter, method))
        given = self._given(adapter, made)
        settings = {given[name] for name in _attributes(nodes) if name in given and name != "self._client"}
        service = given.get("self._client")
        return {
            Action(f"{service}:{name}", setting, index)
            for name in _operations(nodes)
            for setting in settings or {None}
            for index in (_indexes(nodes) if name == "Query" else {None})
        }

    def _made(self, port: str) -> ast.Call:
        """The call in bootstrap that makes the adapter."""
        composition = self._top(BOOTSTRAP, "aws_runtime")
        for node in ast.walk(composition):
            if isinstance(node, ast.Call) and _text(node.func) == "Runtime":
                value = next(keyword.value for keyword in node.keywords if keyword.arg == port)
                value = value.body if isinstance(value, ast.IfExp) else value  # made only if it is set up
                if isinstance(value, ast.Call):
                    return value
        raise Unreadable(f"bootstrap makes no {port}")

    def _of_method(self, module: str, adapter: ast.AST, method: str) -> Iterator[ast.AST]:
        methods = _methods(adapter)
        todo, done = [method], set[str]()
        while todo:
            name = todo.pop()
            if name in done:
                continue
            done.add(name)
            reached = [node for _, node in self._reachable([(module, methods[name])])]
            yield from reached
            todo += [
                text.removeprefix("self.")
                for text in _attributes(reached)
                if text.removeprefix("self.") in methods
            ]

    def _given(self, adapter: ast.AST, made: ast.Call) -> dict[str, str]:
        """What bootstrap hands the adapter, by attribute: a client's service, a setting's variable."""
        init = _methods(adapter).get("__init__")
        if init is None:
            return {}
        handed = dict(
            zip((arg.arg for arg in init.args.args[1:]), map(self._handed, made.args), strict=False)
        )
        kept = [node for node in ast.walk(init) if isinstance(node, ast.Assign)]
        pairs = ((_text(node.targets[0]), handed.get(_text(node.value))) for node in kept)
        return {attribute: value for attribute, value in pairs if value is not None}

    def _handed(self, argument: ast.expr) -> str | None:
        text = _text(argument)
        if text.startswith("given."):
            return self._variable(text.removeprefix("given."))
        bound = [
            node.value
            for node in ast.walk(self._top(BOOTSTRAP, "aws_runtime"))
            if isinstance(node, ast.AnnAssign) and _text(node.target) == text
        ]
        made = _made_late(bound[0] if bound else argument)
        if isinstance(made, ast.Call) and _text(made.func) == "boto3.client":
            return str(ast.literal_eval(made.args[0]))
        return None

    def _variable(self, field: str) -> str:
        for node in ast.walk(self._top(BOOTSTRAP, "Settings")):
            if isinstance(node, ast.AnnAssign) and _text(node.target) == field:
                return next(iter(_constants([node], "alias")))
        raise Unreadable(f"Settings has no {field}")


def _made_late(value: ast.expr) -> ast.expr:
    """The call in `given or Lazy(lambda: call)`, or the value itself."""
    value = value.values[-1] if isinstance(value, ast.BoolOp) else value
    late = (
        isinstance(value, ast.Call) and _text(value.func) == "Lazy" and isinstance(value.args[0], ast.Lambda)
    )
    return value.args[0].body if late else value  # type: ignore[attr-defined]


def _text(node: ast.AST) -> str:
    """A dotted name as text, nothing for any other expression."""
    if isinstance(node, ast.Name):
        return node.id
    return f"{_text(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


def _mentioned(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _defined(node: ast.stmt) -> set[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, ast.Assign):
        return {_text(target) for target in node.targets}
    return {_text(node.target)} if isinstance(node, ast.AnnAssign) else set()


def _methods(node: ast.AST) -> dict[str, ast.FunctionDef]:
    return {each.name: each for each in ast.iter_child_nodes(node) if isinstance(each, ast.FunctionDef)}


def _attributes(nodes: Iterable[ast.AST]) -> set[str]:
    return {
        f"self.{each.attr}"
        for node in nodes
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute) and _text(each.value) == "self"
    }


def _used_ports(node: ast.AST, ports: dict[str, set[str]]) -> Iterator[tuple[str, str]]:
    called = {id(each.func) for each in ast.walk(node) if isinstance(each, ast.Call)}
    whole = {
        id(each): each for each in ast.walk(node) if isinstance(each, ast.Attribute) and each.attr in ports
    }
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute) and id(each.value) in whole and id(each) in called:
            port = whole.pop(id(each.value)).attr
            if each.attr in ports[port]:
                yield port, each.attr
    for left in whole.values():
        if _text(left.value).rpartition(".")[2] in ("runtime", "ports"):
            raise Unreadable(f"{_text(left)} is used otherwise than by calling a method of it")


def _operations(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for call in (each for node in nodes for each in ast.walk(node) if isinstance(each, ast.Call)):
        if isinstance(call.func, ast.Attribute) and _text(call.func.value) in CLIENTS:
            name = call.func.attr
            name = ast.literal_eval(call.args[0]) if name == "get_paginator" else name
            yield from _authorised_as("".join(part.capitalize() for part in name.split("_")), call)


def _authorised_as(operation: str, call: ast.Call) -> Iterator[str]:
    """A transaction has no action of its own: each of its parts needs that of the single call."""
    if operation != "TransactWriteItems":
        yield operation
        return
    for node in ast.walk(call):
        if isinstance(node, ast.Dict):
            yield from (f"{ast.literal_eval(key)}Item" for key in node.keys if key is not None)


def _indexes(nodes: Iterable[ast.AST]) -> set[str | None]:
    """What queries name as their index; any index where it is not written down on the spot."""
    given = [
        each.value
        for node in nodes
        for each in ast.walk(node)
        if isinstance(each, ast.keyword) and each.arg == "IndexName"
    ]
    named = {str(value.value) if isinstance(value, ast.Constant) else "*" for value in given}
    return {*named} or {None}


def _constants(nodes: Iterable[ast.AST], keyword: str) -> set[Any]:
    return {
        each.value.value
        for node in nodes
        for each in ast.walk(node)
        if isinstance(each, ast.keyword) and each.arg == keyword and isinstance(each.value, ast.Constant)
    }
