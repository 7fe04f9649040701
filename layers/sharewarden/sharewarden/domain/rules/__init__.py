"""The built-in rules, one module each: a module that is here is a rule. ``max_gpus.py`` is ``max-gpus``.

Only the rules that a policy names are imported: a function's cold start pays for no others.
"""

import pkgutil
from functools import cache
from importlib import import_module

from pydantic_core import PydanticCustomError

from sharewarden.domain.hints import meant

from .base import Guardrail

#: The modules here that are no rules.
_OTHERS = frozenset({"base", "facts"})
#: The rule whose expression the policy itself brings.
CUSTOM = "custom"


@cache
def names() -> tuple[str, ...]:
    """The names of all rules."""
    found = (module.name for module in pkgutil.iter_modules(__path__))
    return tuple(sorted(name.replace("_", "-") for name in found if name not in _OTHERS))


def rule_class(name: str) -> type[Guardrail]:
    """The class of a rule. Raises PydanticCustomError with a hint when there is none of that name."""
    if name not in names():
        hint = meant(name, names()) or f"the rules are {', '.join(names())}"
        raise PydanticCustomError(
            "no_such_rule", "there is no rule '{name}': {hint}", {"name": name, "hint": hint}
        )
    module = import_module(f".{name.replace('-', '_')}", __package__)
    rule: type[Guardrail] = module.Rule
    return rule
