"""Values as a person would write them into a policy."""

from __future__ import annotations

_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000))


def duration_text(ms: int) -> str:
    """``1h30m``: what ``parse_duration`` reads, in whole seconds."""
    parts, rest = [], ms
    for unit, size in _UNITS:
        amount, rest = divmod(rest, size)
        if amount:
            parts.append(f"{amount}{unit}")
    return "".join(parts) or "0s"
