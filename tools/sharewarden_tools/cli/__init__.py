"""The command ``sharewarden``."""

from .app import main

__all__ = ["main"]
