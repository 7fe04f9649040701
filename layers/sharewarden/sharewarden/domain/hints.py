"""What somebody may have meant who wrote a name that there is not."""

from collections.abc import Iterable
from difflib import get_close_matches


def meant(name: str, known: Iterable[str]) -> str | None:
    """``did you mean 'x'?``; None when no name is like it."""
    near = get_close_matches(name, sorted(known), n=1)
    return f"did you mean {near[0]!r}?" if near else None


def hint(name: str, known: Iterable[str]) -> str:
    """``did you mean 'x'?``, or which names there are."""
    names = sorted(known)
    return meant(name, names) or (f"there is {', '.join(names)}" if names else "there is none")
