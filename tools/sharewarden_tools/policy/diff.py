"""What one policy changes of another: by path, and what that brings about, in words."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import yaml
from pydantic import BaseModel
from sharewarden.domain.policy import Policy
from sharewarden.domain.rules.base import Guardrail, Mode

from .shape import is_duration
from .texts import duration_text

#: Stands for a member that one of the two policies lacks.
_ABSENT = object()
_WIDE = 10**9


class Change(NamedTuple):
    """``queues.ml-train-qm.bumps``, ``shadow``, ``enforce``; None where one of the two has no such member."""

    path: str
    before: str | None
    after: str | None

    def line(self) -> str:
        if self.before is None:
            return f"+ {self.path}: {self.after}"
        if self.after is None:
            return f"- {self.path}: {self.before}"
        return f"~ {self.path}: {self.before} -> {self.after}"


def changes(old: Policy, new: Policy) -> tuple[Change, ...]:
    """In the order of the language. Nothing differs by a default that is only spelled out."""
    found = tuple(_compare("", _by_label(old), _by_label(new)))
    if not found and old.hash != new.hash:
        return (Change("guardrails", "in another order", "in this order"),)
    return found


def effects(old: Policy, new: Policy, queues: Collection[str]) -> tuple[str, ...]:
    """What changes in the queues of these names; empty when nothing does."""
    names = sorted(queues)
    return (
        *_pausing(old, new),
        *(text for name in names for text in _bumps(name, old, new)),
        *_enforcing(old, new, names),
        *_coming_and_going(old, new, names),
        *(text for name in names for text in _protection(name, old, new)),
    )


def as_yaml(policy: Policy) -> str:
    """The policy as a person would write it, without what is at its default."""
    return yaml.safe_dump(_plain(policy), sort_keys=False, allow_unicode=True, width=_WIDE)


# By path.


def _by_label(policy: Policy) -> dict[str, Any]:
    return _members(policy) | {"guardrails": _entries(policy)}


def _compare(path: str, old: Any, new: Any) -> Iterator[Change]:
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        names = [*old, *(name for name in new if name not in old)]
        for name in names:
            inner = f"{path}.{name}" if path else str(name)
            yield from _compare(inner, old.get(name, _ABSENT), new.get(name, _ABSENT))
    elif isinstance(old, BaseModel) and type(old) is type(new):
        yield from _compare(path, _members(old), _members(new))
    else:
        yield Change(path, _text(old), _text(new))


def _members(model: BaseModel) -> dict[str, Any]:
    """Every member, durations as people write them."""
    return {name: _member(model, name) for name in type(model).model_fields}


def _member(model: BaseModel, name: str) -> Any:
    value = getattr(model, name)
    return duration_text(value) if value is not None and _is_duration(model, name) else value


def _is_duration(model: BaseModel, name: str) -> bool:
    field = type(model).model_fields[name]
    return is_duration(field.annotation, tuple(field.metadata))


def _text(value: Any) -> str | None:
    if value is _ABSENT:
        return None
    plain = _plain(value)
    if isinstance(plain, str):
        return plain
    dumped = yaml.safe_dump(plain, sort_keys=False, default_flow_style=True, allow_unicode=True, width=_WIDE)
    return dumped.removesuffix("...\n").strip()


def _plain(value: Any) -> Any:
    """The value in what YAML has: a model by its members that are not at their default."""
    if isinstance(value, BaseModel):
        given = value.model_dump(exclude_defaults=True).keys()
        return {name: _plain(member) for name, member in _members(value).items() if name in given}
    if isinstance(value, Mapping):
        return {name: _plain(member) for name, member in value.items()}
    if isinstance(value, tuple | list | frozenset | set):
        return [_plain(member) for member in value]
    return value


# In words.


def _pausing(old: Policy, new: Policy) -> Iterator[str]:
    if new.paused:
        yield "stays paused: nothing acts" if old.paused else "everything stops: paused, nothing acts"
    elif old.paused:
        yield "no longer paused: acts go on, overdue restores first"


def _bumps(queue: str, old: Policy, new: Policy) -> Iterator[str]:
    before, after = old.queue(queue).bumps, new.queue(queue).bumps
    if before != after:
        what = "take effect" if after == "enforce" else "are only recorded (shadow)"
        yield f"{queue}: bumps {what} from now on"


def _enforcing(old: Policy, new: Policy, queues: Collection[str]) -> Iterator[str]:
    before, after = _enforced(old, queues), _enforced(new, queues)
    for label, entry in _entries(new).items():
        if places := sorted(after[label] - before.get(label, set())):
            yield f"becomes enforced: {label} in {', '.join(places)} ({entry.action})"
    for label in _entries(old):
        if places := sorted(before[label] - after.get(label, set())):
            yield f"is no longer enforced: {label} in {', '.join(places)}"


def _coming_and_going(old: Policy, new: Policy, queues: Collection[str]) -> Iterator[str]:
    before, after, enforced = _entries(old), _entries(new), _enforced(new, queues)
    for label, entry in after.items():
        if label not in before:
            shadow = "" if enforced[label] else ", in shadow"
            yield f"guardrail comes: {label} ({entry.action}{shadow})"
        elif before[label].fingerprint != entry.fingerprint:
            yield f"guardrail changes: {label}; what it found stays on record, it decides anew"
    yield from (f"guardrail goes: {label}" for label in before if label not in after)


def _protection(queue: str, old: Policy, new: Policy) -> Iterator[str]:
    before, after = _protected(old, queue), _protected(new, queue)
    yield from (f"{queue}: share {name} is protected from acts" for name in sorted(after - before))
    yield from (f"{queue}: share {name} is NO LONGER protected" for name in sorted(before - after))


def _entries(policy: Policy) -> dict[str, Guardrail]:
    return {entry.label: entry for entry in policy.guardrails}


def _enforced(policy: Policy, queues: Collection[str]) -> dict[str, set[str]]:
    """The queues in which each entry is enforced."""
    return {
        entry.label: {name for name in queues if _mode(policy, entry, name) == "enforce"}
        for entry in policy.guardrails
    }


def _mode(policy: Policy, entry: Guardrail, queue: str) -> Mode | None:
    return policy.mode(entry, queue) if entry.covers(queue) else None


def _protected(policy: Policy, queue: str) -> set[str]:
    return {name for name, share in policy.queue(queue).shares.items() if share.protected}
