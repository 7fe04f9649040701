"""The domain imports the standard library, pydantic and itself: an allow-list that import-linter lacks."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sharewarden import domain

MODULES = sorted(Path(next(iter(domain.__path__))).rglob("*.py"))


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield {0: "", 1: "sharewarden.domain."}.get(node.level, "..") + (node.module or "")


def is_allowed(module: str) -> bool:
    top = module.partition(".")[0]
    return (
        top in sys.stdlib_module_names
        or top in ("pydantic", "pydantic_core")
        or f"{module}.".startswith("sharewarden.domain.")
    )


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_domain_module_imports_nothing_from_outside(path: Path) -> None:
    assert [module for module in imported(ast.parse(path.read_text())) if not is_allowed(module)] == []


@pytest.mark.parametrize("module", ["boto3", "sharewarden.aws.ledger", "sharewarden.domainx", "sharewarden"])
def test_what_lies_outside_is_refused(module: str) -> None:
    assert not is_allowed(module)
