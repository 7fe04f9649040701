"""Asking before something is changed."""

from __future__ import annotations

import sys

import typer


def confirmed(question: str, *, yes: bool) -> bool:
    """``--yes``, or a person at a terminal who says so; nobody there means no."""
    return yes or (sys.stdin is not None and sys.stdin.isatty() and typer.confirm(question, err=True))
