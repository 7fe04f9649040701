"""Expressions in CEL over the facts of a job: custom rules (docs/policy.md, "Custom rules")."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, get_args

from sharewarden.domain.periods import Period
from sharewarden.domain.rules.base import MOST_ENTRIES, Unknown
from sharewarden.domain.rules.facts import Facts

from .library import ERRORS, NotCompiled, Program, compiled, plain, undefined
from .names import check_names, members, named, paths
from .syntax import CelError, parse
from .trial import try_out

__all__ = ["CelError", "Expression", "expression"]


class Expression:
    """A checked expression that says yes or no about a job."""

    def __init__(self, text: str) -> None:
        """Raises CelError, with the place and what would be right, for an expression that cannot work."""
        tree = parse(text)
        check_names(text, tree)
        self._program = _compiled(text)
        try_out(text, tree)
        self.reads = tuple(sorted(set(paths(tree))))
        self._facts = members(self.reads)

    @property
    def needs_pool(self) -> bool:
        """Whether it reads what only a look at the whole queue shows."""
        return any(path.partition(".")[0] in ("team", "user") for path in self.reads)

    @property
    def gpu_periods(self) -> tuple[Period, ...]:
        """The periods whose GPU-hours it reads; all of them where it does not name one as a member."""
        hours = [path.split(".")[2:] for path in self.reads if "_gpu_hours" in path]
        named = {part for rest in hours for part in rest}
        return tuple(period for period in get_args(Period) if hours and (period in named or [] in hours))

    def holds(self, facts: Facts) -> bool | Unknown:
        """The word on a job; Unknown names what is missing, or what went wrong."""
        try:
            value = self._program.execute(named(facts, self._facts))
        except ERRORS as error:
            return Unknown(what=self._told(error))
        return value if isinstance(value, bool) else Unknown(what="a yes or no")

    def figures(self, facts: Facts) -> dict[str, Any]:
        """The single values that it read."""
        return dict(self._read(named(facts, self._facts)))

    def _read(self, names: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        for path in self.reads:
            value: Any = names
            for name in path.split("."):
                value = value.get(name) if isinstance(value, dict) else None
            if isinstance(value, str | int | float):
                yield path, value

    def _told(self, error: Exception) -> str:
        missing = error.args[0] if isinstance(error, KeyError) else undefined(error)
        if missing is None:
            return plain(error)
        return next((path for path in self.reads if path.endswith(f".{missing}")), str(missing))


@lru_cache(maxsize=2 * MOST_ENTRIES)  # those of the policy in force and of the one before
def expression(text: str) -> Expression:
    """The expression of this text, checked once. Raises CelError."""
    return Expression(text)


def _compiled(text: str) -> Program:
    try:
        return compiled(text)
    except NotCompiled as error:
        before = text.split("\n")[: error.line - 1]
        at = sum(len(line) + 1 for line in before) + error.column - 1
        raise CelError(text, at, str(error)) from None
