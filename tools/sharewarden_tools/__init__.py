"""Tools around Sharewarden that are never deployed: the lab, the command line, reports.

For notebooks: ``from sharewarden_tools import preflight``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .submission import preflight as preflight

#: What notebooks take from here, and the module that has it.
_NOTEBOOK = {"preflight": "submission"}


def __getattr__(name: str) -> Any:
    """Imported when asked for: it takes a second, and the rest of the package does without it."""
    if name not in _NOTEBOOK:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_NOTEBOOK[name]}"), name)
