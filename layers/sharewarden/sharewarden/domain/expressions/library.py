"""The library that runs CEL: ``common-expression-language``, package ``cel`` (docs/policy.md has why it).

Only here it is loaded, and only when a policy has a custom rule. Its package imports its command line first,
which takes some 0.3 s and five more packages; the compiled module inside needs none of them.
"""

import re
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any, Protocol

#: What an expression may end with at run time, instead of a value.
ERRORS = (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError)


class Program(Protocol):
    """A compiled expression."""

    def execute(self, names: dict[str, Any]) -> Any:
        """The value. Raises one of ``ERRORS``; of them KeyError and ``undefined`` for what is not there."""


_PLACE = re.compile(r"<input>:(\d+):(\d+): (?:Syntax error: )?(.*)")


class NotCompiled(ValueError):
    """The library takes it for no expression. ``line`` and ``column`` count from 1."""

    def __init__(self, error: ValueError) -> None:
        found = _PLACE.search(str(error))
        self.line, self.column = (int(found[1]), int(found[2])) if found else (1, 1)
        super().__init__(found[3] if found else plain(error))


def compiled(text: str) -> Program:
    """The program. Raises NotCompiled."""
    try:
        program: Program = _library().compile(text)
    except ValueError as error:
        raise NotCompiled(error) from None
    return program


def undefined(error: Exception) -> str | None:
    """The name of a variable or function that is not there (or does not take that), if this was the error."""
    found = str(error).partition("Undefined variable or function: '")[2]
    return found.partition("'")[0] or None


def plain(error: Exception) -> str:
    """What the library says, without its advice on how to set variables."""
    first = str(error).partition(". Check ")[0].partition(" CEL does not coerce")[0]
    return " ".join(first.split())


@cache
def _library() -> Any:
    package = find_spec("cel")
    spec = PathFinder.find_spec("cel.cel", None if package is None else package.submodule_search_locations)
    if spec is None or spec.loader is None:
        raise ImportError("custom rules need the package common-expression-language")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
